"""The state of Terraform 0.11 and before (version 3), read as what a later engine would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfguard.engine.documents import (
    Json,
    WrongShapeError,
    objects,
    optional_object,
    optional_text,
    sequence,
    text,
)

_ROOT = "root"
_LONGEST_NUMBER = 18
# A namespace that the engine itself takes where only a provider's name is known.
_NAMELESS = "registry.terraform.io/-/"


def is_backend_file(document: Json) -> bool:
    """Whether a version 3 document is what `init` has noted of a backend: newer engines write that in the same form."""
    return isinstance(document.get("backend"), Mapping) and not document.get("modules")


def as_version_4(document: Json) -> Json:
    """The same state as a version 4 document, its attributes left flat. Raises `WrongShapeError`."""
    modules = list(objects(document, "modules"))
    return {
        "version": 4,
        "serial": document.get("serial", 0),
        "lineage": document.get("lineage"),
        "outputs": {name: value for module in modules if not _path(module) for name, value in _outputs(module).items()},
        "resources": [resource for module in modules for resource in _resources(module)],
    }


def outputs_of_modules(document: Json) -> Iterator[Json]:
    """The outputs of every module, the root included; `sensitive` is all that marks a value in such a state."""
    return (_outputs(module) for module in objects(document, "modules"))


def _outputs(module: Json) -> Json:
    return optional_object(module, "outputs")


def _path(module: Json) -> list[str]:
    """The module calls that lead to a module; none for the root."""
    path = [text(name) for name in sequence(module.get("path"))]
    if not path or path[0] != _ROOT or not all(path):
        raise WrongShapeError("path of a module")
    return path[1:]


def _resources(module: Json) -> Iterator[Json]:
    """The resources of a module, an entry for each instance number, as version 4 has them one by one."""
    address = ".".join(f"module.{name}" for name in _path(module))
    resources = module.get("resources")  # always there, if with nothing in it: a module without has lost it
    if not isinstance(resources, Mapping):
        raise WrongShapeError("resources")
    for key, held in resources.items():
        if not isinstance(held, Mapping):
            raise WrongShapeError("resources")
        mode, kind, name, index = _resource_key(key)
        instances = list(_instances(held))
        if not instances:  # the engine kept no resource without an object
            raise WrongShapeError("primary")
        resource: dict[str, object] = {
            "mode": mode,
            "type": kind,
            "name": name,
            "provider": _provider(optional_text(held, "provider"), kind, address),
            "instances": [{"index_key": index, **instance} for instance in instances],
        }
        yield {"module": address, **resource} if address else resource


def _resource_key(key: str) -> tuple[str, str, str, int | None]:
    """`data.aws_ami.x.0` -> mode, type, name and number."""
    parts = key.split(".")
    mode = "managed"
    if parts[0] == "data":
        mode, parts = "data", parts[1:]
    index = None
    if len(parts) == 3 and parts[2].isdecimal() and len(parts[2]) <= _LONGEST_NUMBER:
        index, parts = int(parts[2]), parts[:2]
    if len(parts) != 2 or not all(parts):
        raise WrongShapeError("name of a resource")
    kind, name = parts
    return mode, kind, name, index


def _instances(resource: Json) -> Iterator[Json]:
    if primary := optional_object(resource, "primary"):
        yield _instance(primary)
    # Such a state numbers them; the engine makes the keys of it that later states have.
    for number, deposed in enumerate(objects(resource, "deposed", optional=True), start=1):
        yield {**_instance(deposed), "deposed": f"{number:08x}"}


def _instance(instance: Json) -> Json:
    flat = {**optional_object(instance, "attributes")}
    if named := optional_text(instance, "id"):
        flat["id"] = named
    return {"attributes_flat": flat, "status": "tainted" if instance.get("tainted") is True else None}


def _provider(written: str, kind: str, module: str) -> str:
    """The provider as version 4 writes it, of `module.a.provider.aws.eu` or of what came before: `aws.eu`, or nothing.

    That older form counts from the resource's own module.
    """
    before, dot, after = f".{written}".rpartition(".provider.")
    if dot:
        module, named = before.strip("."), after
    else:
        named = written or kind.partition("_")[0]
    name, _, alias = named.partition(".")
    full = f'provider["{_NAMELESS}{name}"]' + (f".{alias}" if alias else "")
    return f"{module}.{full}" if module else full
