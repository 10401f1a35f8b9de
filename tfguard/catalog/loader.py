"""Reads the catalogue files, and refuses whatever is not exactly as the head of `aws.yaml` describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.cross_checks import check_entry, check_names, check_tags
from tfguard.catalog.entries import resource_type, tag_rules
from tfguard.catalog.types import ResourceType, TagRule
from tfguard.catalog.yaml_node import ADVICE, Node, parsed
from tfguard.errors import ConfigError

_FOLDER = Path(__file__).parent
_STATE_ONLY = "state_only.yaml"
V = TypeVar("V")


@cache
def load_catalog() -> Catalog:
    """The catalogue that comes with tfguard. The files of a cloud are read once, when something of it is first asked
    for: they are large, and many commands need none. What asks then raises `ConfigError` when one is damaged."""
    state_only = (_FOLDER / _STATE_ONLY).read_text(encoding="utf-8")
    files = {path.name for path in _FOLDER.glob("*.yaml")} - {_STATE_ONLY}
    clouds = {cloud: cache(partial(_read_cloud, cloud)) for cloud in sorted(map(_cloud_of, files))}
    return Catalog(
        _OfTypes(clouds, lambda part: part.types),
        _OfClouds(clouds, lambda part: part.endpoint_aliases),
        read_state_only(_STATE_ONLY, state_only),
        _OfTypes(clouds, lambda part: part.also_called),
        _OfClouds(clouds, lambda part: part.action_prefix),
    )


def _read_cloud(cloud: str) -> Catalog:
    texts = {path.name: path.read_text(encoding="utf-8") for path in _FOLDER.glob(f"{cloud}*.yaml")}
    return read_catalog({name: text for name, text in texts.items() if _cloud_of(name) == cloud}, "providers: []")


def _cloud_of(file: str) -> str:
    return file.removesuffix(".yaml").partition("_")[0]


class _OfClouds(Mapping[str, V]):
    """What the parts of all clouds tell."""

    def __init__(self, clouds: Mapping[str, Callable[[], Catalog]], of: Callable[[Catalog], Mapping[str, V]]) -> None:
        self._clouds = clouds
        self._of = of

    def _parts(self, name: str) -> Iterator[Mapping[str, V]]:  # noqa: ARG002 (what overrides it wants to know)
        """The parts that may have a name."""
        return (self._of(read()) for read in self._clouds.values())

    def __getitem__(self, name: str) -> V:
        for part in self._parts(name):
            if name in part:
                return part[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._of(read()) for read in self._clouds.values())

    def __len__(self) -> int:
        return sum(len(self._of(read())) for read in self._clouds.values())


class _OfTypes(_OfClouds[V]):
    """What they tell of types, whose names begin with their cloud's: to look one up opens no other cloud."""

    def _parts(self, name: str) -> Iterator[Mapping[str, V]]:
        read = self._clouds.get(name.partition("_")[0])
        return iter(() if read is None else (self._of(read()),))


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
