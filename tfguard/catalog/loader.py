"""Reads the catalogue files and refuses whatever is not exactly as their heads describe it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from tfguard.catalog.types import (
    JOINT,
    PLACEHOLDER,
    AlsoCall,
    DeleteCall,
    DetailCall,
    EachCall,
    IgnoreRule,
    ListCall,
    MadeByRule,
    PageToken,
    ParentRule,
    PerParent,
    ResourceType,
)
from tfguard.errors import ConfigError

T = TypeVar("T")

_FOLDER = Path(__file__).parent
_STATE_ONLY = "state_only.yaml"
_ADVICE = "correct the entry; the head of aws.yaml describes the format"
_SCOPES = ("regional", "global")
_FOLDS = ("case", "dot", "case-dot")
_OWNED_PATH = re.compile(r"\w+(\[\])?(\.\w+(\[\])?)*")
_EVERYWHERE = frozenset({"partition", "account", "region"})
_IN_ARGUMENTS = _EVERYWHERE | {"id", "import_id", "name", "arn"}
_OF_THE_PARENT = "parent_"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every resource type that tfguard knows, and the providers whose resources exist in the state alone."""

    types: Mapping[str, ResourceType]
    endpoint_aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state_only_patterns: tuple[str, ...] = ()
    also_called: Mapping[str, str] = field(default_factory=dict)
    action_prefix: Mapping[str, str] = field(default_factory=dict)

    def get(self, resource_type: str) -> ResourceType | None:
        """The entry of a Terraform resource type, or None when there is none."""
        return self.types.get(resource_type)

    def canonical(self, resource_type: str) -> str:
        """The type under which the objects of a Terraform type are listed: `aws_vpc` for `aws_default_vpc`."""
        return self.also_called.get(resource_type, resource_type)

    def other_names(self, resource_type: str) -> tuple[str, ...]:
        """The Terraform types that manage the objects of a type as well."""
        return tuple(other for other, canonical in self.also_called.items() if canonical == resource_type)

    def matching(self, pattern: str) -> tuple[ResourceType, ...]:
        """The entries whose type, or another name of it, is as the pattern says (`aws_iam_*`)."""
        named = (entry for entry in self if fnmatchcase(entry.type, pattern))
        otherwise = (
            self.get(canonical) for other, canonical in self.also_called.items() if fnmatchcase(other, pattern)
        )
        found = {entry.type: entry for entry in (*named, *otherwise) if entry is not None}
        return tuple(found.values())

    def __iter__(self) -> Iterator[ResourceType]:
        """Every entry, in the order of the files."""
        return iter(self.types.values())

    def __len__(self) -> int:
        """How many types there are."""
        return len(self.types)

    def state_only(self, provider_source: str) -> bool:
        """Whether the resources of a provider (`registry.terraform.io/hashicorp/random`) exist in the state alone."""
        return any(fnmatchcase(provider_source, pattern) for pattern in self.state_only_patterns)

    def endpoint_names(self, service: str) -> tuple[str, ...]:
        """What a provider block's `endpoints` may call a service of the SDK."""
        return (service, *self.endpoint_aliases.get(service, ()))


@cache
def load_catalog() -> Catalog:
    """The catalogue that comes with tfguard, read once. Raises `ConfigError` when a file of it is damaged."""
    types: dict[str, ResourceType] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    also_called: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    shared: dict[str, dict[str, str]] = {}
    # A cloud's own file (`aws.yaml`) sorts before those that go on with it (`aws_network.yaml`).
    for path in sorted(_FOLDER.glob("*.yaml"), key=lambda path: path.stem):
        if path.name == _STATE_ONLY:
            continue
        cloud = path.stem.partition("_")[0]
        part = read_types(path.name, path.read_text(encoding="utf-8"), shared.setdefault(cloud, {}))
        if twice := part.types.keys() & types.keys():
            raise ConfigError(f"{path.name}: {min(twice)}: is in another file too", _ADVICE)
        types.update(part.types)
        aliases.update(part.endpoint_aliases)
        also_called.update(part.also_called)
        prefixes.update(part.action_prefix)
    patterns = read_state_only(_STATE_ONLY, (_FOLDER / _STATE_ONLY).read_text(encoding="utf-8"))
    return Catalog(types, aliases, patterns, also_called, prefixes)


def read_types(file: str, text: str, shared_ignore_tags: dict[str, str] | None = None) -> Catalog:
    """The types of one catalogue file. Raises `ConfigError` with file, type and key.

    `shared_ignore_tags` holds those of the cloud's files that were read before, which count here too; the file's own
    are added to it.
    """
    top = _Node(file, "(head)", "", _parse(file, text))
    top.allow("cloud", "endpoint_names", "action_prefix", "ignore_tags", "also_called", "types")
    cloud, ignore_tags = top.text("cloud"), {} if shared_ignore_tags is None else shared_ignore_tags
    ignore_tags.update(top.texts_by_name("ignore_tags"))
    aliases = {name: top.at("endpoint_names").texts(name) for name in top.at("endpoint_names").names()}
    entries = top.at("types")
    return Catalog(
        {name: _resource_type(entries.entry(name), name, cloud, ignore_tags) for name in entries.names()},
        aliases,
        also_called=top.texts_by_name("also_called"),
        action_prefix=top.texts_by_name("action_prefix"),
    )


def read_state_only(file: str, text: str) -> tuple[str, ...]:
    """The patterns of the providers that own nothing outside a state."""
    top = _Node(file, "(head)", "", _parse(file, text))
    top.allow("providers")
    return top.texts("providers")


def _parse(file: str, text: str) -> object:
    import yaml  # here, and not above: most commands never open the catalogue

    class Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A loader that does not take the second of two equal keys in silence."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
            """The mapping, if no key is there twice."""
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
                seen.add(key.value)
            built: dict[object, object] = super().construct_mapping(node, deep)
            return built

    try:
        return yaml.load(text, Loader=Strict)
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: {' '.join(str(error).split())}", "correct the YAML") from error


@dataclass(frozen=True, slots=True)
class _Node:
    """One mapping of a file, which knows where it stands so that its errors can tell."""

    file: str
    type: str
    path: str
    value: object

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict) or not all(isinstance(key, str) for key in self.value):
            raise ConfigError(f"{self.file}: {self.type}: {self.path or 'the entry'}: must be a mapping", _ADVICE)

    def names(self) -> list[str]:
        """The keys, which must be texts."""
        return list(self._mapping())

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._mapping()

    def allow(self, *keys: str) -> None:
        """Refuse every key that is not among `keys`."""
        for key in self._mapping():
            if key not in keys:
                self.fail(key, f"unknown key; known are {', '.join(keys)}")

    def fail(self, key: str, what: str) -> NoReturn:
        """Raise a `ConfigError` about one key."""
        where = f"{self.path}.{key}".strip(".")
        raise ConfigError(f"{self.file}: {self.type}: {where}: {what}", _ADVICE)

    def at(self, key: str) -> _Node:
        """The mapping below `key`, empty when it is left out."""
        return _Node(self.file, self.type, f"{self.path}.{key}".strip("."), self._mapping().get(key, {}))

    def entry(self, name: str) -> _Node:
        """The mapping below `name`, as the entry of the type of that name."""
        return _Node(self.file, name, "", self._need(name))

    def each(self, key: str) -> list[_Node]:
        """The mappings of the list below `key`, none when it is left out."""
        items = self._mapping().get(key, [])
        if not isinstance(items, list):
            self.fail(key, "must be a list")
        return [_Node(self.file, self.type, f"{self.path}.{key}[{n}]".strip("."), item) for n, item in enumerate(items)]

    def text(self, key: str) -> str:
        """A text that must be there and not be empty."""
        value = self._need(key)
        if not isinstance(value, str) or not value:
            self.fail(key, "must be a text")
        return value

    def optional_text(self, key: str) -> str | None:
        """A text, or None when it is left out."""
        return self.text(key) if self.has(key) else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when it is left out."""
        value = self._mapping().get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "must be a list of texts")
        return tuple(value)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """A mapping from text to text, empty when it is left out."""
        below = self.at(key)
        return {name: below.text(name) for name in below.names()}

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; the default when it is left out."""
        value = self._mapping().get(key, default)
        if not isinstance(value, bool):
            self.fail(key, "must be true or false")
        return value

    def positive(self, key: str) -> int | None:
        """A whole number above zero, or None when it is left out."""
        value = self._mapping().get(key)
        if value is None and not self.has(key):
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.fail(key, "must be a whole number above zero")
        return value

    def arguments(self, key: str) -> dict[str, object]:
        """Arguments for a call of the SDK: any YAML, since the contract test checks them against the SDK's model."""
        return dict(self.at(key)._mapping())

    def _need(self, key: str) -> object:
        if not self.has(key):
            self.fail(key, "is missing")
        return self._mapping()[key]

    def _mapping(self) -> dict[str, object]:
        return cast("dict[str, object]", self.value)


def _resource_type(node: _Node, name: str, cloud: str, ignore_tags: Mapping[str, str]) -> ResourceType:
    node.allow(
        "service", "scope", "create", "stateful", "hourly", "cfn", "list", "keys", "unique", "traits", "prefixes",
        "handles", "id", "import_id",
        "name", "arn", "created", "tags", "details", "only", "gone", "soft_deleted", "owner", "folded", "ignore",
        "parent", "made_by", "owns", "permissions", "delete",
    )  # fmt: skip
    keys, traits = node.texts_by_name("keys"), node.texts_by_name("traits")
    if not keys:
        node.fail("keys", "is missing or empty: without a key no object can be told from another")
    entry = ResourceType(
        type=name,
        cloud=cloud,
        service=node.text("service"),
        scope=_one_of(node, "scope", _SCOPES),
        keys=keys,
        id=node.text("id"),
        import_id=node.text("import_id"),
        list=_optional(node, "list", _list_call),
        unique=_subset(node, "unique", node.texts("unique"), keys),
        traits=traits,
        prefixes=node.texts_by_name("prefixes"),
        handles=node.texts_by_name("handles"),
        name=node.optional_text("name") or keys.get("name"),
        arn=node.optional_text("arn") or keys.get("arn"),
        created=node.optional_text("created"),
        tags=node.optional_text("tags"),
        details=tuple(_detail_call(item) for item in node.each("details")),
        only=node.optional_text("only"),
        gone=node.optional_text("gone"),
        soft_deleted=node.optional_text("soft_deleted"),
        owner=node.optional_text("owner"),
        folded={key: _one_of(node.at("folded"), key, _FOLDS) for key in node.at("folded").names()},
        ignore=tuple(_ignore_rule(item) for item in node.each("ignore")),
        ignore_tags=ignore_tags,
        parent=_optional(node, "parent", _parent_rule),
        made_by=tuple(_made_by_rule(item) for item in node.each("made_by")),
        owns={owned: _owned_keys(node.at("owns").at(owned)) for owned in node.at("owns").names()},
        permissions=node.texts("permissions"),
        create=node.optional_text("create"),
        delete=_optional(node, "delete", _delete_call),
        stateful=node.flag("stateful"),
        hourly=node.flag("hourly"),
        cfn=node.optional_text("cfn"),
    )
    _check_references(node, entry)
    return entry


def _optional(node: _Node, key: str, build: Callable[[_Node], T]) -> T | None:
    return build(node.at(key)) if node.has(key) else None


def _list_call(node: _Node) -> ListCall:
    node.allow("operation", "result", "arguments", "page_size", "each", "per", "token", "also")
    return ListCall(
        operation=node.text("operation"),
        result=node.text("result"),
        arguments=node.arguments("arguments"),
        page_size=node.positive("page_size"),
        each=_optional(node, "each", _each_call),
        per=_optional(node, "per", _per_parent),
        token=_optional(node, "token", _page_token),
        also=tuple(_also_call(item) for item in node.each("also")),
    )


def _also_call(node: _Node) -> AlsoCall:
    node.allow("region", "arguments")
    return AlsoCall(node.text("region"), node.arguments("arguments"))


def _per_parent(node: _Node) -> PerParent:
    node.allow("type", "arguments", "only_own")
    return PerParent(node.text("type"), node.arguments("arguments"), node.flag("only_own"))


def _page_token(node: _Node) -> PageToken:
    node.allow("argument", "answer")
    return PageToken(node.text("argument"), node.text("answer"))


def _each_call(node: _Node) -> EachCall:
    node.allow("operation", "arguments", "result")
    return EachCall(node.text("operation"), node.arguments("arguments"), node.text("result"))


def _detail_call(node: _Node) -> DetailCall:
    node.allow("operation", "arguments", "created", "tags")
    call = DetailCall(
        node.text("operation"), node.arguments("arguments"), node.optional_text("created"), node.optional_text("tags")
    )
    if call.created is None and call.tags is None:
        node.fail("operation", "gives neither `created` nor `tags`")
    return call


def _delete_call(node: _Node) -> DeleteCall:
    node.allow("operation", "arguments")
    return DeleteCall(node.text("operation"), node.arguments("arguments"))


def _ignore_rule(node: _Node) -> IgnoreRule:
    node.allow("when", "reason")
    return IgnoreRule(node.text("when"), node.text("reason"))


def _parent_rule(node: _Node) -> ParentRule:
    node.allow("type", "attribute", "parent_attribute")
    return ParentRule(node.text("type"), node.text("attribute"), node.text("parent_attribute"))


def _made_by_rule(node: _Node) -> MadeByRule:
    node.allow("type", "attribute", "value", "parent_attribute", "when", "reason", "certain", "when_ignored")
    if node.has("attribute") == node.has("value"):
        node.fail("attribute", "either `attribute` or `value` must be there, and not both")
    return MadeByRule(
        type=node.text("type"),
        value=f"{{{node.text('attribute')}}}" if node.has("attribute") else node.text("value"),
        parent_attribute=node.text("parent_attribute"),
        reason=node.text("reason"),
        when=node.optional_text("when"),
        certain=node.flag("certain", default=True),
        when_ignored=node.flag("when_ignored"),
    )


def _owned_keys(node: _Node) -> dict[str, tuple[str, ...]]:
    keys = {key: node.texts(key) for key in node.names()}
    for key, paths in keys.items():
        for path in paths:
            # A template joins what its paths give: `{name}:{block[].attribute}`.
            for inner in PLACEHOLDER.findall(path) or [path]:
                if not _OWNED_PATH.fullmatch(inner):
                    node.fail(key, f"{inner!r} is no plain path such as `block[].attribute`")
    return keys


def _one_of(node: _Node, key: str, allowed: tuple[str, ...]) -> str:
    value = node.text(key)
    if value not in allowed:
        node.fail(key, f"must be one of {', '.join(allowed)}")
    return value


def _subset(node: _Node, key: str, names: tuple[str, ...], known: Mapping[str, str]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            node.fail(key, f"{name!r} is not one of the keys")
    return names


def _check_references(node: _Node, entry: ResourceType) -> None:
    """Every name that an entry uses in a template, a prefix or a parent rule must be one that it declares."""
    own = frozenset([*entry.keys, *entry.traits])
    for prefix, target in entry.prefixes.items():
        if target not in own:
            node.fail(f"prefixes.{prefix}", f"{target!r} is neither a key nor a trait")
    if entry.parent and entry.parent.attribute not in own:
        node.fail("parent.attribute", f"{entry.parent.attribute!r} is neither a key nor a trait")
    _subset(node, "folded", tuple(entry.folded), entry.keys)
    for name, value in entry.keys.items():
        parts = {part.rstrip("?") for part in name.split(JOINT)}
        if JOINT in name and not set(PLACEHOLDER.findall(value)) == parts <= own:
            node.fail(f"keys.{name}", "must be a template of exactly these attributes, which are keys or traits too")
    values = {"id": entry.id, "import_id": entry.import_id, "name": entry.name or "", "arn": entry.arn or ""}
    values.update({f"made_by[{number}]": rule.value for number, rule in enumerate(entry.made_by)})
    values["owner"] = entry.owner or ""
    of_a_parent = bool(entry.list and entry.list.per)
    if twice := own & entry.handles.keys():
        node.fail(f"handles.{min(twice)}", "is a key or a trait already")
    named = own | entry.handles.keys()
    for key, value in [*entry.keys.items(), *entry.traits.items(), *entry.handles.items(), *values.items()]:
        _check_template(node, key, value, named | _EVERYWHERE, of_a_parent)
    for key, arguments in _all_arguments(entry):
        _check_template(node, key, arguments, named | _IN_ARGUMENTS)
    if entry.list:
        _check_template(node, "list.arguments", entry.list.arguments, _EVERYWHERE)


def _all_arguments(entry: ResourceType) -> Iterator[tuple[str, object]]:
    if entry.list and entry.list.each:
        yield "list.each.arguments", entry.list.each.arguments
    for number, detail in enumerate(entry.details):
        yield f"details[{number}].arguments", detail.arguments
    if entry.delete:
        yield "delete.arguments", entry.delete.arguments


def _check_template(node: _Node, key: str, value: object, known: frozenset[str], of_a_parent: bool = False) -> None:
    match value:
        case str():
            for name in PLACEHOLDER.findall(value):
                # Which keys the parent has stands in its own entry, maybe of another file: the contract test looks.
                if name not in known and not (of_a_parent and name.startswith(_OF_THE_PARENT)):
                    node.fail(key, f"{{{name}}} is not a key or trait of this type")
        case dict():
            for inner in value.values():
                _check_template(node, key, inner, known)
        case list():
            for inner in value:
                _check_template(node, key, inner, known)
        case _:
            pass
