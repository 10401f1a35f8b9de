"""The workspaces of a stack, and their states, as the engine itself tells them: for backends that nothing else reaches.

No lock is taken, and the selected workspace stays selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import captured
from tfguard.errors import InputError

_ALONE = "workspaces not supported"
_DEFAULT = ("default",)


@dataclass(frozen=True, slots=True)
class EngineStates:
    """The states of the initialised stack in `directory`. Every method raises `InputError` for what is refused."""

    installed: InstalledEngine
    directory: Path

    def workspaces(self) -> tuple[str, ...]:
        """Every workspace; a backend that has no such thing has one."""
        answer = captured(self.installed.binary, self.directory, "workspace", "list")
        if answer.exit_code == 0:
            named = (line.removeprefix("*").strip() for line in answer.stdout.splitlines())
            return tuple(name for name in named if name) or _DEFAULT
        if _ALONE in answer.stderr:
            return _DEFAULT
        raise InputError(
            f"the workspaces of the stack in {self.directory} cannot be listed: {answer.reason}",
            "check the backend and its credentials, or run `tfguard init` there",
        )

    def pull(self, workspace: str, where: str) -> bytes | None:
        """A workspace's state; None where there is none yet."""
        answer = captured(self.installed.binary, self.directory, "state", "pull", workspace=workspace)
        if answer.exit_code != 0:
            raise InputError(
                f"the state at {where} cannot be read: {answer.reason}",
                "check the backend and its credentials, or run `tfguard init` there",
            )
        return answer.stdout.encode() if answer.stdout.strip() else None
