"""Where a stack's state lives: the backend file, the workspace, and the location they make (docs/facts, section 4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tfguard.engine.documents import Json, mapping, scalar, text
from tfguard.errors import InputError
from tfguard.model.operation import Stack

_BACKEND_BLOCK = re.compile(r'^\s*(?:backend\s+"(\w+)"\s*\{|(cloud)\s*\{)', re.MULTILINE)
_LINE_COMMENTS = re.compile(r"(?m)(?:#|//).*$|/\*[\s\S]*?\*/")

# What names a state, by backend: non-secret settings only. Environment variables that some backends read instead
# are stored as null in the backend file.
_NAMING: Mapping[str, tuple[str, ...]] = {
    "s3": ("bucket", "key", "workspace_key_prefix"),
    "gcs": ("bucket", "prefix"),
    "azurerm": ("storage_account_name", "container_name", "key"),
    "http": ("address",),
    "consul": ("address", "path"),
    "pg": ("schema_name",),
    "kubernetes": ("namespace", "secret_suffix"),
    "remote": ("hostname", "organization"),
    "cloud": ("hostname", "organization"),
}
_FROM_ENVIRONMENT: Mapping[tuple[str, str], str] = {
    ("http", "address"): "TF_HTTP_ADDRESS",
    ("pg", "schema_name"): "PG_SCHEMA_NAME",
    ("consul", "address"): "CONSUL_HTTP_ADDR",
}


@dataclass(frozen=True, slots=True)
class StateLocation:
    """Where one stack's state lives.

    `settings` is the backend's flattened configuration, in memory only: it may hold credentials. `path` is the state
    file of a local backend.
    """

    stack: Stack
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: Path | None = None


def locate_state(directory: Path, environ: Mapping[str, str], state_flag: str | None = None) -> StateLocation:
    """The location of the state of the stack in `directory` (the engine's working directory, after `-chdir`).

    `state_flag` is the value of `-state`. Raises `InputError` when the directory has a backend but no `init` was run
    in it, or when the backend file cannot be read: guessing would look for the record in the wrong place.
    """
    data = data_directory(directory, environ)
    workspace = _workspace(data, environ)
    document = _backend_file(data)
    if document is None:
        declared = _declared_backend(directory)
        if declared is not None and not (declared == "local" and state_flag):
            raise InputError(
                f"{directory} is not initialised: its backend '{declared}' has not been set up",
                "run `tfguard init` there first",
            )
        return _local({}, directory, workspace, state_flag)
    backend = mapping(document.get("backend"))
    kind = text(backend.get("type"))
    settings = dict(_flat(mapping(backend.get("config")), ""))
    if kind == "local":
        return _local(settings, directory, workspace, state_flag)
    for (owner, name), variable in _FROM_ENVIRONMENT.items():
        if owner == kind and name not in settings and environ.get(variable):
            settings[name] = environ[variable]
    return StateLocation(Stack(kind, _remote_location(kind, settings, workspace), workspace, str(directory)), settings)


def data_directory(directory: Path, environ: Mapping[str, str]) -> Path:
    """The engine's data folder: TF_DATA_DIR, relative to the working directory, or `.terraform`."""
    return directory / (environ.get("TF_DATA_DIR") or ".terraform")


def s3_state_key(settings: Mapping[str, str], workspace: str) -> str:
    """The key of a workspace's state object in an S3 backend."""
    key = settings.get("key", "")
    return key if workspace == "default" else f"{settings.get('workspace_key_prefix') or 'env:'}/{workspace}/{key}"


def _workspace(data: Path, environ: Mapping[str, str]) -> str:
    if named := environ.get("TF_WORKSPACE"):
        return named
    try:
        return (data / "environment").read_text().strip() or "default"
    except OSError:
        return "default"


def _backend_file(data: Path) -> Json | None:
    path = data / "terraform.tfstate"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"the backend file {path} cannot be read: {error.strerror}", "check its permissions"
        ) from error
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the backend file {path} is damaged", "run `tfguard init -reconfigure`") from error
    return mapping(document) if mapping(mapping(document).get("backend")).get("type") else None


def _declared_backend(directory: Path) -> str | None:
    for path in sorted(directory.glob("*.tf")):
        try:
            content = _LINE_COMMENTS.sub("", path.read_text(errors="replace"))
        except OSError:
            continue
        if match := _BACKEND_BLOCK.search(content):
            return match[1] or match[2]
    return _declared_in_json(directory)


def _declared_in_json(directory: Path) -> str | None:
    for path in sorted(directory.glob("*.tf.json")):
        try:
            document = mapping(json.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError):
            continue
        blocks = document.get("terraform")
        for block in blocks if isinstance(blocks, list) else [blocks]:
            if names := list(mapping(mapping(block).get("backend"))):
                return names[0]
            if "cloud" in mapping(block):
                return "cloud"
    return None


def _flat(config: Json, prefix: str) -> list[tuple[str, str]]:
    """Nested blocks and lists as dotted names: `assume_role.role_arn` (of a list of blocks the first), `files.0`."""
    found: list[tuple[str, str]] = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            found += _flat(value[0], f"{prefix}{name}.")
        elif isinstance(value, list):
            found += _flat({str(index): item for index, item in enumerate(value)}, f"{prefix}{name}.")
        elif (plain := scalar(value)) is not None:
            found.append((prefix + name, plain))
    return found


def _local(settings: Mapping[str, str], directory: Path, workspace: str, state_flag: str | None) -> StateLocation:
    if state_flag:
        path = directory / state_flag
    elif workspace == "default":
        path = directory / settings.get("path", "terraform.tfstate")
    else:
        path = directory / settings.get("workspace_dir", "terraform.tfstate.d") / workspace / "terraform.tfstate"
    return StateLocation(Stack("local", str(path), workspace, str(directory)), settings, path)


def _remote_location(kind: str, settings: Mapping[str, str], workspace: str) -> str:
    if kind == "s3":
        return f"s3://{settings.get('bucket', '')}/{s3_state_key(settings, workspace)}"
    named = [_without_credentials(settings[name]) for name in _NAMING.get(kind, ()) if name in settings]
    suffix = "" if workspace == "default" else f"#{workspace}"
    return f"{kind}:{'/'.join(named)}{suffix}"


def _without_credentials(value: str) -> str:
    """A URL without user, password and query; any other text as it is."""
    parts = urlsplit(value)
    if not parts.scheme or not parts.netloc:
        return value
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
