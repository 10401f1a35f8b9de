"""`tfguard.recovery/v1`: what `recover` has settled, and what it left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.model.disposition import Disposition
from tfguard.schemas import operation
from tfguard.schemas.codec import dump
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.recovery/v1"

SHAPE: Shape = {
    "operations": [{"schema": str, **operation.SHAPE}],
    "deletions?": [{"decision": Disposition, "gone": bool, "detail": str}],
}
"""What the document holds. A deletion is there as it was begun, with what a look says of it now."""


def recovery_document(
    operations: Sequence[Mapping[str, object]], deletions: Sequence[tuple[Disposition, bool, str]]
) -> Mapping[str, object]:
    """The document for the operations that were open, each a document already, and for the deletions without an end.

    Of each of those: the last word of the ledger before the look, whether it is verified to be gone by now, and what
    the look says.
    """
    looked_after = [
        {"decision": dump(entry, keep_none=True), "gone": gone, "detail": detail} for entry, gone, detail in deletions
    ]
    return with_schema(SCHEMA, {"operations": list(operations), "deletions": looked_after})
