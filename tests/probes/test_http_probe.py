"""How a web server is asked: statuses, texts, headers, redirects, TLS, and bodies that do not end."""

from __future__ import annotations

import os
import ssl
import threading
import time
from base64 import b64encode
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from fixtures.azure_sim import make_certificate
from fixtures.probe_servers import raw_server, say, web_server
from tfguard.blueprint_ports import ProbeAnswer
from tfguard.engine.signals import signals_let_through
from tfguard.model.blueprint import Probe
from tfguard.probes.prober import ServiceProber

_CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


def ask(url: str, seconds: float = 30, **fields: Any) -> ProbeAnswer:
    """One try."""
    prober = ServiceProber(Path(), os.environ, signals_let_through)
    return prober.ask(Probe(http=url, timeout=timedelta(seconds=seconds), **fields))


@pytest.mark.parametrize(
    ("status", "fields", "ok", "detail"),
    [
        (200, {}, True, "HTTP 200"),
        (204, {}, True, "HTTP 204"),
        (503, {}, False, "HTTP 503"),
        (503, {"expect": 503}, True, "HTTP 503"),
        (200, {"expect": 204}, False, "HTTP 200, and not 204"),
        (302, {}, False, "HTTP 302, which is not followed"),
        (302, {"expect": 302}, True, "HTTP 302"),
        (200, {"contains": "überall"}, True, "HTTP 200, with the text that is expected"),
        (200, {"contains": "nowhere"}, False, "HTTP 200, without the text that is expected in its first 64 KiB"),
    ],
)  # fmt: skip
def test_the_status_and_the_text_decide(status: int, fields: dict[str, Any], ok: bool, detail: str) -> None:
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        say(handler, status, "hier und überall".encode() if status == 200 else b"", Location="/elsewhere")

    with web_server(answer) as place:
        assert ask(f"http://{place}/health", **fields) == ProbeAnswer(ok, f"{place}: {detail}")
    assert asked == ["/health"]


def test_login_headers_and_odd_characters_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    seen: dict[str, str | None] = {}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.update({"path": handler.path, **handler.headers})
        say(handler)

    with web_server(answer) as place:
        answered = ask(f"http://me:p%40ss@{place}/a b/é?q=1&r=ü#part", headers={"Host": "app.example", "x-key": "k"})
    assert answered == ProbeAnswer(True, f"{place}: HTTP 200")
    assert seen["path"] == "/a%20b/%C3%A9?q=1&r=%C3%BC"
    assert seen["Authorization"] == "Basic " + b64encode(b"me:p@ss").decode()
    assert (seen["Host"], seen["x-key"]) == ("app.example", "k")


def test_a_body_without_an_end_is_read_only_so_far() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw_server(head, _CHUNK) as place:
        answer = ask(f"http://{place}/", contains="never")
        assert answer == ProbeAnswer(False, f"{place}: HTTP 200, without the text that is expected in its first 64 KiB")


@pytest.mark.parametrize(
    ("begin", "again"),
    [(b"HTTP/1.1 200 OK\r\n", b"x"), (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b"x")],
)
def test_an_answer_that_drips_has_to_come_in_time(begin: bytes, again: bytes) -> None:
    with raw_server(begin, again) as place:
        assert ask(f"http://{place}/", 0.5, contains="never") == ProbeAnswer(False, f"{place}: no answer within 0.5s")
        deadline = time.monotonic() + 30
        while any(thread.name == "tfguard-probe" for thread in threading.enumerate()):
            assert time.monotonic() < deadline, "the try still goes on"
            time.sleep(0.02)


def test_what_is_no_http_is_told() -> None:
    with raw_server(b"220 mail.example ESMTP\r\n") as place:
        assert ask(f"http://{place}/") == ProbeAnswer(False, f"{place}: the answer is not HTTP")


def test_a_certificate_has_to_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    made = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.certificate, made.key)
    with web_server(say, tls) as place:
        refused = ask(f"https://{place}/")
        monkeypatch.setenv("SSL_CERT_FILE", str(made.certificate))
        assert ask(f"https://{place}/") == ProbeAnswer(True, f"{place}: HTTP 200")
        port = place.rpartition(":")[2]
        elsewhere = ask(f"https://localhost:{port}/")
    assert not refused.ok
    assert refused.detail.startswith(f"{place}: TLS: the certificate is not trusted: self")
    assert elsewhere == ProbeAnswer(False, f"localhost:{port}: TLS: the certificate is not trusted: Hostname mismatch")


def test_a_server_without_tls_is_told_as_such() -> None:
    with raw_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as place:
        answer = ask(f"https://{place}/")
    assert not answer.ok
    assert answer.detail.startswith(f"{place}: TLS: ")


def test_a_place_that_may_be_a_part_of_a_login_is_not_told() -> None:
    answer = ask("http://localhost:1/3@127.0.0.1:1/")
    assert not answer.ok
    assert answer.detail.startswith("the server: ")
