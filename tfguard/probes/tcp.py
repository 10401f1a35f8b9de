"""Whether anything takes connections at a host and port."""

from __future__ import annotations

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe
from tfguard.model.service import tcp_place
from tfguard.probes.attempt import Attempt


def ask_tcp(probe: Probe, attempt: Attempt) -> ProbeAnswer:
    """A connection that comes about is the answer; nothing is sent. Raises `OSError` and `ValueError`."""
    with attempt.connected(tcp_place(probe.tcp or "")):
        return ProbeAnswer(True, "takes connections")
