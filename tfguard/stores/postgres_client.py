"""A PostgreSQL database that records lie in: how it is reached, and short transactions that outlive a lost connection.

Nothing is kept in the session, so that a pooler may hand every transaction to another one.
Sources: https://www.postgresql.org/docs/current/libpq-connect.html, https://developer.hashicorp.com/terraform/language/backend/pg
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import random
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tfguard.errors import BusyStoreError, RecordError
from tfguard.stores.common import CONNECT_SECONDS, UNFORESEEN

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Parameters = Mapping[str, str]

DEFAULT_SCHEMA = "terraform_remote_state"
"""Where the `pg` backend has its table unless it is told otherwise."""

PATIENCE = 20.0
"""Seconds for which a lost or refused connection is tried again: no try of a call begins later."""

HANG_SECONDS = 14.0
"""Seconds after which a server that neither answers nor lets go is given up; longer than any of its own time limits.
The last try may take as long after `PATIENCE`, and a connection before it: together not more than `CALL_SECONDS`."""

_DEFAULTS: Parameters = {
    "connect_timeout": str(CONNECT_SECONDS),
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "fallback_application_name": "tfguard",
}
# Acknowledged has to mean durable, whatever the server's or the role's default is. A run that is stopped in the middle
# of a transaction must not hold up the others.
_LIMITS = """
SELECT set_config('statement_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,
                  true)
"""

URL_PARAMETERS = frozenset(
    {
        *("host", "hostaddr", "port", "user", "passfile", "service", "require_auth", "channel_binding"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "sslsni", "sslnegotiation"),
        *("ssl_min_protocol_version", "gssencmode", "krbsrvname", "application_name", "connect_timeout"),
        *("target_session_attrs", "load_balance_hosts", "options", "schema_name"),
    }
)
"""What may stand behind the `?` of a `postgresql://` URL: `schema_name`, and of libpq's parameters those without a
secret."""

_URL_SCHEMES = ("postgres://", "postgresql://")
_PORTS = re.compile(r"[\d,]*", re.ASCII)
_WORD = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)", re.DOTALL)
_MISSING = frozenset({"42P01", "3F000"})  # table, schema
# Made by two at once (schema, table, row), serialisation failure, deadlock: the second try sees the other's work.
_AGAIN = frozenset({"23505", "42P06", "42P07", "40001", "40P01"})
_BUSY = re.compile(r"too many (clients|connections)|remaining connection slots|starting up|time(d )?out")
# Trying again is of no use. In another language than English these are tried again too, for as long as patience lasts.
_FINAL = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|permission denied|invalid"
    r"|certificate|SSL|not known"
)
_CONNECT_ADVICE = "check host, port and network of the database, and that it has a connection to spare, then try again"
_LOGIN_ADVICE = (
    "give this run a role that may log in: user and PGPASSWORD, a password file (PGPASSFILE), or PGSERVICE; "
    "and the right sslmode"
)
# By what libpq says of a refused connection, which has no code of its own.
_CONNECTION_ADVICE: Mapping[re.Pattern[str], str] = {
    re.compile(r'database ".*" does not exist'): "create the database or correct its name",
    re.compile(r"server does not support SSL"): "add ?sslmode=disable, or turn TLS on at the server",
    _FINAL: _LOGIN_ADVICE,
}
_OTHER_ADVICE = "check the database and its log, then try again"
_ADVICE: Mapping[str, str] = {
    "25006": "connect to the primary: name its host, or set target_session_attrs=read-write",
    "53100": "free space on the database server",
    "57014": "look in pg_stat_activity for what holds the table tfguard_records",
}


class MissingTableError(Exception):
    """There is no table for records yet, or no schema."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a database: libpq's parameters, which may hold a password, and the schema for the table.

    `makes_schema` and `makes_table` tell whether tfguard may create what is missing.
    """

    parameters: Parameters = field(repr=False)
    schema: str
    makes_schema: bool = True
    makes_table: bool = True

    @property
    def url(self) -> str:
        """`postgresql://HOST:PORT/DATABASE/SCHEMA`, without user and password."""
        host = self.parameters.get("host") or self.parameters.get("hostaddr") or os.environ.get("PGHOST", "")
        port = self.parameters.get("port") or os.environ.get("PGPORT", "")
        database = self.parameters.get("dbname") or os.environ.get("PGDATABASE", "")
        place = quote(host, safe=":,[]") + (f":{port}" if port else "")
        return f"postgresql://{place}/{quote(database)}/{quote(self.schema)}"


def backend_access(settings: Parameters) -> Access:
    """How the backend that `settings` describe reaches its database. Raises `RecordError` for a damaged `conn_str`.

    Like the engine's driver, and unlike libpq, it takes the host `localhost` where nothing else is said.
    """
    parameters = connection_parameters(settings.get("conn_str", ""))
    if not (parameters.keys() & {"host", "hostaddr", "service"} or os.environ.get("PGHOST")):
        parameters["host"] = "localhost"
    return Access(
        _with_tls(parameters),
        settings.get("schema_name") or DEFAULT_SCHEMA,
        makes_schema=not _on(settings, "skip_schema_creation"),
        makes_table=not (_on(settings, "skip_table_creation") or _on(settings, "skip_index_creation")),
    )


def url_access(url: str) -> Access:
    """How to reach the database at a `postgresql://` URL; its parameter `schema_name` is ours, the rest libpq's."""
    parameters = connection_parameters(url)
    schema = parameters.pop("schema_name", "tfguard")
    return Access(_with_tls(parameters), schema)


def _with_tls(parameters: Parameters) -> Parameters:
    """As with the engine's driver, only who says so goes without TLS. libpq alone would fall back to that silently."""
    return parameters if os.environ.get("PGSSLMODE") else {"sslmode": "require", **parameters}


def connection_parameters(text: str) -> dict[str, str]:
    """The parameters of a connection string in either of its forms. Raises `RecordError`, which quotes none of it."""
    try:
        return _of_url(text) if text.startswith(_URL_SCHEMES) else _of_words(text)
    except ValueError:
        # Without the cause: it may quote a part of the password.
        raise RecordError(
            "the connection string of the pg backend cannot be read as a URL or as key=value pairs",
            "correct conn_str or PG_CONN_STR; in a URL, %-escape what is not a letter or digit in user and password",
        ) from None


def _of_url(text: str) -> dict[str, str]:
    parts = urlsplit(text)
    login, _, places = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    hosts, ports = zip(*(_host_and_port(place) for place in places.split(",")), strict=True)
    named = {
        "host": unquote(",".join(hosts)),
        "port": ",".join(ports) if any(ports) else "",
        "dbname": unquote(parts.path.removeprefix("/")),
        "user": unquote(user),
        "password": unquote(password),
    }
    return {name: value for name, value in named.items() if value} | dict(parse_qsl(parts.query))


def _host_and_port(place: str) -> tuple[str, str]:
    """`[::1]:5432` -> `::1`, `5432`."""
    bracket = place.rfind("]")
    colon = place.find(":", bracket + 1)
    host, port = (place, "") if colon < 0 else (place[:colon], place[colon + 1 :])
    if not _PORTS.fullmatch(port):
        raise ValueError
    return host.strip("[]"), port


def _of_words(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    position = 0
    text = text.strip()
    while position < len(text):
        word = _WORD.match(text, position)
        if word is None:
            raise ValueError
        found[word[1]] = re.sub(r"\\(.)", r"\1", word[2] if word[2] is not None else word[3], flags=re.DOTALL)
        position = word.end()
    if not _PORTS.fullmatch(found.get("port", "")):
        raise ValueError
    return found


class Database:
    """One connection, made when it is first needed and again when it was lost, and shared by the threads of a run."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._at_the_end: weakref.finalize[..., Any]
        self._role = ""

    @property
    def role(self) -> str:
        """The role that the last connection has logged in with, quoted for SQL."""
        return quoted(self._role)

    def run(self, doing: str, refused: Callable[[], str], work: Callable[[psycopg.Cursor[Any]], T]) -> T:
        """What `work` gives, done in one transaction that is durable when this returns.

        It is done again when the connection broke or another was quicker, so `work` itself must find out whether an
        earlier try of it went through after all. `doing` says what could not be done, `refused` what to do about a
        missing right. Raises `RecordError`, and `MissingTableError`.
        """
        driver = import_psycopg()
        pause, deadline = 0.05, time.monotonic() + PATIENCE
        while True:
            with self._lock:
                try:
                    return self._once(work)
                except driver.Error as error:
                    if error.sqlstate in _MISSING:
                        raise MissingTableError from error
                    lost = self._connection is None and not _FINAL.search(str(error))
                    if time.monotonic() > deadline or not (lost or error.sqlstate in _AGAIN):
                        busy = error.sqlstate in _AGAIN or _BUSY.search(str(error))
                        kind = BusyStoreError if busy else RecordError
                        raise kind(f"{doing}: {self._reason(error)}", self._advice(error, refused)) from error
                    # psycopg's failures to connect hold themselves by their traceback, and with it this connection.
                    error.__traceback__ = None
                except UNFORESEEN as error:
                    raise RecordError(f"{doing}: {self._reason(error)}", _OTHER_ADVICE) from error
            # Many that were refused at once must not come back at once.
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 2.0)

    def _once(self, work: Callable[[psycopg.Cursor[Any]], T]) -> T:
        connection = self._connection
        if connection is None:
            connection = self._connection = connect(self._access.parameters)
            self._role = connection.info.user
            self._at_the_end = weakref.finalize(self, connection.close)
        try:
            with _bounded(connection), connection.transaction(), connection.cursor(binary=True) as cursor:
                cursor.execute(_LIMITS)
                return work(cursor)
        finally:
            if connection.closed:
                self._connection = None
                # It would keep the lost connection.
                self._at_the_end.detach()

    def _reason(self, error: Exception) -> str:
        diagnosis = getattr(error, "diag", None)
        text = (diagnosis and diagnosis.message_primary) or str(error)
        line = (text.strip().splitlines() or [type(error).__name__])[0]
        for secret in (self._access.parameters.get("password"), os.environ.get("PGPASSWORD")):
            line = line.replace(secret, "***") if secret else line
        return line

    def _advice(self, error: psycopg.Error, refused: Callable[[], str]) -> str:
        if error.sqlstate == "42501":
            return refused()
        if error.sqlstate is None:
            told = str(error)
            return next((advice for said, advice in _CONNECTION_ADVICE.items() if said.search(told)), _CONNECT_ADVICE)
        return _ADVICE.get(error.sqlstate, _OTHER_ADVICE)


def connect(parameters: Parameters) -> psycopg.Connection[Any]:
    """A connection; what the parameters do not say comes from the environment, as for every program that uses libpq."""
    driver = import_psycopg()
    known = {option.keyword.decode() for option in driver.pq.Conninfo.get_defaults()}
    defaults = {name: value for name, value in _DEFAULTS.items() if name in known}
    # The engine's driver hands what it does not know to the server, as settings of a session; none matters here.
    given = {name: value for name, value in parameters.items() if name in known}
    given["connect_timeout"] = _connect_timeout(
        given.get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT", ""), defaults["connect_timeout"]
    )
    # Neither prepared statements nor settings of the session: the next transaction may run in another one.
    connection: psycopg.Connection[Any] = driver.Connection.connect(
        autocommit=True, prepare_threshold=None, **{**defaults, **given, "client_encoding": "UTF8"}
    )
    connection.isolation_level = driver.IsolationLevel.READ_COMMITTED
    return connection


def _connect_timeout(asked: str, bound: str) -> str:
    """The seconds that were asked for, but not more than `bound`; libpq takes 0 and less for "for ever"."""
    try:
        return asked if 0 < int(asked) < int(bound) else bound
    except ValueError:
        return asked or bound  # what is no number the driver refuses


def import_psycopg() -> Any:
    """psycopg, when it is needed. Raises `RecordError` where it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise RecordError(
            "records in PostgreSQL need psycopg 3, which is not installed or finds no libpq",
            "install it: `pip install 'psycopg[binary]'`",
        ) from error
    _silence_psycopg()
    return psycopg


@functools.cache
def _silence_psycopg() -> None:
    """What it would log goes into an error of ours, or is tried again."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())


@contextlib.contextmanager
def _bounded(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Cut the connection after a while: neither libpq nor psycopg gives up on a server that is stopped."""
    with socket.socket(fileno=os.dup(connection.fileno())) as watched:
        timer = threading.Timer(HANG_SECONDS, _cut, (watched,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _cut(watched: socket.socket) -> None:
    with contextlib.suppress(OSError):
        watched.shutdown(socket.SHUT_RDWR)


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _on(settings: Parameters, name: str) -> bool:
    return settings.get(name, "").lower() in ("true", "1")
