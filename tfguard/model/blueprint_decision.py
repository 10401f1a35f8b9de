"""What is done next about a step of a blueprint, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class DecisionKind(StrEnum):
    """The ways on. What is unknown is inspected, never made again; what the blueprint has no more, destroyed."""

    SKIP = "skip"
    INSPECT = "inspect"
    ADOPT = "adopt"
    RUN = "run"
    WAIT = "wait"
    UNDO = "undo"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Decision:
    """One step's way on. `behind` are the steps that it waits for. `asks` says what a person has to do first: without
    that nothing more can be done about the step."""

    kind: DecisionKind
    reason: str
    behind: tuple[str, ...] = ()
    asks: str = ""

    def about(self, step: str) -> Decision:
        """The same with the step's name where a command in `asks` says STEP."""
        return replace(self, asks=self.asks.replace("STEP", step))


@dataclass(frozen=True, slots=True)
class Told:
    """What a person has said of a step whose command may have done its work: that it is `done`, or is to run again."""

    done: bool
    reason: str
