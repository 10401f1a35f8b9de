"""What the engine at hand can do beyond what every supported one can: asked of the engine itself, never guessed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import captured
from tfguard.errors import UsageError

_FIRST_WITH_QUERY = (1, 14)


def has_json_into(installed: InstalledEngine) -> bool:
    """Whether `apply -json-into=FILE` works: events into a file, the human form on stdout (OpenTofu from 1.12 on).

    Terraform has no such thing and is not asked, so that it pays nothing.
    """
    return installed.info.name == "tofu" and "-json-into" in _apply_help(installed.binary)


def check_lists(installed: InstalledEngine) -> None:
    """Raise `UsageError` for an engine without `query` (Terraform has it from 1.14 on, OpenTofu not at all)."""
    info = installed.info
    if info.name != "terraform":
        raise UsageError(
            f"{info.name} has no `query`, which `--inventory query:DIR` needs",
            "name a terraform 1.14 or newer with --engine, or leave --inventory out: tfguard lists by itself then",
        )
    if info.release < _FIRST_WITH_QUERY:
        raise UsageError(
            f"terraform {info.version} at {installed.binary} has no `query`: it came with 1.14",
            "name a newer one with --engine PATH, or leave --inventory out: tfguard lists by itself then",
        )


@cache
def _apply_help(binary: Path) -> str:
    answer = captured(binary, binary.parent, "apply", "-help", offline=True)
    return answer.stdout + answer.stderr
