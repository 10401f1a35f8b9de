"""An object that needs somebody's decision, and why tfguard thinks so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence
from tfguard.model.inventory import CloudObject


class Verdict(StrEnum):
    """What a finding is."""

    ORPHANED = "orphaned"
    DUPLICATED = "duplicated"
    UNMANAGED = "unmanaged"
    MISSING = "missing"
    RETAINED = "retained"
    MANAGED = "managed"
    IGNORED = "ignored"
    SOFT_DELETED = "soft-deleted"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


_ALL = (DispositionKind.IMPORT, DispositionKind.RETAIN, DispositionKind.DESTROY)
# Of two objects for one address the state can take none; which one is to go is the person's to say.
_ACTIONS = {
    Verdict.ORPHANED: _ALL,
    Verdict.UNMANAGED: _ALL,
    Verdict.DUPLICATED: (DispositionKind.RETAIN, DispositionKind.DESTROY),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One stray object, of one operation or found by a scan.

    `address` is the only address that it can belong to; where there are several, `addresses` names them and a person
    has to choose (rule 11). `provider_key` is the provider configuration through which it was seen.
    """

    id: str
    verdict: Verdict
    confidence: Confidence
    address: str | None
    operation_id: str | None
    object: CloudObject | None
    evidence: tuple[Evidence, ...] = ()
    disposition: Disposition | None = None
    addresses: tuple[str, ...] = ()
    provider_key: str = ""

    @property
    def actions(self) -> tuple[str, ...]:
        """What tfguard can do about it now; nothing for one that is decided or that has no place in the state."""
        if self.disposition is not None or self.object is None:
            return ()
        return tuple(kind.value for kind in _ACTIONS.get(self.verdict, ()))
