"""The engine's own generated configuration, made fit to be kept: a template becomes what a person would have written.

`plan -generate-config-out` writes every argument that a type has, set or not, and each as a literal. Its layout is
regular: one argument or block a line, values in brackets over several, no comments but its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfguard.engine.cautious import HARSH
from tfguard.engine.documents import Json, mapping
from tfguard.model.address import hcl_meaning
from tfguard.model.secrets import carries, is_secret

_RESOURCE = re.compile(r'resource "([\w-]+)" "([\w-]+)" \{')
_ARGUMENT = re.compile(r"\s*([\w-]+)\s*=\s*(.*)", re.DOTALL)
_BLOCK = re.compile(r"\s*([\w-]+) \{")
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?!\s*=)', re.DOTALL)
_SENSITIVE = re.compile(r"null\s*# sensitive")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN_TYPES = ("string", "number", "bool")
_NOTHING = frozenset(["null", "false", "0", '""', "[]", "{}"])
# Every provider tag system repeats the tags under another name, which only the provider computes.
_REPEATED = frozenset(["tags_all", "labels_all", "terraform_labels", "effective_labels"])
_IN_GROUP = re.compile(r"`([^`]+)`")
_CONFLICT = re.compile(r'"?([\w.]+)"?: conflicts with ([\w.]+)')
_POSITION = re.compile(r"\.(\d+)(?=\.|$)")
_WANTS_SCHEME = re.compile(r"to have a (?:host|url with schema)")


@dataclass(frozen=True, slots=True)
class Argument:
    """`name = value`; `path` tells it in its resource (`disk[0].size`), `value` is the expression as it stands."""

    name: str
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Block:
    """A nested block."""

    name: str
    path: str
    body: tuple[Argument | Block, ...]


@dataclass(frozen=True, slots=True)
class GeneratedResource:
    """One resource as the engine generated it."""

    type: str
    name: str
    body: tuple[Argument | Block, ...]

    @property
    def address(self) -> str:
        """Its address, which has no key and no module: for others the engine generates nothing."""
        return f"{self.type}.{self.name}"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What tries have told about one resource: paths that must go, that must stay, and that become a variable.

    `emptied` are written as an empty text, so that no default of the provider's takes their place; `schemed` lack the
    `https://` that the provider strips when it reads and wants when it is configured.
    """

    dropped: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    schemed: frozenset[str] = frozenset()

    def joined(self, other: Wishes) -> Wishes:
        """Both wishes; what either wants gone goes."""
        dropped = self.dropped | other.dropped
        return Wishes(
            dropped,
            (self.kept | other.kept) - dropped,
            self.variables | other.variables,
            (self.emptied | other.emptied) - dropped,
            self.schemed | other.schemed,
        )

    def without(self, path: str) -> Wishes:
        """The wishes, with one path more that must go."""
        return replace(self, dropped=self.dropped | {path}, kept=self.kept - {path}, emptied=self.emptied - {path})


@dataclass(frozen=True, slots=True)
class Written:
    """A resource as text; `lines` tells the path of each line of it, counted from 0. `variables` are declared by it."""

    text: str
    lines: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def parse_generated(content: str) -> tuple[GeneratedResource, ...]:
    """The resources in what the engine generated. What does not have its layout is left out."""
    lines, found, at = content.splitlines(), [], 0
    while at < len(lines):
        match = _RESOURCE.fullmatch(lines[at])
        at += 1
        if match:
            body, at = _body(lines, at, "")
            found.append(GeneratedResource(match[1], match[2], body))
    return tuple(found)


def _body(lines: Sequence[str], at: int, prefix: str) -> tuple[tuple[Argument | Block, ...], int]:
    """What stands up to the closing brace, and the number of the line after it."""
    found: list[Argument | Block] = []
    seen: dict[str, int] = {}
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.strip() == "}":
            break
        if block := _BLOCK.fullmatch(line):
            number = seen[block[1]] = seen.get(block[1], -1) + 1
            path = f"{prefix}{block[1]}[{number}]"
            inner, at = _body(lines, at, f"{path}.")
            found.append(Block(block[1], path, inner))
        elif argument := _ARGUMENT.fullmatch(line):
            value = argument[2]
            while _open_brackets(value) > 0 and at < len(lines):
                value, at = f"{value}\n{lines[at]}", at + 1
            found.append(Argument(argument[1], f"{prefix}{argument[1]}", value))
    return tuple(found), at


def _open_brackets(value: str) -> int:
    bare = _QUOTED.sub("", value)
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


class Schema:
    """What the providers say of their types (`providers schema -json`)."""

    def __init__(self, document: object) -> None:
        self._types: dict[str, Json] = {}
        for provider in mapping(mapping(document).get("provider_schemas")).values():
            for name, schema in mapping(mapping(provider).get("resource_schemas")).items():
                self._types.setdefault(name, mapping(mapping(schema).get("block")))

    def attribute(self, resource_type: str, path: str) -> Json:
        """The schema of an argument at a path; empty for what is none."""
        block, names = self._types.get(resource_type, {}), _names(path)
        for name in names[:-1]:
            block = mapping(mapping(mapping(block.get("block_types")).get(name)).get("block"))
        return mapping(mapping(block.get("attributes")).get(names[-1]))

    def needs(self, resource_type: str, path: str) -> bool:
        """Whether the type wants the argument, or at least one such block."""
        block, names = self._types.get(resource_type, {}), _names(path)
        for name in names[:-1]:
            block = mapping(mapping(mapping(block.get("block_types")).get(name)).get("block"))
        nested = mapping(mapping(block.get("block_types")).get(names[-1]))
        least = nested.get("min_items")
        wanted = isinstance(least, int) and least > 0
        return wanted or mapping(mapping(block.get("attributes")).get(names[-1])).get("required") is True


def _names(path: str) -> list[str]:
    return re.sub(r"\[\d+\]", "", path).split(".")


def first_wishes(resource: GeneratedResource, schema: Schema) -> Wishes:
    """What can be told before anything was tried: a marked value that the type wants becomes a variable, and what an
    import sets of its own accord to have more deleted than the object goes."""
    arguments = tuple(_arguments(resource.body))
    wanted = (
        item.path for item in arguments if _SENSITIVE.fullmatch(item.value) and schema.needs(resource.type, item.path)
    )
    harsh = (item.path for item in arguments if item.path in HARSH and item.value == "true")
    return Wishes(variables=frozenset(wanted), dropped=frozenset(harsh))


def _arguments(body: Sequence[Argument | Block]) -> Iterator[Argument]:
    for item in body:
        if isinstance(item, Argument):
            yield item
        else:
            yield from _arguments(item.body)


def written(
    resource: GeneratedResource,
    schema: Schema,
    wishes: Wishes,
    references: Mapping[str, str],
    secrets: frozenset[str] = frozenset(),
) -> Written:
    """The resource as it is to be kept: without what says nothing, with references in the place of ids and arns.

    `references` maps a value to the expression that gives it; only whole values are replaced. Tags stay as they are.
    An argument whose value repeats one of the `secrets` becomes a variable, whatever it is.
    """
    lines: list[tuple[str, str]] = [(f'resource "{resource.type}" "{resource.name}" {{', "")]
    variables: dict[str, str] = {}
    writer = _Writer(resource, schema, wishes, references, secrets, lines, variables)
    writer.body(resource.body, 1)
    lines.append(("}", ""))
    for name, path in variables.items():
        kind = _type_of(schema.attribute(resource.type, path).get("type"))
        lines += [("", path), (f'variable "{name}" {{', path)]
        lines += [(f"  type      = {kind}", path)] if kind else []
        lines += [("  sensitive = true", path), ("}", path)]
    return Written("".join(f"{line}\n" for line, _ in lines), tuple(path for _, path in lines), variables)


def _type_of(kind: object) -> str:
    """A schema's type as a variable declares it; of what is no plain value or a collection of such, that it is any."""
    if isinstance(kind, list) and len(kind) == 2 and kind[1] in _PLAIN_TYPES:
        return f"{kind[0]}({kind[1]})"
    if kind in _PLAIN_TYPES:
        return str(kind)
    return "any" if kind else ""  # a value for it in the environment is read as an expression then


@dataclass(frozen=True, slots=True)
class _Writer:
    resource: GeneratedResource
    schema: Schema
    wishes: Wishes
    references: Mapping[str, str]
    secrets: frozenset[str]
    lines: list[tuple[str, str]]
    variables: dict[str, str]

    def body(self, body: Sequence[Argument | Block], depth: int) -> None:
        """Write what of a body is to be kept; arguments stand before blocks."""
        indent = "  " * depth
        for item in body:
            if isinstance(item, Argument) and (value := self._value(item)) is not None:
                head, *rest = value.split("\n")
                self.lines.append((f"{indent}{item.name} = {head}", item.path))
                self.lines.extend((line, item.path) for line in rest)
        for item in body:
            if isinstance(item, Block) and self._says_anything(item):
                self.lines.append((f"{indent}{item.name} {{", item.path))
                self.body(item.body, depth + 1)
                self.lines.append((f"{indent}}}", item.path))

    def _says_anything(self, block: Block) -> bool:
        if _under(block.path, self.wishes.dropped):
            return False
        if self.schema.needs(self.resource.type, block.path) or _under(block.path, self.wishes.kept):
            return True
        return any(
            self._says_anything(item)
            if isinstance(item, Block)
            else self._value(item) is not None and (item.value not in _NOTHING or _under(item.path, self.wishes.kept))
            for item in block.body
        )

    def _value(self, item: Argument) -> str | None:
        """What to write for an argument; None for one that goes."""
        if item.path in self.wishes.variables:
            return self._variable(item)
        if item.path in self.wishes.emptied:
            return '""'
        if item.path in self.wishes.schemed:
            return self._variable(item) if self._is_secret(item) else f'"https://{item.value[1:]}'
        if item.name in _REPEATED or _under(item.path, self.wishes.dropped) or item.value.startswith("null"):
            return None
        told = self.schema.attribute(self.resource.type, item.path)
        if self.schema.needs(self.resource.type, item.path) or _under(item.path, self.wishes.kept):
            return self._referring(item)
        computed = told.get("computed") is True and (told.get("deprecated") is True or item.path in ("id", "arn"))
        return None if computed or item.value in _NOTHING else self._referring(item)

    def _variable(self, item: Argument) -> str:
        name = _variable_name(self.resource.name, item.path)
        self.variables[name] = item.path
        return f"var.{name}"

    def _is_secret(self, item: Argument) -> bool:
        """Whether a value repeats a marked one, as a whole or inside, in a key too, and whatever HCL escapes in it."""
        texts = (hcl_meaning(quoted[1:-1]) for quoted in _QUOTED.findall(item.value))
        return carries(item.value, self.secrets) or any(is_secret(text, self.secrets) for text in texts)

    def _referring(self, item: Argument) -> str:
        if self._is_secret(item):
            return self._variable(item)
        if item.name == "tags":
            return item.value
        return _LITERAL.sub(lambda match: self.references.get(hcl_meaning(match[1]), match[0]), item.value)


def _under(path: str, named: Collection[str]) -> bool:
    """Whether a path, or a block that it lies in, is among those that are named, with or without positions."""
    bare = ".".join(_names(path))
    return any(one == name or one.startswith((f"{name}.", f"{name}[")) for name in named for one in (path, bare))


def _variable_name(name: str, path: str) -> str:
    return re.sub(r"\W+", "_", f"{name}_{path}").strip("_")


def after_differences(resource: GeneratedResource, schema: Schema, wishes: Wishes, names: Sequence[str]) -> Wishes:
    """The wishes once a plan has said that these arguments differ from what exists: what went comes back.

    A marked value comes back as a variable, a text that is not set as an empty one: the provider has a default for it.
    The same wishes where that cannot help.
    """
    back: set[str] = set()
    marked: set[str] = set()
    emptied: set[str] = set()
    for item in _arguments(resource.body):
        if _names(item.path)[0] in names:
            if _SENSITIVE.fullmatch(item.value):
                marked.add(item.path)
            elif not item.value.startswith("null"):
                back.add(item.path)
            elif item.path in names and _has_default(schema.attribute(resource.type, item.path)):
                emptied.add(item.path)
    return replace(
        wishes,
        kept=wishes.kept | (back - wishes.dropped),
        variables=wishes.variables | marked,
        emptied=wishes.emptied | (emptied - wishes.dropped),
    )


def _has_default(attribute: Json) -> bool:
    """Whether an argument can only differ for a default of the provider's: a text that nothing computes."""
    return attribute.get("type") == "string" and attribute.get("computed") is not True


def after_error(
    resource: GeneratedResource, schema: Schema, wishes: Wishes, path: str, said: str, present: Collection[str]
) -> Wishes:
    """The wishes once the engine refused what stands at a path, in these words; the same where nothing can help.

    `present` are the paths that are written now. Of several that exclude each other the least telling one goes.
    """
    if _WANTS_SCHEME.search(said) and path not in wishes.schemed:
        bare = [item.path for item in _arguments(resource.body) if item.path == path and _no_scheme(item.value)]
        if bare:
            return replace(wishes, schemed=wishes.schemed | {path})
    group = [_positioned(name) for match in _IN_GROUP.findall(said) for name in match.split(",")]
    conflict = _CONFLICT.search(said)
    rivals = [*(map(_positioned, conflict.groups()) if conflict else ()), *group]
    there = [name for name in dict.fromkeys([*rivals, *([path] if path else [])]) if _under_any(name, present)]
    if group and "must be specified" in said and not conflict and "all of" not in said and not there:
        marked = [
            item.path
            for item in _arguments(resource.body)
            if item.path in group
            and _SENSITIVE.fullmatch(item.value)
            and schema.attribute(resource.type, item.path).get("write_only") is not True
        ]
        return replace(wishes, variables=wishes.variables | set(marked[:1]))
    loose = [name for name in there if not schema.needs(resource.type, name) and name not in wishes.variables]
    if not loose:
        return wishes
    if conflict or "only one of" in said:
        if len(there) < 2:
            return wishes
        # A block says what an argument says at more length, and a longer name is the more special one.
        blocks = {item.name for item in resource.body if isinstance(item, Block)}
        goes = max(loose, key=lambda name: (name in blocks, len(name), name))
        return wishes.without(goes)
    goes = path or loose[0]
    return wishes.without(goes) if goes in loose else wishes


def _positioned(name: str) -> str:
    """The path of an argument that a provider names with its position as a step: `disk.0.size`."""
    return _POSITION.sub(r"[\1]", name)


def _no_scheme(value: str) -> bool:
    return _LITERAL.fullmatch(value) is not None and "://" not in value


def _under_any(name: str, present: Collection[str]) -> bool:
    return any(path == name or re.sub(r"\[\d+\]", "", path).split(".")[0] == name for path in present)
