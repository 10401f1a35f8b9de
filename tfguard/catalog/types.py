"""A resource type as the catalogue declares it: data, no behaviour beyond reading itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache

from tfguard.model.preflight import Quota

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""A name in a template."""

JOINT = "+"
"""Joins the names of the attributes that tell one object from another only together."""


HELD = "held"
"""Of `owns`, instead of a key: how an object looks that a state has inside another, without anything that names it."""


@dataclass(frozen=True, slots=True)
class EachCall:
    """A call for every listed item, where the list answer does not tell what the object is. `result` joins the item."""

    operation: str
    arguments: Mapping[str, object]
    result: str


@dataclass(frozen=True, slots=True)
class PerParent:
    """A list that is asked for once for each object of another listed type. `arguments` are templates over that one."""

    type: str
    arguments: Mapping[str, object]
    only_own: bool = False


@dataclass(frozen=True, slots=True)
class PageToken:
    """How to go on, where the SDK has no paginator: the argument to send, and where the answer has it."""

    argument: str
    answer: str


@dataclass(frozen=True, slots=True)
class AlsoCall:
    """The same list with other arguments, in one region alone: what exists once in an account beside the regions'."""

    region: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ListCall:
    """How to list every object of a type: a client operation of the cloud's SDK and the JMESPath of the items."""

    operation: str
    result: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    page_size: int | None = None
    each: EachCall | None = None
    per: PerParent | None = None
    token: PageToken | None = None
    also: tuple[AlsoCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Asset:
    """What Google's Cloud Asset Inventory calls the objects of a type, and the forms that their full names have.

    `others` are the forms of names that it has under the same word for objects of another Terraform type.
    """

    type: str
    names: tuple[str, ...]
    others: tuple[str, ...] = ()

    def parts(self, name: str) -> Mapping[str, str] | None:
        """What the placeholders of the form that fits a full name stand for in it; None where no form fits."""
        matches = (_form(template).fullmatch(name) for template in self.names)
        return next((match.groupdict() for match in matches if match), None)

    def is_other(self, name: str) -> bool:
        """Whether a full name is that of an object of another Terraform type."""
        return any(_form(template).fullmatch(name) for template in self.others)


@dataclass(frozen=True, slots=True)
class DetailCall:
    """One more call for one object, for what the listing lacks. `arguments` may use `{id}`, `{name}`, `{arn}`, ..."""

    operation: str
    arguments: Mapping[str, object]
    created: str | None = None
    tags: str | None = None
    gone_after: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectCall:
    """A call that changes one object: it deletes it, in the gentlest form the service has, or is a step of bringing it
    back. `arguments` are templates."""

    operation: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Objects that nobody made with Terraform: a JMESPath that is true for the listed item, and why."""

    when: str
    reason: str


@dataclass(frozen=True, slots=True)
class GetCall:
    """The address at which an object's own service tells of it: a template. 404 says that it is gone, and so does an
    answer for which the JMESPath `gone` is true. `ignore` has rules for what this answer alone tells. `project` is
    where it has the number of the object's project, for an address that names none: anybody's object may answer there.
    """

    url: str
    created: str | None = None
    tags: str | None = None
    gone: str | None = None
    ignore: tuple[IgnoreRule, ...] = ()
    project: str | None = None


@dataclass(frozen=True, slots=True)
class TagRule:
    """What a tag says of who made the object that carries it, and which nobody made with Terraform.

    Without a `type` the object goes with its maker, so that nobody has to look for that one. With it, the maker is the
    object of that type whose `parent_attribute` is what a tag among `named_by` says: its value, or what follows in its
    name where `named_by` ends in `*`. The first that is there counts; without any it is `ANY_VALUE`.
    """

    reason: str
    type: str | None = None
    parent_attribute: str = ""
    named_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParentRule:
    """The object that takes this one along when it goes (rule 16).

    `attribute` of this type holds the value that the parent has as `parent_attribute`.
    """

    type: str
    attribute: str
    parent_attribute: str


@dataclass(frozen=True, slots=True)
class MadeByRule:
    """The object that may have made this one by itself: the one whose `parent_attribute` is this one's `value`.

    `when` is a JMESPath that must be true for the item. Not `certain`: a person can have made such an object as well.
    `when_ignored`: only where that one is itself ignored. `held` are the ways in which the maker's state may have this
    one (its `owns` as `HELD`, or by a key): where it tells of any such objects and has not this one, that was added.
    """

    type: str
    value: str
    parent_attribute: str
    reason: str
    when: str | None = None
    certain: bool = True
    when_ignored: bool = False
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One resource type. The format is described at the head of `aws.yaml`.

    `keys` are the resource's attributes that tell one object from another: attribute -> where the listed item has it.
    One equal key means the same object. `unique` names the keys of which there are never two at once: a second create
    with the same value fails, or answers with the object that is there. `traits` are attributes that a plan knows but
    that several objects may share. `arn_key` is the key that is the object's own ARN; `placed_by` are attributes of a
    state's instance that are ARNs in the object's account, and in its region if they name one. `prefixes` maps an
    attribute such as `name_prefix` to the key or trait whose start it is. `id` is what a state holds as `id`;
    `import_id` what `terraform import` wants, and `import_as` what it wants where the configuration may write the same
    thing in several ways: a template of the configuration's own values. `ignore_tags` maps the start of a tag's name to
    what it says of the maker of an object that carries it. `folded` tells how a key is compared where the service
    ignores case or a trailing dot. `owns` leads from a state's instance to objects of other types that stand in it as
    attributes alone: type -> key -> paths. `permissions` are the IAM actions of the entry's calls, where they are not
    called as the calls are. `hourly` tells that it costs money by the hour, used or not. `handles` are values that only
    calls and ids need: no attributes, so that they are neither compared nor read from a state. `planned` are keys that
    no plan has, as the service makes them of what a plan has. A `container` has others made inside it, which stand in
    the way when it is deleted; `leaves` are types of which it makes objects by itself that stay when it goes, and that
    their tags tell. One that is `soft_deleted` comes back by the calls of `restore`,
    one after the other, until the time `gone_after`. What is not `importable` no engine can import, and what goes
    `by_call` the provider would detach or reset first, whatever the state says: both are deleted by `delete` itself.
    Of the types that it `detaches` an object is taken out before the provider deletes it. `fills` are the
    attributes with a default that no import can read, so that the apply of one always writes them.
    `quotas` are the limits that its objects count towards. `asset` tells under which names an inventory of the whole
    cloud lists it (`list` is made of it then), and `get` how its own service is asked about one object. What of these
    nobody has read in the service's documentation is named in `unverified`: `asset` for the names, `created` for the
    time. Such a type is not destroyed, a service that does not know such a name proves nothing, and such a time is no
    evidence. `undeletable` tells why nothing deletes such an object, where the provider's own destroy would do no more
    than forget it, or make it useless.
    """

    type: str
    cloud: str
    service: str
    scope: str
    keys: Mapping[str, str]
    id: str
    import_id: str
    import_as: str | None = None
    list: ListCall | None = None
    asset: Asset | None = None
    get: GetCall | None = None
    unverified: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    arn_key: str | None = None
    placed_by: tuple[str, ...] = ()
    traits: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    handles: Mapping[str, str] = field(default_factory=dict)
    planned: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    arn: str | None = None
    created: str | None = None
    tags: str | None = None
    details: tuple[DetailCall, ...] = ()
    only: str | None = None
    gone: str | None = None
    soft_deleted: str | None = None
    gone_after: str | None = None
    restore: tuple[ObjectCall, ...] = ()
    fills: tuple[str, ...] = ()
    owner: str | None = None
    folded: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[IgnoreRule, ...] = ()
    ignore_tags: Mapping[str, TagRule] = field(default_factory=dict)
    parent: ParentRule | None = None
    made_by: tuple[MadeByRule, ...] = ()
    owns: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    permissions: tuple[str, ...] = ()
    create: str | None = None
    delete: ObjectCall | None = None
    importable: bool = True
    by_call: bool = False
    detaches: tuple[str, ...] = ()
    stateful: bool = False
    undeletable: str | None = None
    hourly: bool = False
    container: bool = False
    leaves: tuple[str, ...] = ()
    cfn: str | None = None
    quotas: tuple[Quota, ...] = ()

    @property
    def is_global(self) -> bool:
        """Whether objects of this type exist once in an account, whatever the region."""
        return self.scope == "global"

    @property
    def never_destroyed(self) -> str | None:
        """Why objects of this type are never deleted by tfguard; None where nothing of it speaks against that."""
        if self.undeletable is not None:
            return self.undeletable
        what = {"asset": "what the inventory calls it", "created": "the creation time that is told of it"}
        told = " and ".join(what[name] for name in self.unverified)
        return f"{told} was not checked against the documentation of {self.service}" if told else None

    @property
    def has_guessed_names(self) -> bool:
        """Whether what the inventory tells of an object's names may be wrong: a service that does not know such a name
        may have the object all the same."""
        return "asset" in self.unverified

    @property
    def can_be_destroyed(self) -> bool:
        """Whether `orphans destroy` may delete such an object: through the engine's import, or by its own call."""
        return self.never_destroyed is None and (self.importable or self.delete is not None)

    @property
    def is_named_worldwide(self) -> bool:
        """Whether its own service asks for no project beside the name: then anybody's may answer to it."""
        return self.get is not None and "{project}" not in self.get.url

    @property
    def asks_parent(self) -> bool:
        """Whether a run looks for the object's parent instead: only a call for each parent there is would list it."""
        return self.parent is not None and (self.list is None or self.list.per is not None)

    @property
    def makers(self) -> Collection[tuple[str, str]]:
        """Types of objects that can make one of this type by themselves, and the attribute by which it names them."""
        by_tag = ((rule.type, rule.parent_attribute) for rule in self.ignore_tags.values() if rule.type)
        return {*((rule.type, rule.parent_attribute) for rule in self.made_by), *by_tag}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The allow-list: the only attributes of this type that are read from a plan or a state (rule 10)."""
        named = dict.fromkeys([*self.keys, *self.traits, *self.prefixes])
        return tuple(name for name in named if JOINT not in name)

    def is_unique_anywhere(self, key: str) -> bool:
        """Whether a key has the same value nowhere else: an `id` that the service gives, and no template makes."""
        return key == "id" and not PLACEHOLDER.search(self.keys["id"])

    def joined(self, values: Mapping[str, str], hidden: Collection[str] = ()) -> Mapping[str, str]:
        """The keys that several attributes make together, as far as `values` has all of these.

        The name of such a key is those of its attributes (`role+policy_arn`). One that may be missing ends in `?`: it
        counts as empty then, unless it is among those that are there and `hidden`. The parts are as they are compared.
        """
        found = {}
        for key, template in self.keys.items():
            if JOINT in key:
                may_miss = {part[:-1] for part in key.split(JOINT) if part.endswith("?")}.difference(hidden)
                told = {name: self.comparable(name, value) for name, value in values.items()} if self.folded else values
                known = {**dict.fromkeys(may_miss, ""), **told}
                if known.keys() >= set(PLACEHOLDER.findall(template)):
                    found[key] = _filled(template, known)
        return found

    def parts_of(self, unique_name: str) -> Mapping[str, str]:
        """The attributes of which an object's unique name is made, where the catalogue makes it of attributes."""
        return self.parts_in(self.keys.get(self.arn_key, ""), unique_name) if self.arn_key else {}

    def told_by(self, identity: Mapping[str, str]) -> Mapping[str, str]:
        """An identity, with the attributes of which its values are made, where the catalogue makes them of some."""
        told: dict[str, str] = {}
        for name, template in {**self.traits, **self.keys}.items():
            if name in identity and JOINT not in name:
                told |= self.parts_in(template, identity[name])
        return {**told, **identity}

    def parts_in(self, template: str, value: str) -> Mapping[str, str]:
        """The attributes of which a value is made that is built as a template of this type says; none where it is not
        built so."""
        inner = {name: text for name, text in self.traits.items() if PLACEHOLDER.search(text)}
        # What a path is made of may be a path itself (`{key_ring}/cryptoKeys/{name}`).
        whole = PLACEHOLDER.sub(lambda match: inner.get(match[1], match[0]), template)
        match = _form(whole).fullmatch(value) if PLACEHOLDER.search(whole) else None
        return match.groupdict() if match else {}

    def comparable(self, attribute: str, value: str) -> str:
        """The value of a key as it is compared: two that the service takes for one are equal here."""
        how = self.folded.get(attribute, "")
        if "case" in how:
            value = value.lower()
        return value.rstrip(".") if "dot" in how else value


@cache
def _form(template: str) -> re.Pattern[str]:
    """What full names look like that are built as the template says. A name in it may be there several times."""
    seen: set[str] = set()
    pattern = ""
    for number, part in enumerate(PLACEHOLDER.split(template)):
        if number % 2 == 0:
            pattern += re.escape(part)
        else:
            pattern += f"(?P={part})" if part in seen else f"(?P<{part}>[^/]+)"
            seen.add(part)
    return re.compile(pattern)


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values[match[1]], template)
