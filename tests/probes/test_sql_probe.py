"""How a PostgreSQL is asked: what counts as its answer, what does not last, and that no refusal quotes anything."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fixtures.postgres_server import PASSWORD, LossyProxy, PostgresServer
from tfguard.blueprint_ports import ProbeAnswer
from tfguard.engine.signals import signals_let_through
from tfguard.model.blueprint import Probe
from tfguard.probes.prober import ServiceProber

Ask = Callable[..., ProbeAnswer]
_SECRET = "query-canary-4711"


@pytest.fixture
def ask(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a real server, without what the environment may say about another one."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")

    def asked(query: str | None = None, expect: object = None, seconds: float = 30, url: str = "") -> ProbeAnswer:
        probe = Probe(sql=url or postgres_server.url(), query=query, expect=expect, timeout=timedelta(seconds=seconds))
        return ServiceProber(Path(), os.environ, signals_let_through).ask(probe)

    return asked


@pytest.mark.parametrize(
    ("query", "expect", "ok", "told"),
    [
        (None, None, True, "the query is answered"),
        (None, 1, True, "as expected"),
        ("select 41 + 1, 2", 42, True, "as expected"),
        ("select 41 + 1", "42", True, "as expected"),
        ("select 1.50::numeric", "1.50", True, "as expected"),
        ("select 1 = 1", True, True, "as expected"),
        ("select 1 = 2", True, False, "another value than expected"),
        (f"select '{_SECRET}'", "other", False, "another value than expected"),
        ("select 1 where false", None, False, "gives no row"),
        ("create temp table none (a int)", None, False, "gives no row"),
        ("select generate_series(1, 1000000000)", 1, True, "as expected"),
        (f"select * from \"{_SECRET}\"", None, False, "the query failed: UndefinedTable"),
        (f"select '{_SECRET}'::int", None, False, "the query failed: InvalidTextRepresentation"),
        ("", None, True, "the query is answered"),
        ("select 'a%b'", "a%b", True, "as expected"),
    ],
)  # fmt: skip
def test_the_first_value_of_the_first_row_decides(
    ask: Ask, postgres_server: PostgresServer, query: str | None, expect: object, ok: bool, told: str
) -> None:
    answer = ask(query, expect)
    assert answer.ok is ok, answer.detail
    assert answer.detail.startswith(f"127.0.0.1:{postgres_server.port}: ")
    assert told in answer.detail
    assert _SECRET not in answer.detail


def test_what_a_query_changes_does_not_last(ask: Ask, postgres_server: PostgresServer) -> None:
    postgres_server.execute("create table probed (a int)")
    try:
        assert ask("insert into probed values (7) returning a", 7).ok
        assert postgres_server.execute("select count(*) from probed") == [(0,)]
    finally:
        postgres_server.execute("drop table probed")


def test_a_query_that_takes_too_long_ends_at_the_server_too(ask: Ask, postgres_server: PostgresServer) -> None:
    assert ask("select pg_sleep(300)", seconds=1).detail.endswith("no answer within 1s")
    running = "select count(*) from pg_stat_activity where query like 'select pg_sleep(300)%' and state = 'active'"
    _eventually(lambda: postgres_server.execute(running) == [(0,)])


def test_a_server_that_falls_silent_is_left_in_time_and_for_good(ask: Ask, postgres_server: PostgresServer) -> None:
    waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and wait_event = 'advisory'"
    with (
        LossyProxy(postgres_server.port).running() as proxy,
        psycopg.connect(postgres_server.url()) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        holder.execute("select pg_advisory_xact_lock(4711)")
        place, url = f"127.0.0.1:{proxy.port}", postgres_server.url(port=proxy.port)
        asked = pool.submit(ask, "select pg_advisory_xact_lock(4711)", seconds=4, url=url)
        _eventually(lambda: postgres_server.execute(waits) == [(1,)])
        proxy.silent = True
        holder.rollback()
        assert asked.result() == ProbeAnswer(False, f"{place}: no answer within 4s")
        _eventually(lambda: not any(thread.name == "tfguard-probe" for thread in threading.enumerate()))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda url: url.replace("%20", ""), "the login is refused"),
        (lambda url: url.replace("/postgres?", f"/{_SECRET}?"), "there is no such database or role"),
        (lambda url: url.replace("sslmode=disable", "sslmode=require"), "TLS could not be agreed upon"),
        (lambda url: url.replace("sslmode=", f"{_SECRET}="), "cannot be asked: it is not a URL"),
        (lambda url: url.replace("%20", "%2"), "cannot be asked: it is not a URL"),
    ],
)
def test_a_refusal_is_told_without_what_the_url_holds(
    ask: Ask, postgres_server: PostgresServer, change: Callable[[str], str], told: str
) -> None:
    url = change(postgres_server.url())
    assert url != postgres_server.url()
    answer = ask(url=url)
    assert not answer.ok
    assert answer.detail.startswith(f"127.0.0.1:{postgres_server.port}: {told}")
    _tells_nothing(answer)


def test_without_psycopg_the_answer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    answer = ServiceProber(Path(), os.environ, signals_let_through).ask(Probe(sql="postgresql://127.0.0.1:1/x"))
    assert answer == ProbeAnswer(
        False, "127.0.0.1:1: needs psycopg 3, which is not installed: `pip install 'psycopg[binary]'`"
    )


def _eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _tells_nothing(answer: ProbeAnswer) -> None:
    hidden: Any = (PASSWORD, "word-canary", "tfguard_test", _SECRET)
    assert not [word for word in hidden if word in answer.detail]
