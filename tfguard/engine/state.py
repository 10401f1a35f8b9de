"""The engine's state, version 4, reduced to identities. An unreadable one is an error, never empty (case B11)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.engine.documents import Json, mapping, masked_values, scalar, sequence, text
from tfguard.engine.identities import identity_of, withheld_of
from tfguard.errors import EmptyStateError, EncryptedStateError, InputError
from tfguard.model.address import hcl_string
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot

_PROVIDER = re.compile(r'^(?:(module\..*)\.)?provider\["([^"]+)"\](?:\.(.+))?$')


def parse_state(data: bytes, where: str, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a version 4 state document.

    `where` names its place for a person. Raises `InputError` for an empty, cut or foreign document, and
    `EncryptedStateError` for an encrypted one.
    """
    document = _document(data, where)
    if _is_encrypted(document):
        raise EncryptedStateError(*_unreadable_texts(where, "it is encrypted"))
    if document.get("version") != 4:
        raise _unreadable(where, f"it has version {scalar(document.get('version'))}, not 4")
    instances = [
        (resource, mapping(instance))
        for resource in map(mapping, sequence(document.get("resources")))
        if resource.get("mode") == "managed"
        for instance in sequence(resource.get("instances"))
    ]
    secrets = frozenset(value for _, instance in instances for value in _marked_values(instance))
    return StateSnapshot(
        lineage=text(document.get("lineage")),
        serial=_serial(document),
        instances=tuple(_instance(resource, instance, catalog) for resource, instance in instances),
        outputs=tuple(sorted(mapping(document.get("outputs")))),
        secrets=secrets,
    )


def parse_shown_state(shown: str, envelope: StateSnapshot, where: str, catalog: Catalog) -> StateSnapshot:
    """The snapshot in what `show -json FILE` prints of a state file, which lacks lineage and serial: `envelope`'s.

    It lacks provider configurations too, so that no instance has a `provider_key`. Raises `InputError` for anything
    that is no state.
    """
    document = _document(shown.encode(), where)
    if "format_version" not in document or "resource_changes" in document:
        raise _unreadable(where, "`show -json` printed no state")
    values = mapping(document.get("values"))
    resources = [one for one in _shown_resources(mapping(values.get("root_module"))) if one.get("mode") == "managed"]
    secrets = frozenset(
        value for one in resources for value in masked_values(one.get("values"), one.get("sensitive_values"))
    )
    return replace(
        envelope,
        instances=tuple(_shown_instance(resource, catalog) for resource in resources),
        outputs=tuple(sorted(mapping(values.get("outputs")))),
        secrets=secrets,
    )


def read_state_file(path: Path, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a local state file; a file that is not there is a stack without a state."""
    data = _bytes(path)
    return EMPTY_STATE if data is None else parse_state(data, str(path), catalog)


def read_envelope(path: Path, catalog: Catalog) -> StateSnapshot:
    """The same, but of an encrypted file the lineage and the serial alone, which stand in it in clear."""
    data = _bytes(path)
    if data is None or not _is_encrypted(document := _document(data, str(path))):
        return read_state_file(path, catalog)
    return StateSnapshot(text(document.get("lineage")), _serial(document))


def is_encrypted(path: Path) -> bool:
    """Whether a local state file is an encrypted one."""
    data = _bytes(path)
    return bool(data and data.strip()) and _is_encrypted(_document(data or b"", str(path)))


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(str(path), error.strerror or "it cannot be opened") from error


def _document(data: bytes, where: str) -> Json:
    if not data.strip():
        what, advice = _unreadable_texts(where, "it is empty: an interrupted write leaves 0 bytes")
        raise EmptyStateError(what, f"{advice}. If this stack was never applied, delete the empty file")
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, "it is cut or not JSON") from error


def _is_encrypted(document: Json) -> bool:
    return "encrypted_data" in document


def _serial(document: Json) -> int:
    serial = document.get("serial")
    return serial if isinstance(serial, int) else 0


def _unreadable(where: str, why: str) -> InputError:
    return InputError(*_unreadable_texts(where, why))


def _unreadable_texts(where: str, why: str) -> tuple[str, str]:
    return (
        f"the state at {where} cannot be read: {why}",
        "restore it (a backup lies beside a local state as .backup), then run the command again; nothing was changed",
    )


def _fingerprint(resource_type: str, attributes: object) -> str:
    name = scalar(mapping(attributes).get("id"))
    return hashlib.sha256(f"{resource_type}\0{name}".encode()).hexdigest()[:16] if name else ""


def _marked_values(instance: Json) -> Iterator[str]:
    """The values that `sensitive_attributes` marks: a copy of one can stand in an ARN, which nobody marks."""
    for path in sequence(instance.get("sensitive_attributes")):
        value = instance.get("attributes")
        for step in map(mapping, sequence(path)):
            name = step.get("value")
            key = mapping(name).get("value") if isinstance(name, Mapping) else name
            value = _inside(value, key)
        yield from masked_values(value, True)


def _inside(value: object, key: object) -> object:
    if isinstance(key, int):
        items = sequence(value)
        return items[key] if 0 <= key < len(items) else None
    return mapping(value).get(text(key))


def _instance(resource: Json, instance: Json, catalog: Catalog) -> StateInstance:
    resource_type, attributes = text(resource.get("type")), instance.get("attributes")
    source, configuration = provider_key(text(resource.get("provider")))
    mask: dict[str, object] = {}
    for path in sequence(instance.get("sensitive_attributes")):
        _mark(mask, path)
    return StateInstance(
        address=instance_address(resource, instance.get("index_key")),
        type=resource_type,
        provider=source,
        provider_key=configuration,
        identity=identity_of(catalog, resource_type, attributes, mask, frozenset()),
        tainted=instance.get("status") == "tainted",
        deposed=text(instance.get("deposed")) or None,
        withheld=tuple(sorted(withheld_of(catalog, resource_type, attributes, mask, frozenset()))),
        fingerprint=_fingerprint(resource_type, attributes),
    )


def _shown_resources(module: Json) -> Iterator[Json]:
    """Every resource of a module and of those in it, each an instance with an address of its own."""
    yield from map(mapping, sequence(module.get("resources")))
    for inner in sequence(module.get("child_modules")):
        yield from _shown_resources(mapping(inner))


def _shown_instance(resource: Json, catalog: Catalog) -> StateInstance:
    resource_type, mask = text(resource.get("type")), resource.get("sensitive_values")
    values = resource.get("values")
    return StateInstance(
        address=text(resource.get("address")),
        type=resource_type,
        provider=text(resource.get("provider_name")),
        identity=identity_of(catalog, resource_type, values, mask, frozenset()),
        tainted=resource.get("tainted") is True,
        deposed=text(resource.get("deposed_key")) or None,
        withheld=tuple(sorted(withheld_of(catalog, resource_type, values, mask, frozenset()))),
        fingerprint=_fingerprint(resource_type, values),
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


def instance_address(resource: Json, index_key: object) -> str:
    """The address of an instance of a state's resource."""
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
