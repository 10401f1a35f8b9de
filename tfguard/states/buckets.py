"""States in buckets, of whatever cloud: those that a URL means, and those of a stack that has its backend there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from tfguard.engine.backend import StateLocation, remote_state
from tfguard.errors import InputError, RecordError
from tfguard.ports import KnownState, RecordStore
from tfguard.states.ahead import read_ahead
from tfguard.states.kind import WHERE, PlaceKind, Settings, Wanted, no_state
from tfguard.states.reader import StateReader
from tfguard.stores.objects import Bucket, MissingError, ObjectStore
from tfguard.stores.state_patterns import HEAD, RECORD_SUFFIX, KeyPattern
from tfguard.stores.urls import RECORDS_KEY

_PLACE = ("bucket", "storage_account_name", "container_name")


class StateObjects(Bucket, Protocol):
    """A bucket whose keys come one by one."""

    def each_key(self, key_prefix: str) -> Iterator[str]:
        """The keys of all objects that begin so, as the pages come."""
        ...


@dataclass(frozen=True, slots=True)
class StateBucket:
    """The states in a bucket, and the records beside them. Every method raises `RecordError` for what is refused."""

    states: StateObjects
    beside: Bucket

    def each_key(self, start: str) -> Iterator[str]:
        """The keys of all objects that begin so."""
        return self.states.each_key(start)

    def url(self, key: str) -> str:
        """Where an object lies, for a person."""
        return self.states.url(key)

    def read(self, key: str) -> bytes | None:
        """What an object holds; None where there is none."""
        try:
            return self.states.get(key).data
        except MissingError:
            return None

    def records(self, key: str) -> RecordStore:
        """The record beside the state with this key."""
        return ObjectStore(self.beside, key + RECORD_SUFFIX)


@dataclass(frozen=True, slots=True)
class BucketKind:
    """How a kind of backend names its states in a bucket.

    `url` reads what stands behind `SCHEME://` (place, query, what errors begin with) into the backend's settings and
    the part behind the bucket; `own` are parameters that say something of the states and nothing of the place. `open`
    is handed the settings and the prefix that errors name. `key` is the key of a workspace's state; `settings_of` tells
    the workspace of a key, and what the backend's settings say of the place, None for a key that no backend would
    write. `elsewhere` is where the keys of other workspaces begin, when that is not where the key itself does: they lie
    in one folder with it or, where they are `flat`, begin with it. `spellings` are other settings by which a stack may
    say the same.
    """

    backend: str
    url: Callable[[str, str, str], tuple[dict[str, str], str]]
    open: Callable[[Settings, str], StateBucket]
    key: Callable[[Settings, str], str]
    settings_of: Callable[[str, Settings], tuple[str, Settings] | None]
    elsewhere: Callable[[Settings], str] = lambda _: ""
    own: frozenset[str] = frozenset()
    flat: bool = False
    spellings: Callable[[Settings], Sequence[Settings]] = lambda _: ()

    def workspace_of(self, key: str, settings: Settings) -> str | None:
        """The workspace of the backend with these settings that has its state under `key`; None for another's."""
        found = self.settings_of(key, settings)
        return found[0] if found and self.key(settings, found[0]) == key else None


def bucket_place(
    scheme: str, form: str, kind: BucketKind, engine_alone: Callable[[Settings], bool] = lambda _: False
) -> PlaceKind:
    """The kind of place that such buckets are, by the scheme and the form of its URLs."""
    return PlaceKind(kind.backend, form, partial(_source, scheme, kind), partial(_of_stack, kind), engine_alone)


def _source(scheme: str, kind: BucketKind, wanted: Wanted, reader: StateReader) -> BucketSource:
    own = {name: value for name, value in wanted.parameters if name in kind.own}
    query = urlencode([(name, value) for name, value in wanted.parameters if name not in kind.own])
    settings, keys = kind.url(wanted.place, query, WHERE)
    records = _records_in(scheme, kind, settings, reader.records_url)
    return BucketSource(wanted.text, kind, {**settings, **own}, KeyPattern(keys), wanted.workspaces, reader, records)


def _records_in(scheme: str, kind: BucketKind, settings: Settings, records: str) -> str:
    """Below which prefix of the same bucket `records:` lie; empty where they lie elsewhere."""
    body, _, query = records.partition("?")
    other, _, place = body.partition("://")
    if other != scheme:
        return ""
    theirs, prefix = kind.url(place, query, RECORDS_KEY)
    same = all(theirs.get(name) == settings.get(name) for name in _PLACE)
    return f"{prefix.strip('/')}/" if same and prefix.strip("/") else ""


@dataclass(frozen=True, slots=True)
class BucketSource:
    """The states that a URL with a bucket means; `wanted` are its workspaces, empty for all of them.

    `not_below` is where records lie in the same bucket.
    """

    pattern: str
    kind: BucketKind
    settings: Settings
    keys: KeyPattern
    wanted: frozenset[str]
    reader: StateReader
    not_below: str = ""

    def read(self) -> Iterator[KnownState]:
        """Each state, and each that was never written while a run has begun to."""
        bucket = self.kind.open(self.settings, self.keys.start.rstrip("/"))
        written, begun, denied = self._look(bucket)
        if not (written or begun or denied):
            raise no_state(self.pattern, self.wanted)
        keys = sorted(written | begun)
        yield from read_ahead(partial(self._known, bucket, key, key in written) for key in keys)
        if denied:
            yield KnownState(bucket.url(self.kind.elsewhere(self.settings)), "", None, denied)

    def _look(self, bucket: StateBucket) -> tuple[set[str], set[str], str]:
        """The keys of states, the keys at which there is a record and no state, and why not all could be listed."""
        written: set[str] = set()
        begun: set[str] = set()
        denied = ""
        try:
            self._collect(bucket, self.keys.start, written, begun)
        except RecordError as error:
            key = self.keys.text
            if not (self.keys.is_name and self._takes(key)):
                raise InputError(error.what, error.advice) from error
            if self._is_there(bucket, key):  # to read one that is named, no right to list is needed
                written = {key}
        elsewhere = self.kind.elsewhere(self.settings)
        if elsewhere and not elsewhere.startswith(self.keys.start) and self.wanted != {"default"}:
            try:
                self._collect(bucket, elsewhere, written, begun)
            except RecordError as error:
                denied = f"which workspaces there are is not known: {error.what}"
        return written, begun - written, denied

    def _collect(self, bucket: StateBucket, start: str, written: set[str], begun: set[str]) -> None:
        for key in bucket.each_key(start):
            if self.not_below and key.startswith(self.not_below):
                continue
            if self._takes(key):
                written.add(key)
            elif key.endswith(HEAD) and self._takes(key.removesuffix(HEAD)):
                begun.add(key.removesuffix(HEAD))

    def _is_there(self, bucket: StateBucket, key: str) -> bool:
        """Whether there is a state, or a run has begun to make it. One that is not to be read is: its reading tells."""
        try:
            return bucket.read(key) is not None or bucket.read(key + HEAD) is not None
        except RecordError:
            return True

    def _takes(self, key: str) -> bool:
        found = self.kind.settings_of(key, self.settings)
        workspace, settings = found or ("", self.settings)
        if self.wanted and workspace not in self.wanted:
            return False
        # A workspace's state belongs to the key that the backend names, wherever its own lies.
        return self.keys.takes(key) or (self.keys.takes(settings["key"]) if found and "key" in settings else False)

    def _known(self, bucket: StateBucket, key: str, written: bool) -> KnownState:
        spelled = self._spelled(key)
        location = spelled[0] if spelled else _unnamed(self.kind.backend, bucket.url(key))
        records: RecordStore | None = None
        if spelled:
            records = self.reader.records(location, lambda: bucket.records(key), spelled[1:])
        place = location.stack.location
        return self.reader.known(
            location,
            lambda: bucket.read(key) if written else None,
            lambda data: self.reader.decrypted(data, place),
            records,
        )

    def _spelled(self, key: str) -> Sequence[StateLocation]:
        """The state's location, in each way in which its backend block may have spelled it."""
        found = self.kind.settings_of(key, self.settings)
        if found is None:
            return ()
        workspace, settings = found
        ways = (settings, *self.kind.spellings(settings))
        return [remote_state(self.kind.backend, one, workspace) for one in ways]


def _unnamed(backend: str, url: str) -> StateLocation:
    """The location of a state under a name that its backend would not give it."""
    location = remote_state(backend, {}, "default")
    return replace(location, stack=replace(location.stack, location=url))


def _of_stack(
    kind: BucketKind, located: Callable[[str], StateLocation], reader: StateReader, wanted: frozenset[str]
) -> Iterator[KnownState]:
    """The states of a stack with its backend in a bucket. Raises `RecordError` when the bucket cannot be listed."""
    settings = located("default").settings
    key = kind.key(settings, "default")
    bucket = kind.open(settings, key)
    start = kind.elsewhere(settings) or (key if kind.flat else f"{key.rpartition('/')[0]}/".lstrip("/"))
    workspaces = {"default"}
    if wanted != {"default"}:
        for found in bucket.each_key(start):
            if name := kind.workspace_of(found.removesuffix(HEAD), settings):
                workspaces.add(name)
    names = sorted(workspaces & wanted if wanted else workspaces)
    yield from read_ahead(partial(_of_workspace, kind, bucket, located(name), reader) for name in names)


def _of_workspace(kind: BucketKind, bucket: StateBucket, location: StateLocation, reader: StateReader) -> KnownState:
    stack, key = location.stack, kind.key(location.settings, location.stack.workspace)
    return reader.known(
        location,
        lambda: bucket.read(key),
        lambda _: reader.encrypted(Path(stack.directory), stack.workspace).of_backend(stack.location),
        reader.records(location, lambda: bucket.records(key)),
    )
