"""The archive's bytes: entries as lines that are sealed with a hash, a month's lines in one gzip object, and the chain.

An object grows at its end alone: what is added is a gzip member of its own, and `zcat` shows every line of it. The seal
of a line is the SHA-256 of what stands before `,"hash":"..."}` in it, so that a shell can check it too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence

from tfguard.errors import CorruptRecordError
from tfguard.model.archive import ArchiveChain, ArchivedDocument, ArchiveEntry
from tfguard.schemas.document import parse_json
from tfguard.schemas.records import ARCHIVE_CHAIN, ARCHIVE_ENTRY

NO_HASH = ""
"""What the very first entry links to."""

ADVICE = (
    "restore the object from a backup or an earlier version of it; `tfguard archive --verify` tells how far it goes"
)

_UNSEALED = b',"hash":""}\n'
_SEALED = re.compile(rb'(.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL)
_ID = re.compile(rb'"operation_id":"([^"\\]*)"')


def seal(number: int, operation_id: str, previous: str, contents: Mapping[str, bytes]) -> tuple[bytes, str]:
    """An entry as its line, without the line's end, and its hash."""
    documents = tuple(ArchivedDocument.of(name, contents[name]) for name in sorted(contents))
    line = ARCHIVE_ENTRY.encode_line(ArchiveEntry(number, operation_id, previous, documents))
    body = line.removesuffix(_UNSEALED)
    digest = hashlib.sha256(body).hexdigest()
    return body + b',"hash":"%s"}' % digest.encode(), digest


def seal_of(line: bytes) -> str | None:
    """The hash of a line whose seal is whole; None for one that was changed."""
    match = _SEALED.fullmatch(line)
    if match is None or hashlib.sha256(match[1]).hexdigest() != match[2].decode():
        return None
    return match[2].decode()


def decode_entry(line: bytes, where: str) -> ArchiveEntry:
    """The entry in a line. Raises `CorruptRecordError` for one that was changed, `NewerRecordError` for a newer one."""
    if seal_of(line) is None:
        raise CorruptRecordError(f"{where} was changed: its hash is not that of what it holds", ADVICE)
    entry = ARCHIVE_ENTRY.decode(line, where)
    try:
        entry.contents  # noqa: B018 (every document has to be readable)
    except ValueError as error:
        raise CorruptRecordError(f"{where} cannot be read as an entry: {error}", ADVICE) from None
    return entry


def operation_in(line: bytes) -> str:
    """The id of a line's operation, without reading the rest of it; empty where there is none."""
    match = _ID.search(line)
    return match[1].decode("utf-8", "replace") if match else ""


def pack(lines: Sequence[bytes]) -> bytes:
    """Lines as what is put at the end of a month's object."""
    return gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0)


def unpack(data: bytes, where: str) -> tuple[bytes, ...]:
    """The lines of a month's object. Raises `CorruptRecordError` for one that cannot be unpacked to its end."""
    try:
        text = gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise CorruptRecordError(f"{where} cannot be unpacked: {error}", ADVICE) from None
    if not text.endswith(b"\n"):
        raise CorruptRecordError(f"{where} ends in the middle of a line", ADVICE)
    return tuple(text[:-1].split(b"\n"))


def encode_chain(chain: ArchiveChain) -> bytes:
    """`archive/chain.json`."""
    return ARCHIVE_CHAIN.encode(chain)


def decode_chain(data: bytes, where: str = "chain.json") -> ArchiveChain:
    """The chain in `archive/chain.json`.

    Nobody but tfguard writes it: what is not just as it would write it was changed by somebody, and is damaged too.
    """
    chain = ARCHIVE_CHAIN.decode(data, where)
    if json.dumps(parse_json(data, where), indent=1).encode() + b"\n" != data:
        raise CorruptRecordError(f"{where} was changed: it is not written as tfguard writes it", ADVICE)
    return chain
