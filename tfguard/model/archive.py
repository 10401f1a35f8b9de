"""Operations that were packed away: one entry each, chained by hash, and what the chain is held against."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArchivedDocument:
    """One document of an operation, `name` below its folder; every byte is kept: text as it is, all else as base64."""

    name: str
    text: str | None = None
    base64: str | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("has both text and base64, or neither")

    @staticmethod
    def of(name: str, data: bytes) -> ArchivedDocument:
        """The document that holds `data`."""
        try:
            return ArchivedDocument(name, text=data.decode())
        except UnicodeDecodeError:
            return ArchivedDocument(name, base64=b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """What the document held. Raises `ValueError` when that cannot be told any more."""
        if self.text is not None:
            return self.text.encode()
        try:
            return b64decode(self.base64 or "", validate=True)
        except NotBase64Error as error:
            raise ValueError(f"{self.name} is not base64") from error


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One operation in the object of its month.

    `number` counts the month's entries from 1. `previous` is the hash of the entry before; the first one of a month has
    that of the last entry of the nearest earlier month, as far as it went when this one was written, or nothing. `hash`
    comes last in the line, and is the SHA-256 of the line as it stands before it.
    """

    number: int
    operation_id: str
    previous: str
    documents: tuple[ArchivedDocument, ...]
    hash: str = ""

    @property
    def contents(self) -> Mapping[str, bytes]:
        """What each document held, by name. Raises `ValueError` when that cannot be told any more."""
        return {document.name: document.data for document in self.documents}


@dataclass(frozen=True, slots=True)
class AnchoredMonth:
    """What a month's object must at least hold: so many `entries`, the last of which has the hash `last`.

    `digest` is the SHA-256 of the object's first `size` bytes, which nothing that is added later changes. `newest` is
    the newest of its operations: whoever looks for older ones alone need not read the object.
    """

    month: str
    entries: int
    last: str
    size: int
    digest: str
    newest: str


@dataclass(frozen=True, slots=True)
class ArchiveChain:
    """`archive/chain.json`: every month that was packed. Written after a month's object and before any removal."""

    months: tuple[AnchoredMonth, ...] = ()

    @property
    def head(self) -> str:
        """The hash that the newest month ends with; empty for an empty archive."""
        return max(self.months, key=lambda month: month.month).last if self.months else ""

    def month(self, name: str) -> AnchoredMonth | None:
        """What is known of a month; None where nothing was packed yet."""
        return next((month for month in self.months if month.month == name), None)
