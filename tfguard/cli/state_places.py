"""Which states a pattern means: with the files beside it the one place that joins stores' bytes and engine's parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from tfguard.catalog.loader import load_catalog
from tfguard.cli.invocation import Invocation
from tfguard.cli.state_buckets import BUCKETS, BucketSource, DatabaseSource, Settings
from tfguard.cli.state_folders import FolderSource
from tfguard.cli.state_reading import StateReader, state_reader
from tfguard.errors import ConfigError, RecordError
from tfguard.model.config import Config
from tfguard.ports import StateSource
from tfguard.stores.state_patterns import KeyPattern
from tfguard.stores.state_places import database_settings
from tfguard.stores.urls import RECORDS_KEY, azblob_place, gcs_place, postgres_place, s3_place

# A `?` is a wildcard as well.
_QUERY = re.compile(r"\?(?=[a-z_]+=)")
_WORKSPACE = "workspace"
_WHERE = "states:"
_PLACE = ("bucket", "storage_account_name", "container_name")
_FORMS = "a file, a folder, s3://BUCKET/PREFIX/, gs://BUCKET/PREFIX/, azblob://ACCOUNT/CONTAINER/, postgresql://HOST/DB"


def state_sources(
    patterns: Sequence[str],
    invocation: Invocation,
    config: Config,
    config_path: Path | None,
    workspaces: Sequence[str] = (),
    *,
    set_up_alone: bool = False,
) -> list[StateSource]:
    """A source for each pattern; nothing is read or asked yet.

    A relative path counts from the working directory, and one of `scan.stacks` from the folder of tfguard.yaml. Of each
    stack only `workspaces` are read, or those that the pattern's own `?workspace=NAME` names; without any, all. With
    `set_up_alone`, a folder with a backend that `init` has not set up is passed over; else it is a state that cannot be
    read. Raises `ConfigError` for a URL that names no place.
    """
    reader = state_reader(invocation, config, config_path, load_catalog())
    configured = config_path is not None and tuple(patterns) == config.scan.stacks
    base = config_path.absolute().parent if configured and config_path else invocation.directory
    return [_source(pattern, base, frozenset(workspaces), reader, set_up_alone) for pattern in patterns]


def _source(
    pattern: str, base: Path, workspaces: frozenset[str], reader: StateReader, set_up_alone: bool
) -> StateSource:
    body, query = _parts(pattern)
    named = parse_qsl(query, keep_blank_values=True)
    wanted = workspaces or frozenset(value for name, value in named if name == _WORKSPACE)
    others = [(name, value) for name, value in named if name != _WORKSPACE]
    scheme, separator, place = body.partition("://")
    if not separator or scheme == "file":
        if others:
            raise ConfigError(f"{_WHERE} of a folder only ?{_WORKSPACE}=NAME can be said", "take the rest out")
        return FolderSource(pattern, place if separator else body, base, wanted, reader, set_up_alone)
    if scheme == "postgresql":
        return _database_source(place, others, wanted, reader)
    if scheme in _SCHEMES:
        return _bucket_source(scheme, place, others, wanted, reader)
    raise ConfigError(f"{_WHERE} {scheme}:// names no kind of place for states", f"known are {_FORMS}")


def _parts(pattern: str) -> tuple[str, str]:
    found = _QUERY.search(pattern)
    return (pattern[: found.start()], pattern[found.end() :]) if found else (pattern, "")


def _database_source(
    place: str, parameters: Sequence[tuple[str, str]], wanted: frozenset[str], reader: StateReader
) -> StateSource:
    url, behind = postgres_place(place, urlencode(parameters), _WHERE)
    if behind.strip("/"):
        raise ConfigError(f"{_WHERE} postgresql:// has more than a database", "name a schema with ?schema_name=SCHEMA")
    try:
        return DatabaseSource(f"postgresql://{place}", database_settings(url), wanted, reader)
    except RecordError as error:
        raise ConfigError(f"{_WHERE} {error.what}", error.advice) from error


def _bucket_source(
    scheme: str, place: str, parameters: Sequence[tuple[str, str]], wanted: frozenset[str], reader: StateReader
) -> StateSource:
    kind = _SCHEMES[scheme]
    own = {name: value for name, value in parameters if name in kind.own}
    query = urlencode([(name, value) for name, value in parameters if name not in kind.own])
    settings, keys = kind.place(place, query, _WHERE)
    return BucketSource(
        f"{scheme}://{place}",
        BUCKETS[kind.backend],
        {**settings, **own},
        KeyPattern(keys),
        wanted,
        reader,
        _records_in(scheme, settings, reader.config.records),
    )


def _records_in(scheme: str, settings: Settings, records: str) -> str:
    """Below which prefix of the same bucket `records:` lie; empty where they lie elsewhere."""
    body, query = _parts(records)
    other, _, place = body.partition("://")
    if other != scheme:
        return ""
    theirs, prefix = _SCHEMES[scheme].place(place, query, RECORDS_KEY)
    same = all(theirs.get(name) == settings.get(name) for name in _PLACE)
    return f"{prefix.strip('/')}/" if same and prefix.strip("/") else ""


@dataclass(frozen=True, slots=True)
class _Scheme:
    """A kind of bucket's URL: the backend that has its states there, what reads the URL, and the parameters that say
    something of the states and nothing of the place."""

    backend: str
    place: Callable[[str, str, str], tuple[dict[str, str], str]]
    own: frozenset[str] = frozenset()


_SCHEMES: Mapping[str, _Scheme] = {
    "s3": _Scheme("s3", s3_place, frozenset({"workspace_key_prefix"})),
    "gs": _Scheme("gcs", gcs_place),
    "azblob": _Scheme("azurerm", azblob_place),
}
