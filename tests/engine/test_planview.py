"""What an apply shows of its plan's output: its warnings apart, and nothing of a failure that came to no change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_forms import Stack, needs_terraform

from tfguard.engine.diagnostics import Diagnostic, Severity, SourceRange, diagnostic_text
from tfguard.engine.planview import PlanStream, PlanView, PlanWarnings

STEPS = "a.b: Refreshing state... [id=x]\n"
VIEW = (
    "\nTerraform used the selected providers to generate the following execution\nplan.\n\n"
    "Plan: 1 to add, 0 to change, 0 to destroy.\n"
)
NOTHING = "\nPlanning failed. Terraform encountered an error while generating this plan.\n\n"
PLACED = SourceRange("main.tf", 3, 30)
WARNING = Diagnostic(Severity.WARNING, "Odd", "A detail that is told.", source=PLACED)

WARNED = """
resource "terraform_data" "a" { input = "v" }
resource "terraform_data" "b" { depends_on = ["terraform_data.a"] }
resource "terraform_data" "c" { depends_on = ["terraform_data.a", "terraform_data.b"] }
check "health" {
  assert {
    condition     = terraform_data.a.input == "w"
    error_message = <<-EOT
      One line.

      Another.
    EOT
  }
}
"""


def plain(*warnings: Diagnostic) -> str:
    """Warnings as they stand at the end of a plan without colour."""
    return "".join(diagnostic_text(item, color=False, width=78) for item in warnings)


def split(text: str, *, color: bool = False, size: int | None = None) -> tuple[str, list[Diagnostic]]:
    """What a plan that worked shows, and its warnings, when its output comes in pieces of this size."""
    view, size = PlanView(color), size or len(text) or 1
    passed = "".join(view.feed(text[at : at + size]) for at in range(0, len(text), size))
    shown, warnings = view.finish()
    return passed + shown, warnings


@pytest.mark.parametrize("size", [1, 3, 4096])
def test_warnings_at_the_end_are_taken_out_and_everything_else_stays(size: int) -> None:
    other = Diagnostic(Severity.WARNING, "Other", "d", address="a.b", source=SourceRange("x/y.tf", 7, 1), similar=2)
    shown, (first, second) = split(STEPS + VIEW + plain(WARNING, other), size=size)
    assert shown == STEPS + VIEW
    assert (first.summary, first.source, first.similar) == ("Odd", SourceRange("main.tf", 3, 0), 0)
    assert (second.summary, second.source, second.similar) == ("Other", SourceRange("x/y.tf", 7, 0), 2)
    assert plain(first, second) == plain(WARNING, other)


def test_warnings_before_the_planning_pass_at_once() -> None:
    view = PlanView(color=False)
    assert view.feed(plain(WARNING)) == plain(WARNING)
    assert view.feed(STEPS) == STEPS
    assert not view.begun
    assert view.feed(VIEW) == ""
    assert view.begun


@pytest.mark.parametrize("prompt", ["var.x\n  Enter a value: ", "\n  Enter a value: ", "N? "])
def test_a_question_passes_at_once(prompt: str) -> None:
    view = PlanView(color=True)
    assert "".join(view.feed(char) for char in prompt) == prompt


@pytest.mark.parametrize("text", ["", "words\n", STEPS, "\n", "\n\n\n", "Terraform uses\n", "x No changes.\n"])
def test_what_is_no_plan_passes_whole(text: str) -> None:
    assert split(text) == split(text, size=1) == (text, [])


def test_what_stands_between_the_frames_is_not_lost() -> None:
    text = VIEW + diagnostic_text(WARNING, color=True, width=78) + "something else\n"
    assert split(text, color=True) == (text, [])


def failed(text: str, planned_anything: bool) -> str:
    """What an apply shows of a plan that failed."""
    view = PlanView(color=False)
    return view.feed(text) + view.failed(lambda: planned_anything)


def test_of_a_plan_that_came_to_nothing_an_apply_shows_its_warnings_alone() -> None:
    text = STEPS + NOTHING + plain(WARNING)
    assert failed(text, planned_anything=False) == STEPS + plain(WARNING)
    assert failed(text, planned_anything=True) == text
    assert failed(STEPS + VIEW + plain(WARNING), planned_anything=False) == STEPS + VIEW + plain(WARNING)


@needs_terraform
@pytest.mark.parametrize("flags", [(), ("-no-color",)], ids=["colour", "plain"])
def test_the_engines_own_warnings_are_read_and_drawn_again_to_the_byte(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": WARNED})
    text = stack.run(stack.folder, "plan", *flags, "-out=p").stdout.decode().partition("\x1b[90m\n───")[0]
    text = text.partition("\n───")[0]
    shown, warnings = split(text, color=not flags)
    assert [(item.summary, item.similar, item.checks) for item in warnings] == [
        ("Quoted references are deprecated", 2, False),
        ("Check block assertion failed", 0, True),
    ]
    drawn = "".join(diagnostic_text(item, color=not flags, width=78) for item in warnings)
    assert shown + drawn == text


@given(
    st.lists(
        st.builds(
            Diagnostic,
            severity=st.just(Severity.WARNING),
            summary=st.sampled_from(["One", "Two words", "Check block assertion failed"]),
            detail=st.sampled_from(["", "d", "d\n\ne", "  preformatted", "long " * 30 + "end"]),
            source=st.sampled_from([None, PLACED]),
            similar=st.sampled_from([0, 1, 12]),
        ),
        max_size=3,
    ),
    st.booleans(),
    st.sampled_from([40, 78, 200]),
)
def test_what_was_drawn_is_drawn_again_alike(warnings: list[Diagnostic], color: bool, width: int) -> None:
    drawn = "".join(diagnostic_text(item, color=color, width=width) for item in warnings)
    shown, found = split(VIEW + drawn, color=color)
    assert shown + "".join(diagnostic_text(item, color=color, width=width) for item in found) == VIEW + drawn
    assert len(found) == len(warnings)


def line(type_: str, **fields: object) -> bytes:
    """One line of a stream."""
    return json.dumps({"type": type_, "@message": type_, **fields}).encode() + b"\n"


VERSION, CHANGE, SUMMARY = line("version"), line("planned_change"), line("change_summary")
OUTPUTS = line("outputs", outputs={})
WARN = line("diagnostic", diagnostic={"severity": "warning", "summary": "w", "detail": "d"})
ERROR = line("diagnostic", diagnostic={"severity": "error", "summary": "e", "detail": "d"})


def test_the_warnings_of_a_stream_are_taken_out_behind_its_summary() -> None:
    stream = PlanStream()
    text = WARN + VERSION + CHANGE + SUMMARY + WARN + OUTPUTS
    assert b"".join(stream.feed(text[at : at + 5]) for at in range(0, len(text), 5)) == WARN + VERSION + CHANGE
    shown, (warning,) = stream.finish()
    assert shown == SUMMARY + OUTPUTS
    assert (warning.summary, warning.drawn) == ("w", WARN.decode())


@pytest.mark.parametrize(("planned_anything", "shown"), [(True, SUMMARY + WARN + ERROR), (False, WARN + ERROR)])
def test_a_stream_that_failed_keeps_its_summary_only_with_changes(planned_anything: bool, shown: bytes) -> None:
    stream = PlanStream()
    assert stream.feed(VERSION + SUMMARY + WARN + ERROR + b"cut") == VERSION
    assert stream.failed(lambda: planned_anything) == shown + b"cut"


def test_a_stream_without_a_plan_is_not_asked_about() -> None:
    stream = PlanStream()
    assert stream.feed(VERSION + ERROR) == VERSION
    assert stream.failed(lambda: pytest.fail("asked")) == ERROR


def test_warnings_of_check_blocks_wait_for_a_question_alone() -> None:
    warnings = PlanWarnings()
    checked = Diagnostic(Severity.WARNING, "Check block assertion failed", checks=True)
    warnings.hold([WARNING, checked])
    assert warnings.said == {"Odd", "Check block assertion failed"}
    assert warnings.without_question() == (WARNING,)
