"""States in buckets and databases, as bytes, with the records beside them: a whole place over one client."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tfguard.errors import RecordError
from tfguard.ports import RecordStore
from tfguard.stores import azblob_client, gcs_client, s3_client
from tfguard.stores.common import STATES
from tfguard.stores.objects import Bucket, MissingError, ObjectStore
from tfguard.stores.postgres import TABLE, PostgresStore
from tfguard.stores.postgres_client import (
    Access,
    Database,
    MissingTableError,
    backend_access,
    connection_parameters,
    quoted,
)
from tfguard.stores.state_patterns import RECORD_SUFFIX

if TYPE_CHECKING:
    import psycopg

Settings = Mapping[str, str]

_STATES = "states"
_COLUMNS = 3
"""`id`, `name` and `data`: what tells the backend's table from another of its name."""


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


def s3_states(settings: Settings, root: str) -> StateBucket:
    """The states in the bucket of an s3 backend; `root` is the prefix that errors name."""
    client = functools.cache(partial(s3_client.backend_client, settings))
    states = s3_client.backend_bucket(settings, root, client, STATES)
    return StateBucket(states, s3_client.backend_bucket(settings, root, client))


def gcs_states(settings: Settings, root: str) -> StateBucket:
    """The states in the bucket of a gcs backend. Raises `RecordError` for an encryption key that is none."""
    client = functools.cache(partial(gcs_client.backend_access, settings))
    states = gcs_client.backend_bucket(settings, root, client, STATES)
    return StateBucket(states, gcs_client.backend_bucket(settings, root, client))


def azurerm_states(settings: Settings, root: str) -> StateBucket:
    """The states in the container of an azurerm backend."""
    client = functools.cache(partial(azblob_client.container_client, settings))
    states = azblob_client.backend_container(settings, root, client, STATES)
    return StateBucket(states, azblob_client.backend_container(settings, root, client))


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
