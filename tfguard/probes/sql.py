"""What a PostgreSQL database answers to a query. psycopg is imported when it is needed."""

from __future__ import annotations

import functools
import logging
import math
import re

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe
from tfguard.model.reference import as_text
from tfguard.probes.attempt import Attempt

# libpq has no codes for these, and its own words quote roles, databases and, of a damaged URL, passwords.
_KINDS = {
    re.compile(r"password authentication failed|no password supplied"): "the login is refused",
    re.compile(r"no pg_hba\.conf entry"): "the server does not let this host or role in",
    re.compile(r'"[^"]*" does not exist'): "there is no such database or role",
    re.compile(r"certificate|SSL|TLS"): "TLS could not be agreed upon",
    re.compile(r"starting up|shutting down|recovery"): "the server is starting or stopping",
    re.compile(r"too many (clients|connections)|remaining connection slots"): "the server has no connection to spare",
    re.compile(r"closed the connection"): "the server ends the connection",
    re.compile(r"refused"): "Connection refused",
    re.compile(r"translate|resolve|not known"): "the name of the host is not known",
    re.compile(r"time(d )?out"): "no connection in time",
}
_NO_ROW = "the query gives no row"


def ask_sql(probe: Probe, attempt: Attempt) -> ProbeAnswer:
    """Whether the query, one statement (else `select 1`), gives a row, and whether it begins with what is expected.

    What the query changes is rolled back. As with psql, what the URL does not say comes from the PG... variables and
    the password file. Raises `TimeoutError`.
    """
    try:
        import psycopg
    except ImportError:
        return ProbeAnswer(False, "needs psycopg 3, which is not installed: `pip install 'psycopg[binary]'`")
    _silence()
    try:
        connection = psycopg.connect(
            probe.sql or "",
            connect_timeout=math.ceil(attempt.left()),
            fallback_application_name="tfguard",
            prepare_threshold=None,
        )
    except psycopg.ProgrammingError:
        return ProbeAnswer(False, "cannot be asked: it is not a URL that PostgreSQL's client understands")
    except psycopg.Error as error:
        return ProbeAnswer(False, _connect_kind(str(error)))
    try:
        with attempt.holding(connection.fileno()), connection.cursor() as cursor:
            # The server stops by itself, too: one that is cut off notices only when it has something to send.
            limit = str(math.ceil(attempt.left() * 1000))
            cursor.execute("select set_config('statement_timeout', %s, true)", (limit,))
            # Row by row, since the answer may be larger than this machine's memory.
            return _judged(next(cursor.stream((probe.query or "select 1").encode()), None), probe)
    except psycopg.errors.QueryCanceled:
        raise TimeoutError from None
    except psycopg.ProgrammingError as error:
        return ProbeAnswer(False, f"the query failed: {type(error).__name__}" if error.sqlstate else _NO_ROW)
    except psycopg.Error as error:
        attempt.left()
        return ProbeAnswer(False, f"the query failed: {type(error).__name__}")
    finally:
        connection.close()


@functools.cache
def _silence() -> None:
    """What psycopg would log is told in the answer, without what it quotes."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())


def _judged(row: tuple[object, ...] | None, probe: Probe) -> ProbeAnswer:
    if not row:
        return ProbeAnswer(False, _NO_ROW)
    if probe.expect is None:
        return ProbeAnswer(True, "the query is answered")
    if _text(row[0]) == _text(probe.expect):
        return ProbeAnswer(True, "the query is answered as expected")
    return ProbeAnswer(False, "the query is answered with another value than expected")


def _text(value: object) -> str:
    try:
        return as_text(value)
    except ValueError:
        return str(value)


def _connect_kind(told: str) -> str:
    return next((kind for words, kind in _KINDS.items() if words.search(told)), "no connection")
