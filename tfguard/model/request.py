"""Command lines that change something, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
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
    refuses what it does not know in the engine's own words. `concise` and `json_into` are OpenTofu's: no progress, and
    a file for the events. `arguments` are all words after the command; in memory only. `lock_timeout` is how long
    another run on the stack is waited for.
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
    concise: bool = False
    json_into: str | None = None
    lock_timeout: timedelta = timedelta(0)
    arguments: tuple[str, ...] = field(default=(), repr=False)


class Effect(StrEnum):
    """What a recorded command other than `apply` and `destroy` does to what the state holds."""

    READS = "reads"
    PUTS_IN = "puts-in"
    MARKS = "marks"
    TAKES_OUT = "takes-out"
    MOVES = "moves"
    OVERWRITES = "overwrites"
    REBINDS = "rebinds"
    UNLOCKS = "unlocks"


# Commands by which people repair things: recorded like an apply, and never stopped by an open operation.
REPAIRS: Mapping[str, Effect] = {
    "refresh": Effect.READS,
    "import": Effect.PUTS_IN,
    "taint": Effect.MARKS,
    "untaint": Effect.MARKS,
    "state rm": Effect.TAKES_OUT,
    "state mv": Effect.MOVES,
    "state push": Effect.OVERWRITES,
    "state replace-provider": Effect.REBINDS,
    "force-unlock": Effect.UNLOCKS,
}


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """One of `REPAIRS` as the user called it.

    `arguments` is everything after the command, as it was typed; `operands` are those of them that are no flags.
    `forced` tells of `-force` or `-auto-approve`, with which the engine asks nothing; `variables` are `-var` and
    `-var-file`. `lock_timeout` is how long another run on the stack is waited for.
    """

    command: str
    arguments: tuple[str, ...]
    operands: tuple[str, ...]
    json: bool
    locking: bool
    forced: bool
    changes_nothing: bool
    state_path: str | None
    state_out: str | None
    targets: tuple[str, ...]
    var_files: tuple[str, ...]
    variables: tuple[str, ...]
    lock_timeout: timedelta = timedelta(0)

    @property
    def effect(self) -> Effect:
        """What the command does."""
        return REPAIRS[self.command]
