"""States in buckets and databases: those that a URL means, and those of a stack that has its backend there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.cli.state_reading import StateReader
from tfguard.engine.backend import (
    StateLocation,
    azurerm_state_blob,
    azurerm_workspace_of,
    gcs_state_object,
    gcs_workspace_of,
    remote_state,
    s3_state_key,
    s3_workspace_of,
)
from tfguard.errors import InputError, NoStateError, RecordError
from tfguard.ports import KnownState, RecordStore
from tfguard.stores.postgres_client import DEFAULT_SCHEMA, connection_parameters
from tfguard.stores.state_patterns import HEAD, KeyPattern
from tfguard.stores.state_places import StateBucket, StateDatabase, azurerm_states, gcs_states, s3_states

Settings = Mapping[str, str]
NO_STATE_ADVICE = "correct the pattern, or take it out; ** stands for any folders"


@dataclass(frozen=True, slots=True)
class BucketKind:
    """How a kind of backend names its states in a bucket.

    `key` is the key of a workspace's state; `settings_of` tells the workspace of a key, and what the backend's settings
    say of the place, None for a key that no backend would write. `elsewhere` is where the keys of other workspaces
    begin, when that is not where the key itself does.
    """

    backend: str
    open: Callable[[Settings, str], StateBucket]
    key: Callable[[Settings, str], str]
    settings_of: Callable[[str, Settings], tuple[str, Settings] | None]
    elsewhere: Callable[[Settings], str]

    def workspace_of(self, key: str, settings: Settings) -> str | None:
        """The workspace of the backend with these settings that has its state under `key`; None for another's."""
        found = self.settings_of(key, settings)
        return found[0] if found and self.key(settings, found[0]) == key else None


def _s3_settings_of(key: str, settings: Settings) -> tuple[str, Settings]:
    workspace, own = s3_workspace_of(key, settings.get("workspace_key_prefix", ""))
    return workspace, {**settings, "key": own}


def _gcs_settings_of(key: str, settings: Settings) -> tuple[str, Settings] | None:
    found = gcs_workspace_of(key)
    if found is None:
        return None
    workspace, prefix = found
    return workspace, {**settings, "prefix": prefix} if prefix else settings


def _azurerm_settings_of(key: str, settings: Settings) -> tuple[str, Settings]:
    workspace, own = azurerm_workspace_of(key)
    return workspace, {**settings, "key": own}


BUCKETS: Mapping[str, BucketKind] = {
    "s3": BucketKind(
        "s3",
        s3_states,
        s3_state_key,
        _s3_settings_of,
        lambda settings: f"{settings.get('workspace_key_prefix') or 'env:'}/",
    ),
    "gcs": BucketKind("gcs", gcs_states, gcs_state_object, _gcs_settings_of, lambda _: ""),
    "azurerm": BucketKind("azurerm", azurerm_states, azurerm_state_blob, _azurerm_settings_of, lambda _: ""),
}


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
            raise NoStateError(f"{self.pattern} matches no state", NO_STATE_ADVICE)
        for key in sorted(written | begun):
            yield self._known(bucket, key, key in written)
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
            if not self.keys.is_name:
                raise InputError(error.what, error.advice) from error
            written = {self.keys.text}  # to read one that is named, no right to list is needed
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
        ways = [settings]
        if self.kind.backend == "gcs":  # which cleans the prefix before it uses it
            prefix = settings.get("prefix", "")
            ways += [
                {**settings, "prefix": way} for way in (f"{prefix}/", f"/{prefix}", f"/{prefix}/", "") if way != prefix
            ]
        return [remote_state(self.kind.backend, one, workspace) for one in ways]


def _unnamed(backend: str, url: str) -> StateLocation:
    """The location of a state under a name that its backend would not give it."""
    location = remote_state(backend, {}, "default")
    return replace(location, stack=replace(location.stack, location=url))


def stack_in_bucket(
    kind: BucketKind, located: Callable[[str], StateLocation], reader: StateReader, wanted: frozenset[str]
) -> Iterator[KnownState]:
    """The states of a stack with its backend in a bucket; `located` gives the location of one of its workspaces.

    Raises `RecordError` when the bucket cannot be listed.
    """
    settings = located("default").settings
    key = kind.key(settings, "default")
    bucket = kind.open(settings, key)
    start = kind.elsewhere(settings) or (key if kind.backend == "azurerm" else f"{key.rpartition('/')[0]}/".lstrip("/"))
    workspaces = {"default"}
    if wanted != {"default"}:
        for found in bucket.each_key(start):
            if name := kind.workspace_of(found.removesuffix(HEAD), settings):
                workspaces.add(name)
    for name in sorted(workspaces & wanted if wanted else workspaces):
        yield _of_workspace(kind, bucket, located(name), reader)


def _of_workspace(kind: BucketKind, bucket: StateBucket, location: StateLocation, reader: StateReader) -> KnownState:
    stack, key = location.stack, kind.key(location.settings, location.stack.workspace)
    return reader.known(
        location,
        lambda: bucket.read(key),
        lambda _: reader.encrypted(Path(stack.directory), stack.workspace).of_backend(stack.location),
        reader.records(location, lambda: bucket.records(key)),
    )


@dataclass(frozen=True, slots=True)
class DatabaseSource:
    """The states in a PostgreSQL database, of every schema or of the one that `settings` name."""

    pattern: str
    settings: Settings
    wanted: frozenset[str]
    reader: StateReader

    def read(self) -> Iterator[KnownState]:
        """Each state, and each that was never written while a run has begun to."""
        database = StateDatabase(self.settings)
        try:
            schemas = [self.settings["schema_name"]] if "schema_name" in self.settings else database.schemas()
        except RecordError as error:
            raise InputError(error.what, error.advice) from error
        found = False
        for schema in schemas:
            try:
                workspaces = database.workspaces(schema)
            except RecordError as error:
                found = True
                yield KnownState(database.url(schema), "", None, error.what)
                continue
            for workspace in workspaces:
                if not self.wanted or workspace in self.wanted:
                    found = True
                    yield self._known(database, schema, workspace)
        if not found:
            raise NoStateError(f"{self.pattern} matches no state", NO_STATE_ADVICE)

    def _known(self, database: StateDatabase, schema: str, workspace: str) -> KnownState:
        location, *others = self._spelled(schema, workspace)
        place = location.stack.location
        return self.reader.known(
            location,
            lambda: database.read(schema, workspace),
            lambda data: self.reader.decrypted(data, place),
            self.reader.records(location, lambda: database.records(schema, workspace), others),
        )

    def _spelled(self, schema: str, workspace: str) -> Sequence[StateLocation]:
        """The state's location, in the likely ways in which its backend block may have spelled it."""
        connection = connection_parameters(self.settings["conn_str"])
        host, port, name = (connection.get(word, "") for word in ("host", "port", "dbname"))
        place = f"{host}:{port}" if port else host
        words = " ".join(f"{key}={value}" for key, value in (("host", host), ("port", port), ("dbname", name)) if value)
        named: list[Settings] = [{"schema_name": schema}]
        if schema == DEFAULT_SCHEMA:
            named.append({})
        connections = (f"postgres://{place}/{name}", f"postgresql://{place}/{name}", words)
        return [remote_state("pg", {"conn_str": one, **own}, workspace) for own in named for one in connections]


def stack_in_database(
    located: Callable[[str], StateLocation], reader: StateReader, wanted: frozenset[str]
) -> Iterator[KnownState]:
    """The states of a stack with a pg backend. Raises `RecordError` when the database cannot be asked."""
    database = StateDatabase(located("default").settings)
    schema = database.schema
    workspaces = {"default", *database.workspaces(schema)}
    for name in sorted(workspaces & wanted if wanted else workspaces):
        yield _in_database(database, schema, located(name), reader)


def _in_database(database: StateDatabase, schema: str, location: StateLocation, reader: StateReader) -> KnownState:
    stack = location.stack
    return reader.known(
        location,
        lambda: database.read(schema, stack.workspace),
        lambda _: reader.encrypted(Path(stack.directory), stack.workspace).of_backend(stack.location),
        reader.records(location, lambda: database.records(schema, stack.workspace)),
    )
