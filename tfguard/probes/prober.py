"""Ask a service once, in whatever way its probe says (the port `Prober`)."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe, ProbeKind
from tfguard.model.service import tcp_place, told_place
from tfguard.probes.attempt import Attempt
from tfguard.probes.command import CommandProbe
from tfguard.probes.dns import ask_dns
from tfguard.probes.http import ask_http
from tfguard.probes.sql import ask_sql
from tfguard.probes.tcp import ask_tcp

_Ask = Callable[[Probe, Attempt], ProbeAnswer]

_OVER_THE_NETWORK: Mapping[ProbeKind, _Ask] = {
    ProbeKind.TCP: ask_tcp,
    ProbeKind.HTTP: ask_http,
    ProbeKind.SQL: ask_sql,
    ProbeKind.DNS: ask_dns,
}


class ServiceProber:
    """Asks from this machine, once for each call, and takes no longer than the probe's timeout.

    An answer tells host, port, status and the kind of an error, and never what a URL, a query, a header, an
    environment or an output holds (rule 10).
    """

    def __init__(
        self, folder: Path, environ: Mapping[str, str], starting: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Commands run in `folder` with `environ`; `starting` lets signals through while one is started."""
        self._command = CommandProbe(folder, environ, starting)

    def ask(self, probe: Probe) -> ProbeAnswer:
        """The answer to a probe whose references are resolved; never an exception."""
        seconds = probe.timeout.total_seconds()
        attempt = Attempt(seconds)
        where = probe.kind.value
        try:
            where = _where(probe)
            if probe.kind is ProbeKind.COMMAND:
                answer = self._command.ask(probe, attempt)
            else:
                ask = _OVER_THE_NETWORK[probe.kind]
                answer = attempt.bounded(lambda: ask(probe, attempt))
        except TimeoutError:
            answer = ProbeAnswer(False, f"no answer within {seconds:g}s")
        except Exception as error:  # noqa: BLE001 (its words may quote a credential; what it is, is the answer)
            answer = ProbeAnswer(False, _kind_of(error))
        return ProbeAnswer(answer.ok, f"{where}: {answer.detail}")


def _where(probe: Probe) -> str:
    match probe.kind:
        case ProbeKind.TCP:
            return str(tcp_place(probe.tcp or ""))
        case ProbeKind.HTTP:
            return told_place(probe.http or "") or "the server"
        case ProbeKind.SQL:
            return told_place(probe.sql or "") or "the database"
        case ProbeKind.DNS:
            return probe.dns or ""
        case ProbeKind.COMMAND:
            return Path(probe.command[0]).name


def _kind_of(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            # Behind a comma it quotes the host, which may be a part of a login.
            return f"TLS: the certificate is not trusted: {error.verify_message.partition(',')[0]}"
        case ssl.SSLError():
            return f"TLS: {(error.reason or 'no agreement').lower().replace('_', ' ')}"
        case socket.gaierror():
            return f"the name does not resolve: {error.strerror}"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case UnicodeError():
            return "cannot be asked: there is a character in it that is not allowed there"
        case ValueError():
            return "cannot be asked: it is not of the form that this kind of probe needs"
    return f"cannot be asked: {type(error).__name__}"
