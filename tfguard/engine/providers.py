"""Which provider configuration each resource uses, and what its settings are, as far as a plan tells.

A plan carries constants and, for a variable, only the fact that it is mentioned. A setting that the configuration says
to be one variable and nothing else is that variable; every other one is not resolved, and tfguard.yaml has to say it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tfguard.engine.configuration import configuration_files
from tfguard.engine.documents import Json, everything_in, mapping, parse_json, scalar, sequence, text
from tfguard.model.engine import EngineInfo
from tfguard.model.plan import ProviderConfig

_ASSIGNMENT = re.compile(r"^[ \t]*(?:[\w-]+[ \t]*\{[ \t]*)?([\w-]+)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
_ALONE = re.compile(r"^var\.[A-Za-z_][\w-]*[ \t]*(?:\}[ \t]*)?(?:#.*|//.*)?$")
_MENTIONED = re.compile(r"\bvar\.([A-Za-z_][\w-]*)")
_VARIABLE = re.compile(r"^var\.([A-Za-z_][\w-]*)$")
_ALONE_IN_JSON = re.compile(r"^\$\{\s*var\.[A-Za-z_][\w-]*\s*\}$")


Literal = Collection[tuple[str, str]]
"""(setting, variable) pairs of which the configuration says `setting = var.variable` and nothing else."""


def literal_settings(directory: Path, engine: EngineInfo | None = None) -> Literal:
    """The pairs that are written so in the files of a root module, and never as a part of something larger.

    A plan only tells that `region` mentions `var.x`: `replace(var.x, ...)` looks the same in it. A wrong guess would
    look in the wrong place and find nothing there. `engine` tells which files are read (`configuration_files`).
    """
    plain: set[tuple[str, str]] = set()
    larger: set[tuple[str, str]] = set()
    for path in configuration_files(directory, engine):
        with suppress(OSError, ValueError, RecursionError):
            content = path.read_text(errors="replace")
            for name, value, alone in _in_json(parse_json(content)) if path.suffix == ".json" else _in_hcl(content):
                mentioned = {(name, variable) for variable in _MENTIONED.findall(value)}
                (plain if alone else larger).update(mentioned)
    return plain - larger


def _in_hcl(content: str) -> Iterator[tuple[str, str, bool]]:
    """Each setting, its value, and whether that is a variable alone."""
    for name, value in _ASSIGNMENT.findall(content):
        yield name, value, _ALONE.match(value) is not None


def _in_json(value: object, name: str = "") -> Iterator[tuple[str, str, bool]]:
    """The same in JSON syntax, where an expression is a string with a template in it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _in_json(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _in_json(inner, name)
    elif isinstance(value, str):
        yield name, value, _ALONE_IN_JSON.match(value) is not None


def provider_configs(document: Json, literal: Literal) -> Mapping[str, ProviderConfig]:
    """The provider configurations of a plan by its own keys (`aws`, `aws.eu`, `module.net:aws`).

    `literal` says which mentions of a variable are the whole setting.
    """
    configuration = mapping(document.get("configuration"))
    variables = _variables(document)
    return {
        key: _config(key, mapping(block), {} if text(mapping(block).get("module_address")) else variables, literal)
        for key, block in mapping(configuration.get("provider_config")).items()
    }


def provider_keys(document: Json) -> Mapping[str, str]:
    """The provider configuration key of each resource in the configuration, by its address without instance keys."""
    return {address: text(resource.get("provider_config_key")) for address, resource in _resources(document)}


def configured_attributes(document: Json) -> Mapping[str, frozenset[str]]:
    """The attributes that the configuration gives each resource, by its address without instance keys."""
    return {address: frozenset(mapping(resource.get("expressions"))) for address, resource in _resources(document)}


def _resources(document: Json) -> Iterator[tuple[str, Json]]:
    return _of_module(mapping(mapping(document.get("configuration")).get("root_module")), "")


def sensitive_variables(document: Json) -> frozenset[str]:
    """The values of variables that are declared sensitive: a plan's `variables` carries no marker itself.

    Of a module's variables the constants are known; what else they are given shows in the resources, marked there.
    """
    root = mapping(mapping(document.get("configuration")).get("root_module"))
    values = mapping(document.get("variables"))
    found = {text for name in _sensitive(root) for text in everything_in(mapping(values.get(name)).get("value"))}
    return frozenset(found.union(_given_to_modules(root)))


def _sensitive(module: Json) -> list[str]:
    declared = mapping(module.get("variables"))
    return [name for name, block in declared.items() if mapping(block).get("sensitive") is True]


def _given_to_modules(module: Json) -> Iterator[str]:
    for call in map(mapping, mapping(module.get("module_calls")).values()):
        inner, given = mapping(call.get("module")), mapping(call.get("expressions"))
        for name in _sensitive(inner):
            yield from everything_in(mapping(given.get(name)).get("constant_value"))
        yield from _given_to_modules(inner)


def unkept_variables(document: Json) -> frozenset[str]:
    """The root variables that are declared and whose values a plan does not carry."""
    declared = mapping(mapping(mapping(document.get("configuration")).get("root_module")).get("variables"))
    return frozenset(declared.keys() - mapping(document.get("variables")).keys())


def _of_module(module: Json, prefix: str) -> Iterator[tuple[str, Json]]:
    for resource in map(mapping, sequence(module.get("resources"))):
        yield prefix + text(resource.get("address")), resource
    for name, call in mapping(module.get("module_calls")).items():
        yield from _of_module(mapping(mapping(call).get("module")), f"{prefix}module.{name}.")


def _variables(document: Json) -> Mapping[str, str]:
    values = {name: scalar(mapping(block).get("value")) for name, block in mapping(document.get("variables")).items()}
    return {name: value for name, value in values.items() if value is not None}


def _config(key: str, block: Json, variables: Mapping[str, str], literal: Literal) -> ProviderConfig:
    settings: dict[str, str] = {}
    unresolved: set[str] = set()
    for name, expression in _flattened(mapping(block.get("expressions")), ""):
        value = _value(name, expression, variables, literal)
        if value is not None:
            settings[name] = value
        elif "references" in expression:
            unresolved.add(name)
    return ProviderConfig(key, text(block.get("full_name")), settings, frozenset(unresolved))


def _flattened(expressions: Json, prefix: str) -> Iterator[tuple[str, Json]]:
    """Nested blocks as dotted names; several blocks of one name have no value that tfguard can use."""
    for name, value in expressions.items():
        blocks = list(sequence(value)) or [value]
        inner = mapping(blocks[-1])
        constant = inner.get("constant_value")
        if isinstance(constant, Mapping):
            yield from ((f"{prefix}{name}.{key}", {"constant_value": item}) for key, item in constant.items())
        elif isinstance(constant, list):
            yield from ((f"{prefix}{name}.{i}", {"constant_value": item}) for i, item in enumerate(constant))
        elif "constant_value" in inner or "references" in inner:
            yield prefix + name, inner
        elif len(blocks) > 1:  # a chain of roles, say: no single value stands for it
            yield from ((f"{prefix}{name}.{key}", {"references": []}) for key in inner)
        else:
            yield from _flattened(inner, f"{prefix}{name}.")


def _value(name: str, expression: Json, variables: Mapping[str, str], literal: Literal) -> str | None:
    if "constant_value" in expression:
        return scalar(expression["constant_value"])
    references = {text(reference) for reference in sequence(expression.get("references"))}
    match = _VARIABLE.match(next(iter(references))) if len(references) == 1 else None
    if match is None or (name.rpartition(".")[2], match[1]) not in literal:
        return None
    return variables.get(match[1])
