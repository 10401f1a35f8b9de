"""Builds the adapters behind the ports; nobody else does."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tfguard.catalog.loader import load_catalog
from tfguard.cli.console import StderrConsole, SystemClock, UserStreams
from tfguard.cli.engine_choice import installed_engine, read_config
from tfguard.cli.invocation import Invocation
from tfguard.engine.backend import StateLocation, data_directory, locate_state, s3_state_key
from tfguard.engine.host import LocalHost
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.terraform import TerraformEngine
from tfguard.errors import RecordError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.records import Records
from tfguard.flows.verify import Surroundings
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.combined import CombinedInventory
from tfguard.model.config import BESIDE_STATE, Config
from tfguard.model.operation import Stack
from tfguard.ports import Inventory, RecordStore
from tfguard.stores.local import LocalStore


def stack_context(
    invocation: Invocation, gate: SignalGate, state_flag: str | None = None, *, will_list: bool = False
) -> StackContext:
    """Everything around the stack that the user stands in.

    `state_flag` is the value of `-state`; `will_list` loads a cloud's SDK in the background, where the stack uses that
    cloud. Raises `UsageError` when `-chdir` names no folder.
    """
    if not invocation.directory.is_dir():
        raise UsageError(f"{invocation.directory} is not a folder", "correct -chdir")
    config, config_path = read_config(invocation)
    installed = installed_engine(invocation, config.engine)
    location = locate_state(invocation.directory, os.environ, state_flag)
    store = record_store(location, config, config_path)
    clock, host, catalog = SystemClock(gate), LocalHost(), load_catalog()
    engine = TerraformEngine(
        installed, location, catalog, dict(os.environ), invocation.engine_arguments, UserStreams(), gate
    )
    around = Surroundings(_inventory(installed, will_list), catalog, config, clock, StderrConsole())
    known = _known_states(config, config_path)
    return StackContext(location.stack, engine, Records(store, clock, host), around, host, known)


def _known_states(config: Config, config_path: Path | None) -> tuple[Path, ...]:
    """The local state files below the patterns of `scan.stacks`: other stacks, whose objects nobody may adopt twice."""
    if config_path is None:
        return ()
    patterns = [pattern for pattern in config.scan.stacks if "://" not in pattern]
    here = config_path.parent
    found = {here / name for pattern in patterns for name in glob.glob(pattern, root_dir=here, recursive=True)}  # noqa: PTH207
    files = {path / "terraform.tfstate" if path.is_dir() else path for path in found}
    return tuple(sorted(path.absolute() for path in files if path.suffix == ".tfstate" and path.is_file()))


def _inventory(installed: InstalledEngine, will_list: bool) -> Inventory:
    aws = AwsInventory(load_catalog())
    if will_list and any(source.endswith("/aws") for source in installed.providers):
        aws.warm_up()
    return CombinedInventory([aws])


def run_folder(invocation: Invocation, stack: Stack) -> Path:
    """Where the private folders of a stack's runs lie: in the engine's data folder, which nobody commits.

    Each workspace has its own, since only its own record tells which of them are still needed.
    """
    return data_directory(invocation.directory, os.environ) / "tfguard" / _stack_name(stack)


def record_store(location: StateLocation, config: Config, config_path: Path | None) -> RecordStore:
    """Where the stack's record lives: beside the state, or below `records:`.

    Raises `RecordError` with the line to add where a backend has no place beside the state that tfguard can write.
    """
    stack = location.stack
    if config.records != BESIDE_STATE:
        from tfguard.stores.urls import open_store

        return open_store(_below(config.records, _stack_name(stack)), config_path.parent if config_path else None)
    if location.path is not None:
        return LocalStore(location.path.with_name(location.path.name + ".tfguard"))
    if stack.backend == "s3":
        from tfguard.stores.s3_client import backend_store

        return backend_store(location.settings, s3_state_key(location.settings, stack.workspace) + ".tfguard")
    raise RecordError(
        f"tfguard cannot keep records beside a state in the backend '{stack.backend}'",
        "add `records: file:///DIR` or `records: s3://BUCKET/PREFIX` to tfguard.yaml",
    )


def _stack_name(stack: Stack) -> str:
    """A folder name for one state below a shared `records:` place: readable, and never the same for two states."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", stack.location).strip("-.")[-60:].strip("-.")
    digest = hashlib.sha256(f"{stack.backend}\0{stack.location}\0{stack.workspace}".encode()).hexdigest()[:10]
    return f"{readable}-{digest}"


def _below(url: str, name: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
