"""Reads the catalogue files, and refuses whatever is not exactly as the head of `aws.yaml` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.cross_checks import check_entry, check_names, check_tags
from tfguard.catalog.entries import resource_type, tag_rules
from tfguard.catalog.types import ResourceType, TagRule
from tfguard.catalog.yaml_node import ADVICE, Node, parsed
from tfguard.errors import ConfigError

_FOLDER = Path(__file__).parent
_STATE_ONLY = "state_only.yaml"


@cache
def load_catalog() -> Catalog:
    """The catalogue that comes with tfguard, read once. Raises `ConfigError` when a file of it is damaged."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in _FOLDER.glob("*.yaml")}
    return read_catalog({name: text for name, text in texts.items() if name != _STATE_ONLY}, texts[_STATE_ONLY])


def read_catalog(texts: Mapping[str, str], state_only: str) -> Catalog:
    """The catalogue in these files, name -> text. Raises `ConfigError` with file, type and key, also where an entry
    names another one, of whatever file, that is not there."""
    types: dict[str, ResourceType] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    also_called: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    shared: dict[str, dict[str, TagRule]] = {}
    parts: dict[str, Catalog] = {}
    # A cloud's own file (`aws.yaml`) sorts before those that go on with it (`aws_network.yaml`).
    for name in sorted(texts, key=lambda name: name.removesuffix(".yaml")):
        part = parts[name] = read_types(name, texts[name], shared.setdefault(name[:-5].partition("_")[0], {}))
        if twice := part.types.keys() & types.keys():
            raise ConfigError(f"{name}: {min(twice)}: is in another file too", ADVICE)
        types.update(part.types)
        aliases.update(part.endpoint_aliases)
        also_called.update(part.also_called)
        prefixes.update(part.action_prefix)
    for name, part in parts.items():
        for entry in part:
            check_entry(name, entry, types)
        check_names(name, part.also_called, types)
    for cloud, rules in shared.items():
        check_tags(f"{cloud}.yaml", rules, types)
    return Catalog(types, aliases, read_state_only(_STATE_ONLY, state_only), also_called, prefixes)


def read_types(file: str, text: str, shared_ignore_tags: dict[str, TagRule] | None = None) -> Catalog:
    """The types of one catalogue file. Raises `ConfigError` with file, type and key.

    `shared_ignore_tags` holds those of the cloud's files that were read before, which count here too; the file's own
    are added to it. What the entries say of others is not looked up.
    """
    top = Node(file, "(head)", "", parsed(file, text))
    top.allow("cloud", "endpoint_names", "action_prefix", "ignore_tags", "also_called", "types")
    cloud, ignore_tags = top.text("cloud"), {} if shared_ignore_tags is None else shared_ignore_tags
    ignore_tags.update(tag_rules(top.at("ignore_tags")))
    aliases = {name: top.at("endpoint_names").texts(name) for name in top.at("endpoint_names").names()}
    entries = top.at("types")
    return Catalog(
        {name: resource_type(entries.entry(name), name, cloud, ignore_tags) for name in entries.names()},
        aliases,
        also_called=top.texts_by_name("also_called"),
        action_prefix=top.texts_by_name("action_prefix"),
    )


def read_state_only(file: str, text: str) -> tuple[str, ...]:
    """The patterns of the providers that own nothing outside a state."""
    top = Node(file, "(head)", "", parsed(file, text))
    top.allow("providers")
    return top.texts("providers")
