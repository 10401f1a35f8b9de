"""Records in PostgreSQL: one table, a row for each document and for each batch of lines in a journal.

A version is a token that a write makes up. Versions never come back, so that no write meant for an earlier content hits
a later one; and a write whose acknowledgement was lost knows itself by its token when it is tried again.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from tfguard.errors import RecordError
from tfguard.ports import Blob
from tfguard.stores.common import aside_name, check_name, conflict
from tfguard.stores.postgres_client import (
    Access,
    Database,
    MissingTableError,
    Parameters,
    backend_access,
    quoted,
    url_access,
)

if TYPE_CHECKING:
    import psycopg

    Cursor = psycopg.Cursor[Any]
    Work = Callable[[Cursor], "T"]

T = TypeVar("T")

TABLE = "tfguard_records"
_DOCUMENT = 0
"""The part number of a document; those of a journal's batches begin at 1."""

_APPEND_ATTEMPTS = 300
_COLUMNS = (
    'stack text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, part bigint NOT NULL, '
    'version text COLLATE "C" NOT NULL UNIQUE, data bytea NOT NULL, written_at timestamptz NOT NULL, '
    "PRIMARY KEY (stack, name, part)"
)
_LEFT_TO_OTHERS = "the pg backend's skip_... settings leave making it to others"
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")


def backend_store(settings: Parameters, workspace: str) -> PostgresStore:
    """The store beside the state of a workspace of the `pg` backend that `settings` describe."""
    return PostgresStore(backend_access(settings), workspace)


def url_store(url: str, stack: str) -> PostgresStore:
    """The store of a stack in the database at a `postgresql://` URL."""
    return PostgresStore(url_access(url), stack)


class PostgresStore:
    """A `RecordStore` for the records of one stack in a database. `stack` tells them from those of others there.

    `database` is a connection to share.
    """

    def __init__(self, access: Access, stack: str, database: Database | None = None) -> None:
        self._access = access
        self._stack = stack
        self._database = database or Database(access)
        self._schema = quoted(access.schema)
        self._table = f"{self._schema}.{TABLE}"
        # In a statement with parameters, a % of the schema's name would begin one.
        self._in_query = self._table.replace("%", "%%")

    @property
    def location(self) -> str:
        """The URL of the database, then schema and stack."""
        return f"{self._access.url}/{self._stack}"

    def sibling(self, stack: str) -> PostgresStore:
        """The store of another stack in the same table, over the same connection."""
        return PostgresStore(self._access, stack, self._database)

    def check_writable(self) -> None:
        """Raise `RecordError` when the database takes no writes now, or the role has not the rights for them."""
        self._run("write", "", self._check_writable)

    def now(self) -> datetime | None:
        """The time by the server's clock."""

        def tell(cursor: Cursor) -> datetime:
            cursor.execute("SELECT clock_timestamp() AT TIME ZONE 'UTC'")
            return _utc(_row(cursor)[0])

        return self._run("read", "", tell)

    def read(self, name: str) -> Blob | None:
        """The document, or None when there is none."""

        def find(cursor: Cursor) -> Blob | None:
            cursor.execute(
                f"SELECT data, version, written_at AT TIME ZONE 'UTC' FROM {self._in_query} "
                "WHERE stack = %s AND name = %s AND part = %s",
                (self._stack, name, _DOCUMENT),
            )
            row = cursor.fetchone()
            return Blob(row[0], row[1], _utc(row[2])) if row else None

        return self._read(check_name(name), find, None)

    def create(self, name: str, data: bytes) -> None:
        """Write a document that must not exist yet; `ConflictError` when it does."""
        self.replace(name, data, None)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document if it still has the version `expected` (None: must not exist); else `ConflictError`."""
        token = secrets.token_hex(16)

        def put(cursor: Cursor) -> None:
            if expected is None:
                cursor.execute(
                    f"INSERT INTO {self._in_query} (stack, name, part, version, data, written_at) "
                    "VALUES (%s, %s, %s, %s, %s, clock_timestamp()) ON CONFLICT DO NOTHING",
                    (self._stack, name, _DOCUMENT, token, data),
                )
            else:
                cursor.execute(
                    f"UPDATE {self._in_query} SET version = %s, data = %s, written_at = clock_timestamp() "
                    "WHERE stack = %s AND name = %s AND part = %s AND version = %s",
                    (token, data, self._stack, name, _DOCUMENT, expected),
                )
            if cursor.rowcount != 1 and not self._was_written(cursor, token):
                raise conflict(self._place(name))

        self._write("write", check_name(name), put)

    def append(self, name: str, data: bytes) -> None:
        """Add whole lines to a journal, behind what any other writer has added."""
        check_name(name)
        if not data:
            return
        token = secrets.token_hex(16)

        def add(cursor: Cursor) -> None:
            for _ in range(_APPEND_ATTEMPTS):
                # Waits for another writer of the same number, and does nothing when that one goes through.
                cursor.execute(
                    f"INSERT INTO {self._in_query} (stack, name, part, version, data, written_at) "
                    f"SELECT %s, %s, coalesce(max(part), 0) + 1, %s, %s, clock_timestamp() FROM {self._in_query} "
                    "WHERE stack = %s AND name = %s ON CONFLICT DO NOTHING",
                    (self._stack, name, token, data, self._stack, name),
                )
                if cursor.rowcount == 1 or self._was_written(cursor, token):
                    return
            raise conflict(self._place(name))

        self._write("append to", name, add)

    def read_journal(self, name: str) -> bytes:
        """All that was appended under `name`, in order; empty when nothing was."""

        def collect(cursor: Cursor) -> bytes:
            cursor.execute(
                f"SELECT data FROM {self._in_query} WHERE stack = %s AND name = %s AND part > %s ORDER BY part",
                (self._stack, name, _DOCUMENT),
            )
            return b"".join(row[0] for row in cursor)

        return self._read(check_name(name), collect, b"")

    def names(self, prefix: str) -> Sequence[str]:
        """The names of the documents and journals below `prefix` (empty: all), sorted."""
        beginning = f"{check_name(prefix)}/" if prefix else ""

        def collect(cursor: Cursor) -> list[str]:
            return sorted(self._names(cursor, beginning))

        return self._read(prefix, collect, [])

    def remove(self, name: str, content: bytes) -> None:
        """Remove a document or journal that holds just this; `ConflictError` when it holds anything else."""

        def take_away(cursor: Cursor) -> None:
            rows = self._rows(cursor, name)
            if rows and b"".join(data for _, data in rows) != content:
                raise conflict(self._place(name))
            versions = [version for version, _ in rows]
            cursor.execute(f"DELETE FROM {self._in_query} WHERE version = ANY(%s)", (versions,))

        check_name(name)
        try:
            self._run("remove", name, take_away)
        except MissingTableError:
            return

    def move_aside(self, name: str) -> str:
        """Rename a document or journal to `<name>.unreadable-<n>`, and tell that name; `ConflictError` without one."""
        moving: list[str] = []

        def rename(cursor: Cursor) -> str:
            if moving and (target := self._moved_to(cursor, name, moving)):
                return target  # An earlier try went through.
            moving[:] = [version for version, _ in self._rows(cursor, name)]
            if not moving:
                raise conflict(self._place(name))
            taken = self._names(cursor, aside_name(name, 0).removesuffix("0"))
            target = next(aside for number in itertools.count(1) if (aside := aside_name(name, number)) not in taken)
            cursor.execute(f"UPDATE {self._in_query} SET name = %s WHERE version = ANY(%s)", (target, moving))
            return target

        check_name(name)
        try:
            return self._run("move aside", name, rename)
        except MissingTableError:
            raise conflict(self._place(name)) from None

    def _place(self, name: str) -> str:
        return f"{self.location}/{name}" if name else self.location

    def _was_written(self, cursor: Cursor, token: str) -> bool:
        cursor.execute(f"SELECT 1 FROM {self._in_query} WHERE version = %s", (token,))
        return cursor.fetchone() is not None

    def _rows(self, cursor: Cursor, name: str) -> list[tuple[str, bytes]]:
        """Version and content of a document or of a journal's parts, in order, held until the transaction ends."""
        cursor.execute(
            f"SELECT version, data FROM {self._in_query} WHERE stack = %s AND name = %s ORDER BY part FOR UPDATE",
            (self._stack, name),
        )
        return [(row[0], row[1]) for row in cursor]

    def _names(self, cursor: Cursor, beginning: str) -> set[str]:
        cursor.execute(
            f"SELECT DISTINCT name FROM {self._in_query} WHERE stack = %s AND starts_with(name, %s)",
            (self._stack, beginning),
        )
        return {row[0] for row in cursor}

    def _moved_to(self, cursor: Cursor, name: str, versions: list[str]) -> str | None:
        cursor.execute(
            f"SELECT name FROM {self._in_query} WHERE version = ANY(%s) AND name <> %s LIMIT 1", (versions, name)
        )
        row = cursor.fetchone()
        return row[0] if row else None

    def _read(self, name: str, work: Work[T], nothing: T) -> T:
        try:
            return self._run("read", name, work)
        except MissingTableError:
            return nothing

    def _write(self, verb: str, name: str, work: Work[None]) -> None:
        try:
            self._run(verb, name, work)
        except MissingTableError:
            self._make_table()
            self._run(verb, name, work)

    def _make_table(self) -> None:
        doing = f"cannot make the table {self._table} for the record {self.location}"
        self._database.run(doing, self._how_to_make, self._make)

    def _run(self, verb: str, name: str, work: Work[T]) -> T:
        return self._database.run(
            f"cannot {verb} the record {self._place(name)}", lambda: f"have this run: {self._grants()}", work
        )

    def _grants(self) -> str:
        return (
            f"GRANT USAGE ON SCHEMA {self._schema} TO {self._database.role}; "
            f"GRANT {', '.join(_RIGHTS)} ON {self._table} TO {self._database.role};"
        )

    def _how_to_make(self) -> str:
        return (
            f"have this run once: CREATE SCHEMA IF NOT EXISTS {self._schema}; "
            f"CREATE TABLE IF NOT EXISTS {self._table} ({_COLUMNS}); {self._grants()}"
        )

    def _no_table(self, reason: str) -> RecordError:
        return RecordError(
            f"there is no table {self._table} for the record {self.location}, and {reason}", self._how_to_make()
        )

    def _make(self, cursor: Cursor) -> None:
        """Make the table, and the schema if need be, where that was left to tfguard."""
        if not self._access.makes_table:
            raise self._no_table(_LEFT_TO_OTHERS)
        if not self._has_schema(cursor):
            if not self._access.makes_schema:
                raise self._no_table(_LEFT_TO_OTHERS)
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({_COLUMNS})")

    def _has_schema(self, cursor: Cursor) -> bool:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", (self._schema,))
        return bool(_row(cursor)[0])

    def _check_writable(self, cursor: Cursor) -> None:
        cursor.execute("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean")
        if _row(cursor)[0]:
            raise RecordError(
                f"cannot write the record {self.location}: the database is a standby, or read-only for this role",
                "connect to the primary (target_session_attrs=read-write), with a role that may write",
            )
        if not self._has_schema(cursor):
            cursor.execute("SELECT has_database_privilege(current_database(), 'CREATE')")
            self._check_may_make(self._access.makes_schema and self._access.makes_table, _row(cursor)[0])
            return
        cursor.execute(
            "SELECT to_regclass(%s)::oid, has_schema_privilege(%s, 'CREATE')", (self._table, self._access.schema)
        )
        table, may_create = _row(cursor)
        if table is None:
            self._check_may_make(self._access.makes_table, may_create)
            return
        cursor.execute(
            "SELECT r FROM unnest(%s::text[]) AS r WHERE NOT has_table_privilege(%s::oid, r)", ([*_RIGHTS], table)
        )
        missing = [row[0] for row in cursor]
        if missing:
            raise RecordError(
                f"cannot write the record {self.location}: the role {self._database.role} has no right to "
                f"{', '.join(missing)} in the table {self._table}",
                f"have this run: {self._grants()}",
            )

    def _check_may_make(self, left_to_tfguard: bool, granted: bool) -> None:
        if not left_to_tfguard:
            raise self._no_table(_LEFT_TO_OTHERS)
        if not granted:
            raise self._no_table(f"the role {self._database.role} may not make it")


def _row(cursor: Cursor) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = cursor.fetchone()
    assert row is not None, "a SELECT without FROM gives one row"
    return row


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)
