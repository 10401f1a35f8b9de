"""The documents of an operation's record, one pair of functions each. Every `decode_*` raises `NewerRecordError` or
`CorruptRecordError` and nothing else, whatever the bytes are; `where` names the document in those errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfguard.model.archive import ArchiveChain, ArchiveEntry
from tfguard.model.disposition import Disposition
from tfguard.model.operation import AppliedPlan, Head, Intent, JournalEntry, Result
from tfguard.model.transition import Transition
from tfguard.schemas.document import Document, Lines, decode_lines
from tfguard.schemas.migrations import intent_v2, unchanged

HEAD = Document("tfguard.head", 1, Head)
INTENT = Document("tfguard.intent", 2, Intent, migrations=(intent_v2,))
OUTCOME = Document("tfguard.outcome", 1, Result)
JOURNAL = Document("tfguard.journal", 1, JournalEntry, short=True)
DISPOSITION = Document("tfguard.disposition", 2, Disposition, migrations=(unchanged,))
APPLIED_PLAN = Document("tfguard.applied-plan", 1, AppliedPlan)
TRANSITION = Document("tfguard.transition", 1, Transition, short=True)
ARCHIVE_ENTRY = Document("tfguard.archive", 1, ArchiveEntry, summed=False)
ARCHIVE_CHAIN = Document("tfguard.archive-chain", 1, ArchiveChain)

DOCUMENTS: tuple[Document[Any], ...] = (
    HEAD,
    INTENT,
    OUTCOME,
    JOURNAL,
    DISPOSITION,
    APPLIED_PLAN,
    TRANSITION,
    ARCHIVE_ENTRY,
    ARCHIVE_CHAIN,
)
"""Every document of a record; each has a schema below docs/schemas."""


def encode_head(head: Head) -> bytes:
    """`head.json`."""
    return HEAD.encode(head)


def decode_head(data: bytes, where: str = "head.json") -> Head:
    """The head in `head.json`."""
    return HEAD.decode(data, where)


def encode_intent(intent: Intent) -> bytes:
    """`intent.json`."""
    return INTENT.encode(intent)


def decode_intent(data: bytes, where: str = "intent.json") -> Intent:
    """The intent in `intent.json`."""
    return INTENT.decode(data, where)


def encode_outcome(result: Result) -> bytes:
    """`outcome.json`."""
    return OUTCOME.encode(result)


def decode_outcome(data: bytes, where: str = "outcome.json") -> Result:
    """The result in `outcome.json`."""
    return OUTCOME.decode(data, where)


def encode_journal(entries: Iterable[JournalEntry]) -> bytes:
    """Whole lines of `events.jsonl`."""
    return b"".join(map(JOURNAL.encode_line, entries))


def decode_journal(data: bytes, where: str = "events.jsonl") -> Lines[JournalEntry]:
    """The entries in `events.jsonl`, and how many lines were cut."""
    return decode_lines(JOURNAL, data, where)


def encode_disposition(disposition: Disposition) -> bytes:
    """One line of `dispositions.jsonl`."""
    return DISPOSITION.encode_line(disposition)


def decode_dispositions(data: bytes, where: str = "dispositions.jsonl") -> Lines[Disposition]:
    """The ledger in `dispositions.jsonl`, oldest first, and how many lines were cut."""
    return decode_lines(DISPOSITION, data, where)


def encode_applied_plan(applied: AppliedPlan) -> bytes:
    """`plans/<sha256>.json`."""
    return APPLIED_PLAN.encode(applied)


def decode_applied_plan(data: bytes, where: str = "plans") -> AppliedPlan:
    """Who applied a plan file first, from `plans/<sha256>.json`."""
    return APPLIED_PLAN.decode(data, where)


def encode_transitions(transitions: Iterable[Transition]) -> bytes:
    """Whole lines of `transitions.jsonl`."""
    return b"".join(map(TRANSITION.encode_line, transitions))


def decode_transitions(data: bytes, where: str = "transitions.jsonl") -> Lines[Transition]:
    """The changes in `transitions.jsonl`, oldest first, and how many lines were cut."""
    return decode_lines(TRANSITION, data, where)
