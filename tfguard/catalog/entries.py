"""The entries of a catalogue file: each is built, and refused unless all that it names by itself is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tfguard.catalog.types import (
    JOINT,
    PLACEHOLDER,
    AlsoCall,
    Asset,
    DetailCall,
    EachCall,
    GetCall,
    IgnoreRule,
    ListCall,
    MadeByRule,
    ObjectCall,
    PageToken,
    ParentRule,
    PerParent,
    ResourceType,
    TagRule,
)
from tfguard.catalog.yaml_node import Node
from tfguard.model.preflight import Quota

T = TypeVar("T")

OF_THE_PARENT = "parent_"
"""Begins the names of a parent's values, in the templates of a type that is listed for each parent."""

SEARCH = "search_all_resources"
"""The operation that lists what Google's Cloud Asset Inventory has of a type."""

EVERYWHERE = frozenset({"partition", "account", "region"})
IN_ARGUMENTS = EVERYWHERE | {"id", "import_id", "name", "arn"}

_SCOPES = ("regional", "global")
_FOLDS = ("case", "dot", "case-dot")
_QUOTA_CODE = re.compile(r"L-[0-9A-F]{8}")
_PLACE_OF_SERVICES = re.compile(r"https://([a-z0-9-]+\.)+googleapis\.com/\S+")
_UNVERIFIED = ("asset", "created")
_OWNED_PATH = re.compile(r"\w+(\[\])?(\.\w+(\[\])?)*")


def resource_type(node: Node, name: str, cloud: str, ignore_tags: Mapping[str, TagRule]) -> ResourceType:
    """The type that an entry describes. Raises `ConfigError` with the key that is wrong."""
    node.allow(
        "service", "scope", "create", "stateful", "hourly", "container", "leaves", "cfn", "list", "keys", "unique",
        "arn_key",
        "placed_by", "traits", "prefixes", "handles", "planned", "id", "import_id", "import_as",
        "name", "arn", "created", "tags", "details", "only", "gone", "soft_deleted", "owner", "folded", "ignore",
        "gone_after", "restore", "parent", "made_by", "owns", "permissions", "delete", "importable",
        "by_call", "detaches", "quotas", "fills", "asset", "get", "unverified", "undeletable",
    )  # fmt: skip
    keys, traits = node.texts_by_name("keys"), node.texts_by_name("traits")
    if not keys:
        node.fail("keys", "is missing or empty: without a key no object can be told from another")
    asset = _optional(node, "asset", _asset)
    if asset and node.has("list"):
        node.fail("asset", "stands in the place of `list`: only one of the two can be there")
    entry = ResourceType(
        type=name,
        cloud=cloud,
        service=node.text("service"),
        scope=_one_of(node, "scope", _SCOPES),
        keys=keys,
        id=node.text("id"),
        import_id=node.text("import_id"),
        import_as=node.optional_text("import_as"),
        list=_search(asset) if asset else _optional(node, "list", _list_call),
        asset=asset,
        get=_optional(node, "get", _get_call),
        unverified=node.texts("unverified"),
        unique=_subset(node, "unique", node.texts("unique"), keys),
        arn_key=_arn_key(node, keys),
        placed_by=node.texts("placed_by"),
        traits=traits,
        prefixes=node.texts_by_name("prefixes"),
        handles=node.texts_by_name("handles"),
        planned=node.texts_by_name("planned"),
        name=node.optional_text("name") or keys.get("name"),
        arn=node.optional_text("arn") or keys.get("arn"),
        created=node.optional_text("created"),
        tags=node.optional_text("tags"),
        details=tuple(_detail_call(item) for item in node.each("details")),
        only=node.optional_text("only"),
        gone=node.optional_text("gone"),
        soft_deleted=node.optional_text("soft_deleted"),
        gone_after=node.optional_text("gone_after"),
        restore=tuple(_object_call(item) for item in node.each("restore")),
        fills=node.texts("fills"),
        owner=node.optional_text("owner"),
        folded={key: _one_of(node.at("folded"), key, _FOLDS) for key in node.at("folded").names()},
        ignore=tuple(_ignore_rule(item) for item in node.each("ignore")),
        ignore_tags=ignore_tags,
        parent=_optional(node, "parent", _parent_rule),
        made_by=tuple(_made_by_rule(item) for item in node.each("made_by")),
        owns={owned: _owned_keys(node.at("owns").at(owned)) for owned in node.at("owns").names()},
        permissions=node.texts("permissions"),
        create=node.optional_text("create"),
        delete=_optional(node, "delete", _object_call),
        importable=node.flag("importable", default=True),
        by_call=node.flag("by_call"),
        detaches=node.texts("detaches"),
        stateful=node.flag("stateful"),
        undeletable=node.optional_text("undeletable"),
        hourly=node.flag("hourly"),
        container=node.flag("container"),
        leaves=node.texts("leaves"),
        cfn=node.optional_text("cfn"),
        quotas=tuple(_quota(item) for item in node.each("quotas")),
    )
    _check_references(node, entry)
    return entry


def _optional(node: Node, key: str, build: Callable[[Node], T]) -> T | None:
    return build(node.at(key)) if node.has(key) else None


def _list_call(node: Node) -> ListCall:
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


def _asset(node: Node) -> Asset:
    node.allow("type", "name", "names", "others")
    if node.has("name") == node.has("names"):
        node.fail("name", "either `name` or `names` must be there, and not both")
    names = (node.text("name"),) if node.has("name") else node.texts("names")
    for key, forms in (("name", names), ("others", node.texts("others"))):
        for form in forms:
            if not form.startswith("//") or not all(part.isidentifier() for part in PLACEHOLDER.findall(form)):
                node.fail(key, f"{form!r} is no full name such as //thing.googleapis.com/things/{{name}}")
    return Asset(node.text("type"), names, node.texts("others"))


def _search(asset: Asset) -> ListCall:
    """How the objects are listed that the inventory of the whole cloud has."""
    return ListCall(SEARCH, "results[]", {"asset_types": [asset.type]})


def _get_call(node: Node) -> GetCall:
    node.allow("url", "created", "tags", "gone", "ignore", "project")
    if not _PLACE_OF_SERVICES.fullmatch(node.text("url")):
        node.fail("url", "is no https address of a service at googleapis.com")
    return GetCall(
        node.text("url"),
        node.optional_text("created"),
        node.optional_text("tags"),
        node.optional_text("gone"),
        tuple(_ignore_rule(item) for item in node.each("ignore")),
        node.optional_text("project"),
    )


def _also_call(node: Node) -> AlsoCall:
    node.allow("region", "arguments")
    return AlsoCall(node.text("region"), node.arguments("arguments"))


def _per_parent(node: Node) -> PerParent:
    node.allow("type", "arguments", "only_own")
    return PerParent(node.text("type"), node.arguments("arguments"), node.flag("only_own"))


def _page_token(node: Node) -> PageToken:
    node.allow("argument", "answer")
    return PageToken(node.text("argument"), node.text("answer"))


def _each_call(node: Node) -> EachCall:
    node.allow("operation", "arguments", "result")
    return EachCall(node.text("operation"), node.arguments("arguments"), node.text("result"))


def _detail_call(node: Node) -> DetailCall:
    node.allow("operation", "arguments", "created", "tags", "gone_after")
    call = DetailCall(
        node.text("operation"),
        node.arguments("arguments"),
        node.optional_text("created"),
        node.optional_text("tags"),
        node.optional_text("gone_after"),
    )
    if call.created is None and call.tags is None and call.gone_after is None:
        node.fail("operation", "gives none of `created`, `tags` and `gone_after`")
    return call


def _object_call(node: Node) -> ObjectCall:
    node.allow("operation", "arguments")
    return ObjectCall(node.text("operation"), node.arguments("arguments"))


def _quota(node: Node) -> Quota:
    node.allow("service", "code", "only")
    if not _QUOTA_CODE.fullmatch(node.text("code")):
        node.fail("code", "is no quota code such as L-F678F1CE")
    return Quota(node.text("service"), node.text("code"), node.texts_by_name("only"))


def _ignore_rule(node: Node) -> IgnoreRule:
    node.allow("when", "reason")
    return IgnoreRule(node.text("when"), node.text("reason"))


def _parent_rule(node: Node) -> ParentRule:
    node.allow("type", "attribute", "parent_attribute")
    return ParentRule(node.text("type"), node.text("attribute"), node.text("parent_attribute"))


def _made_by_rule(node: Node) -> MadeByRule:
    node.allow("type", "attribute", "value", "parent_attribute", "when", "reason", "certain", "when_ignored", "held")
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
        held=node.texts("held"),
    )


def _owned_keys(node: Node) -> dict[str, tuple[str, ...]]:
    keys = {key: node.texts(key) for key in node.names()}
    for key, paths in keys.items():
        for path in paths:
            # A template joins what its paths give: `{name}:{block[].attribute}`.
            for inner in PLACEHOLDER.findall(path) or [path]:
                if not _OWNED_PATH.fullmatch(inner):
                    node.fail(key, f"{inner!r} is no plain path such as `block[].attribute`")
    return keys


def tag_rules(node: Node) -> dict[str, TagRule]:
    """Of a file's head, what each start of a tag's name says. A plain text is the reason alone."""
    return {
        start: TagRule(node.text(start)) if node.is_text(start) else _tag_rule(node.at(start)) for start in node.names()
    }


def _tag_rule(node: Node) -> TagRule:
    node.allow("reason", "type", "parent_attribute", "named_by")
    return TagRule(node.text("reason"), node.text("type"), node.text("parent_attribute"), node.texts("named_by"))


def _arn_key(node: Node, keys: Mapping[str, str]) -> str | None:
    named = node.optional_text("arn_key")
    if named is not None:
        _subset(node, "arn_key", (named,), keys)
    return named or ("arn" if "arn" in keys else None)


def _one_of(node: Node, key: str, allowed: tuple[str, ...]) -> str:
    value = node.text(key)
    if value not in allowed:
        node.fail(key, f"must be one of {', '.join(allowed)}")
    return value


def _subset(node: Node, key: str, names: tuple[str, ...], known: Mapping[str, str]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            node.fail(key, f"{name!r} is not one of the keys")
    return names


def _check_references(node: Node, entry: ResourceType) -> None:
    """Every name that an entry uses in a template, a prefix or a parent rule must be one that it declares."""
    own = frozenset([*entry.keys, *entry.traits])
    for prefix, target in entry.prefixes.items():
        if target not in own:
            node.fail(f"prefixes.{prefix}", f"{target!r} is neither a key nor a trait")
    if entry.parent and entry.parent.attribute not in own:
        node.fail("parent.attribute", f"{entry.parent.attribute!r} is neither a key nor a trait")
    if entry.quotas and entry.list is None:
        node.fail("quotas", "needs a `list`: what cannot be listed cannot be counted")
    for number, quota in enumerate(entry.quotas):
        for name in quota.only:
            if name not in own:
                node.fail(f"quotas[{number}].only", f"{name!r} is neither a key nor a trait")
    known_of_it = {"asset": entry.asset, "created": entry.created or (entry.get and entry.get.created)}
    for name in entry.unverified:
        if name not in _UNVERIFIED or not known_of_it[name]:
            node.fail("unverified", f"{name!r} is none of {', '.join(_UNVERIFIED)}, or is not in the entry")
    if bool(entry.soft_deleted) != bool(entry.restore):
        node.fail("restore", "goes with `soft_deleted`: what waits for its end is brought back by calls")
    if (entry.by_call or not entry.importable) and entry.delete is None:
        node.fail("delete", "is missing: what cannot be imported, or goes `by_call`, is deleted by its own call")
    parts_of_keys = {part.rstrip("?"): "" for name in entry.keys for part in name.split(JOINT)}
    _subset(node, "folded", tuple(entry.folded), {**entry.keys, **parts_of_keys})
    for name, value in entry.keys.items():
        parts = {part.rstrip("?") for part in name.split(JOINT)}
        if JOINT in name and not set(PLACEHOLDER.findall(value)) == parts <= own:
            node.fail(f"keys.{name}", "must be a template of exactly these attributes, which are keys or traits too")
    values = {"id": entry.id, "import_id": entry.import_id, "name": entry.name or "", "arn": entry.arn or ""}
    values.update({f"made_by[{number}]": rule.value for number, rule in enumerate(entry.made_by)})
    for number, rule in enumerate(entry.made_by):
        values.update({f"made_by[{number}].held[{place}]": value for place, value in enumerate(rule.held)})
    values["owner"] = entry.owner or ""
    _subset(node, "planned", tuple(entry.planned), entry.keys)
    for key, value in entry.planned.items():
        _check_template(node, f"planned.{key}", value, own)
    _check_template(node, "import_as", entry.import_as or "", frozenset(entry.attributes))
    of_a_parent = bool(entry.list and entry.list.per)
    if twice := own & entry.handles.keys():
        node.fail(f"handles.{min(twice)}", "is a key or a trait already")
    named = own | entry.handles.keys()
    for key, value in [*entry.keys.items(), *entry.traits.items(), *entry.handles.items(), *values.items()]:
        _check_template(node, key, value, named | EVERYWHERE, of_a_parent)
    for key, arguments in _all_arguments(entry):
        _check_template(node, key, arguments, named | IN_ARGUMENTS)
    if entry.list:
        _check_template(node, "list.arguments", entry.list.arguments, EVERYWHERE)


def _all_arguments(entry: ResourceType) -> Iterator[tuple[str, object]]:
    if entry.list and entry.list.each:
        yield "list.each.arguments", entry.list.each.arguments
    for number, detail in enumerate(entry.details):
        yield f"details[{number}].arguments", detail.arguments
    if entry.get:
        yield "get.url", entry.get.url
    if entry.delete:
        yield "delete.arguments", entry.delete.arguments
    for number, call in enumerate(entry.restore):
        yield f"restore[{number}].arguments", call.arguments


def _check_template(node: Node, key: str, value: object, known: frozenset[str], of_a_parent: bool = False) -> None:
    match value:
        case str():
            for name in PLACEHOLDER.findall(value):
                # Which values the parent has stands in its own entry, maybe of another file: `cross_checks` looks.
                if name not in known and not (of_a_parent and name.startswith(OF_THE_PARENT)):
                    node.fail(key, f"{{{name}}} is not a key or trait of this type")
        case dict():
            for inner in value.values():
                _check_template(node, key, inner, known)
        case list():
            for inner in value:
                _check_template(node, key, inner, known)
        case _:
            pass
