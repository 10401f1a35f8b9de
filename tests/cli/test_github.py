"""What is handed to GitHub Actions: appended, told once a step, and never a failure of the command itself."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tfguard.cli.github import tell_github
from tfguard.report.github import Annotation

APP = Annotation("error", "orphaned: a.app", "o-1: app", "o-1")
OTHER = Annotation("warning", "unknown: a.b", "nothing is proved", "")


@dataclass
class Heard:
    """A console that keeps its warnings."""

    warnings: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Nothing is said here."""

    def warn(self, text: str) -> None:
        """One line that should be noticed."""
        self.warnings.append(text)

    def confirm(self, question: str) -> bool:  # noqa: ARG002 (the port's signature)
        """Nobody is asked here."""
        return False


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The step's summary file, in a job of GitHub Actions."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def told(text: str, *annotations: Annotation) -> list[str]:
    """The warnings while this is told."""
    heard = Heard()
    tell_github(text, annotations, heard)
    return heard.warnings


def test_outside_of_github_nothing_is_written(
    summary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for value in ("", "false"):
        monkeypatch.setenv("GITHUB_ACTIONS", value)
        assert told("text", APP) == []
    assert not summary.exists()
    assert capfd.readouterr() == ("", "")


def test_the_summary_is_appended_to_and_annotations_go_to_stderr(
    summary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    summary.write_text("before\n")
    assert told("text\n", APP, OTHER) == []
    assert summary.read_text() == "before\ntext\n"
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split(" ")[0] for line in err.splitlines()] == ["::error", "::warning"]


def test_what_the_step_has_told_already_is_not_annotated_again(
    summary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told("of recover: o-1 is there\n", APP)
    capfd.readouterr()
    told("of orphans list: o-1\n", APP, OTHER)
    assert summary.read_text().count("o-1") == 2
    assert capfd.readouterr().err.startswith("::warning")


def test_without_a_summary_file_the_annotations_remain(
    summary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert told("text", APP) == []
    assert not summary.exists()
    assert capfd.readouterr().err.startswith("::error")


@pytest.mark.parametrize("kind", ["folder", "nowhere", "pipe", "full"])
def test_a_summary_that_cannot_be_written_is_one_warning_and_the_annotations_remain(
    summary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    path = {"nowhere": summary / "x", "full": Path("/dev/full")}.get(kind, summary)
    if kind == "folder":
        summary.mkdir()
    if kind == "pipe":
        os.mkfifo(summary)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    (warning,) = told("text", APP)
    assert warning.startswith("the step summary was not written: ")
    assert capfd.readouterr().err.startswith("::error")


def test_a_summary_is_never_made_larger_than_github_takes(summary: Path) -> None:
    summary.write_text("x" * (1 << 20))
    assert told("text") == ["the step summary was not written: it would be larger than GitHub takes"]
    assert summary.stat().st_size == 1 << 20
