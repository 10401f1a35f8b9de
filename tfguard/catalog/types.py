"""A resource type as the catalogue declares it: data, no behaviour beyond reading itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EachCall:
    """A call for every listed item, where the list answer does not tell what the object is. `result` joins the item."""

    operation: str
    arguments: Mapping[str, object]
    result: str


@dataclass(frozen=True, slots=True)
class ListCall:
    """How to list every object of a type: a client operation of the cloud's SDK and the JMESPath of the items."""

    operation: str
    result: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    page_size: int | None = None
    each: EachCall | None = None


@dataclass(frozen=True, slots=True)
class DetailCall:
    """One more call for one object, for what the listing lacks. `arguments` may use `{id}`, `{name}`, `{arn}`, ..."""

    operation: str
    arguments: Mapping[str, object]
    created: str | None = None
    tags: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteCall:
    """The call that deletes one object, in the gentlest form the service has. `arguments` are templates."""

    operation: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Objects that nobody made with Terraform: a JMESPath that is true for the listed item, and why."""

    when: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParentRule:
    """The object that takes this one along when it goes (rule 16).

    `attribute` of this type holds the value that the parent has as `parent_attribute`.
    """

    type: str
    attribute: str
    parent_attribute: str


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One resource type. The format is described at the head of `aws.yaml`.

    `keys` are the resource's attributes that tell one object from another: attribute -> where the listed item has it.
    One equal key means the same object. `unique` names the keys of which there are never two at once: a second create
    with the same value fails, or answers with the object that is there. `traits` are attributes that a plan knows but
    that several objects may share. `prefixes` maps an attribute such as `name_prefix` to the key or trait whose start
    it is. `id` is what a state holds as `id`; `import_id` what `terraform import` wants. `ignore_tags` maps the start
    of a tag's name to the reason why an object that carries it is not Terraform's.
    """

    type: str
    cloud: str
    service: str
    scope: str
    keys: Mapping[str, str]
    id: str
    import_id: str
    list: ListCall | None = None
    unique: tuple[str, ...] = ()
    traits: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    arn: str | None = None
    created: str | None = None
    tags: str | None = None
    details: tuple[DetailCall, ...] = ()
    gone: str | None = None
    ignore: tuple[IgnoreRule, ...] = ()
    ignore_tags: Mapping[str, str] = field(default_factory=dict)
    parent: ParentRule | None = None
    create: str | None = None
    delete: DeleteCall | None = None
    stateful: bool = False

    @property
    def is_global(self) -> bool:
        """Whether objects of this type exist once in an account, whatever the region."""
        return self.scope == "global"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The allow-list: the only attributes of this type that are read from a plan or a state (rule 10)."""
        return tuple(dict.fromkeys([*self.keys, *self.traits, *self.prefixes]))
