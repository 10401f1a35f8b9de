"""An object that needs somebody's decision, and why tfguard thinks so."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import WITHHELD_WORD


class Verdict(StrEnum):
    """What a finding is."""

    ORPHANED = "orphaned"
    DUPLICATED = "duplicated"
    TAINTED = "tainted"
    UNMANAGED = "unmanaged"
    MISSING = "missing"
    RETAINED = "retained"
    MANAGED = "managed"
    IGNORED = "ignored"
    SOFT_DELETED = "soft-deleted"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


_ALL = (DispositionKind.IMPORT, DispositionKind.RETAIN, DispositionKind.DESTROY)
_ACTIONS = {
    Verdict.ORPHANED: _ALL,
    Verdict.UNMANAGED: _ALL,
    Verdict.DUPLICATED: _ALL,  # one of several for an address: whoever names it has chosen
    Verdict.TAINTED: (DispositionKind.RETAIN,),
    Verdict.SOFT_DELETED: (DispositionKind.IMPORT,),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One stray object, of one operation or found by a scan; or one that the state marks for replacement (`tainted`).

    `address` is the only address that it can belong to; where there are several, `addresses` names them and a person
    has to choose (rule 11). `provider_key` is the provider configuration through which it was seen. `first_seen` is
    when a scan told of it first, or the ledger.
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
    first_seen: datetime | None = None

    @property
    def is_withheld(self) -> bool:
        """Whether what names its object was left out, since it repeats a value that is marked as sensitive."""
        return self.object is not None and self.object.import_id.startswith(WITHHELD_WORD)

    @property
    def actions(self) -> tuple[str, ...]:
        """What tfguard can do about it now; nothing for one that is decided or that has no place in the state."""
        has_name = self.object is not None and not self.is_withheld
        named = has_name or self.verdict is Verdict.TAINTED  # which the state knows by its address
        if self.disposition is not None or not named:
            return ()
        return tuple(kind.value for kind in _ACTIONS.get(self.verdict, ()))

    @property
    def needs_action(self) -> bool:
        """Whether it waits for a person's decision.

        A tainted object does not: it is no stray, no operation is open for it, and the next apply deals with it. Nor
        does one that is deleted and goes by itself.
        """
        return self.disposition is None and self.verdict not in (Verdict.TAINTED, Verdict.SOFT_DELETED)


def tainted_id(lineage: str, address: str) -> str:
    """The id of the finding that what the state with this lineage has at an address is tainted.

    It is another one than that of the object: a decision about a stray says nothing of what became of it in a state.
    """
    told = "\x1f".join(("tainted", lineage, address))
    return "o-" + hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]
