"""The engine's state, version 4, reduced to identities. An unreadable one is an error, never empty (case B11)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.engine.documents import Json, mapping, scalar, sequence, text
from tfguard.engine.identities import identity_of
from tfguard.errors import EmptyStateError, InputError
from tfguard.model.address import hcl_string
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot

_PROVIDER = re.compile(r'^(?:(module\..*)\.)?provider\["([^"]+)"\](?:\.(.+))?$')


def parse_state(data: bytes, where: str, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a version 4 state document.

    `where` names its place for a person. Raises `InputError` for an empty, cut, encrypted or foreign document.
    """
    if not data.strip():
        raise EmptyStateError(*_unreadable_texts(where, "it is empty: an interrupted write leaves 0 bytes"))
    try:
        document = mapping(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, "it is cut or not JSON") from error
    if "encrypted_data" in document:
        raise _unreadable(where, "it is encrypted")
    if document.get("version") != 4:
        raise _unreadable(where, f"it has version {scalar(document.get('version'))}, not 4")
    serial = document.get("serial")
    return StateSnapshot(
        lineage=text(document.get("lineage")),
        serial=serial if isinstance(serial, int) else 0,
        instances=tuple(
            _instance(mapping(resource), mapping(instance), catalog)
            for resource in sequence(document.get("resources"))
            if mapping(resource).get("mode") == "managed"
            for instance in sequence(mapping(resource).get("instances"))
        ),
        outputs=tuple(sorted(mapping(document.get("outputs")))),
    )


def read_state_file(path: Path, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a local state file; a file that is not there is a stack without a state."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return EMPTY_STATE
    except OSError as error:
        raise _unreadable(str(path), error.strerror or "it cannot be opened") from error
    return parse_state(data, str(path), catalog)


def _unreadable(where: str, why: str) -> InputError:
    return InputError(*_unreadable_texts(where, why))


def _unreadable_texts(where: str, why: str) -> tuple[str, str]:
    return (
        f"the state at {where} cannot be read: {why}",
        "restore it (a backup lies beside a local state as .backup), then run the command again; nothing was changed",
    )


def _instance(resource: Json, instance: Json, catalog: Catalog) -> StateInstance:
    resource_type = text(resource.get("type"))
    source, configuration = provider_key(text(resource.get("provider")))
    mask: dict[str, object] = {}
    for path in sequence(instance.get("sensitive_attributes")):
        _mark(mask, path)
    return StateInstance(
        address=_address(resource, instance.get("index_key")),
        type=resource_type,
        provider=source,
        provider_key=configuration,
        identity=identity_of(catalog, resource_type, instance.get("attributes"), mask, frozenset()),
        tainted=instance.get("status") == "tainted",
        deposed=text(instance.get("deposed")) or None,
    )


def _mark(mask: dict[str, object], path: object) -> None:
    """Add one path of `sensitive_attributes`, a list of steps, to a mask; only its first step matters here.

    Hiding the whole top-level attribute is coarser than the path and can never show too much.
    """
    steps = sequence(path)
    if steps:
        first = mapping(steps[0])
        name = scalar(first.get("value")) or scalar(steps[0])
        if name:
            mask[name] = True


def _address(resource: Json, index_key: object) -> str:
    module = text(resource.get("module"))
    base = f"{text(resource.get('type'))}.{text(resource.get('name'))}"
    if isinstance(index_key, int):
        base += f"[{index_key}]"
    elif isinstance(index_key, str):
        base += f"[{hcl_string(index_key)}]"
    return f"{module}.{base}" if module else base


def provider_key(provider: str) -> tuple[str, str]:
    """The provider's source and its configuration key as a plan names it, from a state's `provider` text."""
    match = _PROVIDER.match(provider)
    if match is None:
        return provider, ""
    module, source, alias = match.groups()
    key = source.rpartition("/")[2] + (f".{alias}" if alias else "")
    return source, f"{module}:{key}" if module else key
