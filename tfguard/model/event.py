"""What the engine told while it ran: one frozen event for each line of its `-json` stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

EMPTY: Mapping[str, object] = MappingProxyType({})


class EventKind(Enum):
    """The engine's message types (the value is the engine's own `type`), and three kinds for lines that are none.

    Source: the "Machine-Readable UI" pages of Terraform and OpenTofu. Both only ever add types: a type that is not
    named here is `UNKNOWN`, never an error.
    """

    VERSION = "version"
    LOG = "log"
    DIAGNOSTIC = "diagnostic"
    PLANNED_CHANGE = "planned_change"
    RESOURCE_DRIFT = "resource_drift"
    CHANGE_SUMMARY = "change_summary"
    OUTPUTS = "outputs"
    APPLY_START = "apply_start"
    APPLY_PROGRESS = "apply_progress"
    APPLY_COMPLETE = "apply_complete"
    APPLY_ERRORED = "apply_errored"
    PROVISION_START = "provision_start"
    PROVISION_PROGRESS = "provision_progress"
    PROVISION_COMPLETE = "provision_complete"
    PROVISION_ERRORED = "provision_errored"
    REFRESH_START = "refresh_start"
    REFRESH_COMPLETE = "refresh_complete"
    STATE_LOCK_ACQUIRE = "state_lock_acquire"
    STATE_LOCK_RELEASE = "state_lock_release"
    EPHEMERAL_START = "ephemeral_op_start"
    EPHEMERAL_PROGRESS = "ephemeral_op_progress"
    EPHEMERAL_COMPLETE = "ephemeral_op_complete"
    EPHEMERAL_ERRORED = "ephemeral_op_errored"
    UNKNOWN = "(unknown)"
    PLAIN = "(plain)"
    CUT = "(cut)"


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """One line of the engine's stream; a field the line does not have, or has with a wrong type, is None.

    `type` is the engine's own word (also for UNKNOWN), `timestamp` its `@timestamp` text (not monotonic in a stream).
    For a diagnostic `address`, `severity` and `summary` are the diagnostic's.
    `id_value` of an APPLY_START is the id before the change, of an APPLY_COMPLETE the one after it; APPLY_ERRORED has
    none, and is no evidence that nothing was made. `message`, `raw` (the whole line) and `text` (a line that is not
    JSON) are for the renderer alone: they may hold secrets and are never written to a record.
    """

    kind: EventKind
    type: str = ""
    timestamp: str | None = None
    message: str = field(default="", repr=False)
    address: str | None = None
    resource_type: str | None = None
    action: str | None = None
    id_key: str | None = None
    id_value: str | None = None
    severity: str | None = None
    summary: str | None = None
    raw: Mapping[str, object] = field(default_factory=lambda: EMPTY, repr=False, compare=False)
    text: str = field(default="", repr=False, compare=False)
