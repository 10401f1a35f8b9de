"""Bring the schema of the database at DATABASE_URL up to date; with --check only tell whether it is (0), or not (1)."""

from __future__ import annotations

import os
import sys

import psycopg

CANNOT_TELL = 2

# Whoever may log in to this database is the service, or looks after it.
MIGRATIONS = (
    "create table audit.events (id bigserial primary key, at timestamptz not null default now(), what text not null);"
    "create index events_by_time on audit.events (at)",
    "grant usage on schema audit to public;"
    "grant select on audit.migrations to public;"
    "grant select, insert on audit.events to public;"
    "grant usage on sequence audit.events_id_seq to public",
)


def applied(connection: psycopg.Connection) -> int:
    """How many migrations the database has."""
    if connection.execute("select to_regclass('audit.migrations')").fetchone() == (None,):
        return 0
    row = connection.execute("select coalesce(max(version), 0) from audit.migrations").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: psycopg.Connection) -> None:
    """Do what is missing, all or nothing. One run at a time: another one waits here."""
    connection.execute("select pg_advisory_xact_lock(hashtext('audit.migrations'))")
    connection.execute("create schema if not exists audit")
    connection.execute("create table if not exists audit.migrations (version int primary key)")
    for version in range(applied(connection) + 1, len(MIGRATIONS) + 1):
        connection.execute(MIGRATIONS[version - 1])
        connection.execute("insert into audit.migrations values (%s)", (version,))


def main() -> int:
    """Migrate, or check. An error is neither done nor not done."""
    try:
        with psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=10) as connection:
            if "--check" in sys.argv[1:]:
                return 0 if applied(connection) == len(MIGRATIONS) else 1
            migrate(connection)
    except psycopg.Error as error:
        # Its own words may quote the login.
        print(f"the database cannot be migrated: {type(error).__name__}", file=sys.stderr)
        return CANNOT_TELL
    return 0


if __name__ == "__main__":
    sys.exit(main())
