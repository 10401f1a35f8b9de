"""What a person decided about an object that no state knew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DispositionKind(StrEnum):
    """The three ways to settle a finding."""

    IMPORT = "import"
    RETAIN = "retain"
    DESTROY = "destroy"


@dataclass(frozen=True, slots=True)
class Disposition:
    """One line of the ledger: who settled which finding, how, when and why."""

    finding_id: str
    kind: DispositionKind
    at: datetime
    actor: str
    reason: str
    operation_id: str
    address: str | None = None
    import_id: str | None = None
