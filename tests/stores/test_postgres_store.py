"""What the PostgreSQL store does when connections break, answers are lost, or rights and tables are missing."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

import psycopg
import pytest

from fixtures.postgres_server import PASSWORD, LossyProxy, PostgresServer
from tfguard.errors import ConflictError, RecordError
from tfguard.stores import postgres, postgres_client
from tfguard.stores.postgres import PostgresStore, backend_store, url_store
from tfguard.stores.postgres_client import Database, backend_access, connection_parameters

STACK = "default"
_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tfguard'"
_NUMBERS = count(1)
Open = Callable[..., PostgresStore]


@pytest.fixture(autouse=True)
def _no_postgres_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSSLMODE", "PGSERVICE", "PGOPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")


@pytest.fixture
def schema() -> str:
    """A schema that is not there yet."""
    return f"stack-{next(_NUMBERS)}"


@pytest.fixture
def opened(postgres_server: PostgresServer, schema: str) -> Open:
    """Opens the store once more: `opened()`, as another role or through a proxy's port."""

    def make(role: str | None = None, port: int | None = None, **settings: str) -> PostgresStore:
        url = postgres_server.url(role, port) if role else postgres_server.url(port=port)
        return backend_store({"conn_str": url, "schema_name": schema, **settings}, STACK)

    return make


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[LossyProxy]:
    """A proxy before the server, which loses nothing yet."""
    with LossyProxy(postgres_server.port).running() as running:
        yield running


@pytest.fixture
def role(postgres_server: PostgresServer) -> str:
    """A role without any right."""
    return postgres_server.make_role(f"runner-{next(_NUMBERS)}")


def test_a_connection_that_the_server_has_ended_is_made_again(opened: Open, postgres_server: PostgresServer) -> None:
    store = opened()
    store.create("head.json", b"1")
    assert end_connections(postgres_server) >= 1
    assert read(store) == b"1"
    assert end_connections(postgres_server) >= 1
    store.append("events.jsonl", b"1\n")
    assert end_connections(postgres_server) >= 1
    store.replace("head.json", b"2", version(store))
    assert (read(store), store.read_journal("events.jsonl")) == (b"2", b"1\n")


def test_a_write_whose_connection_ends_in_the_middle_is_done_once(
    opened: Open, postgres_server: PostgresServer, schema: str
) -> None:
    store = opened()
    store.create("head.json", b"1")
    expected = version(store)
    with psycopg.connect(postgres_server.url()) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute(f'SELECT * FROM "{schema}".tfguard_records FOR UPDATE'.encode())
        writing = pool.submit(store.replace, "head.json", b"2", expected)
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'tfguard'"
        wait_until(lambda: postgres_server.execute(waits) == [(1,)])
        assert end_connections(postgres_server) >= 1
        wait_until(lambda: postgres_server.execute(waits) == [(1,)])
        holder.rollback()
        writing.result(timeout=60)
    assert read(store) == b"2"


@pytest.mark.parametrize("lost", ["lose_reply_to", "lose"])
def test_every_change_whose_commit_or_its_answer_was_lost_is_done_once(
    opened: Open, proxy: LossyProxy, lost: str
) -> None:
    store, other = opened(port=proxy.port), opened()

    def lose() -> None:
        setattr(proxy, lost, b"COMMIT\0")  # not the READ COMMITTED of a BEGIN

    lose()
    store.create("head.json", b"1")  # loses the making of the table
    lose()
    store.create("other.json", b"1")
    lose()
    store.replace("head.json", b"2", version(store))
    store.append("events.jsonl", b"1\n")
    lose()
    store.append("events.jsonl", b"2\n")
    store.append("events.jsonl", b"3\n")
    lose()
    store.remove("other.json", b"1")
    lose()
    aside = store.move_aside("events.jsonl")
    assert (proxy.lost, proxy.connections) == (6, 7)
    assert aside == "events.jsonl.unreadable-1"
    assert read(other) == b"2"
    assert other.read_journal(aside) == b"1\n2\n3\n"
    assert list(other.names("")) == [aside, "head.json"]


def test_a_lost_answer_does_not_hide_that_another_was_first(opened: Open, proxy: LossyProxy) -> None:
    opened().create("head.json", b"theirs")
    store = opened(port=proxy.port)
    stale = version(store)
    opened().replace("head.json", b"theirs 2", stale)
    for write in (lambda: store.create("head.json", b"ours"), lambda: store.replace("head.json", b"ours", stale)):
        proxy.lose_reply_to = b"INSERT" if proxy.lost == 0 else b"UPDATE"
        with pytest.raises(ConflictError):
            write()
    assert proxy.lost == 2
    assert read(store) == b"theirs 2"


@pytest.mark.parametrize("name", ["head.json", "events.jsonl"])
def test_a_lost_write_that_the_server_commits_late_is_known_as_ours(
    opened: Open, postgres_server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The server may not notice for a while that the client is gone, and commit after the client has come back."""
    store = opened()
    store.append("events.jsonl", b"1\n")
    monkeypatch.setattr(postgres.secrets, "token_hex", lambda _: "ours")
    write, part = (store.create, 0) if name == "head.json" else (store.append, 2)
    with psycopg.connect(postgres_server.url()) as earlier, ThreadPoolExecutor(1) as pool:
        statement = f'INSERT INTO "{schema}".tfguard_records VALUES (%s, %s, %s, %s, %s, now())'
        earlier.execute(statement.encode(), (STACK, name, part, "ours", b"2\n"))
        writing = pool.submit(write, name, b"2\n")
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'tfguard'"
        wait_until(lambda: postgres_server.execute(waits) == [(1,)])
        earlier.commit()
        writing.result(timeout=60)
    assert postgres_server.execute(f'SELECT count(*) FROM "{schema}".tfguard_records WHERE name = %s', name) == [
        (1 if name == "head.json" else 2,)
    ]


def test_a_version_never_comes_back(opened: Open) -> None:
    store = opened()
    store.create("head.json", b"1")
    stale = version(store)
    store.remove("head.json", b"1")
    store.create("head.json", b"1")
    with pytest.raises(ConflictError):
        store.replace("head.json", b"2", stale)


@pytest.mark.parametrize("kind", ["create", "replace"])
def test_of_two_hundred_writers_on_a_server_for_a_hundred_exactly_one_wins(
    opened: Open, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(postgres_client, "PATIENCE", 300.0)
    gc.collect()  # what failed in other tests may still hold connections
    before = postgres_server.execute(_CONNECTED)
    expected = None
    if kind == "replace":
        opened().create("head.json", b"start")
        expected = version(opened())
    start = threading.Barrier(200)

    def write(number: int) -> str:
        start.wait()
        try:
            opened().replace("head.json", b"by %d" % number, expected)
        except ConflictError:
            return "lost"
        return f"by {number}"

    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(write, range(200)))
    (winner,) = set(answers) - {"lost"}
    assert answers.count("lost") == 199
    assert read(opened()) == winner.encode()
    # A store that is gone has let go of its connection, also where it had to try more than once to get it.
    wait_until(lambda: postgres_server.execute(_CONNECTED) == before)


def test_one_store_serves_the_threads_of_a_run(opened: Open) -> None:
    store = opened()

    def append(number: int) -> None:
        for line in range(5):
            store.append("events.jsonl", b"%d-%d\n" % (number, line))
            assert store.read("head.json") is None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    lines = store.read_journal("events.jsonl").split()
    assert sorted(lines) == sorted(b"%d-%d" % (n, k) for n in range(8) for k in range(5))


def test_stacks_in_one_schema_do_not_see_each_other(postgres_server: PostgresServer, schema: str) -> None:
    settings = {"conn_str": postgres_server.url(), "schema_name": schema}
    first, second = backend_store(settings, "default"), backend_store(settings, "dev")
    first.create("head.json", b"1")
    assert second.read("head.json") is None
    second.create("head.json", b"2")
    second.append("events.jsonl", b"2\n")
    assert list(first.names("")) == ["head.json"]
    second.remove("head.json", b"2")
    assert read(first) == b"1"
    assert first.location.endswith(f"/postgres/{schema}/default")


def test_a_schema_may_have_any_name(postgres_server: PostgresServer) -> None:
    name = 'a "b" %s; -- ☃'
    store = backend_store({"conn_str": postgres_server.url(), "schema_name": name}, STACK)
    store.check_writable()
    store.create("head.json", b"1")
    store.append("events.jsonl", b"1\n")
    store.check_writable()
    assert (read(store), store.move_aside("events.jsonl")) == (b"1", "events.jsonl.unreadable-1")


def test_what_is_acknowledged_is_durable_whatever_the_role_is_set_to(
    postgres_server: PostgresServer, role: str
) -> None:
    access = backend_access({"conn_str": postgres_server.url(role)})

    def setting(name: str) -> str:
        def tell(cursor: psycopg.Cursor[tuple[str]]) -> str:
            cursor.execute("SELECT current_setting(%s)", (name,))
            row = cursor.fetchone()
            assert row is not None
            return row[0]

        return Database(access).run("cannot tell", lambda: "", tell)

    for value, kept in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        postgres_server.execute(f'ALTER ROLE "{role}" SET synchronous_commit = {value}')
        assert setting("synchronous_commit") == kept
    postgres_server.execute(f'ALTER ROLE "{role}" SET default_transaction_isolation = serializable')
    assert setting("transaction_isolation") == "read committed"


def test_nothing_is_left_in_the_session_for_the_next_transaction_of_a_pooler(postgres_server: PostgresServer) -> None:
    database = Database(backend_access({"conn_str": postgres_server.url()}))

    def session(cursor: psycopg.Cursor[tuple[int, str]]) -> tuple[int, str]:
        cursor.execute("SELECT (SELECT count(*) FROM pg_prepared_statements), pg_backend_pid()")
        row = cursor.fetchone()
        assert row is not None
        return row

    told = {database.run("cannot tell", lambda: "", session) for _ in range(20)}
    assert len(told) == 1
    assert told.pop()[0] == 0
    with psycopg.connect(postgres_server.url()) as plain:
        default = plain.execute("SHOW statement_timeout").fetchone()
    connection = database._connection
    assert connection is not None
    assert connection.execute("SHOW statement_timeout").fetchone() == default


def test_a_role_that_may_only_read_is_told_what_to_have_granted(
    opened: Open, postgres_server: PostgresServer, schema: str, role: str
) -> None:
    opened().create("head.json", b"1")
    postgres_server.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    postgres_server.execute(f'GRANT SELECT ON "{schema}".tfguard_records TO "{role}"')
    store = opened(role)
    assert read(store) == b"1"
    assert list(store.names("")) == ["head.json"]
    early, late = error(store.check_writable), error(lambda: store.append("events.jsonl", b"1\n"))
    assert f'the role "{role}" has no right to INSERT, UPDATE, DELETE' in early.what
    assert "permission denied for table tfguard_records" in late.what
    assert early.advice == late.advice
    postgres_server.execute(early.advice.partition(": ")[2])
    store.check_writable()
    store.append("events.jsonl", b"1\n")
    store.replace("head.json", b"2", version(store))
    store.remove("head.json", b"2")


def test_a_role_that_may_not_look_gets_an_error_and_never_no_record(
    opened: Open, postgres_server: PostgresServer, schema: str, role: str
) -> None:
    opened().create("head.json", b"1")
    store = opened(role)
    for call in (
        lambda: store.read("head.json"),
        lambda: store.read_journal("e"),
        lambda: store.names(""),
        store.check_writable,
    ):
        assert "GRANT USAGE ON SCHEMA" in error(call).advice
    postgres_server.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    assert "GRANT SELECT" in error(lambda: store.read("head.json")).advice.partition("; ")[2]


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_role_that_may_make_no_table_is_told_the_sql_that_does(
    opened: Open, postgres_server: PostgresServer, schema: str, role: str, with_schema: bool
) -> None:
    if with_schema:
        postgres_server.execute(f'CREATE SCHEMA "{schema}"')
        postgres_server.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    store = opened(role)
    assert store.read("head.json") is None
    early, late = error(store.check_writable), error(lambda: store.create("head.json", b"1"))
    assert f'the role "{role}" may not make it' in early.what
    assert "permission denied" in late.what
    assert early.advice == late.advice
    postgres_server.execute(early.advice.partition(": ")[2])
    store.check_writable()
    store.create("head.json", b"1")
    assert read(opened()) == b"1"


@pytest.mark.parametrize("skipped", ["skip_schema_creation", "skip_table_creation", "skip_index_creation"])
def test_what_the_backend_leaves_to_others_tfguard_does_not_make_either(
    opened: Open, postgres_server: PostgresServer, schema: str, skipped: str
) -> None:
    store = opened(**{skipped: "true"})
    assert store.read("head.json") is None
    for call in (store.check_writable, lambda: store.create("head.json", b"1")):
        assert "skip_... settings" in error(call).what
    assert postgres_server.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", schema) == []
    sql = error(store.check_writable).advice.partition(": ")[2]
    if skipped == "skip_schema_creation":
        sql = f'CREATE SCHEMA "{schema}"'  # the table is then tfguard's to make
    postgres_server.execute(sql)
    store.check_writable()
    store.create("head.json", b"1")
    assert read(store) == b"1"


def test_a_database_that_takes_no_writes_is_told_before_and_at_the_write(
    opened: Open, postgres_server: PostgresServer, schema: str, role: str
) -> None:
    opened().create("head.json", b"1")
    postgres_server.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    postgres_server.execute(f'GRANT ALL ON "{schema}".tfguard_records TO "{role}"')
    postgres_server.execute(f'ALTER ROLE "{role}" SET default_transaction_read_only = on')
    store = opened(role)
    assert read(store) == b"1"
    assert "read-only" in error(store.check_writable).what
    late = error(lambda: store.create("other.json", b"1"))
    assert "read-only transaction" in late.what
    assert "target_session_attrs=read-write" in late.advice


def test_a_table_that_is_locked_is_given_up_in_time_and_told(
    opened: Open, postgres_server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_client, "_LIMITS", postgres_client._LIMITS.replace("'15s'", "'300ms'"))
    store = opened()
    store.create("head.json", b"1")
    with psycopg.connect(postgres_server.url()) as holder:
        holder.execute(f'LOCK TABLE "{schema}".tfguard_records'.encode())
        assert "pg_stat_activity" in error(lambda: store.read("head.json")).advice


def test_a_server_that_is_down_is_an_error_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_client, "PATIENCE", 0.5)
    store = backend_store({"conn_str": PostgresServer(9).url()}, STACK)
    for call in (lambda: store.read("head.json"), lambda: store.create("head.json", b"1"), store.check_writable):
        began = time.monotonic()
        told = error(call)
        assert time.monotonic() - began < 30
        assert "Connection refused" in told.what
        assert "postgresql://127.0.0.1:9/postgres/terraform_remote_state/default" in told.what


def test_a_server_that_says_nothing_more_is_given_up(
    opened: Open, proxy: LossyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(port=proxy.port)
    store.create("head.json", b"1")
    monkeypatch.setattr(postgres_client, "PATIENCE", 0.5)
    monkeypatch.setattr(postgres_client, "HANG_SECONDS", 0.5)
    monkeypatch.setitem(postgres_client._DEFAULTS, "connect_timeout", "2")  # type: ignore[arg-type]
    proxy.silent = True
    began = time.monotonic()
    error(lambda: store.create("other.json", b"1"))
    assert time.monotonic() - began < 60
    proxy.silent = False
    assert list(store.names("")) == ["head.json"]


@pytest.mark.parametrize(("asked", "seconds"), [("0", "4"), ("-1", "4"), ("", "4"), ("60", "4"), ("3", "3")])
def test_a_connection_is_waited_for_within_the_bound(monkeypatch: pytest.MonkeyPatch, asked: str, seconds: str) -> None:
    given: list[str] = []

    def refuse(**parameters: str) -> None:
        given.append(parameters["connect_timeout"])
        raise psycopg.OperationalError("no")

    monkeypatch.setattr(psycopg.Connection, "connect", refuse)
    monkeypatch.setenv("PGCONNECT_TIMEOUT", asked)
    for parameters in ({}, {"connect_timeout": asked}):
        with pytest.raises(psycopg.OperationalError):
            postgres_client.connect(parameters)
    assert given == [seconds, seconds]


def test_a_connection_that_was_lost_is_not_kept(opened: Open, postgres_server: PostgresServer) -> None:
    store = opened()
    store.create("head.json", b"1")
    lost = weakref.ref(store._database._connection)
    end_connections(postgres_server)
    assert read(store) == b"1"
    gc.collect()
    assert lost() is None


def test_an_answer_that_the_driver_cannot_take_is_an_error(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    store.create("head.json", b"1")
    monkeypatch.setattr(postgres, "_utc", lambda _: datetime(1, 1, 1).astimezone(timezone(timedelta(hours=-1))))
    for call in (lambda: store.read("head.json"), store.now):
        assert "out of range" in error(call).what
    assert list(store.names("")) == ["head.json"]


def test_what_the_driver_logs_is_silenced_once(opened: Open) -> None:
    store = opened()
    store.create("head.json", b"1")
    before = list(logging.getLogger("psycopg").handlers)
    assert read(store) == b"1"
    assert before
    assert logging.getLogger("psycopg").handlers == before


def test_a_server_that_comes_back_in_time_is_waited_for(opened: Open, proxy: LossyProxy) -> None:
    store = opened(port=proxy.port)
    store.create("head.json", b"1")
    proxy.refusing = True
    proxy.cut()
    threading.Timer(1.5, setattr, (proxy, "refusing", False)).start()
    store.append("events.jsonl", b"1\n")
    assert store.read_journal("events.jsonl") == b"1\n"


@pytest.mark.parametrize(
    ("part", "other", "reason", "advice"),
    [
        ("tfguard_test:", "tfguard_test:no", "password authentication failed", "PGPASSWORD"),
        ("tfguard_test:", "nobody:", "password authentication failed", "PGPASSWORD"),
        ("/postgres?", "/nowhere?", 'database "nowhere" does not exist', "create the database or correct its name"),
        ("sslmode=disable", "", "SSL", "add ?sslmode=disable, or turn TLS on at the server"),
        ("sslmode=disable", "sslmode=some", "sslmode", "sslmode"),
        ("127.0.0.1", "nowhere.invalid", "nowhere.invalid", "role"),
    ],
)
def test_what_no_second_try_can_mend_is_told_at_once(
    proxy: LossyProxy, postgres_server: PostgresServer, part: str, other: str, reason: str, advice: str
) -> None:
    url = postgres_server.url(port=proxy.port)
    assert part in url
    store = backend_store({"conn_str": url.replace(part, other)}, STACK)
    told = error(lambda: store.read("head.json"))
    assert reason in told.what
    assert advice in told.advice
    assert proxy.connections <= 1


def test_without_psycopg_the_user_learns_what_to_install(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    store = opened()
    for call in (lambda: store.read("head.json"), store.check_writable):
        assert "pip install 'psycopg[binary]'" in error(call).advice


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("", {}),
        ("postgres://h/d", {"host": "h", "dbname": "d"}),
        (
            "postgresql://u%40x:p%2Fq%20%25@h:5/d%20e?sslmode=disable",
            {"host": "h", "port": "5", "user": "u@x", "password": "p/q %", "dbname": "d e", "sslmode": "disable"},
        ),
        ("postgres://u:p@q@h/d", {"host": "h", "user": "u", "password": "p@q", "dbname": "d"}),
        ("postgres://[::1]:5/d", {"host": "::1", "port": "5", "dbname": "d"}),
        ("postgres://h1:1,h2:2/d", {"host": "h1,h2", "port": "1,2", "dbname": "d"}),
        ("postgres://%2Frun%2Fpg/d?user=u", {"host": "/run/pg", "dbname": "d", "user": "u"}),
        (
            r" host=h port = 5 user='a b' password='it\'s' dbname=d\ e options='' ",
            {"host": "h", "port": "5", "user": "a b", "password": "it's", "dbname": "d e", "options": ""},
        ),
    ],
)
def test_a_connection_string_is_read_in_either_of_its_forms(text: str, parameters: dict[str, str]) -> None:
    assert connection_parameters(text) == parameters


@pytest.mark.parametrize(
    "text",
    [
        "postgres://u:hunter2@h:hunter2/d",
        "postgres://u:hunter2/x@h/d",
        "postgres://u:p@[hunter2/d",
        "host=h password=hunter2 two",
        "host=h password='hunter2",
        "hunter2",
        "host=h port=hunter2",
    ],
)
def test_a_connection_string_that_cannot_be_read_is_not_quoted(text: str) -> None:
    told = error(lambda: backend_store({"conn_str": text}, STACK))
    assert "conn_str" in told.advice
    assert "hunter2" not in told.what + told.advice
    assert told.__cause__ is None and told.__suppress_context__


def test_where_nothing_else_is_said_the_database_is_sought_as_the_engine_does(monkeypatch: pytest.MonkeyPatch) -> None:
    access = backend_access({})
    assert dict(access.parameters) == {"host": "localhost", "sslmode": "require"}
    assert access.schema == "terraform_remote_state"
    monkeypatch.setenv("PGHOST", "db.internal")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGDATABASE", "states")
    assert dict(backend_access({}).parameters) == {}
    assert backend_store({}, STACK).location == "postgresql://db.internal/states/terraform_remote_state/default"


def test_what_the_engines_driver_takes_and_libpq_does_not_know_is_left_out(postgres_server: PostgresServer) -> None:
    more = "&binary_parameters=yes&search_path=public"
    store = backend_store({"conn_str": postgres_server.url() + more, "schema_name": "left_out"}, STACK)
    store.create("head.json", b"1")
    assert read(store) == b"1"


def test_login_and_place_may_come_from_the_environment(
    postgres_server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGUSER", "tfguard_test")
    monkeypatch.setenv("PGSSLMODE", "disable")
    store = url_store(f"postgresql://127.0.0.1:{postgres_server.port}/postgres?schema_name={schema}", "some-stack")
    store.create("head.json", b"1")
    assert postgres_server.execute(f'SELECT stack FROM "{schema}".tfguard_records') == [("some-stack",)]
    monkeypatch.setenv("PGPASSWORD", "wrong hunter2")
    told = error(lambda: url_store(f"postgresql://127.0.0.1:{postgres_server.port}/postgres", "s").read("head.json"))
    assert "hunter2" not in told.what + told.advice


def test_a_password_file_may_hold_the_password(postgres_server: PostgresServer, schema: str, tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{postgres_server.port}:*:*:{PASSWORD}\n")
    file.chmod(0o600)
    place = f"postgresql://tfguard_test@127.0.0.1:{postgres_server.port}/postgres"
    url_store(f"{place}?sslmode=disable&schema_name={schema}&passfile={file}", "s").create("head.json", b"1")


def end_connections(server: PostgresServer) -> int:
    """End every connection of a store on the server; how many there were."""
    asked = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'tfguard'"
    return len(server.execute(asked))


def read(store: PostgresStore, name: str = "head.json") -> bytes:
    blob = store.read(name)
    assert blob is not None
    return blob.data


def version(store: PostgresStore, name: str = "head.json") -> str:
    blob = store.read(name)
    assert blob is not None
    return blob.version


def error(call: Callable[[], object]) -> RecordError:
    """The error that a call ends with: one line on what, one on what to do, and no secret."""
    with pytest.raises(RecordError) as caught:
        call()
    told = caught.value
    assert "\n" not in told.what + told.advice
    assert PASSWORD not in told.what + told.advice
    assert "canary" not in told.what + told.advice
    assert told.exit_code == 10
    return told


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
