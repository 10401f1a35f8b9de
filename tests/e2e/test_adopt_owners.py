"""Whose object it is: what other states have, and what has to be chosen by a person."""

from __future__ import annotations

from helpers import APPLY, Run, StackFactory, orphans, record, settings, state_attribute, status

from fixtures.fault_proxy import FaultProxy

TWO = 'resource "terraform_data" "a" {}\nresource "terraform_data" "b" {}\n'


def test_an_import_by_hand_warns_where_another_address_or_state_has_the_object(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    theirs = plain_stack('resource "terraform_data" "theirs" {}\n', name="theirs")
    assert tfguard(*APPLY, cwd=theirs).returncode == 0
    known = state_attribute(theirs, "terraform_data.theirs", "id")
    ours = settings(plain_stack(TWO), scan='{stacks: ["../theirs/terraform.tfstate"]}')

    done = tfguard("import", "terraform_data.a", known, cwd=ours)
    assert done.returncode == 0, done.stderr
    assert f"the state {theirs / 'terraform.tfstate'} has an object of that type and id already" in done.stderr
    assert "at terraform_data.theirs; in two places" in done.stderr
    assert known not in done.stderr

    (theirs / "terraform.tfstate").unlink()
    twice = tfguard("import", "terraform_data.b", known, cwd=ours)
    assert f"the state {ours / 'terraform.tfstate'} has an object of that type and id already" in twice.stderr
    assert "at terraform_data.a" in twice.stderr
    other = tfguard("import", "terraform_data.b", "another", cwd=ours)
    assert "already, at" not in other.stderr


def test_of_two_objects_for_one_address_a_person_chooses_and_the_other_stays_a_finding(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory('resource "aws_vpc" "main" {\n  cidr_block = "10.9.0.0/16"\n}\n'))
    proxy.add_rule("drop", action="CreateVpc")
    proxy.add_rule("cut", action="CreateVpc")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    found = orphans(tfguard, stack, code=2)["findings"]
    first, second = (item["id"] for item in found)
    assert {item["address"] for item in found} == {"aws_vpc.main"}

    both = tfguard("import", "--orphan", first, second, "--yes", cwd=stack)
    assert both.returncode == 1
    assert both.stderr.count("two of these findings belong to one address") == 2
    assert not list(record(stack).glob("dispositions*"))

    chosen = tfguard("import", "--orphan", second, "--yes", cwd=stack)
    assert chosen.returncode == 0, chosen.stderr
    assert [item["id"] for item in orphans(tfguard, stack, code=2)["findings"]] == [first]
    assert status(tfguard, stack, code=11)["open"]
    refused = tfguard("import", "--orphan", first, "--yes", cwd=stack)
    assert "the state already holds" in refused.stderr


def test_a_lost_rule_of_a_security_group_is_found_and_adopted_by_its_composite_id(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tf: Run
) -> None:
    rule = """
resource "aws_security_group" "web" {
  name = "web"
}
resource "aws_security_group_rule" "in" {
  security_group_id = aws_security_group.web.id
  type              = "ingress"
  protocol          = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_blocks       = ["10.0.0.0/8", "10.1.0.0/16"]
}
"""
    stack = settings(stack_factory(rule))
    assert tfguard(*APPLY, "-target=aws_security_group.web", cwd=stack).returncode == 0
    proxy.add_rule("cut", action="AuthorizeSecurityGroupIngress", count=None)
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    group = state_attribute(stack, "aws_security_group.web", "id")
    assert found["address"] == "aws_security_group_rule.in"
    assert found["object"]["import_id"] == f"{group}_ingress_tcp_443_443_10.0.0.0/8_10.1.0.0/16"
    adopted = tfguard("import", "--orphan", found["id"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert tf("plan", "-detailed-exitcode", "-input=false", cwd=stack, check=False).returncode == 0
