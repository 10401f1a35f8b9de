"""Every resource type that tfguard knows: the catalogue as its readers ask it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tfguard.catalog.types import ResourceType
from tfguard.model.preflight import Quota


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

    def counted_by(self, quota: Quota) -> tuple[tuple[ResourceType, Quota], ...]:
        """The entries whose objects count towards a limit, each with which of them do."""
        return tuple((entry, own) for entry in self for own in entry.quotas if own.key == quota.key)

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
