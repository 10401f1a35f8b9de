"""What reaches the user's streams of a plan and of the apply behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from tfguard.engine.arguments import change_request
from tfguard.engine.events import StreamReader
from tfguard.engine.planview import PlanWarnings
from tfguard.engine.printers import HumanPlanPrinter, HumanPrinter, JsonPlanPrinter, JsonPrinter, warnings_text
from tfguard.engine.queries import Answer
from tfguard.model.plan import Plan


@dataclass
class Screen:
    """Both streams, in the order in which something was written."""

    written: list[tuple[str, str]] = field(default_factory=list)

    def out(self, text: str) -> None:
        """Something for stdout."""
        if text:
            self.written.append(("out", text))

    def err(self, text: str) -> None:
        """Something for stderr."""
        if text:
            self.written.append(("err", text))

    @property
    def stdout(self) -> str:
        """All of it."""
        return "".join(text for stream, text in self.written if stream == "out")


def line(type_: str, message: str = "m", **fields: object) -> bytes:
    """One line of a stream."""
    return json.dumps({"type": type_, "@message": message, **fields}).encode() + b"\n"


def diagnostic(summary: str, severity: str = "warning", **fields: object) -> bytes:
    """A diagnostic of a stream."""
    text = f"{severity.capitalize()}: {summary}"
    return line("diagnostic", text, diagnostic={"severity": severity, "summary": summary, "detail": "d", **fields})


VERSION, CHANGE, START = line("version"), line("planned_change"), line("apply_start")
PLANNED = line("change_summary", changes={"operation": "plan"})
APPLIED = line("change_summary", "Apply complete!", changes={"operation": "apply"})
CONFIGURED = diagnostic("of the configuration")
CHECKED = diagnostic("Check block assertion failed")
OF_AN_OBJECT = diagnostic("of the configuration", address="a.b")
FAULT = diagnostic("fault", "error")


def applied(planned: PlanWarnings | None, stream: bytes, size: int = 0) -> str:
    """What `apply -json` shows of this stream."""
    screen, reader = Screen(), StreamReader()
    printer = JsonPrinter(screen, planned, destroying=False)
    size = size or len(stream)
    for chunk in (*(stream[at : at + size] for at in range(0, len(stream), size)), b""):
        printer.show(chunk, reader.feed(chunk) if chunk else reader.finish())
    return screen.stdout


@pytest.fixture
def planned() -> PlanWarnings:
    """The warnings of a plan in the stream's form."""
    screen = Screen()
    printer = JsonPlanPrinter(screen)
    printer.show(VERSION + CHANGE + PLANNED + CONFIGURED + CHECKED)
    warnings = PlanWarnings()
    warnings.hold(printer.finish())
    assert screen.stdout.encode() == VERSION + CHANGE + PLANNED
    return warnings


@pytest.mark.parametrize("size", [1, 7, 0])
def test_the_plans_warnings_come_with_the_applys_and_are_not_told_twice(planned: PlanWarnings, size: int) -> None:
    stream = VERSION + CHANGE + START + CONFIGURED + OF_AN_OBJECT + CHECKED + APPLIED
    shown = START + CONFIGURED + OF_AN_OBJECT + CHECKED + APPLIED
    assert applied(planned, stream, size).encode() == shown


@pytest.mark.parametrize("end", [APPLIED, FAULT, b""])
def test_the_plans_warnings_come_whatever_becomes_of_the_apply(planned: PlanWarnings, end: bytes) -> None:
    assert applied(planned, VERSION + CHANGE + START + end).encode() == START + CONFIGURED + end


def test_what_an_apply_of_a_plan_file_says_of_its_options_is_left_out(planned: PlanWarnings) -> None:
    stream = VERSION + diagnostic("Deprecated flag: -state") + CHANGE + START + APPLIED
    assert applied(planned, stream).encode() == START + CONFIGURED + APPLIED


def test_an_apply_of_the_users_own_plan_file_is_shown_whole() -> None:
    stream = VERSION + diagnostic("Deprecated flag: -state") + CHANGE + START + CONFIGURED + APPLIED + b'{"cut'
    assert applied(None, stream, 5).encode() == stream


PLAN = b"\nNo changes. None.\n"


def human_plan(*writes: tuple[str, bytes], color: bool = False) -> tuple[Screen, HumanPlanPrinter]:
    """A plan's printer after these writes to stdout and stderr."""
    screen = Screen()
    printer = HumanPlanPrinter(screen, change_request("apply", [] if color else ["-no-color"]))
    for stream, data in writes:
        (printer.show if stream == "out" else printer.complain)(data)
    return screen, printer


def test_a_failing_plan_is_shown_before_its_errors() -> None:
    screen, printer = human_plan(("out", b"step\n"), ("err", b"early\n"), ("out", PLAN), ("err", b"late\n"))
    printer.failed(lambda: True, lambda: pytest.fail("asked"))
    assert screen.written == [("out", "step\n"), ("err", "early\n"), ("out", PLAN.decode()), ("err", "late\n")]


def test_words_about_a_plans_command_line_are_replaced_by_the_commands_own() -> None:
    screen, printer = human_plan(("err", b"Error: bad\n  terraform plan -help\n"))
    printer.failed(lambda: True, lambda: Answer(1, "", "Error: bad\n  terraform apply -help\n"))
    assert screen.written == [("err", "Error: bad\n  terraform apply -help\n")]


def test_words_about_anything_else_stay_and_so_do_those_that_the_command_does_not_say() -> None:
    screen, printer = human_plan(("err", b"Error: other\n"))
    printer.failed(lambda: True, lambda: pytest.fail("asked"))
    assert screen.written == [("err", "Error: other\n")]
    screen, printer = human_plan(("err", b"see plan -help\n"))
    printer.failed(lambda: True, lambda: None)
    assert screen.written == [("err", "see plan -help\n")]
    screen, printer = human_plan(("err", b"see plan -help\n"))
    printer.failed(lambda: True, lambda: Answer(1, "", "No configuration files"))
    assert screen.written == [("err", "see plan -help\n")]


def test_the_same_in_the_stream() -> None:
    screen = Screen()
    printer = JsonPlanPrinter(screen)
    printer.show(VERSION + diagnostic("No configuration files", "error"))
    own = diagnostic("No configuration files", "error", address="own")
    printer.failed(lambda: True, lambda: Answer(1, (VERSION + own).decode(), ""))
    assert screen.stdout.encode() == VERSION + own


WARNED = PLAN + b"\nWarning: w\n\nd\n"


def test_the_warnings_of_a_plan_are_told_with_those_of_the_apply() -> None:
    screen, printer = human_plan(("out", WARNED))
    warnings = PlanWarnings()
    warnings.hold(printer.finish())
    assert screen.stdout.encode() == PLAN
    request = change_request("apply", ["-no-color", "-auto-approve"])
    shown = HumanPrinter(screen, request, Plan("1", ()), lambda *_: None, warnings)
    reader = StreamReader()
    stream = VERSION + diagnostic("w", range={"filename": "f", "start": {"line": 1}}) + START
    for chunk in (stream, b""):
        shown.show(chunk, reader.feed(chunk) if chunk else reader.finish())
    assert screen.stdout.encode() == PLAN + b"m\n" + b"\nWarning: w\n\nd\n"


def test_warnings_before_a_question_are_shortened_when_that_is_wanted() -> None:
    _, printer = human_plan(("out", WARNED))
    found = printer.finish()
    assert warnings_text(found, change_request("apply", ["-no-color"]), "OpenTofu") == "\nWarning: w\n\nd\n"
    short = warnings_text(found, change_request("apply", ["-no-color", "-compact-warnings"]), "OpenTofu")
    assert short == "\nWarnings:\n\n- w\n\nTo see the full warning notes, run OpenTofu without -compact-warnings.\n"
    assert warnings_text([], change_request("apply", []), "OpenTofu") == ""


def test_what_is_no_error_is_shown_at_once_however_early_it_comes() -> None:
    screen, _ = human_plan(("err", b"MFA code: "), ("err", b"[DEBUG] x\n"))
    assert screen.written == [("err", "MFA code: "), ("err", "[DEBUG] x\n")]


def test_an_endless_error_is_not_kept_for_ever() -> None:
    screen, _ = human_plan(("err", b"Error: "), *[("err", b"x" * 65536)] * 20)
    assert sum(len(text) for _, text in screen.written) > 1 << 20
