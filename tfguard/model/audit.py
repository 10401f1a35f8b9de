"""What an audit log says of how an object came into being."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Creation:
    """One call that made an object. `operation_id` is that of tfguard's own user agent, where the call came with it.

    The client chooses its user agent: what follows from it is evidence, and no proof.
    """

    at: datetime
    call: str
    actor: str
    operation_id: str | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    """Creations by the finding id of the object, and a line for each place that was not asked, or not about all."""

    creations: Mapping[str, Creation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
