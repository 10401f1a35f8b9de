"""How a call that changes one object at its provider ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionAnswer:
    """What became of an action on one object. `done` are the calls that went through, as the provider names them.

    `refused` is why it went no further, in one line without secrets; empty where all was done. `absent`: the provider
    says that the object is not there. `blocked`: something else that hangs on it has to go first. `unanswered`: the
    call was sent, and nobody knows whether it went through.
    """

    done: tuple[str, ...] = ()
    refused: str = ""
    absent: bool = False
    blocked: bool = False
    unanswered: bool = False
