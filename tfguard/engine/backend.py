"""Where a stack's state lives: the backend file, the workspace, and the location they make (docs/facts, section 4)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tfguard.engine.configuration import configuration_files
from tfguard.engine.documents import (
    Json,
    WrongShapeError,
    mapping,
    optional_object,
    optional_text,
    parse_json,
    scalar,
)
from tfguard.errors import InputError, NotInitialisedError, UsageError
from tfguard.model.engine import EngineInfo
from tfguard.model.operation import Stack

_TERRAFORM_BLOCK = re.compile(r"^[ \t]*terraform\s*\{", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?[ \t]*(\w+)[ \t]*$")
_BACKEND_BLOCK = re.compile(r'(?:^|[{}\s])(?:backend\s+"(\w+)"\s*\{|(cloud)\s*\{)', re.MULTILINE)
_CONNECTION_WORDS = re.compile(r"\b(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)", re.DOTALL)
_KIND = re.compile(r"[\w-]+", re.ASCII)
_CONNECTION_PLACE = ("host", "hostaddr", "port", "dbname")
_CONNECTION_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE"}
_S3_WORKSPACES = "env:"
_SUFFIX = ".tfstate"
_LINE_COMMENTS = re.compile(r"(?m)(?:#|//).*$|/\*[\s\S]*?(?:\*/|\Z)")

# What names a state, by backend: non-secret settings only, and the same from every machine. Environment variables that
# some backends read instead are stored as null in the backend file.
_NAMING: Mapping[str, tuple[str, ...]] = {
    "local": ("path", "workspace_dir"),
    "s3": ("bucket", "key", "workspace_key_prefix"),
    "gcs": ("bucket", "prefix"),
    "azurerm": ("storage_account_name", "container_name", "key"),
    "http": ("address",),
    "consul": ("address", "path"),
    "pg": ("conn_str", "schema_name"),
    "kubernetes": ("namespace", "secret_suffix"),
    "remote": ("hostname", "organization", "workspaces.name", "workspaces.prefix"),
    "cloud": ("hostname", "organization", "workspaces.project", "workspaces.name"),
    "oss": ("bucket", "prefix", "key"),
    "cos": ("bucket", "prefix", "key"),
    "oci": ("namespace", "bucket", "workspace_key_prefix", "key"),
}
# For a backend that is newer than this: two of its states must not share one record.
_NAMING_ANY = ("address", "bucket", "container", "path", "prefix", "key", "name")
_FROM_ENVIRONMENT: Mapping[tuple[str, str], str] = {
    ("http", "address"): "TF_HTTP_ADDRESS",
    ("pg", "conn_str"): "PG_CONN_STR",
    ("pg", "schema_name"): "PG_SCHEMA_NAME",
    ("pg", "skip_schema_creation"): "PG_SKIP_SCHEMA_CREATION",
    ("pg", "skip_table_creation"): "PG_SKIP_TABLE_CREATION",
    ("pg", "skip_index_creation"): "PG_SKIP_INDEX_CREATION",
    ("kubernetes", "namespace"): "KUBE_NAMESPACE",
    ("cloud", "hostname"): "TF_CLOUD_HOSTNAME",
    ("cloud", "organization"): "TF_CLOUD_ORGANIZATION",
    ("cloud", "workspaces.project"): "TF_CLOUD_PROJECT",
    ("consul", "address"): "CONSUL_HTTP_ADDR",
}


@dataclass(frozen=True, slots=True)
class StateLocation:
    """Where one stack's state lives.

    `settings` is the backend's flattened configuration, in memory only: it may hold credentials. `path` is the state
    file of a local backend; `by_flag` tells that `-state` named it, of which `state pull` knows nothing.
    """

    stack: Stack
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: Path | None = None
    by_flag: bool = False


def locate_state(
    directory: Path, environ: Mapping[str, str], state_flag: str | None = None, engine: EngineInfo | None = None
) -> StateLocation:
    """The location of the state of the stack in `directory` (the engine's working directory, after `-chdir`).

    `state_flag` is the value of `-state`; `engine` tells which configuration files are read. Raises
    `NotInitialisedError` when the directory has a backend but no `init` was run in it, `InputError` when the backend
    file cannot be read: guessing would look for the record in the wrong place.
    """
    data = data_directory(directory, environ)
    workspace = _workspace(data, environ)
    set_up = _backend_file(data)
    if set_up is None:
        declared = _declared_backend(directory, engine)
        if declared is not None and not (declared == "local" and state_flag):
            raise NotInitialisedError(
                f"{directory} is not initialised: its backend '{declared}' has not been set up",
                "run `tfguard init` there first",
            )
        return _local({}, directory, workspace, state_flag)
    kind, settings = set_up
    if kind == "local":
        return _local(settings, directory, workspace, state_flag)
    for (owner, name), variable in _FROM_ENVIRONMENT.items():
        if owner == kind and name not in settings and environ.get(variable):
            settings[name] = environ[variable]
    if kind == "pg" and not settings.get("conn_str"):
        settings["conn_str"] = _connection_of(environ)
    return StateLocation(Stack(kind, _remote_location(kind, settings, workspace), workspace, str(directory)), settings)


def data_directory(directory: Path, environ: Mapping[str, str]) -> Path:
    """The engine's data folder: TF_DATA_DIR, relative to the working directory, or `.terraform`."""
    return directory / (environ.get("TF_DATA_DIR") or ".terraform")


def s3_state_key(settings: Mapping[str, str], workspace: str) -> str:
    """The key of a workspace's state object in an S3 backend."""
    key, start = settings.get("key", ""), settings.get("workspace_key_prefix") or _S3_WORKSPACES
    return key if workspace == "default" else f"{start}/{workspace}/{key}"


def gcs_state_object(settings: Mapping[str, str], workspace: str) -> str:
    """The name of a workspace's state object in a Google Cloud Storage backend."""
    return posixpath.normpath(posixpath.join(settings.get("prefix", "").strip("/"), workspace + _SUFFIX))


def azurerm_state_blob(settings: Mapping[str, str], workspace: str) -> str:
    """The name of a workspace's state blob in an Azure Blob backend."""
    key = settings.get("key", "")
    return key if workspace == "default" else f"{key}env:{workspace}"


def s3_workspace_of(key: str, workspace_key_prefix: str = "") -> tuple[str, str]:
    """The workspace whose state has this key in an S3 bucket, and the `key` of its backend."""
    start = f"{workspace_key_prefix or _S3_WORKSPACES}/"
    workspace, slash, own = key.removeprefix(start).partition("/")
    return (workspace, own) if key.startswith(start) and workspace and slash and own else ("default", key)


def gcs_workspace_of(name: str) -> tuple[str, str] | None:
    """The workspace whose state has this name in a Google bucket, and the `prefix`; None where no backend wrote it."""
    prefix, _, file = name.rpartition("/")
    return (file.removesuffix(_SUFFIX), prefix) if file.endswith(_SUFFIX) and file != _SUFFIX else None


def azurerm_workspace_of(blob: str) -> tuple[str, str]:
    """The workspace whose state has this name in an Azure container, and the `key` of its backend."""
    key, mark, workspace = blob.rpartition("env:")
    return (workspace, key) if mark and key and workspace and "/" not in workspace else ("default", blob)


def remote_state(kind: str, settings: Mapping[str, str], workspace: str) -> StateLocation:
    """The location of a state that is known without its stack's folder; `settings` are its backend's."""
    return StateLocation(Stack(kind, _remote_location(kind, settings, workspace), workspace, ""), settings)


# What needs no escape in a URL's path (tfguard would make a folder of it, and the engine refuses the rest).
_WORKSPACE = re.compile(r"(?!\.\.?$)[A-Za-z0-9._~$&+=:@-]+")


def _workspace(data: Path, environ: Mapping[str, str]) -> str:
    if named := environ.get("TF_WORKSPACE"):
        if not _WORKSPACE.fullmatch(named):
            raise UsageError(f"TF_WORKSPACE names {named!r}, which is no valid workspace name", "correct TF_WORKSPACE")
        return named
    path = data / "environment"
    try:
        selected = path.read_text("utf-8").strip(" \t\r\n") or "default"
    except (FileNotFoundError, NotADirectoryError):
        return "default"
    except (OSError, UnicodeDecodeError) as error:
        raise _no_workspace(path) from error
    if not _WORKSPACE.fullmatch(selected):
        raise _no_workspace(path)
    return selected


def _no_workspace(path: Path) -> InputError:
    return InputError(
        f"{path}, which names the selected workspace, cannot be read or is damaged",
        "run `tfguard workspace select NAME`",
    )


def _backend_file(data: Path) -> tuple[str, dict[str, str]] | None:
    """The type and the settings of the backend that `init` has set up; None for a stack without one."""
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
        document = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(document, Mapping):
        raise _damaged(path)
    try:
        if document.get("backend") is None:
            return None
        backend = optional_object(document, "backend")
        kind = optional_text(backend, "type")
        config = optional_object(backend, "config")
        naming = _NAMING.get(kind, _NAMING_ANY)
        for name in naming:
            if "." not in name:
                optional_text(config, name)
        settings = dict(_flat(config, ""))
    except (WrongShapeError, RecursionError) as error:
        raise _damaged(path) from error
    # The place is named in what tfguard says; a connection string is never shown whole.
    shown = [settings.get(name, "") for name in naming if name != "conn_str"]
    sound = all("\0" not in name + value for name, value in settings.items())
    if not (sound and _KIND.fullmatch(kind) and all(map(str.isprintable, shown))):
        raise _damaged(path)
    return kind, settings


def _damaged(path: Path) -> InputError:
    return InputError(f"the backend file {path} is damaged", "run `tfguard init -reconfigure`")


def _declared_backend(directory: Path, engine: EngineInfo | None) -> str | None:
    for path in configuration_files(directory, engine):
        try:
            content = path.read_text(errors="replace")
        except OSError:
            continue
        if declared := _in_json(content) if path.suffix == ".json" else _in_hcl(content):
            return declared
    return None


def _in_hcl(content: str) -> str | None:
    bare = _LINE_COMMENTS.sub("", _without_heredocs(content))
    position = 0
    while start := _TERRAFORM_BLOCK.search(bare, position):
        block = _block(bare, start.end())
        if match := _BACKEND_BLOCK.search(block):
            return match[1] or match[2]
        position = start.end() + len(block)
    return None


def _without_heredocs(content: str) -> str:
    """The text without what stands in a heredoc; one that is never closed is none."""
    lines = content.split("\n")
    last = {line.strip(" \t"): number for number, line in enumerate(lines)}
    kept: list[str] = []
    until = ""
    for number, line in enumerate(lines):
        if until:
            until = "" if line.strip(" \t") == until else until
        elif (start := _HEREDOC.search(line)) and last.get(start[1], -1) > number:
            until = start[1]
            kept.append(line[: start.start()])
        else:
            kept.append(line)
    return "\n".join(kept)


def _block(content: str, start: int) -> str:
    """What stands in a block that begins there, down to its closing brace; braces in strings close nothing."""
    depth, quoted = 1, False
    for position in range(start, len(content)):
        char = content[position]
        if char == '"' and content[position - 1] != "\\":
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return content[start:position]
    return content[start:]


def _in_json(content: str) -> str | None:
    try:
        blocks = mapping(parse_json(content)).get("terraform")
    except (ValueError, RecursionError):
        return None
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
    path = path.parent.resolve() / path.name  # one state has one record, whichever link leads to its folder
    return StateLocation(Stack("local", str(path), workspace, str(directory)), settings, path, bool(state_flag))


def _remote_location(kind: str, settings: Mapping[str, str], workspace: str) -> str:
    if kind == "s3":
        return f"s3://{settings.get('bucket', '')}/{s3_state_key(settings, workspace)}"
    names = [name for name in _NAMING.get(kind, _NAMING_ANY) if name in settings]
    named = [(_database if name == "conn_str" else _without_credentials)(settings[name]) for name in names]
    suffix = "" if workspace == "default" else f"#{workspace}"
    return f"{kind}:{'/'.join(named)}{suffix}"


def _database(connection: str) -> str:
    """Where PostgreSQL's database is, of a connection string in either of its two forms."""
    if "://" in connection:
        return _without_credentials(connection)
    return "/".join(value for name, value in _CONNECTION_WORDS.findall(connection) if name in _CONNECTION_PLACE)


def _connection_of(environ: Mapping[str, str]) -> str:
    """The connection string that says of the place what the environment does."""
    words = {name: environ[variable] for name, variable in _CONNECTION_VARIABLES.items() if environ.get(variable)}
    escaped = {name: re.sub(r"[\s'\\]", r"\\\g<0>", value) for name, value in words.items()}
    return " ".join(f"{name}={value}" for name, value in escaped.items())


def _without_credentials(value: str) -> str:
    """A URL without user, password and query; any other text as it is."""
    if "://" not in value:
        return value
    try:
        parts = urlsplit(value)
    except ValueError:
        return value.partition("://")[0] + "://"  # no URL; nobody knows which part of it is a password
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
