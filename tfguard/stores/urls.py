"""Where `records:` may point to: one entry for each scheme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from tfguard.errors import ConfigError
from tfguard.ports import RecordStore
from tfguard.stores.local import LocalStore
from tfguard.stores.s3_client import backend_store

_S3_PARAMETERS = frozenset({"region", "profile", "endpoint", "use_path_style", "encrypt", "kms_key_id", "role_arn"})


def open_store(url: str, base: Path | None = None) -> RecordStore:
    """The store at `url`. A relative `file://DIR` starts at `base` (the folder of tfguard.yaml; None: the current one).

    Nothing is read or made yet. Raises `ConfigError` for a URL that names no store.
    """
    scheme, separator, rest = url.partition("://")
    opener = SCHEMES.get(scheme) if separator else None
    if opener is None:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise _refusal(f"{scheme}://" if separator else "the value", f"names no kind of store; known are {known}")
    return opener(rest, base or Path())


def _open_local(rest: str, base: Path) -> RecordStore:
    if not rest or not rest.isprintable():
        raise _refusal("file://", "names no folder")
    return LocalStore(base / rest)


def _open_s3(rest: str, _base: Path) -> RecordStore:
    place, _, query = rest.partition("?")
    bucket, _, prefix = place.partition("/")
    if not bucket or "@" in bucket:
        raise _refusal("s3://", "must be s3://BUCKET/PREFIX, without credentials")
    parameters = dict(parse_qsl(query))
    if unknown := sorted(parameters.keys() - _S3_PARAMETERS):
        raise _refusal(
            f"s3://{place}", f"has the parameter {unknown[0]}; known are {', '.join(sorted(_S3_PARAMETERS))}"
        )
    return backend_store({**parameters, "bucket": bucket}, prefix.strip("/"))


SCHEMES: Mapping[str, Callable[[str, Path], RecordStore]] = {"file": _open_local, "s3": _open_s3}


def _refusal(url: str, reason: str) -> ConfigError:
    return ConfigError(f"records: {url} {reason}", "write `records: file:///DIR` or `records: s3://BUCKET/PREFIX`")
