"""How a web server answers one GET."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import quote, unquote, urlsplit

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe
from tfguard.model.service import web_place
from tfguard.probes.attempt import Attempt

_MOST_READ = 64 << 10
_KEPT = "!#$%&'()*+,/:;=?@[]~"
"""What a path and a query keep as it is; everything else is escaped."""


def ask_http(probe: Probe, attempt: Attempt) -> ProbeAnswer:
    """The status of the answer, and what the first 64 KiB of its body contain.

    A redirect is not followed but an answer. Proxies in the environment are passed by: the service itself is asked.
    Raises `OSError` and `ValueError`.
    """
    parts, place = urlsplit(probe.http or ""), web_place(probe.http or "")
    with attempt.connected(place) as plain:
        connection = HTTPConnection(place.host, place.port)
        if parts.scheme == "https":
            # As everywhere, SSL_CERT_FILE names other authorities than the system's.
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=place.host)
            connection.default_port = 443
        else:
            connection.sock = plain
        try:
            path = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
            connection.request("GET", path, headers=_headers(probe, parts.username, parts.password))
            with connection.getresponse() as response:
                return _judged(response, probe, attempt)
        except HTTPException:
            return ProbeAnswer(False, "the answer is not HTTP")
        finally:
            connection.close()


def _headers(probe: Probe, user: str | None, password: str | None) -> Mapping[str, str]:
    found = {"User-Agent": "tfguard", "Connection": "close", "Accept": "*/*"}
    if user is not None:
        login = f"{unquote(user)}:{unquote(password or '')}"
        found["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    given = {name.lower() for name in probe.headers}
    return {name: value for name, value in found.items() if name.lower() not in given} | dict(probe.headers)


def _judged(response: HTTPResponse, probe: Probe, attempt: Attempt) -> ProbeAnswer:
    status = response.status
    if probe.expect is not None and status != probe.expect:
        return ProbeAnswer(False, f"HTTP {status}, and not {probe.expect}")
    if probe.expect is None and not 200 <= status < 300:
        return ProbeAnswer(False, f"HTTP {status}" + (", which is not followed" if 300 <= status < 400 else ""))
    if probe.contains is None:
        return ProbeAnswer(True, f"HTTP {status}")
    if _contains(response, probe.contains.encode(), attempt):
        return ProbeAnswer(True, f"HTTP {status}, with the text that is expected")
    return ProbeAnswer(False, f"HTTP {status}, without the text that is expected in its first {_MOST_READ >> 10} KiB")


def _contains(response: HTTPResponse, wanted: bytes, attempt: Attempt) -> bool:
    body = b""
    while len(body) < _MOST_READ and (chunk := response.read1(_MOST_READ - len(body))):
        body += chunk
        if wanted in body:
            return True
        attempt.left()
    return False
