"""The engine's state, version 4 (for a scan also 3), reduced to identities. An unreadable one is an error, never empty
(case B11)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.documents import (
    DoubledKeyError,
    Json,
    WrongShapeError,
    everything_in,
    is_managed,
    mapping,
    marked_values,
    masked,
    objects,
    optional_object,
    optional_text,
    parse_json,
    scalar,
    sequence,
    text,
)
from tfguard.engine.flatmap import unflattened
from tfguard.engine.identities import identity_of, place_of, withheld_of
from tfguard.engine.owned import mask_of_paths, owned_by
from tfguard.engine.state_v3 import as_version_4, is_backend_file, outputs_of_modules
from tfguard.errors import EmptyStateError, EncryptedStateError, InputError
from tfguard.model.address import hcl_string
from tfguard.model.secrets import is_secret
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot, fingerprint_of

# An attribute that may be of any type is stored as its value beside that type.
_OF_ANY_TYPE = {"value", "type"}
_PROVIDER = re.compile(r'^(?:(module\..*)\.)?provider\["([^"]+)"\](?:\.(.+))?$')
# Of Terraform 0.12. The source is the one that later engines take for a provider of which only the name is known.
_PROVIDER_BY_NAME = re.compile(r"^(?:(module\..*)\.)?provider\.([\w-]+)(?:\.(.+))?$")
_BY_NAME_ALONE = "registry.terraform.io/-/"


def parse_state(data: bytes, where: str, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a version 4 state document.

    `where` names its place for a person. Raises `InputError` for an empty, cut or foreign document, and
    `EncryptedStateError` for an encrypted one.
    """
    document = _clear_document(data, where)
    if not _has_version(document, 4):
        raise _unreadable(where, f"it has {_version_told(document, 'not 4')}")
    return _snapshot(document, where, catalog)


def parse_any_state(data: bytes, where: str, catalog: Catalog) -> StateSnapshot:
    """The same, and also of a version 3 state document (Terraform 0.11), which is only ever looked at."""
    document = _clear_document(data, where)
    if _has_version(document, 4):
        return _snapshot(document, where, catalog)
    if not _has_version(document, 3):
        raise _unreadable(where, f"it has {_version_told(document, 'neither 3 nor 4')}")
    if is_backend_file(document):
        raise _unreadable(where, "it is no state, but what `init` has noted of a backend")
    try:
        marked = frozenset(value for outputs in outputs_of_modules(document) for value in marked_values(outputs))
        return _snapshot(as_version_4(document), where, catalog, marked)
    except (WrongShapeError, RecursionError) as error:
        raise _unreadable(where, _why(error)) from error


def _has_version(document: Json, version: int) -> bool:
    found = document.get("version")
    return found == version and not isinstance(found, bool)


def _version_told(document: Json, wanted: str) -> str:
    version = document.get("version")
    return f"version {version}, {wanted}" if isinstance(version, int) else "no version"


def _snapshot(document: Json, where: str, catalog: Catalog, also_secret: frozenset[str] = frozenset()) -> StateSnapshot:
    try:
        instances = list(_managed_instances(document))
        secrets = also_secret.union(_secrets(document))
        return StateSnapshot(
            lineage=_lineage(document),
            serial=_serial(document),
            instances=tuple(_instance(resource, instance, catalog, secrets) for resource, instance in instances),
            outputs=tuple(sorted(optional_object(document, "outputs"))),
            secrets=secrets,
        )
    except (WrongShapeError, RecursionError) as error:
        raise _unreadable(where, _why(error)) from error


def parse_shown_state(shown: str, envelope: StateSnapshot, where: str, catalog: Catalog) -> StateSnapshot:
    """The snapshot in what `show -json FILE` prints of a state file, which lacks lineage and serial: `envelope`'s.

    It lacks provider configurations too, so that no instance has a `provider_key`. Raises `InputError` for anything
    that is no state.
    """
    document = _document(shown.encode(), where)
    if "format_version" not in document or "resource_changes" in document:
        raise _unreadable(where, "`show -json` printed no state")
    try:
        values = optional_object(document, "values")
        resources = [one for one in _shown_resources(optional_object(values, "root_module")) if is_managed(one)]
        secrets = frozenset(marked_values(values))
        return replace(
            envelope,
            instances=tuple(_shown_instance(resource, catalog, secrets) for resource in resources),
            outputs=tuple(sorted(optional_object(values, "outputs"))),
            secrets=secrets,
        )
    except (WrongShapeError, RecursionError) as error:
        raise _unreadable(where, _why(error)) from error


def read_state_file(path: Path, catalog: Catalog) -> StateSnapshot:
    """The snapshot in a local state file; a file that is not there is a stack without a state."""
    data = _bytes(path)
    return EMPTY_STATE if data is None else parse_state(data, str(path), catalog)


def read_envelope(path: Path, catalog: Catalog) -> StateSnapshot:
    """The same, but of an encrypted file the lineage and the serial alone, which stand in it in clear."""
    data = _bytes(path)
    if data is None or not _is_encrypted(document := _document(data, str(path))):
        return read_state_file(path, catalog)
    try:
        return StateSnapshot(_lineage(document), _serial(document))
    except WrongShapeError as error:
        raise _unreadable(str(path), _why(error)) from error


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
        document = parse_json(data, keys_once=True)
    except DoubledKeyError as error:
        raise _unreadable(where, "a key is there twice in it, and no two readers need take the same") from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(where, "it is cut or not JSON") from error
    if not isinstance(document, Mapping):
        raise _unreadable(where, "it is no JSON object")
    return document


def _clear_document(data: bytes, where: str) -> Json:
    document = _document(data, where)
    if _is_encrypted(document):
        raise EncryptedStateError(*_unreadable_texts(where, "it is encrypted"))
    return document


def _is_encrypted(document: Json) -> bool:
    return "encrypted_data" in document


def _lineage(document: Json) -> str:
    return optional_text(document, "lineage")


def _serial(document: Json) -> int:
    serial = document.get("serial", 0)
    if not isinstance(serial, int) or isinstance(serial, bool):
        raise WrongShapeError("serial")
    return serial


def _managed_instances(document: Json) -> Iterator[tuple[Json, Json]]:
    """Every instance of a managed resource in a state document, with its resource.

    Raises `WrongShapeError`: an object that is passed over is one that nobody would look for.
    """
    for resource in objects(document, "resources"):
        if not is_managed(resource):
            continue
        if not (text(resource.get("type")) and text(resource.get("name"))):
            raise WrongShapeError("type or name of a resource")
        optional_text(resource, "module")
        for instance in objects(resource, "instances"):
            _check_instance(instance)
            yield resource, instance


def _check_instance(instance: Json) -> None:
    key = instance.get("index_key")
    if isinstance(key, bool) or not isinstance(key, int | str | None):
        raise WrongShapeError("index_key")
    optional_text(instance, "deposed")
    optional_text(instance, "status")
    optional_object(instance, "attributes")
    optional_object(instance, "attributes_flat")
    paths = instance.get("sensitive_attributes")
    if not isinstance(paths, list | None) or not all(isinstance(path, list) for path in paths or ()):
        raise WrongShapeError("sensitive_attributes")


def _why(error: Exception) -> str:
    if isinstance(error, WrongShapeError):
        return f"its {error.part} is not what a state has there"
    return "it is nested too deeply"


def _unreadable(where: str, why: str) -> InputError:
    return InputError(*_unreadable_texts(where, why))


def _unreadable_texts(where: str, why: str) -> tuple[str, str]:
    return (
        f"the state at {where} cannot be read: {why}",
        "restore it (a backup lies beside a local state as .backup), then run the command again; nothing was changed",
    )


def _fingerprint(resource_type: str, attributes: object, mask: object, secrets: frozenset[str]) -> str:
    """None of an id that is marked, or that repeats a marked value: a short one can be found by trying."""
    name = scalar(mapping(attributes).get("id"))
    if not name or masked(mask, "id") or is_secret(name, secrets):
        return ""
    return fingerprint_of(resource_type, name)


def _secrets(document: Json) -> Iterator[str]:
    """Every value that a state marks, of data sources and outputs too: a copy can stand in an ARN that nobody marks."""
    yield from marked_values(document.get("outputs"))
    for resource in map(mapping, sequence(document.get("resources"))):
        for instance in map(mapping, sequence(resource.get("instances"))):
            for path in sequence(instance.get("sensitive_attributes")):
                yield from everything_in(_at(instance.get("attributes"), path))


def _at(value: object, path: object) -> object:
    """What a path of `sensitive_attributes` leads to."""
    for step in map(mapping, sequence(path)):
        name = step.get("value")
        key = mapping(name).get("value") if isinstance(name, Mapping) else name
        value = _inside(value, key)
    return value


def _inside(value: object, key: object) -> object:
    if isinstance(value, Mapping) and value.keys() == _OF_ANY_TYPE and key not in _OF_ANY_TYPE:
        value = value["value"]
    if isinstance(key, int):
        items = sequence(value)
        return items[key] if 0 <= key < len(items) else None
    return mapping(value).get(text(key))


def _instance(resource: Json, instance: Json, catalog: Catalog, secrets: frozenset[str]) -> StateInstance:
    resource_type, attributes = text(resource.get("type")), _attributes(instance)
    source, configuration = provider_key(text(resource.get("provider")))
    mask = _mask(instance)
    account, region = place_of(catalog, resource_type, attributes, mask)
    return StateInstance(
        address=instance_address(resource, instance.get("index_key")),
        type=resource_type,
        provider=source,
        provider_key=configuration,
        identity=identity_of(catalog, resource_type, attributes, mask, frozenset()),
        tainted=instance.get("status") == "tainted",
        deposed=text(instance.get("deposed")) or None,
        withheld=tuple(sorted(withheld_of(catalog, resource_type, attributes, mask, frozenset()))),
        fingerprint=_fingerprint(resource_type, attributes, mask, secrets),
        owned=owned_by(
            catalog, resource_type, attributes, mask_of_paths(instance.get("sensitive_attributes")), secrets
        ),
        account=account,
        region=region,
    )


def _attributes(instance: Json) -> Json:
    """What comes from a version 3 state stays flat until the resource is refreshed."""
    flat = mapping(instance.get("attributes_flat"))
    return mapping(instance.get("attributes")) or unflattened(flat)


def _shown_resources(module: Json) -> Iterator[Json]:
    """Every resource of a module and of those in it, each an instance with an address of its own."""
    for resource in objects(module, "resources", optional=True):
        if not (text(resource.get("address")) and text(resource.get("type"))):
            raise WrongShapeError("address or type of a resource")
        optional_text(resource, "deposed_key")
        yield resource
    for inner in objects(module, "child_modules", optional=True):
        yield from _shown_resources(inner)


def _shown_instance(resource: Json, catalog: Catalog, secrets: frozenset[str]) -> StateInstance:
    resource_type, mask = text(resource.get("type")), resource.get("sensitive_values")
    values = resource.get("values")
    account, region = place_of(catalog, resource_type, values, mask)
    return StateInstance(
        address=text(resource.get("address")),
        type=resource_type,
        provider=text(resource.get("provider_name")),
        identity=identity_of(catalog, resource_type, values, mask, frozenset()),
        tainted=resource.get("tainted") is True,
        deposed=text(resource.get("deposed_key")) or None,
        withheld=tuple(sorted(withheld_of(catalog, resource_type, values, mask, frozenset()))),
        fingerprint=_fingerprint(resource_type, values, mask, secrets),
        owned=owned_by(catalog, resource_type, values, mask, secrets),
        account=account,
        region=region,
    )


def _mask(instance: Json) -> object:
    """The paths of `sensitive_attributes`, lists of steps, as a mask; only the first step of each matters here.

    Hiding the whole top-level attribute is coarser than the path and can never show too much. A path without a step
    marks everything.
    """
    mask: dict[str, object] = {}
    for path in sequence(instance.get("sensitive_attributes")):
        steps = sequence(path)
        if not steps:
            return True
        if name := scalar(mapping(steps[0]).get("value")) or scalar(steps[0]):
            mask[name] = True
    return mask


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
    if match := _PROVIDER.match(provider):
        module, source, alias = match.groups()
    elif match := _PROVIDER_BY_NAME.match(provider):
        module, source, alias = match[1], _BY_NAME_ALONE + match[2], match[3]
    else:
        return provider, ""
    key = source.rpartition("/")[2] + (f".{alias}" if alias else "")
    return source, f"{module}:{key}" if module else key
