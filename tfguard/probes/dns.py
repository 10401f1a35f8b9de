"""What a name resolves to, as every program on this machine would see it: through its resolver and hosts file."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe
from tfguard.model.naming import first_of
from tfguard.probes.attempt import Attempt

_MOST_TOLD = 4


def ask_dns(probe: Probe, _attempt: Attempt) -> ProbeAnswer:
    """Whether the name has an address, and the one that is expected. Raises `OSError` and `ValueError`."""
    found = socket.getaddrinfo(probe.dns, None, type=socket.SOCK_STREAM)
    addresses = {ip_address(str(entry[4][0]).partition("%")[0]) for entry in found}
    if probe.expect is None:
        return ProbeAnswer(True, "has an address")
    try:
        wanted = ip_address(str(probe.expect))
    except ValueError:
        return ProbeAnswer(False, "what is expected is not an IP address")
    if wanted in addresses:
        return ProbeAnswer(True, "has the address that is expected")
    told = sorted(str(address) for address in addresses)
    return ProbeAnswer(False, f"has another address than expected: {first_of(told, _MOST_TOLD)}")
