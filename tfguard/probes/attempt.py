"""One try of a probe, and the end that it comes to whatever the service does."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.service import Place


class Attempt:
    """A try that may take `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._held: set[socket.socket] = set()
        self._over = False

    def left(self) -> float:
        """The seconds that are left. Raises `TimeoutError` when there are none."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def bounded(self, ask: Callable[[], ProbeAnswer]) -> ProbeAnswer:
        """What `ask` gives; raises what it raises, and `TimeoutError` when the time is over.

        It runs in a thread that is left behind then, for a resolver cannot be interrupted; its connections are cut.
        """
        told: Future[ProbeAnswer] = Future()

        def run() -> None:
            try:
                told.set_result(ask())
            except BaseException as error:  # noqa: BLE001 (it is raised again where it is waited for)
                told.set_exception(error)

        threading.Thread(target=run, name="tfguard-probe", daemon=True).start()
        try:
            return told.result(self.left())
        finally:
            self._cut_all()

    @contextlib.contextmanager
    def holding(self, descriptor: int) -> Iterator[None]:
        """While open, a connection that is cut when the time is over: a server that sends a byte now and then, or a
        client library without limits, would keep it for ever."""
        with socket.socket(fileno=os.dup(descriptor)) as held:
            with self._lock:
                if self._over:
                    raise TimeoutError
                self._held.add(held)
            try:
                yield
            finally:
                with self._lock:
                    self._held.discard(held)

    @contextlib.contextmanager
    def connected(self, place: Place) -> Iterator[socket.socket]:
        """A connection to a place, straight to it, and held. Raises `OSError`."""
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((place.host, place.port), timeout=self.left()))
            stack.enter_context(self.holding(connection.fileno()))
            connection.settimeout(self.left())
            yield connection

    def _cut_all(self) -> None:
        with self._lock:
            self._over = True
            for held in self._held:
                with contextlib.suppress(OSError):
                    held.shutdown(socket.SHUT_RDWR)
