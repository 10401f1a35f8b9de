"""Records as objects in a bucket, whoever's bucket it is. Every put says which version it replaces, or that there must
be none.

A journal `events.jsonl` is a row of objects `events.jsonl/part-000000001`, ... that are only ever added, so that a
writer that takes over cannot overwrite what the one before it has told.

Every put carries a token of its own. An SDK repeats a put whose answer was lost, and is then told that the object is
there already: the token tells whether it was ours.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Protocol

from tfguard.errors import ConflictError, RecordError
from tfguard.ports import Blob
from tfguard.stores.common import aside_name, check_name, conflict

TOKEN = "tfguardwrite"
"""The name of the token in an object's metadata. Azure takes no dash in it, and some proxies no underscore."""

_PART = re.compile(r"/part-\d{9}$", re.ASCII)
_READERS = 8
_APPEND_ATTEMPTS = 20
_READ_ATTEMPTS = 20


class MissingError(Exception):
    """There is no such object."""


class TakenError(Exception):
    """The object is not in the state that the request names."""


class Bucket(Protocol):
    """The few calls that the records need of an object store. Every other failure of one is a `RecordError`.

    A key is the object's whole name. A version is whatever the store compares in a conditional request.
    """

    def url(self, key: str) -> str:
        """Where an object lies, for a person; no credential in it."""
        ...

    def get(self, key: str) -> Blob:
        """An object. Raises `MissingError`."""
        ...

    def put(self, key: str, data: bytes, expected: str | None, token: str) -> None:
        """Write an object that has the version `expected` (None: that must not exist), `token` in its metadata.

        Raises `TakenError` or `MissingError` when it is in another state, also since a lost try of this very call
        has put it there.
        """
        ...

    def token(self, key: str) -> str | None:
        """The token that an object was written with. Raises `MissingError`."""
        ...

    def delete(self, key: str, version: str) -> None:
        """Remove an object that still has this version. Raises `TakenError` or `MissingError`."""
        ...

    def keys(self, key_prefix: str) -> list[str]:
        """The keys of all objects that begin so."""
        ...

    def now(self) -> datetime:
        """The time by the clock that also dates the objects."""
        ...


class ObjectStore:
    """A `RecordStore` below `prefix` in `bucket`."""

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix.rstrip("/")
        self._next_part: dict[str, int] = {}

    @property
    def location(self) -> str:
        """The URL of the bucket and prefix."""
        return self._bucket.url(self._prefix)

    def sibling(self, name: str) -> ObjectStore:
        """The store beside this one, over the same client: `name` takes the place of the prefix's last part."""
        folder, slash, _ = self._prefix.rpartition("/")
        return ObjectStore(self._bucket, f"{folder}{slash}{name}")

    def check_writable(self) -> None:
        """Nothing: whether a bucket takes an object is only told by putting one there."""

    def now(self) -> datetime | None:
        """The time by the bucket's clock."""
        return self._bucket.now()

    def read(self, name: str) -> Blob | None:
        """The document, or None when there is none."""
        try:
            return self._bucket.get(self._key(name))
        except MissingError:
            return None

    def create(self, name: str, data: bytes) -> None:
        """Write a document that must not exist yet; `ConflictError` when it does."""
        self.replace(name, data, None)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document if it still has the version `expected` (None: must not exist); else `ConflictError`."""
        self._put(self._key(name), data, expected)

    def append(self, name: str, data: bytes) -> None:
        """Add whole lines to a journal, behind what any other writer has added."""
        key = self._key(name)
        if not data:
            return
        for _ in range(_APPEND_ATTEMPTS):
            number = self._next_part.get(key) or self._count_parts(key) + 1
            try:
                self._put(f"{key}/part-{number:09}", data, None)
            except ConflictError:
                self._next_part.pop(key, None)
            else:
                self._next_part[key] = number + 1
                return
        raise conflict(self._bucket.url(key))

    def read_journal(self, name: str) -> bytes:
        """All that was appended under `name`, in order; empty when nothing was.

        While somebody removes it, what was left of it at some moment: its end, or nothing.
        """
        key = self._key(name)
        for _ in range(_READ_ATTEMPTS):
            keys = self._part_keys(key)
            try:
                with ThreadPoolExecutor(_READERS) as readers:
                    return b"".join(blob.data for blob in readers.map(self._bucket.get, keys))
            except MissingError:
                continue  # a part was removed since it was listed
        raise RecordError(
            f"the record {self._bucket.url(key)} kept changing while it was read",
            "let the other run end that archives or recovers this stack, then run the command again",
        )

    def names(self, prefix: str) -> Sequence[str]:
        """The names of the documents and journals below `prefix` (empty: all), sorted."""
        keys = self._bucket.keys(f"{self._key(prefix)}/" if prefix else self._root)
        names = (_PART.sub("", key.removeprefix(self._root)) for key in keys)
        return sorted({name for name in names if name and not name.endswith("/")})

    def remove(self, name: str, content: bytes) -> None:
        """Remove a document or journal that holds just this; `ConflictError` when it holds anything else."""
        key = self._key(name)
        blobs = self._blobs(key)
        if blobs and b"".join(blob.data for blob in blobs.values()) != content:
            raise conflict(self._bucket.url(key))
        self._delete(blobs)
        self._next_part.pop(key, None)

    def move_aside(self, name: str) -> str:
        """Keep a document or journal as `<name>.unreadable-<n>`, and tell that name; `ConflictError` when it is gone.

        Everything is copied before anything is removed: dying in between leaves both.
        """
        key = self._key(name)
        blobs = self._blobs(key)
        if not blobs:
            raise conflict(self._bucket.url(key))
        for number in itertools.count(1):
            target = aside_name(name, number)
            try:
                for source, blob in blobs.items():
                    self._put(self._key(target) + source.removeprefix(key), blob.data, None)
            except ConflictError:
                continue
            break
        self._delete(blobs)
        self._next_part.pop(key, None)
        return target

    @property
    def _root(self) -> str:
        return f"{self._prefix}/" if self._prefix else ""

    def _key(self, name: str) -> str:
        return self._root + check_name(name)

    def _blobs(self, key: str) -> dict[str, Blob]:
        """The object or, of a journal, the parts, in order; empty when there is neither."""
        try:
            return {source: self._bucket.get(source) for source in self._part_keys(key) or [key]}
        except MissingError:
            return {}

    def _put(self, key: str, data: bytes, expected: str | None) -> None:
        token = secrets.token_hex(16)
        try:
            self._bucket.put(key, data, expected, token)
        except (TakenError, MissingError):
            if not self._was_written_with(key, token):
                raise conflict(self._bucket.url(key)) from None

    def _was_written_with(self, key: str, token: str) -> bool:
        try:
            return self._bucket.token(key) == token
        except MissingError:
            return False

    def _delete(self, blobs: dict[str, Blob]) -> None:
        for key, blob in blobs.items():
            try:
                self._bucket.delete(key, blob.version)
            except TakenError:
                raise conflict(self._bucket.url(key)) from None
            except MissingError:
                # Gone is gone, and the first try of this very call may have been it.
                continue

    def _part_keys(self, key: str) -> list[str]:
        return sorted(found for found in self._bucket.keys(f"{key}/part-") if _PART.sub("", found) == key)

    def _count_parts(self, key: str) -> int:
        keys = self._part_keys(key)
        return int(keys[-1].rpartition("-")[2]) if keys else 0
