"""Which states a pattern means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from tfguard.errors import ConfigError
from tfguard.ports import StateSource
from tfguard.states.folders import FolderSource, Stacks
from tfguard.states.kind import WHERE, Wanted
from tfguard.states.places import PLACES
from tfguard.states.reader import StateReader

# A `?` is a wildcard as well.
_QUERY = re.compile(r"\?(?=[a-z_]+=)")
_WORKSPACE = "workspace"


def source_of(
    pattern: str, base: Path, reader: StateReader, workspaces: Sequence[str] = (), stacks: Stacks | None = None
) -> StateSource:
    """The source of the states that a pattern means; nothing is read or asked yet.

    A relative path counts from `base`. Of each stack only `workspaces` are read, or those that the pattern's own
    `?workspace=NAME` names; without any, all. `stacks` says which stacks in folders are passed over, by default none.
    Raises `ConfigError` for a URL that names no place.
    """
    found = _QUERY.search(pattern)
    body, query = (pattern[: found.start()], pattern[found.end() :]) if found else (pattern, "")
    named = parse_qsl(query, keep_blank_values=True)
    wanted = frozenset(workspaces) or frozenset(value for name, value in named if name == _WORKSPACE)
    others = [(name, value) for name, value in named if name != _WORKSPACE]
    scheme, separator, place = body.partition("://")
    if not separator or scheme == "file":
        if others:
            raise ConfigError(f"{WHERE} of a folder only ?{_WORKSPACE}=NAME can be said", "take the rest out")
        path = place if separator else body
        if not path:
            raise ConfigError(
                f"{WHERE} {pattern!r} names nothing", "name a file, a folder (. for the one here) or a URL"
            )
        return FolderSource(pattern, path, base, wanted, reader, stacks or Stacks())
    kind = PLACES.get(scheme)
    if kind is None:
        known = ", ".join(["a file", "a folder", *(kind.form for kind in PLACES.values())])
        raise ConfigError(f"{WHERE} {scheme}:// names no kind of place for states", f"known are {known}")
    return kind.source(Wanted(body, place, others, wanted), reader)
