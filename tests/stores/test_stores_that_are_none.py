"""What the remote stores do when something else answers in their place, or accepts a connection and says nothing."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

import pytest

from tfguard.errors import RecordError
from tfguard.flows.heads import LEASE_LASTS
from tfguard.ports import RecordStore
from tfguard.stores import azblob_client, gcs_client, postgres, postgres_client, s3_client
from tfguard.stores.common import ATTEMPTS, CALL_SECONDS, CONNECT_SECONDS, READ_SECONDS

_RENEWED_EVERY = timedelta(seconds=10)
_HTML = b"<!doctype html><html><head><title>Sign in<br></head><body>please"
_XHTML = b"<html><body>please sign in</body></html>"
_LATE = MappingProxyType({"Last-Modified": "Thu, 31 Dec 9999 23:59:59 -2359", "ETag": "1", "X-Goog-Generation": "1"})


def _s3(port: int) -> RecordStore:
    settings = {
        "bucket": "records",
        "region": "us-east-1",
        "access_key": "testing",
        "secret_key": "testing",
        "use_path_style": "true",
        "endpoints.s3": f"http://127.0.0.1:{port}",
        "max_retries": "20",
    }
    return s3_client.backend_store(settings, "state.tfguard")


def _s3_role(port: int) -> RecordStore:
    settings = {
        "bucket": "records",
        "region": "us-east-1",
        "access_key": "testing",
        "secret_key": "testing",
        "endpoints.s3": "http://127.0.0.1:9",
        "assume_role.role_arn": "arn:aws:iam::123456789012:role/state",
        "endpoints.sts": f"http://127.0.0.1:{port}",
    }
    return s3_client.backend_store(settings, "state.tfguard")


def _gcs(port: int) -> RecordStore:
    settings = {
        "bucket": "records",
        "access_token": "testing",
        "storage_custom_endpoint": f"http://127.0.0.1:{port}/storage/v1/b",
    }
    return gcs_client.backend_store(settings, "state.tfguard")


def _azure(port: int) -> RecordStore:
    settings = {
        "storage_account_name": "account",
        "container_name": "records",
        "access_key": "dGVzdGluZw==",
        "blob_endpoint": f"http://127.0.0.1:{port}/account",
    }
    return azblob_client.backend_store(settings, "state.tfguard")


def _postgres(port: int) -> RecordStore:
    # Whoever waits for ever for a connection does not wait longer here either.
    url = f"postgresql://user:testing@127.0.0.1:{port}/records?sslmode=disable&connect_timeout=0"
    return postgres.backend_store({"conn_str": url}, "default")


_OBJECT_STORES: Mapping[str, Callable[[int], RecordStore]] = {"s3": _s3, "gcs": _gcs, "azure": _azure}
_STORES: Mapping[str, Callable[[int], RecordStore]] = {**_OBJECT_STORES, "s3 role": _s3_role, "postgres": _postgres}
_CALLS: Mapping[str, Callable[[RecordStore], object]] = {
    "read": lambda store: store.read("head.json"),
    "create": lambda store: store.create("head.json", b"1"),
    "replace": lambda store: store.replace("head.json", b"1", "1"),
    "append": lambda store: store.append("events.jsonl", b"1\n"),
    "read a journal": lambda store: store.read_journal("events.jsonl"),
    "list": lambda store: store.names(""),
    "remove": lambda store: store.remove("head.json", b"1"),
    "move aside": lambda store: store.move_aside("head.json"),
    "tell the time": lambda store: store.now(),
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = ("AWS_", "ARM_", "AZURE_", "GOOGLE_", "PG", "NO_PROXY", "STORAGE_EMULATOR")
    for name in [name for name in os.environ if name.upper().startswith(prefixes)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (200, _HTML, {"Content-Type": "text/html"}),
        (200, _XHTML, {"Content-Type": "text/html"}),
        (200, _XHTML, {"Content-Type": "application/xml"}),
        (200, b"", {}),
        (200, b"[]", {"Content-Type": "application/json"}),
        (200, _HTML, _LATE),
        (404, _HTML, {"Content-Type": "text/html"}),
        (404, b"", {}),
    ],
    ids=["html", "xhtml", "xml", "nothing", "a list", "a time beyond the calendar", "not found", "bare not found"],
)
@pytest.mark.parametrize("store", _OBJECT_STORES)
def test_a_page_that_is_not_the_stores_is_an_error_and_never_no_record(
    store: str, status: int, body: bytes, headers: Mapping[str, str], call: str
) -> None:
    with _answering(status, body, headers) as port, pytest.raises(RecordError) as caught:
        _CALLS[call](_OBJECT_STORES[store](port))
    _assert_told(caught.value)


@pytest.mark.parametrize(
    ("call", "body", "headers"),
    [
        ("read", b'{"form', {**_LATE, "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Length": "60"}),
        ("list", b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", {}),
        ("list", b"<ListBucketResult><IsTruncated>false</IsTrunc", {}),
    ],
    ids=["a record that was cut", "a page that tells of more, and not where", "a page that was cut"],
)
def test_half_of_what_s3_holds_is_an_error(call: str, body: bytes, headers: Mapping[str, str]) -> None:
    with _answering(200, body, headers) as port, pytest.raises(RecordError) as caught:
        _CALLS[call](_s3(port))
    _assert_told(caught.value)


def test_a_server_that_does_not_speak_postgresql_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_client, "PATIENCE", 0.5)
    with _mute(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        for call in _CALLS.values():
            with pytest.raises(RecordError) as caught:
                call(_postgres(port))
            _assert_told(caught.value)


def test_the_bound_on_a_call_leaves_time_for_another_renewal_of_the_lease() -> None:
    pauses = 4
    assert ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + pauses <= CALL_SECONDS
    longest_pause = 2
    in_postgres = postgres_client.PATIENCE + longest_pause + CONNECT_SECONDS + postgres_client.HANG_SECONDS
    assert in_postgres <= CALL_SECONDS
    assert timedelta(seconds=CALL_SECONDS) + _RENEWED_EVERY < LEASE_LASTS


def test_a_server_that_never_answers_is_given_up_within_the_bound_by_every_store() -> None:
    """All at once, as each takes its time."""
    with _mute(b"") as silent, _mute(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nETag: 1\r\n\r\n") as halting:
        tried = [(name, make, silent, call) for name, make in _STORES.items() for call in ("read", "create")]
        tried += [(f"{name} halting", make, halting, "read") for name, make in _OBJECT_STORES.items()]
        with ThreadPoolExecutor(len(tried)) as pool:
            told = list(pool.map(lambda one: _seconds_until_given_up(one[1](one[2]), _CALLS[one[3]]), tried))
    late = {(name, call): seconds for (name, _, _, call), seconds in zip(tried, told, strict=True) if seconds > 55}
    assert not late, f"the bound is {CALL_SECONDS} s"


def _seconds_until_given_up(store: RecordStore, call: Callable[[RecordStore], object]) -> float:
    began = time.monotonic()
    with pytest.raises(RecordError) as caught:
        call(store)
    _assert_told(caught.value)
    return time.monotonic() - began


def _assert_told(error: RecordError) -> None:
    assert error.what
    assert error.advice
    assert "\n" not in error.what + error.advice
    assert "testing" not in error.what + error.advice


@contextlib.contextmanager
def _answering(status: int, body: bytes, headers: Mapping[str, str]) -> Iterator[int]:
    """The port of a server that answers everything alike, without the time."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()


@contextlib.contextmanager
def _mute(beginning: bytes) -> Iterator[int]:
    """The port of a server that accepts every connection, and says no more than `beginning`."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    held.append(connection)
                    connection.sendall(beginning)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in held:
                connection.close()
