"""Where a service is, as a probe names it. Nothing here quotes what it cannot read: a password may stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_HOST = re.compile(r"[\w.-]{1,253}|[0-9A-Fa-f:.]{2,45}(%[\w.-]+)?")
_HOSTS = re.compile(r"[\w.,:\[\]-]{1,1000}")
_AUTHORITY = re.compile(r"[A-Za-z]+://([^/?#]*)(.*)", re.DOTALL)
_PORT = re.compile(r"\d{1,5}", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
DATABASE_SCHEMES = ("postgres://", "postgresql://")


@dataclass(frozen=True, slots=True)
class Place:
    """A host and a port of it."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if not _HOST.fullmatch(self.host):
            raise ValueError("names no host")
        if not 1 <= self.port <= 65535:
            raise ValueError("the port is not between 1 and 65535")

    def __str__(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def tcp_place(text: str) -> Place:
    """The place in `HOST:PORT` or `[IPV6]:PORT`. Raises `ValueError`."""
    host, _, port = text.rpartition(":")
    if not _PORT.fullmatch(port) or (":" in host) != (host[:1] + host[-1:] == "[]"):
        raise ValueError("is not HOST:PORT")
    return Place(host.removeprefix("[").removesuffix("]"), int(port))


def web_place(url: str) -> Place:
    """The place in an `http://` or `https://` URL. Raises `ValueError`."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        raise ValueError("is not a URL") from None  # without the cause, which quotes it
    if scheme not in _DEFAULT_PORTS:
        raise ValueError("is not an http:// or https:// URL")
    return Place(host or "", _DEFAULT_PORTS[scheme] if port is None else port)


def told_place(url: str) -> str:
    """The hosts and ports in a URL, as far as they may be told; empty when they may not.

    With `/`, `?` or `#` in a login that is not escaped, what looks like a host and a port is a part of the login.
    """
    found = _AUTHORITY.match(url)
    if found is None or "@" in found[2]:
        return ""
    hosts = found[1].rpartition("@")[2]
    return hosts if _HOSTS.fullmatch(hosts) else ""
