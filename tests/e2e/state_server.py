"""A small http backend."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StateServer(ThreadingHTTPServer):
    """An http backend for one state, which can be told to refuse writing; `lock` is the note of who has it locked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state: bytes | None = None
        self.refusing = False
        self.writes = 0
        self.lock: bytes = b""

    @property
    def url(self) -> str:
        """Where the state lies."""
        return f"http://127.0.0.1:{self.server_address[1]}/state"


class _Handler(BaseHTTPRequestHandler):
    server: StateServer

    def do_GET(self) -> None:
        self._answer(200 if self.server.state is not None else 404, self.server.state or b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.refusing:
            self.server.state = body
            self.server.writes += 1
        self._answer(403 if self.server.refusing else 200, b"")

    def do_LOCK(self) -> None:
        note = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.lock:
            self._answer(423, self.server.lock)
        else:
            self.server.lock = note
            self._answer(200, b"")

    def do_UNLOCK(self) -> None:
        """Whoever asks, with whatever id: that is what many servers do."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.lock = b""
        self._answer(200, b"")

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at the server's state."""


@contextmanager
def running_server() -> Iterator[StateServer]:
    """An http backend without a state, which serves while this is open."""
    with StateServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()
