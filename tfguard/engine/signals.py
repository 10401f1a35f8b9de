"""The signals that ask tfguard to stop, and how a process is started while they are blocked."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def signals_let_through() -> Iterator[None]:
    """For starting a process, which inherits what its starter has blocked; meanwhile the handlers stand in."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
