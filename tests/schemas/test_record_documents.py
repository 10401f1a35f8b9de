"""Every document of a record survives a round trip, and no bytes whatever end in a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from values import ENTRIES, VALUES

from tfguard.errors import CorruptRecordError, NewerRecordError, RecordError
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.lease import Lease, ProcessIdentity
from tfguard.model.operation import (
    Actor,
    Head,
    JournalEntry,
    ObservedObject,
    OperationStatus,
    Outcome,
    Result,
    Step,
    StepStatus,
)
from tfguard.model.plan import Action
from tfguard.schemas import records
from tfguard.schemas.codec import ShapeError, dump, load
from tfguard.schemas.document import Document, with_sum

DOCUMENTS = st.sampled_from(sorted(VALUES, key=lambda document: document.name))
VALUE_OF_A_DOCUMENT = DOCUMENTS.flatmap(lambda document: st.tuples(st.just(document), VALUES[document]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LEASE = Lease("01J", "me", "host", "boot", ProcessIdentity(7, 11), None, None, NOW, NOW + timedelta(minutes=5))
HEAD = Head(3, "01J", ("01H", "01J"), LEASE)
STEP = Step(
    "aws_iam_role.app",
    "aws_iam_role",
    "registry.terraform.io/hashicorp/aws",
    Action.CREATE,
    StepStatus.ERROR,
    Outcome.ORPHANED,
    desired={"name": "app"},
    observed=(ObservedObject("aws_iam_role", "app", "app", "aws", None, "global", False, Confidence.CERTAIN),),
)
RESULT = Result("01J", OperationStatus.ERROR, NOW, (STEP,), exit_code=1)


@settings(max_examples=200, deadline=None)
@given(VALUE_OF_A_DOCUMENT)
def test_what_is_encoded_decodes_to_the_same(case: tuple[Document[Any], Any]) -> None:
    document, value = case
    data = document.encode(value)
    assert document.decode(data) == value
    assert document.decode(document.encode_line(value)) == value
    assert document.encode_line(value).count(b"\n") == 1
    assert next(iter(json.loads(data))) == ("v" if document.short else "schema")


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, st.binary(max_size=60))
def test_arbitrary_bytes_are_a_value_or_one_of_two_errors(document: Document[Any], data: bytes) -> None:
    _assert_decodes_or_refuses(document, data)


@settings(max_examples=400, deadline=None)
@given(VALUE_OF_A_DOCUMENT, st.data())
def test_a_damaged_document_is_a_value_or_one_of_two_errors(case: tuple[Document[Any], Any], data: Any) -> None:
    document, value = case
    encoded = bytearray(document.encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(encoded)))
        change = data.draw(st.sampled_from(["cut", "flip", "insert"]))
        if change == "cut":
            del encoded[position:]
        elif change == "flip" and position < len(encoded):
            encoded[position] = data.draw(st.integers(0, 255))
        else:
            encoded[position:position] = data.draw(st.binary(min_size=1, max_size=3))
    _assert_decodes_or_refuses(document, bytes(encoded))


@settings(max_examples=400, deadline=None)
@given(VALUE_OF_A_DOCUMENT, st.data())
def test_any_json_in_any_field_is_a_value_or_one_of_two_errors(case: tuple[Document[Any], Any], data: Any) -> None:
    document, value = case
    raw = json.loads(document.encode(value))
    place: Any = raw
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(JSON_VALUES)
            break
        place = inner
    _assert_decodes_or_refuses(document, json.dumps(raw).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b'{"schema": 1}',
        b'{"schema": "tfguard.head/v0"}',
        b'{"schema": "tfguard.head/v-1"}',
        b'{"schema": "tfguard.head/v99999999999999999999"}',
        b'{"schema": "tfguard.intent/v1"}',
        b'{"schema": "tfguard.head/v1", "revision": true}',
        b'{"schema": "tfguard.head/v1", "revision": NaN}',
        b'{"schema": "tfguard.head/v1", "revision": ' + b"9" * 5000 + b"}",
        b'{"schema": "tfguard.head/v1", "open_operations": [null]}',
        b'{"schema": "tfguard.head/v1", "lease": {}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe",
        b"\x00" * 4096,
    ],
)
def test_garbage_is_a_corrupt_record(data: bytes) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        records.decode_head(data, "s3://b/head.json")
    assert caught.value.what.startswith("s3://b/head.json cannot be read")
    assert "\n" not in caught.value.what
    assert len(caught.value.what) < 400


def test_a_newer_version_is_read_first_and_refused_as_newer() -> None:
    with pytest.raises(NewerRecordError, match=r"newer tfguard \(tfguard.head/v2, known is v1\)"):
        records.decode_head(b'{"schema": "tfguard.head/v2", "revision": {"now": "an object"}}')


@pytest.mark.parametrize(
    "decode", [records.decode_head, records.decode_intent, records.decode_outcome], ids=["head", "intent", "outcome"]
)
def test_both_refusals_are_record_errors(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(RecordError):
        decode(b"garbage")


def test_unknown_fields_are_passed_over() -> None:
    raw = json.loads(records.encode_head(HEAD))
    raw["added_later"] = {"x": 1}
    raw["lease"]["added_later"] = [1]
    assert records.decode_head(json.dumps(with_sum(raw)).encode()) == HEAD


@pytest.mark.parametrize("name", ["open_operations", "lease", "sum", "current"])
def test_a_document_with_a_damaged_name_is_corrupt_and_never_one_without_that_field(name: str) -> None:
    damaged = records.encode_head(HEAD).replace(f'"{name}"'.encode(), f'"{name[:-1]}#"'.encode())
    with pytest.raises(CorruptRecordError, match=r"changed after it was written|no sum"):
        records.decode_head(damaged)


def test_a_document_from_before_there_were_sums_is_read() -> None:
    raw = {name: value for name, value in json.loads(records.encode_head(HEAD)).items() if name != "sum"}
    assert records.decode_head(json.dumps(raw).encode()) == HEAD


def test_an_unknown_enum_value_is_corrupt_and_its_place_is_named() -> None:
    data = records.encode_outcome(RESULT).replace(b'"orphaned"', b'"mislaid"')
    with pytest.raises(CorruptRecordError, match=r"steps\[0\]\.outcome: must be one of recorded, tainted"):
        records.decode_outcome(data)


def test_no_value_of_a_document_is_in_an_error() -> None:
    data = records.encode_outcome(RESULT).replace(b'"app"', b'["hunter2"]').replace(b'"error"', b'"hunter2"')
    with pytest.raises(CorruptRecordError) as caught:
        records.decode_outcome(data)
    assert "hunter2" not in caught.value.what + caught.value.advice


def test_times_are_rfc_3339_in_utc() -> None:
    east = datetime(2026, 3, 1, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert dump(east) == "2026-03-01T12:00:00.000005Z"
    assert dump(NOW) == "2026-03-01T12:00:00Z"
    assert dump(NOW.replace(tzinfo=None)) == "2026-03-01T12:00:00Z"
    assert load(datetime, "2026-03-01T14:00:00+02:00") == NOW


@pytest.mark.parametrize("text", ["2026-03-01", "2026-03-01T12:00:00", "now", "", "0001-01-01T00:00:00+14:00"])
def test_a_time_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ShapeError):
        load(datetime, text)


def test_text_that_is_no_unicode_survives() -> None:
    entry = JournalEntry(NOW, "start", address="caf\udce9")
    assert records.decode_journal(records.encode_journal([entry])).items == (entry,)


def test_a_journal_line_is_small() -> None:
    line = records.encode_journal([JournalEntry(NOW, "apply_start", address="a.b")])
    assert line.startswith(b'{"v":1,"sum":"')
    assert line.endswith(b'","at":"2026-03-01T12:00:00Z","kind":"apply_start","address":"a.b"}\n')
    assert len(line) < 100


@given(st.lists(ENTRIES, max_size=4), st.data())
def test_a_journal_that_was_cut_anywhere_keeps_every_whole_line(entries: list[JournalEntry], data: Any) -> None:
    encoded = records.encode_journal(entries)
    end = data.draw(st.integers(0, len(encoded)))
    lines = records.decode_journal(encoded[:end])
    whole = encoded[:end].count(b"\n")
    unfinished = encoded[:end].rpartition(b"\n")[2]
    # The last line may lack nothing but its end.
    complete = whole + (lines.cut == 0 and unfinished != b"")
    assert lines.items == tuple(entries[:complete])
    assert lines.cut == (0 if complete > whole or not unfinished else 1)


def test_a_line_that_was_cut_in_the_middle_is_counted_and_passed_over() -> None:
    first, second = JournalEntry(NOW, "one"), JournalEntry(NOW, "two")
    data = records.encode_journal([first]) + b'{"v":1,"at":"20\n' + b"\x00\x00\n" + records.encode_journal([second])
    lines = records.decode_journal(data)
    assert lines.items == (first, second)
    assert lines.cut == 2


def test_a_journal_line_of_a_newer_version_is_refused_as_newer() -> None:
    with pytest.raises(NewerRecordError, match=r"events.jsonl line 2"):
        records.decode_journal(records.encode_journal([JournalEntry(NOW, "one")]) + b'{"v":2,"time":1}\n')


@pytest.mark.parametrize("line", [b"1", b"[]", b"{}", b'{"v":true}', b'{"v":0}', b'{"v":1,"kind":"x"}', b'{"v":1.0}'])
def test_a_journal_line_of_another_shape_is_corrupt(line: bytes) -> None:
    with pytest.raises(CorruptRecordError, match=r"line 1"):
        records.decode_journal(line + b"\n")


@given(st.binary(max_size=80))
def test_arbitrary_bytes_in_a_journal_are_lines_or_one_of_two_errors(data: bytes) -> None:
    for decode in (records.decode_journal, records.decode_dispositions):
        try:
            lines = decode(data)
        except (CorruptRecordError, NewerRecordError):
            continue
        assert lines.cut <= data.count(b"\n") + 1


def test_the_ledger_keeps_its_order() -> None:
    ledger = [Disposition(f"o-{n}", DispositionKind.RETAIN, NOW, "me", "why", "01J") for n in range(3)]
    data = b"".join(map(records.encode_disposition, ledger))
    assert records.decode_dispositions(data).items == tuple(ledger)
    assert json.loads(data.splitlines()[0])["schema"] == "tfguard.disposition/v2"


def test_every_type_of_a_document_has_a_json_form() -> None:
    """A hint that the codec does not know would be found only when the field is used."""
    for document in VALUES:
        assert is_dataclass(document.kind)
        with pytest.raises(ShapeError):
            load(document.kind, {field.name: object() for field in fields(document.kind)})


def _assert_decodes_or_refuses(document: Document[Any], data: bytes) -> None:
    try:
        value = document.decode(data)
    except (CorruptRecordError, NewerRecordError) as error:
        assert "\n" not in error.what + error.advice
    else:
        assert document.decode(document.encode(value)) == value


def test_an_actor_that_was_written_before_ci_systems_were_told_apart_is_still_read() -> None:
    old = {"user": "me", "host": "box", "ci_url": "https://ci/1", "ci_commit": "c0ffee", "ci_job": "acme/1"}
    assert load(Actor, old) == Actor("me", "box", "https://ci/1", "c0ffee", "acme/1")
