"""Values of every document of a record, for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from tfguard.model.archive import ArchivedDocument, ArchiveEntry
from tfguard.model.blueprint_request import BlueprintObject, RequestEvent, RequestIntent
from tfguard.model.lease import Lease
from tfguard.model.operation import (
    Head,
    Intent,
    JournalEntry,
    ObservedObject,
    Result,
    Step,
)
from tfguard.schemas import blueprint_records, records
from tfguard.schemas.document import Document

TIMES = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))
# A time without a zone is read back as one of UTC, which is another value.
st.register_type_strategy(datetime, TIMES)
MAPPINGS = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2)

INPUTS = st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers() | st.booleans(), max_size=2)


def _all_fields(kind: type, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of `kind` with every field drawn, also those that have a default."""
    return st.builds(kind, **{field.name: ... for field in fields(kind)} | known)


def _few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=2).map(tuple)


LEASES = _all_fields(Lease, heartbeat=TIMES, expires_at=TIMES)
OBSERVED = _all_fields(ObservedObject, created_at=st.none() | TIMES, tags=MAPPINGS)
STEPS = _all_fields(Step, desired=MAPPINGS, before=MAPPINGS, observed=_few(OBSERVED))
ARCHIVED = st.builds(ArchivedDocument.of, st.text(max_size=8), st.binary(max_size=20))
ENTRIES = _all_fields(JournalEntry, at=TIMES)
_KNOWN: Mapping[Document[Any], st.SearchStrategy[Any]] = {
    records.HEAD: _all_fields(Head, lease=st.none() | LEASES),
    records.INTENT: _all_fields(Intent, started_at=TIMES, steps=_few(STEPS)),
    records.OUTCOME: _all_fields(Result, ended_at=TIMES, steps=_few(STEPS)),
    records.JOURNAL: ENTRIES,
    records.ARCHIVE_ENTRY: _all_fields(ArchiveEntry, documents=_few(ARCHIVED)),
    blueprint_records.REQUEST: _all_fields(RequestIntent, created_at=TIMES, inputs=INPUTS),
    blueprint_records.EVENT: _all_fields(
        RequestEvent,
        at=TIMES,
        until=st.none() | TIMES,
        inputs=st.none() | INPUTS,
        objects=st.none() | _few(_all_fields(BlueprintObject, desired=MAPPINGS, created_at=st.none() | TIMES)),
    ),
}
EVERY_DOCUMENT = (*records.DOCUMENTS, *blueprint_records.BLUEPRINT_DOCUMENTS)
VALUES = {
    document: _KNOWN[document] if document in _KNOWN else _all_fields(document.kind) for document in EVERY_DOCUMENT
}
