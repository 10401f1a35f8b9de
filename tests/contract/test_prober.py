"""What every kind of probe keeps to: an answer and never an exception, within its timeout, about the right place."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fixtures.postgres_server import PostgresServer
from fixtures.probe_servers import raw_server, say, web_server
from fixtures.record_servers import free_port
from tfguard.blueprint_ports import Prober
from tfguard.engine.signals import signals_let_through
from tfguard.model.blueprint import Probe, ProbeKind
from tfguard.probes.prober import ServiceProber

_GENEROUS_SECONDS = 30
_HANGING_NAME = "hangs.invalid"
Question = Mapping[str, Any]


@pytest.fixture
def prober(tmp_path: Path) -> Prober:
    """A prober whose commands run in a new folder."""
    return ServiceProber(tmp_path, os.environ, signals_let_through)


@pytest.fixture(params=list(ProbeKind))
def kind(request: pytest.FixtureRequest) -> ProbeKind:
    """Each kind of probe."""
    return ProbeKind(request.param)


@pytest.fixture
def questions(
    kind: ProbeKind, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Question, Question, Question]]:
    """Of a kind: what is answered, what is refused, and what is never answered."""
    with ExitStack() as stack:
        silent, closed = stack.enter_context(raw_server()), f"127.0.0.1:{free_port()}"
        match kind:
            case ProbeKind.TCP:
                _hang_on_a_name(monkeypatch, stack)
                yield {"tcp": silent}, {"tcp": closed}, {"tcp": f"{_HANGING_NAME}:80"}
            case ProbeKind.HTTP:
                web = stack.enter_context(web_server(say))
                yield {"http": f"http://{web}/"}, {"http": f"http://{closed}/"}, {"http": f"http://{silent}/"}
            case ProbeKind.SQL:
                server: PostgresServer = request.getfixturevalue("postgres_server")
                refused = f"postgresql://127.0.0.1:{closed.rpartition(':')[2]}/x"
                yield {"sql": server.url()}, {"sql": refused}, {"sql": f"postgresql://{silent}/x"}
            case ProbeKind.DNS:
                _hang_on_a_name(monkeypatch, stack)
                yield {"dns": "localhost"}, {"dns": "localhost", "expect": "192.0.2.1"}, {"dns": _HANGING_NAME}
            case ProbeKind.COMMAND:
                yield {"command": _python("")}, {"command": _python("exit(3)")}, {"command": ("sleep", "60")}


def test_a_service_that_answers_is_ok(prober: Prober, questions: tuple[Question, Question, Question]) -> None:
    answer = prober.ask(Probe(**questions[0], timeout=timedelta(seconds=_GENEROUS_SECONDS)))
    assert answer.ok, answer.detail
    assert ": " in answer.detail


def test_a_refusal_is_an_answer(prober: Prober, questions: tuple[Question, Question, Question]) -> None:
    answer = prober.ask(Probe(**questions[1], timeout=timedelta(seconds=_GENEROUS_SECONDS)))
    assert not answer.ok
    assert "no answer within" not in answer.detail
    assert "cannot be asked" not in answer.detail


def test_silence_is_an_answer_once_the_timeout_is_over(
    prober: Prober, questions: tuple[Question, Question, Question]
) -> None:
    began = time.monotonic()
    answer = prober.ask(Probe(**questions[2], timeout=timedelta(seconds=1)))
    assert not answer.ok
    assert answer.detail.endswith(": no answer within 1s")
    assert time.monotonic() - began < _GENEROUS_SECONDS


def _python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def _hang_on_a_name(monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> None:
    real, ended = socket.getaddrinfo, threading.Event()
    stack.callback(ended.set)

    def hanging(host: str, *arguments: Any, **named: Any) -> Any:
        if host == _HANGING_NAME:
            ended.wait()
        return real(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
