"""An `apply` or `destroy` command line, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Approval(StrEnum):
    """How the engine's question was answered, and by whom."""

    AUTO = "auto-approve"
    PLAN_FILE = "plan-file"
    PROMPT = "prompt"
    NOTHING_TO_ASK = "nothing-to-change"
    DECLINED = "declined"
    NO_ANSWER = "no-answer"
    INTERRUPTED = "interrupted"

    @property
    def given(self) -> bool:
        """Whether the apply may go on."""
        return self not in (Approval.DECLINED, Approval.NO_ANSWER, Approval.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What the user asked for.

    `planning` goes to the inner `plan`, `applying` to the inner `apply PLANFILE`. Unknown flags go to `plan`, which
    refuses what it does not know in the engine's own words.
    """

    command: str
    plan_file: str | None
    planning: tuple[str, ...]
    applying: tuple[str, ...]
    auto_approve: bool
    destroy: bool
    refresh_only: bool
    json: bool
    color: bool
    input: bool
    compact_warnings: bool
    locking: bool
    targets: tuple[str, ...]
    var_files: tuple[str, ...]
    variables: tuple[str, ...]
    state_path: str | None
    state_out: str | None
    help: bool
