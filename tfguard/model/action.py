"""How a call that changes one object at its provider ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CODE_ON_CALL = re.compile(r"[A-Za-z][\w.]{0,80} on [A-Z]\w{0,80}")


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

    @property
    def cause(self) -> str:
        """What a record may keep of `refused`: the error's code and the call, and nobody's words (rule 10)."""
        if _CODE_ON_CALL.fullmatch(self.refused):
            return self.refused
        return "the call was not made, or it failed; why is in the run's output, not in the record"
