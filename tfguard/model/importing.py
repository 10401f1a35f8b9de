"""What is to be imported, what the engine says against it, and configuration that is drafted for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """One object that is to come to an address.

    `drafted`: the configuration has no such address, and one is to be drafted for it; `provider` is then the provider
    configuration through which it is read (`aws.eu`), empty for the default one.
    """

    address: str
    import_id: str
    drafted: bool = False
    provider: str = ""


@dataclass(frozen=True, slots=True)
class WrittenImport:
    """An import block that the configuration has.

    `import_id` is None where it is no plain text: `texts` are those that stand in the block all the same.
    """

    address: str
    import_id: str | None
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ImportTrouble:
    """Why a plan of imports failed; `address` is the target that it is about, None where that cannot be told.

    `general`: it is about no object at all, so that leaving targets out would not help. `what` may quote a value: it is
    for the user alone.
    """

    address: str | None
    what: str = field(repr=False)
    general: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """Configuration for targets that had none: a text for each address, as the engine formats it.

    `troubles` are those of the targets for which there is none that can be planned; `texts` has what there is of it all
    the same. `variables` are the names that it declares for values that are marked as sensitive, by address.
    `fills` are arguments that the apply will write although no configuration asks for it: a default of the provider's,
    in the place of what it cannot read, or what makes a deletion less harsh.
    """

    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    troubles: tuple[ImportTrouble, ...] = ()
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fills: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
