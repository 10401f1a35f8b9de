"""Inputs that once showed a fault; each is refused, or taken for what it is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fixtures.fuzz.running import Outcome, run_one
from fixtures.fuzz.targets import TARGETS
from tfguard.catalog.loader import load_catalog
from tfguard.engine.backend import locate_state
from tfguard.engine.plan import parse_plan
from tfguard.engine.state import parse_state
from tfguard.errors import InputError
from tfguard.inventory.items import to_time
from tfguard.model.plan import Action

CATALOG = load_catalog()
REFUSED, ACCEPTED = Outcome.REFUSED, Outcome.ACCEPTED


def state(**changes: object) -> bytes:
    """A state with one object, and something else in it."""
    role = {"mode": "managed", "type": "aws_iam_role", "name": "a", "instances": [{"attributes": {"id": "a"}}]}
    return json.dumps({"version": 4, "serial": 1, "lineage": "l", "resources": [role], **changes}).encode()


def instance(**changes: object) -> bytes:
    """A state whose one object has something else in it."""
    one = {"attributes": {"id": "a"}, **changes}
    return state(resources=[{"mode": "managed", "type": "aws_iam_role", "name": "a", "instances": [one]}])


@pytest.mark.parametrize(
    "data",
    [
        state(resources=None),
        state(resources="x"),
        state(resources=[1]),
        state(resources=[{"type": "aws_iam_role", "name": "a", "instances": [{}]}]),
        state(resources=[{"mode": 5, "type": "aws_iam_role", "name": "a", "instances": [{}]}]),
        state(resources=[{"mode": "managed", "type": "aws_iam_role", "name": "a", "instances": {}}]),
        state(resources=[{"mode": "managed", "type": "aws_iam_role", "name": "", "instances": []}]),
        state(resources=[{"mode": "manaced", "type": "aws_iam_role", "name": "a", "instances": [{}]}]),
        state(lineage=5),
        state(serial="1"),
        state(version=True),
        state(version="\u2028"),
        instance(index_key=[]),
        instance(deposed=5),
        instance(attributes=[]),
        instance(sensitive_attributes="name"),
    ],
)
def test_a_state_of_another_shape_is_refused_and_never_read_as_one_with_less_in_it(data: bytes) -> None:
    with pytest.raises(InputError, match="the state at here cannot be read") as caught:
        parse_state(data, "here", CATALOG)
    assert len(caught.value.what.splitlines()) == 1


def test_an_id_that_is_no_unicode_is_read() -> None:
    data = instance(attributes={"id": "\ud800"})
    assert parse_state(data, "here", CATALOG).instances[0].fingerprint


def plan(**changes: object) -> str:
    """A plan that creates a role, and something else in it."""
    item = {"address": "aws_iam_role.a", "mode": "managed", "type": "aws_iam_role", "change": {"actions": ["create"]}}
    return json.dumps({"resource_changes": [{**item, **changes}]})


@pytest.mark.parametrize(
    "output",
    [
        '{"resource_changes": 5}',
        '{"resource_changes": [5]}',
        "[]",
        plan(change=None),
        plan(change={"actions": "create"}),
        plan(change={"actions": []}),
        plan(change={"actions": ["create"], "after": "x"}),
        plan(address=None),
        plan(type=""),
        plan(mode=7),
        plan(mode="manaced"),
        plan(deposed=[]),
    ],
)
def test_a_plan_of_another_shape_is_refused_and_never_read_as_one_that_does_less(output: str) -> None:
    with pytest.raises(InputError, match="is not a plan that can be applied"):
        parse_plan(output, "plan.bin", CATALOG)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["create", "later"], Action.CREATE),
        (["later", "delete", "create"], Action.REPLACE),
        (["later", "delete"], Action.DELETE),
        (["later"], Action.UPDATE),
    ],
)
def test_a_combination_of_actions_that_is_not_known_still_creates(actions: list[str], expected: Action) -> None:
    found = parse_plan(plan(change={"actions": actions}), "plan.bin", CATALOG)
    assert [change.action for change in found.changes] == [expected]


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"backend": 5}',
        '{"backend": {}}',
        '{"backend": {"type": 5, "config": {}}}',
        '{"backend": {"type": "\\ud800", "config": {}}}',
        '{"backend": {"config": {"path": "x"}}}',
        '{"backend": {"type": "s3", "config": 5}}',
        '{"backend": {"type": "s3", "config": {"bucket": [], "key": "k"}}}',
        '{"backend": {"type": "local", "config": {"path": {}}}}',
        '{"backend": {"type": "gcs", "config": {"bucket": "a\\nb"}}}',
        '{"backend": {"type": "local", "config": {"path": "a\\u0000b"}}}',
    ],
)
def test_a_damaged_backend_file_never_means_the_local_state(tmp_path: Path, content: str) -> None:
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform" / "terraform.tfstate").write_text(content)
    with pytest.raises(InputError, match="is damaged"):
        locate_state(tmp_path, {})


def test_a_url_that_is_none_shows_nothing_of_a_password(tmp_path: Path) -> None:
    (tmp_path / ".terraform").mkdir()
    config = {"address": "https://me:hunter2@[x/state"}
    (tmp_path / ".terraform" / "terraform.tfstate").write_text(
        json.dumps({"backend": {"type": "http", "config": config}})
    )
    assert "hunter2" not in locate_state(tmp_path, {}).stack.location


@pytest.mark.parametrize("content", [b"\xff", b"\0\0\0\0", b"../../x", b"a b", "\u2028".encode()])
def test_a_damaged_note_of_the_workspace_never_means_the_default_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform" / "environment").write_bytes(content)
    with pytest.raises(InputError, match="names the selected workspace"):
        locate_state(tmp_path, {})


@pytest.mark.parametrize("answered", [float("inf"), float("nan"), 1e300, -1e300, "inf", "nan", "1e300", 10**400])
def test_a_time_that_is_none_is_not_known(answered: object) -> None:
    assert to_time(answered) is None


REQUEST = {"ResponseMetadata": {"RequestId": "r"}}


def listing(kind: str, *pages: object, endless: bool = False) -> bytes:
    """What `aws-answers` reads."""
    return json.dumps({"type": kind, "pages": pages, "details": [{}], "endless": endless}).encode()


def listed(**changes: object) -> bytes:
    """A line of an exported listing: what `export` reads."""
    return json.dumps({"type": "aws_sqs_queue", "id": "x", **changes}).encode()


def module(resources: bytes) -> bytes:
    """A state of version 3 with one module: what `old-state` reads."""
    return b'{"version": 3, "serial": 1, "lineage": "l", "modules": [{"path": ["root"], ' + resources + b"}]}"


def kept(**changes: object) -> bytes:
    """What `scan --format json` prints, without its sum."""
    times = {"started_at": "2026-03-01T11:59:51Z", "ended_at": "2026-03-01T12:00:00Z"}
    document = {"schema": "tfguard.findings/v1", "coverage": {}, "findings": [], "summary": {}, "scan": times}
    return json.dumps({**document, **changes}).encode()


# What comes of each is judged by the target: a listing that is complete and should not be is a fault.
@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("aws-answers", listing("aws_sqs_queue", {**REQUEST, "QueueUrls": "x"}), ACCEPTED),
        ("aws-answers", listing("aws_iam_role", {**REQUEST, "Roles": [{"Path": "/"}]}), ACCEPTED),
        ("aws-answers", listing("aws_kms_key", {**REQUEST, "Keys": [{"KeyArn": "x"}]}), ACCEPTED),
        ("aws-answers", listing("aws_instance", {**REQUEST, "Reservations": [{}]}), ACCEPTED),
        ("aws-answers", listing("aws_sqs_queue", REQUEST, {**REQUEST, "NextToken": "a"}, endless=True), ACCEPTED),
        ("aws-bodies", b'aws_kms_key\n---\n{"Keys": 5}', ACCEPTED),
        ("aws-bodies", b'aws_sqs_queue\n---\n[1]', ACCEPTED),
        ("aws-bodies", b'aws_kms_key\n---\n{"Keys": [{"KeyId": "k"', ACCEPTED),
        ("aws-bodies", b"aws_sqs_queue\n---\n", ACCEPTED),
        ("export", listed(id="\ud800"), ACCEPTED),
        ("export", listed(account="\ud800", region="a\nb"), ACCEPTED),
        ("export", listed(id="\ncoverage: complete"), ACCEPTED),
        ("export", listed(type="a\nresource {}"), ACCEPTED),
        ("export", listed(id=["a"]), REFUSED),
        ("export", listed(tags=json.loads("[" * 900 + "]" * 900)), ACCEPTED),
        ("export", b'type,id,tags\naws_iam_role,app,"' + b"[" * 3000 + b'"\n', ACCEPTED),
        ("export", b"type,id,account\naws_iam_role,app\n", REFUSED),
        ("export", listed(id="a") + b"\n" + '{"type": "aws_vpc", "id": "\u2028"}'.encode(), ACCEPTED),
        ("export", gzip.compress(listed(id="a"), mtime=0)[:10] + b"\xff" * 20, REFUSED),
        ("export", b'{"configurationItems": [{"resourceType": "AWS::S3::Bucket", "resourceId": "a",'
         b' "configurationItemStatus": "ResourceNotRecorded"}]}', ACCEPTED),
        ("old-state", module(b'"resources": {"aws_vpc.a.' + b"9" * 5000 + b'": {"primary": {"id": "a"}}}'), REFUSED),
        ("old-state", module(b'"resources": {"aws_vpc.a": {"primary": {"id": "a", "attributes": {"x.#": "1", "x.'
         + b"9" * 5000 + b'": "b"}}}}'), ACCEPTED),
        ("old-state", module(b'"resource": {"aws_vpc.a": {"primary": {"id": "a"}}}'), REFUSED),
        ("old-state", module(b'"resources": {"aws_vpc.a": {"primari": {"id": "a"}}}'), REFUSED),
        ("kept-scan", kept(summary={"a\nb": "x"}), REFUSED),
        ("kept-scan", kept(summary={"a": 10**400}), REFUSED),
        ("kept-scan", kept(sum="0" * 16), REFUSED),
        ("kept-scan", kept(sun="0" * 16), REFUSED),
        ("kept-scan", kept(), REFUSED),
        ("scan-config", b"scan: {aws: {types: []}}", REFUSED),
        ("scan-config", b'scan: {aws: {types: ["a\\nb"]}}', REFUSED),
        ("scan-config", b'scan: {aws: {regions: ["a\\nb"]}}', REFUSED),
        ("engine-output", b"Terraform used x\n\n\x1b[33m\xe2\x95\xb7\x1b[0m\x1b[0m\n"
         b"\x1b[33m\xe2\x95\xb5\x1b[0m\x1b[0m\n\x1b[33m\xe2\x95\xb5\x1b[0m\x1b[0m\n", ACCEPTED),
        ("engine-output", b"Terraform used x\n\nWarning: a\n\nb\n\n(and " + b"9" * 5000 + b" more similar warnings"
         b" elsewhere)\n", ACCEPTED),
        ("engine-output", b"Terraform used x\n\n" + b"\x1b[0m" * 30_000 + b"x\n\nx", ACCEPTED),
        ("engine-output", b"\x1b[0m" * 30_000 + b"x\n" * 3, ACCEPTED),
        ("version", b"Terraform v" + b"1" * 5000 + b".1.1\n", REFUSED),
        ("argv", b"\0-a\n=b", REFUSED),
        ("config", b'owner: "\\UFFFFFFFF"', REFUSED),
        ("config", b"- x\n" * 100_000, REFUSED),
        ("aws-profiles", b"[default]\na" + b" " * 100_000 + b"b\n", ACCEPTED),
        ("aws-profiles", b"[default]\n" + b"a\n" * 60_000, ACCEPTED),
        ("hcl", b"/*" * 60_000, ACCEPTED),
        ("hcl", b"terraform {\n" * 10_000, ACCEPTED),
        ("hcl", b"x = <<EOT\n" * 12_000, ACCEPTED),
        ("lock-refusal", b"\n" * 120_000, REFUSED),
    ],
)  # fmt: skip
def test_an_input_that_was_a_fault_is_none_any_more(name: str, data: bytes, expected: Outcome) -> None:
    outcome, text = run_one(TARGETS[name], data)
    assert (outcome, text if outcome.fault else "") == (expected, "")
