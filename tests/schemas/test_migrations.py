"""A document of an earlier version is lifted step by step before it is read; one of a later version is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.errors import CorruptRecordError, NewerRecordError
from tfguard.model.operation import Approved
from tfguard.schemas.document import Document, decode_lines
from tfguard.schemas.records import INTENT, decode_intent

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
INTENT_V1 = {
    "schema": "tfguard.intent/v1",
    "operation_id": "01J",
    "command": "apply",
    "argv": ["apply"],
    "stack": {"backend": "local", "location": "/s/terraform.tfstate", "workspace": "default", "directory": "/s"},
    "engine": {"name": "terraform", "version": "1.11.4"},
    "actor": {"user": "deploy", "host": "runner"},
    "started_at": "2024-11-30T00:31:30Z",
    "lineage": "",
    "serial_before": 0,
    "steps": [],
    "approval": "auto-approve",
}
STARTED = datetime(2024, 11, 30, 0, 31, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Third:
    """What a document became with its third version."""

    seen: str


def to_second(raw: Mapping[str, object]) -> Mapping[str, object]:
    return {**raw, "seen": f"{raw.get('seen')} second"}


def to_third(raw: Mapping[str, object]) -> Mapping[str, object]:
    return {**raw, "seen": f"{raw.get('seen')} third"}


THIRD = Document("tfguard.test", 3, Third, migrations=(to_second, to_third))
SHORT = Document("tfguard.test", 3, Third, short=True, migrations=(to_second, to_third))


@pytest.mark.parametrize(("version", "seen"), [(1, "x second third"), (2, "x third"), (3, "x")])
def test_each_version_takes_the_steps_that_it_lacks_and_no_other(version: int, seen: str) -> None:
    whole = json.dumps({"schema": f"tfguard.test/v{version}", "seen": "x"}).encode()
    assert THIRD.decode(whole) == Third(seen)
    line = json.dumps({"v": version, "seen": "x"}).encode()
    assert decode_lines(SHORT, line, "events.jsonl").items == (Third(seen),)


def test_a_journal_may_hold_lines_of_several_versions() -> None:
    lines = b"".join(json.dumps({"v": version, "seen": "x"}).encode() + b"\n" for version in (1, 3))
    assert decode_lines(SHORT, lines, "events.jsonl").items == (Third("x second third"), Third("x"))


def test_what_is_written_is_of_the_present_version() -> None:
    assert json.loads(THIRD.encode(Third("x")))["schema"] == "tfguard.test/v3"


@pytest.mark.parametrize("migrations", [(), (to_second,), (to_second, to_third, to_third)])
def test_a_document_without_all_its_steps_is_a_mistake_in_the_program(migrations: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=r"tfguard.test/v3 needs 2 migrations"):
        Document("tfguard.test", 3, Third, migrations=migrations)  # type: ignore[arg-type]


def test_a_newer_version_is_refused_before_any_step_is_taken() -> None:
    with pytest.raises(NewerRecordError, match=r"tfguard.test/v4, known is v3"):
        THIRD.decode(b'{"schema": "tfguard.test/v4"}')


def test_an_approval_of_v1_gets_who_and_when_from_its_operation() -> None:
    intent = decode_intent(json.dumps(INTENT_V1).encode())
    assert intent.approval == Approved("auto-approve", "deploy", STARTED)


def test_an_approval_of_v1_in_a_pipeline_is_that_of_whoever_triggered_it() -> None:
    in_ci = INTENT_V1 | {"actor": {"user": "runner", "host": "box", "ci_actor": "joe"}}
    assert decode_intent(json.dumps(in_ci).encode()).approval == Approved("auto-approve", "joe", STARTED)


def test_an_intent_of_v1_without_an_approval_has_none() -> None:
    without = {name: value for name, value in INTENT_V1.items() if name != "approval"}
    assert decode_intent(json.dumps(without).encode()).approval is None


@given(st.sampled_from(sorted(INTENT_V1.keys() - {"schema"})), ANY_JSON)
def test_an_old_document_with_anything_in_a_field_is_a_value_or_corrupt(field: str, value: object) -> None:
    try:
        intent = decode_intent(json.dumps(INTENT_V1 | {field: value}).encode())
    except CorruptRecordError as error:
        assert "\n" not in error.what
    else:
        assert INTENT.decode(INTENT.encode(intent)) == intent
