"""Where `records:` may point to: one entry of `SCHEMES` for each scheme. A place with states is named in the same way.

`where` names what has the URL, for errors: `records:`, or a pattern of states. `place` and `query` are what of the URL
stands behind its scheme, before and behind the `?`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from tfguard.errors import ConfigError
from tfguard.ports import RecordStore
from tfguard.stores import azblob_client, gcs_client, postgres, postgres_client, s3_client
from tfguard.stores.local import LocalStore
from tfguard.stores.objects import ObjectStore
from tfguard.stores.postgres import PostgresStore

RECORDS_KEY = "records:"
_BOOLEANS = frozenset({"encrypt", "use_cli", "use_msi", "use_oidc", "use_path_style"})
_TRUTHS = frozenset({"true", "false", "1", "0"})
_ADDRESSES = frozenset({"endpoint", "metadata_host"})


@dataclass(frozen=True, slots=True)
class Scheme:
    """One kind of place: how its URL is written (for the user), what opens the part after `://` (a relative folder
    starts at the given one), and the parameters that may stand behind a `?`."""

    form: str
    open: Callable[[str, Path], RecordStore]
    parameters: frozenset[str] = frozenset()


def open_store(url: str, base: Path | None = None) -> RecordStore:
    """The store at `url`, whose path ends with the stack's own folder. A relative `file://DIR` starts at `base` (the
    folder of tfguard.yaml; None: the current one).

    Nothing is read or made yet. Raises `ConfigError` for a URL that names no store.
    """
    name, separator, rest = url.partition("://")
    scheme = SCHEMES.get(name) if separator else None
    if scheme is None:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise _refusal(f"{name}://" if separator else "the value", f"names no kind of store; known are {known}")
    return scheme.open(rest, base or Path())


def open_stores(url: str, base: Path | None = None) -> Callable[[str], RecordStore]:
    """What opens the store of each stack below `url`, a folder of its own there; over one connection for all of them.

    The function raises `ConfigError` for a URL that names no store.
    """
    first: list[RecordStore] = []

    def open_one(name: str) -> RecordStore:
        if not first:
            first.append(open_store(below(url, name), base))
        if isinstance(first[0], ObjectStore | PostgresStore):
            return first[0].sibling(name)
        return open_store(below(url, name), base)

    return open_one


def below(url: str, name: str) -> str:
    """The URL of the folder `name` in the place at `url`."""
    scheme, separator, rest = url.partition("://")
    place, question, query = rest.partition("?")
    return f"{scheme}{separator}{place.rstrip('/')}/{name}{question}{query}"


def known_forms() -> str:
    """What may stand in `records:`, for advice."""
    first, *others = (scheme.form for scheme in SCHEMES.values())
    return f"`{RECORDS_KEY} {first}` (or {', '.join(others)})"


def _open_local(rest: str, base: Path) -> RecordStore:
    if not rest or not rest.isprintable():
        raise _refusal("file://", "names no folder")
    return LocalStore(base / rest)


def _open_s3(rest: str, _base: Path) -> RecordStore:
    settings, prefix = s3_place(*_parts(rest))
    return s3_client.backend_store(settings, prefix.strip("/"))


def s3_place(place: str, query: str, where: str = RECORDS_KEY) -> tuple[dict[str, str], str]:
    """The settings of an s3 backend that reaches the bucket of a URL, and the prefix as written."""
    (bucket, prefix), parameters = _object_place("s3", place, query, where)
    return {**parameters, "bucket": bucket}, prefix


def _open_gcs(rest: str, _base: Path) -> RecordStore:
    settings, prefix = gcs_place(*_parts(rest))
    return gcs_client.backend_store(settings, prefix.strip("/"))


def gcs_place(place: str, query: str, where: str = RECORDS_KEY) -> tuple[dict[str, str], str]:
    """The settings of a gcs backend that reaches the bucket of a URL, and the prefix as written."""
    (bucket, prefix), parameters = _object_place("gs", place, query, where)
    if endpoint := parameters.pop("endpoint", ""):
        parameters["storage_custom_endpoint"] = endpoint
    return {**parameters, "bucket": bucket}, prefix


def _open_azblob(rest: str, _base: Path) -> RecordStore:
    settings, prefix = azblob_place(*_parts(rest))
    if not prefix.strip("/"):
        # The last part is the stack's own folder: where it is the second one, no container was named.
        raise _refusal("azblob://", f"names no container: it must be {SCHEMES['azblob'].form}")
    return azblob_client.backend_store(settings, prefix.strip("/"))


def azblob_place(place: str, query: str, where: str = RECORDS_KEY) -> tuple[dict[str, str], str]:
    """The settings of an azurerm backend that reaches the container of a URL, and the prefix as written."""
    (account, container, prefix), parameters = _object_place("azblob", place, query, where)
    # In the backend's settings, `endpoint` is that of the managed identity. There is no account key to look up here,
    # and without `use_cli` the identity is found as Azure's own tools find it.
    place_settings = {"storage_account_name": account, "container_name": container, "use_azuread_auth": "true"}
    if endpoint := parameters.pop("endpoint", ""):
        place_settings["blob_endpoint"] = endpoint
    return {"use_cli": "false", **parameters, **place_settings}, prefix


def _open_postgres(rest: str, _base: Path) -> RecordStore:
    url, stack = postgres_place(*_parts(rest))
    if not stack:
        raise _refusal("postgresql://", "names no database")
    return postgres.url_store(url, stack)


def postgres_place(place: str, query: str, where: str = RECORDS_KEY) -> tuple[str, str]:
    """The URL of a database, without what stands behind the database's name, and that. HOST may be empty, or have a
    port and a user.

    A refusal shows nothing of the place: a password that was not escaped could be anywhere in it.
    """
    login, at, address = place.rpartition("@")
    host, _, path = address.partition("/")
    database, _, stack = path.partition("/")
    if ":" in login or "/" in login:
        raise ConfigError(
            f"{where} postgresql:// has a password in it",
            "take it out, and give it in PGPASSWORD, in a password file (PGPASSFILE), or by PGSERVICE",
        )
    if not database or not (place + query).isprintable():
        raise _refusal("postgresql://", "names no database", where)
    _parameters("postgresql", query, where)
    return f"postgresql://{login}{at}{host}/{database}?{query}", stack


def _parts(rest: str) -> tuple[str, str]:
    place, _, query = rest.partition("?")
    return place, query


def _object_place(name: str, place: str, query: str, where: str) -> tuple[list[str], dict[str, str]]:
    """What the scheme's form names, the prefix last and as written, and the parameters. Raises `ConfigError`."""
    scheme = SCHEMES[name]
    before_prefix = scheme.form.count("/") - 2
    *names, prefix = place.split("/", before_prefix) if place.count("/") >= before_prefix else [*place.split("/"), ""]
    if len(names) < before_prefix or not all(names) or "@" in names[0]:
        raise _refusal(f"{name}://", f"must be {scheme.form}, without credentials", where)
    return [*names, prefix], _parameters(name, query, where)


def _parameters(name: str, query: str, where: str) -> dict[str, str]:
    """What stands behind the `?` of a URL of this scheme, without what is empty.

    Raises `ConfigError`, which shows no value: it could be a secret.
    """
    known = SCHEMES[name].parameters
    found: dict[str, str] = {}
    for parameter, value in parse_qsl(query, keep_blank_values=True):
        # A password with an unescaped `&` in it goes on as a parameter's name.
        if "@" in parameter or ("@" in value and ("://" in value or parameter in _ADDRESSES)):
            told = f"the parameter {parameter}" if parameter in known else "a parameter"
            raise ConfigError(
                f"{where} {name}:// has credentials in {told}",
                "take them out of the URL: credentials come from the environment",
            )
    for parameter, value in parse_qsl(query, keep_blank_values=True):
        if parameter not in known:
            raise ConfigError(
                f"{where} {name}:// has the parameter {parameter!r}; known are {', '.join(sorted(known))}",
                "take it out or correct its name; credentials come from the environment",
            )
        if parameter in found:
            raise ConfigError(f"{where} {name}:// has the parameter {parameter} twice", "take one of them out")
        if parameter in _BOOLEANS and value.lower() not in _TRUTHS:
            raise ConfigError(
                f"{where} the parameter {parameter} of {name}:// is neither true nor false",
                f"write {parameter}=true or {parameter}=false (or 1, 0)",
            )
        found[parameter] = value
    return {parameter: value for parameter, value in found.items() if value}


SCHEMES: Mapping[str, Scheme] = {
    "file": Scheme("file:///DIR", _open_local),
    "s3": Scheme(
        "s3://BUCKET/PREFIX",
        _open_s3,
        frozenset({"region", "profile", "endpoint", "use_path_style", "encrypt", "kms_key_id", "role_arn"}),
    ),
    "gs": Scheme(
        "gs://BUCKET/PREFIX",
        _open_gcs,
        frozenset({"endpoint", "impersonate_service_account", "kms_encryption_key", "universe_domain"}),
    ),
    "azblob": Scheme(
        "azblob://ACCOUNT/CONTAINER/PREFIX",
        _open_azblob,
        frozenset(
            {"client_id", "endpoint", "environment", "metadata_host", "tenant_id", "use_cli", "use_msi", "use_oidc"}
        ),
    ),
    "postgresql": Scheme("postgresql://HOST/DATABASE", _open_postgres, postgres_client.URL_PARAMETERS),
}


def _refusal(url: str, reason: str, where: str = RECORDS_KEY) -> ConfigError:
    forms = known_forms() if where == RECORDS_KEY else ", ".join(scheme.form for scheme in SCHEMES.values())
    return ConfigError(f"{where} {url} {reason}", f"write {forms}")
