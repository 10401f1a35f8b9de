"""What `plan` says before it becomes the engine: never for long, and whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tfguard.cli import plan
from tfguard.cli.invocation import Invocation
from tfguard.errors import ConfigError, NotInitialisedError, RecordError


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Lets a look go on that was held."""
    event = threading.Event()
    yield event
    event.set()


def test_a_record_that_does_not_answer_holds_no_plan_up(
    monkeypatch: pytest.MonkeyPatch, released: threading.Event
) -> None:
    def held(*_: object) -> list[str]:
        released.wait(60)
        return ["too late"]

    monkeypatch.setattr(plan, "_warnings", held)
    monkeypatch.setattr(plan, "_PATIENCE_SECONDS", 0.01)
    (line,) = plan._look(Invocation(), ())
    assert "does not answer" in line


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (RecordError("the record is gone", ""), ("the record is gone",)),
        (ConfigError("no such place", ""), ("no such place",)),
        (NotInitialisedError("the engine says it", ""), ()),
        (ZeroDivisionError("oops"), ("warning: the record could not be looked at (ZeroDivisionError: oops)",)),
    ],
)
def test_an_error_is_a_line_and_no_more(
    monkeypatch: pytest.MonkeyPatch, error: Exception, lines: tuple[str, ...]
) -> None:
    def broken(*_: object) -> list[str]:
        raise error

    monkeypatch.setattr(plan, "_warnings", broken)
    assert plan._look(Invocation(), ()) == lines
