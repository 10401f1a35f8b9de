"""When credentials end, where somebody wrote that down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a run's credentials end; `source` names the variable or file entry that says so, never its secret.

    With `for_sign_in` they are needed at the beginning alone: what they are exchanged for ends later.
    """

    source: str
    at: datetime
    for_sign_in: bool = False
