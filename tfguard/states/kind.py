"""What a kind of place is that states lie in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfguard.engine.backend import StateLocation
from tfguard.errors import NoStateError
from tfguard.ports import KnownState, StateSource
from tfguard.states.reader import StateReader

Settings = Mapping[str, str]

WHERE = "states:"
"""What an error about a pattern begins with."""


def no_state(pattern: str, workspaces: Collection[str]) -> NoStateError:
    """The error for a pattern that matches no state, or none of these workspaces (empty for all)."""
    if workspaces:
        named = " or ".join(sorted(workspaces))
        return NoStateError(
            f"{pattern} matches no state of the workspace {named}", "correct the name of the workspace, or the pattern"
        )
    return NoStateError(f"{pattern} matches no state", "correct the pattern, or take it out; ** stands for any folders")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a URL asks for: the `place` behind `SCHEME://`, the `parameters` behind `?`, and which `workspaces` (empty
    for all). `text` is what errors call it."""

    text: str
    place: str
    parameters: Sequence[tuple[str, str]]
    workspaces: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """A kind of place. `backend` is the one whose states lie there, `form` how its URL looks.

    `source` gives the states that a URL means, and raises `ConfigError` for one that names no place; nothing is asked
    yet. `of_stack` gives those of a stack with such a backend, of some workspaces or (an empty set) of all; it is
    handed what locates the state of a workspace, and raises `TfguardError`. `engine_alone` tells of a backend's
    settings whether only the engine can read with them.
    """

    backend: str
    form: str
    source: Callable[[Wanted, StateReader], StateSource]
    of_stack: Callable[[Callable[[str], StateLocation], StateReader, frozenset[str]], Iterator[KnownState]]
    engine_alone: Callable[[Settings], bool] = lambda _: False
