"""Tells GitHub Actions what a command left, in the step's summary and in annotations on stderr; elsewhere, nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tfguard.cli.console import UserStreams
from tfguard.ports import Console
from tfguard.report.github import Annotation, workflow_commands

# GitHub refuses a step's summary as a whole when it is larger.
_LARGEST = 1 << 20


def tell_github(summary: str, annotations: Iterable[Annotation], console: Console) -> None:
    """Add `summary` to the step's summary, and annotate what this step has not annotated yet.

    `recover` and `orphans list` run in one step, and tell of the same objects. A summary that cannot be written is a
    warning, never a failure: the command has done its work.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    told = ""
    if named:
        try:
            told = _add(Path(named), summary)
        except OSError as error:
            console.warn(f"the step summary was not written: {error.strerror or error}")
    for line in workflow_commands(item for item in annotations if not item.about or item.about not in told):
        UserStreams().err(f"{line}\n")


def _add(path: Path, text: str) -> str:
    """Append to the summary; what stood in it before."""
    size = path.stat().st_size if path.is_file() else 0
    before = path.read_text("utf-8", "replace") if 0 < size <= _LARGEST else ""
    data = text.encode("utf-8", "replace")
    if size + len(data) > _LARGEST:
        raise OSError("it would be larger than GitHub takes")
    # Never waiting: a pipe that nobody reads is an error like any other.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
    with os.fdopen(descriptor, "ab") as file:
        file.write(data)
    return before
