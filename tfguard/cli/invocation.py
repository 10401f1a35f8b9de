"""What stands before the command on tfguard's command line."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options: `-chdir` (the engine's), `--engine` and `--config` (tfguard's own)."""

    chdir: str | None = None
    engine: str | None = None
    config: str | None = None

    @property
    def directory(self) -> Path:
        """The engine's working directory, absolute."""
        return (Path.cwd() / (self.chdir or "")).absolute()

    @property
    def engine_arguments(self) -> tuple[str, ...]:
        """What the engine gets before its command."""
        return (f"-chdir={self.chdir}",) if self.chdir is not None else ()

    @property
    def command(self) -> str:
        """How to call tfguard again for the same stack, for advice."""
        return f"tfguard -chdir={self.chdir}" if self.chdir is not None else "tfguard"


def colour_wanted(stream: object) -> bool:
    """Whether tfguard's own words may be coloured on this stream."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and "NO_COLOR" not in os.environ and "-no-color" not in sys.argv
