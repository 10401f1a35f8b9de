"""Before a destroy, what hangs on its networks and clusters and is nobody's is named; with a fake cloud."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from test_records import Heard
from test_story import make_context
from test_verify import AWS, CATALOG

from tfguard.flows.dependants import Dependants
from tfguard.model.inventory import CloudObject, Gap, Listing, MadeBy, Scope
from tfguard.model.operation import Step
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.secrets import Withholding
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot

ACCOUNT, REGION = "123456789012", "eu-west-1"
VPC_STEP = Step("aws_vpc.main", "aws_vpc", AWS, Action.DELETE, before={"id": "vpc-1"}, provider_key="aws")
EKS_STEP = Step("aws_eks_cluster.it", "aws_eks_cluster", AWS, Action.DELETE, before={"name": "it"}, provider_key="aws")


def made(kind: str, made_as: str, tags: Mapping[str, str] | None = None, **identity: str) -> CloudObject:
    """An object of the fake cloud."""
    told = {"id": made_as} | identity
    return CloudObject("aws", ACCOUNT, REGION, kind, made_as, made_as, identity=told, tags=tags or {})


VPC = made("aws_vpc", "vpc-1")
CLUSTER = made("aws_eks_cluster", "it", name="it")
CARD = made("aws_network_interface", "eni-1", vpc_id="vpc-1")
GROUP = made("aws_security_group", "sg-1", vpc_id="vpc-1")
VOLUME = made("aws_ebs_volume", "vol-1", {"ebs.csi.aws.com/cluster": "true", "kubernetes.io/cluster/it": "owned"})


def told(
    folder: Path,
    step: Step,
    objects: Sequence[CloudObject],
    before: StateSnapshot = EMPTY_STATE,
    refused: Sequence[str] = (),
    hidden: Withholding | None = None,
    seconds: float = 30,
) -> str:
    """What is said before a destroy of this one object."""

    def answer(kind: str, _provider: ProviderConfig, _region: str | None) -> Listing:
        scope = Scope("aws", ACCOUNT, REGION, "aws")
        found = tuple(one for one in objects if one.type == kind)
        return Listing(kind, scope, found, Gap(f"{scope} {kind}", "AccessDenied") if kind in refused else None)

    context = make_context(folder, answer)
    providers = {"aws": ProviderConfig("aws", AWS, {"region": REGION})}
    Dependants(context, [step], providers, before, hidden or Withholding()).tell(seconds)
    assert isinstance(context.console, Heard)
    return "\n".join(context.console.lines)


def state_with(found: CloudObject) -> StateSnapshot:
    """A state that has this object."""
    held = StateInstance(f"{found.type}.own", found.type, AWS, "aws", found.identity)
    return replace(EMPTY_STATE, instances=(held,))


def test_what_hangs_on_a_network_and_is_in_no_state_is_named(tmp_path: Path) -> None:
    elsewhere = made("aws_network_interface", "eni-2", vpc_id="vpc-2")
    foreign = replace(CARD, id="eni-3", import_id="eni-3", account="999999999999", identity={"vpc_id": "vpc-1"})
    said = told(tmp_path, VPC_STEP, [VPC, CARD, GROUP, elsewhere, foreign], state_with(GROUP))
    assert "on aws_vpc.main hang 1 that no state has" in said
    assert "aws_network_interface eni-1" in said
    assert not any(name in said for name in ("sg-1", "eni-2", "eni-3"))


def test_what_the_catalogue_ignores_or_goes_along_with_its_maker_is_not_named(tmp_path: Path) -> None:
    default = replace(GROUP, ignored_because="made by AWS with the VPC")
    rule = next(rule for rule in CATALOG.types["aws_network_interface"].made_by if rule.certain)
    maker = made(rule.type, "maker-1", **{rule.parent_attribute: "maker-1"})
    child = replace(CARD, made_by=(MadeBy(rule.type, rule.parent_attribute, "maker-1", rule.reason),))
    assert told(tmp_path, VPC_STEP, [VPC, default, child], state_with(maker)) == ""
    assert "eni-1" in told(tmp_path, VPC_STEP, [VPC, child]), "its maker is not there"


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (VOLUME, True),
        (replace(VOLUME, tags={"kubernetes.io/cluster/it": "shared"}), False),
        (replace(VOLUME, tags={"kubernetes.io/cluster/other": "owned"}), False),
        (made("aws_lb", "lb-1", {"elbv2.k8s.aws/cluster": "it"}), True),
        (made("aws_instance", "i-1", {"aws:eks:cluster-name": "it"}), True),
        (made("aws_eks_node_group", "it:workers", cluster_name="it"), True),
    ],
)
def test_what_a_cluster_has_made_is_told_by_its_tags(tmp_path: Path, found: CloudObject, named: bool) -> None:
    by_tag = (MadeBy("aws_eks_cluster", "name", "it", "made by a cluster"),)
    said = told(tmp_path, EKS_STEP, [CLUSTER, replace(found, made_by=by_tag)], state_with(CLUSTER))
    assert (found.import_id in said) is named, said


def test_what_could_not_be_looked_at_is_said(tmp_path: Path) -> None:
    said = told(tmp_path, VPC_STEP, [VPC, CARD], refused=["aws_security_group"])
    assert "eni-1" in said
    assert "not all looked at: aws 123456789012 eu-west-1 aws_security_group: AccessDenied" in said
    said = told(tmp_path, VPC_STEP, [CARD], refused=["aws_vpc"])
    assert "not all looked at: aws 123456789012 eu-west-1 aws_vpc: AccessDenied" in said


def test_a_name_that_is_marked_sensitive_is_withheld(tmp_path: Path) -> None:
    said = told(tmp_path, VPC_STEP, [VPC, CARD], hidden=Withholding(frozenset({"eni-1"})))
    assert ("hang 1" in said, "eni-1" in said) == (True, False)


@pytest.mark.parametrize("step", [replace(VPC_STEP, action=Action.UPDATE), replace(VPC_STEP, type="aws_sqs_queue")])
def test_where_nothing_goes_that_holds_others_nobody_is_asked(tmp_path: Path, step: Step) -> None:
    def answer(kind: str, _provider: ProviderConfig, _region: str | None) -> Listing:
        raise AssertionError(kind)

    Dependants(make_context(tmp_path, answer), [step], {}, EMPTY_STATE, Withholding()).tell(30)


def test_a_list_that_hangs_delays_for_a_bounded_time_and_is_a_gap(tmp_path: Path) -> None:
    held = threading.Event()

    def answer(kind: str, _provider: ProviderConfig, _region: str | None) -> Listing:
        if kind == "aws_subnet":
            held.wait(120)
        return Listing(kind, Scope("aws", ACCOUNT, REGION, "aws"), (VPC,) if kind == "aws_vpc" else ())

    context = make_context(tmp_path, answer)
    try:
        Dependants(context, [VPC_STEP], {}, EMPTY_STATE, Withholding()).tell(0.5)
    finally:
        held.set()
    assert isinstance(context.console, Heard)
    assert any("aws_subnet: the list took longer than" in line for line in context.console.lines)


def test_states_that_nobody_answers_keep_neither_the_look_nor_the_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HUNG)
    ended = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, "the other stacks' states: reading them took too long" in ended.stdout) == (0, True)


HUNG = """
import threading
from pathlib import Path

from test_dependants import CARD, VPC, VPC_STEP, told

import tfguard.flows.dependants as dependants


def never(*_):
    threading.Event().wait()
    yield


dependants.known_states = never
print(told(Path("record"), VPC_STEP, [VPC, CARD], seconds=2))
"""
