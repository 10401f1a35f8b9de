"""What the engine at hand can do beyond what every supported one can: asked of the engine itself, never guessed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import captured


def has_json_into(installed: InstalledEngine) -> bool:
    """Whether `apply -json-into=FILE` works: events into a file, the human form on stdout (OpenTofu from 1.12 on).

    Terraform has no such thing and is not asked, so that it pays nothing.
    """
    return installed.info.name == "tofu" and "-json-into" in _apply_help(installed.binary)


@cache
def _apply_help(binary: Path) -> str:
    answer = captured(binary, binary.parent, "apply", "-help", offline=True)
    return answer.stdout + answer.stderr
