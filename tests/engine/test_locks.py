"""Which lock lies on the state, from its note or from the engine's words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfguard.engine.locks import local_lock, met_lock
from tfguard.engine.queries import Answer
from tfguard.errors import InputError
from tfguard.model.lock import StateLock

S3 = """
Error: Error acquiring the state lock

Error message: operation error S3: PutObject, https response error
StatusCode: 412, PreconditionFailed: At least one of the pre-conditions you
specified did not hold
Lock Info:
  ID:        1111
  Path:      state/net/terraform.tfstate
  Operation: OperationTypeApply
  Who:       runner@build-7
  Version:   1.11.4
  Created:   2026-11-29 21:05:38.62956214 +0000 UTC
  Info:

"""
HTTP = """
Error: Error acquiring the state lock

Error message: HTTP remote state already locked:
ID=2222
Lock Info:
  ID:        3333
  Path:
  Operation: untaint
  Who:       me@here
  Version:   1.11.4
  Created:   2026-11-29 21:05:38 +0000 UTC
  Info:
"""
MADE = datetime(2026, 11, 29, 21, 5, 38, tzinfo=UTC)


@pytest.mark.parametrize("frame", ["", "│ "])
def test_the_note_of_a_lock_is_read_from_what_the_engine_says(frame: str) -> None:
    said = "".join(f"{frame}{line}\n" for line in S3.splitlines())
    assert met_lock(lambda *_: Answer(1, "", said)) == StateLock("1111", "OperationTypeApply", "runner@build-7", MADE)


def test_a_note_of_the_very_try_is_not_taken_for_the_holders() -> None:
    assert met_lock(lambda *_: Answer(1, "", HTTP)) == StateLock("2222")


def test_an_engine_that_gets_the_lock_met_none() -> None:
    assert met_lock(lambda *_: Answer(0, "", S3)) is None


@pytest.mark.parametrize(
    "said",
    [
        "Error: No valid credential sources found",
        "Error: Error acquiring the state lock\n\nError message: network unreachable\n",
        "Request ID: abc\n",
        "",
    ],
)
def test_whether_there_is_a_lock_is_not_known_when_the_engine_fails_otherwise(said: str) -> None:
    with pytest.raises(InputError, match="cannot be told"):
        met_lock(lambda *_: Answer(1, "", said))


def test_the_id_of_another_is_found_wherever_the_line_is_broken() -> None:
    short = HTTP.replace("already locked:\nID=2222", "already locked: ID=2222")
    framed = HTTP.replace("already locked:\nID=2222", "already\n│ locked:\n│ ID=2222")
    assert {met_lock(lambda *_, said=said: Answer(1, "", said)) for said in (short, framed)} == {StateLock("2222")}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-29T21:05:38.123Z", MADE),
        ("2026-11-29T23:05:38+02:00", MADE),
        ("2026-11-29 23:05:38.5 +0200 EET", MADE),
        ("2026-99-01T00:00:00Z", None),
        ("yesterday", None),
    ],
)
def test_a_time_in_a_note_is_read_as_it_was_meant_or_not_at_all(
    tmp_path: Path, written: str, read: datetime | None
) -> None:
    (tmp_path / ".terraform.tfstate.lock.info").write_text(json.dumps({"ID": "1", "Created": written}))
    found = local_lock(tmp_path / "terraform.tfstate")
    assert found is not None
    assert found.created == read


def test_where_the_state_cannot_be_opened_nobody_knows_who_holds_it(tmp_path: Path) -> None:
    (tmp_path / ".terraform.tfstate.lock.info").write_text(json.dumps({"ID": "1"}))
    (tmp_path / "terraform.tfstate").symlink_to(
        tmp_path / "terraform.tfstate"
    )  # a loop: no open, and not for want of it
    found = local_lock(tmp_path / "terraform.tfstate")
    assert found is not None
    assert (found.process, found.process_known) == (None, False)


def test_without_a_note_there_is_no_local_lock(tmp_path: Path) -> None:
    assert local_lock(tmp_path / "terraform.tfstate") is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "[" * 100_000])
def test_with_a_note_that_cannot_be_read_nobody_knows_of_a_local_lock(tmp_path: Path, content: str) -> None:
    (tmp_path / ".terraform.tfstate.lock.info").write_text(content)
    with pytest.raises(InputError, match="note of a lock"):
        local_lock(tmp_path / "terraform.tfstate")


def test_a_note_that_outlived_its_engine_has_no_process(tmp_path: Path) -> None:
    note = {"ID": "4444", "Operation": "OperationTypeApply", "Who": "me@here", "Created": "2026-11-29T21:05:38.1Z"}
    (tmp_path / ".terraform.tfstate.lock.info").write_text(json.dumps(note))
    state = tmp_path / "terraform.tfstate"
    wanted = StateLock("4444", "OperationTypeApply", "me@here", MADE, None, process_known=True)
    assert local_lock(state) == wanted
    state.write_text("{}")
    assert local_lock(state) == wanted
