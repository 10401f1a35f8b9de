"""No answer of a probe, nor the refusal of a damaged one, tells what a URL, a query, a header or an output holds."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.probe_servers import say, web_server
from tfguard.engine.signals import signals_let_through
from tfguard.model.blueprint import Probe
from tfguard.probes.prober import ServiceProber

_CANARIES = ("canaryKq7", "48151")  # the second can be taken for a port
_AROUND = st.text("/?#@:%[]&=;, \\\t\n\x1béA0", max_size=4)
_SECRETS = st.builds("{}{}{}".format, _AROUND, st.sampled_from(_CANARIES), _AROUND)
_SHORT = timedelta(milliseconds=500)


@pytest.fixture(scope="module")
def repeating() -> Iterator[str]:
    """A server that says everything it was told in every place of its answer."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        told = re.sub(r"[^\x21-\x7e]", "", f"{handler.path}{handler.headers}")
        handler.send_response(500, told)
        handler.end_headers()
        say(handler, 500, told.encode(), Location=told)

    with web_server(answer) as place:
        yield place


def tells_nothing(**fields: Any) -> None:
    """Ask, where a probe can be made of these fields, and look for a canary in the words."""
    try:
        probe = Probe(**fields, timeout=_SHORT)
    except ValueError as error:
        told = str(error)
    else:
        told = ServiceProber(Path(), os.environ, signals_let_through).ask(probe).detail
        assert "\n" not in told and "\x1b" not in told
    assert not [canary for canary in _CANARIES if canary in told], told


@settings(max_examples=60)
@given(secret=_SECRETS, place=st.sampled_from(["login", "user", "path", "query", "header", "text"]))
def test_of_a_web_server(repeating: str, secret: str, place: str) -> None:
    scheme, rest = "http", f"{repeating}/"
    match place:
        case "login":
            tells_nothing(http=f"{scheme}://localhost:{secret}@{rest}")
        case "user":
            tells_nothing(http=f"{scheme}://localhost/{secret}@{rest}")
        case "path":
            tells_nothing(http=f"{scheme}://{rest}{secret}")
        case "query":
            tells_nothing(http=f"{scheme}://{rest}?key={secret}", expect=200)
        case "header":
            tells_nothing(http=f"{scheme}://{rest}", headers={"Authorization": secret})
        case "text":
            tells_nothing(http=f"{scheme}://{rest}", contains=secret, expect=500)


@settings(max_examples=60)
@given(secret=_SECRETS, place=st.sampled_from(["login", "database", "parameter", "query"]))
def test_of_a_database_that_is_not_there(secret: str, place: str) -> None:
    match place:
        case "login":
            tells_nothing(sql=f"postgresql://localhost:{secret}@127.0.0.1:1/db")
        case "database":
            tells_nothing(sql=f"postgres://127.0.0.1:1/{secret}")
        case "parameter":
            tells_nothing(sql=f"postgres://127.0.0.1:1/db?password={secret}")
        case "query":
            tells_nothing(sql="postgres://127.0.0.1:1/db", query=f"select '{secret}'", expect=secret)


@settings(max_examples=10)
@given(secret=_SECRETS)
def test_of_a_command(secret: str) -> None:
    code = "import os, sys; print(os.environ['SECRET']); sys.exit(os.environ['SECRET'])"
    tells_nothing(command=(sys.executable, "-c", code, secret), environment={"SECRET": secret})


@settings(max_examples=40)
@given(url=st.builds("{}{}".format, st.sampled_from(["", "http:", "postgres://", "//", "ftp://x:"]), _SECRETS))
def test_of_what_has_no_form(url: str) -> None:
    for kind in ("tcp", "http", "sql", "dns"):
        tells_nothing_of_a_form(kind, url)


def tells_nothing_of_a_form(kind: str, text: str) -> None:
    """Look at the words about a text that is not of the form that a kind needs."""
    try:
        Probe(**{kind: text})
    except ValueError as error:
        assert not [canary for canary in _CANARIES if canary in str(error)]
