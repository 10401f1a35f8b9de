"""States in PostgreSQL, as Terraform's pg backend lays them out: a table in each schema."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tfguard.engine.backend import StateLocation, remote_state
from tfguard.errors import ConfigError, InputError, RecordError
from tfguard.ports import KnownState, RecordStore
from tfguard.states.kind import WHERE, PlaceKind, Settings, Wanted, no_state
from tfguard.states.reader import StateReader
from tfguard.stores.postgres import TABLE, PostgresStore
from tfguard.stores.postgres_client import (
    DEFAULT_SCHEMA,
    Access,
    Database,
    MissingTableError,
    backend_access,
    connection_parameters,
    quoted,
)
from tfguard.stores.urls import postgres_place

if TYPE_CHECKING:
    import psycopg

_STATES = "states"
_COLUMNS = 3
"""`id`, `name` and `data`: what tells the backend's table from another of its name."""


class StateDatabase:
    """The states in a PostgreSQL database: a table in each schema that a `pg` backend was given.

    `settings` are the backend's. Every method raises `RecordError` for what is refused.
    """

    def __init__(self, settings: Settings) -> None:
        self._access = backend_access(settings)
        self._database = Database(self._access)

    def schemas(self) -> list[str]:
        """Every schema that has a table of the backend, whether or not this run may read it."""
        query = (
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relname = %s AND c.relkind IN ('r', 'p') AND (SELECT count(*) FROM pg_attribute a "
            "WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attname IN ('id', 'name', 'data')) = %s ORDER BY 1"
        )
        return self._run(f"cannot list the schemas with states in {self._place}", "", _texts(query, _STATES, _COLUMNS))

    def workspaces(self, schema: str) -> list[str]:
        """Every workspace that has a state, or a record, in a schema."""
        states = _texts(f"SELECT name FROM {quoted(schema)}.{_STATES}")
        records = _texts(f"SELECT DISTINCT stack FROM {quoted(schema)}.{TABLE} WHERE name = 'head.json'")
        found = set(self._run(f"cannot list the states in {self.url(schema)}", schema, states))
        with contextlib.suppress(MissingTableError, RecordError):  # a role may have a right to the states alone
            found.update(self._database.run("", lambda: "", records))
        return sorted(found)

    def read(self, schema: str, workspace: str) -> bytes | None:
        """A workspace's state; None where it has none."""
        query = f"SELECT data FROM {quoted(schema).replace('%', '%%')}.{_STATES} WHERE name = %s"
        found = self._run(f"cannot read the state {self.url(schema)}/{workspace}", schema, _texts(query, workspace))
        return found[0].encode() if found else None

    def records(self, schema: str, workspace: str) -> RecordStore:
        """The record beside a workspace's state."""
        access = Access(self._access.parameters, schema, self._access.makes_schema, self._access.makes_table)
        return PostgresStore(access, workspace, self._database)

    def url(self, schema: str) -> str:
        """A schema, for a person."""
        return f"{self._place}/{schema}"

    @property
    def schema(self) -> str:
        """The schema of the backend's own settings."""
        return self._access.schema

    @property
    def _place(self) -> str:
        return self._access.url.rpartition("/")[0]

    def _run(self, doing: str, schema: str, work: Callable[[psycopg.Cursor[Any]], list[str]]) -> list[str]:
        def refused() -> str:
            table = f"{quoted(schema)}.{_STATES}"
            role = self._database.role
            return (
                f"have this run: GRANT USAGE ON SCHEMA {quoted(schema)} TO {role}; GRANT SELECT ON {table} TO {role};"
            )

        try:
            return self._database.run(doing, refused, work)
        except MissingTableError:
            return []


def database_settings(url: str) -> dict[str, str]:
    """The settings of a pg backend that reaches the database at a `postgresql://` URL, with the schema that it names.

    Without one there is no `schema_name`. Raises `RecordError` for a URL that is none.
    """
    parameters = connection_parameters(url)
    schema = parameters.pop("schema_name", "")
    words = " ".join(f"{name}='{_escaped(value)}'" for name, value in parameters.items())
    return {"conn_str": words} | ({"schema_name": schema} if schema else {})


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def _texts(query: str, *values: object) -> Callable[[psycopg.Cursor[Any]], list[str]]:
    def work(cursor: psycopg.Cursor[Any]) -> list[str]:
        cursor.execute(query.encode(), values or None)
        return [str(row[0]) for row in cursor]

    return work


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
            raise no_state(self.pattern, self.wanted)

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


def _source(wanted: Wanted, reader: StateReader) -> DatabaseSource:
    url, behind = postgres_place(wanted.place, urlencode(wanted.parameters), WHERE)
    if behind.strip("/"):
        raise ConfigError(f"{WHERE} postgresql:// has more than a database", "name a schema with ?schema_name=SCHEMA")
    try:
        return DatabaseSource(wanted.text, database_settings(url), wanted.workspaces, reader)
    except RecordError as error:
        raise ConfigError(f"{WHERE} {error.what}", error.advice) from error


def _of_stack(
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


PG = PlaceKind("pg", "postgresql://HOST/DB", _source, _of_stack)
