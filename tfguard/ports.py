"""The few things that the flows need from outside, as Protocols; `cli/wiring.py` alone builds what is behind them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from tfguard.model.action import ActionAnswer
from tfguard.model.audit import AuditAnswer
from tfguard.model.credentials import Expiry
from tfguard.model.engine import EngineInfo
from tfguard.model.event import EngineEvent
from tfguard.model.importing import Draft, ImportTarget, ImportTrouble, WrittenImport
from tfguard.model.inventory import CloudObject, Detail, Listing, Scope
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.lock import StateLock
from tfguard.model.operation import Actor, ErroredState, StreamHealth
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.request import Approval, ChangeRequest, RepairRequest
from tfguard.model.scan import Shard
from tfguard.model.state import StateInstance, StateSnapshot


class Clock(Protocol):
    """Time, so that tests can move it; and whether the user still has some."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal has asked to stop."""
        ...

    def now(self) -> datetime:
        """The time in UTC."""
        ...

    def sleep(self, seconds: float) -> bool:
        """Wait; False, and early, when the user interrupts."""
        ...


class Host(Protocol):
    """This machine and this process, and what can be told of others."""

    def actor(self) -> Actor:
        """Who runs this command, with the CI job where there is one."""
        ...

    def process(self) -> ProcessIdentity:
        """This process."""
        ...

    def boot(self) -> str:
        """The id of this boot of this machine; empty where the system has none."""
        ...

    def runs(self, process: ProcessIdentity) -> bool:
        """Whether a process of this host still runs."""
        ...

    def engine_writes_to(self, run_directory: Path) -> bool:
        """Whether an engine, with or without its tfguard, still writes to a run's folder."""
        ...

    def lease(self, operation_id: str, run_directory: str | None, now: datetime, expires_at: datetime) -> Lease:
        """A lease held by this process for an operation."""
        ...

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:
        """Whether a lease's holder lives: by pid and start time on this host, by the lease's expiry elsewhere.

        `now` tells the time as the holder's own clock would, and is called only where that is asked for.
        """
        ...


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of one record document, the version to hand back when replacing it, and when it was written, by the
    store's own clock."""

    data: bytes
    version: str
    written_at: datetime


class RecordStore(Protocol):
    """Moves named bytes durably, and knows nothing of what they mean.

    Names are relative paths with `/`. Every method raises `RecordError` when the place cannot be read or written.
    A write has reached the medium (fsync, or an acknowledged conditional write) when the method returns.
    """

    @property
    def location(self) -> str:
        """Where the records lie, for a person; no credential in it."""
        ...

    def check_writable(self) -> None:
        """Raise `RecordError` when it can be told, without leaving anything behind, that a write would fail."""
        ...

    def now(self) -> datetime | None:
        """The time by the clock that dates the documents, and need not be this host's; None where it is not told."""
        ...

    def read(self, name: str) -> Blob | None:
        """The document, or None when there is none."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Write a document that must not exist yet; `ConflictError` when it does."""
        ...

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document if it still has the version `expected` (None: must not exist); else `ConflictError`."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Add whole lines to a journal, behind what any other writer has added."""
        ...

    def read_journal(self, name: str) -> bytes:
        """All that was appended under `name`, in order; empty when nothing was."""
        ...

    def names(self, prefix: str) -> Sequence[str]:
        """The names of the documents and journals below `prefix` (a folder, without a trailing slash), sorted."""
        ...

    def remove(self, name: str, content: bytes) -> None:
        """Remove a document or journal that holds just this; `ConflictError` when it holds anything else.

        One that is not there is no error. Only what is kept elsewhere may be removed.
        """
        ...

    def move_aside(self, name: str) -> str:
        """Keep a document that cannot be trusted under another name, and tell that name; it is never overwritten."""
        ...


class Inventory(Protocol):
    """Lists what exists at one or more clouds. A refusal is a gap in the answer, never an exception.

    The `place` of a question overrides the provider configuration's own, as a resource may have one of its own: a
    region of AWS, a project of Google Cloud (or `organizations/N`, `folders/N` for what lies right there).
    """

    def covers(self, resource_type: str) -> bool:
        """Whether objects of the type can be listed at all."""
        ...

    def list(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Listing:
        """Every object of the type in the one account that the provider configuration works in.

        All pages are read; anything less is a gap.
        """
        ...

    def list_many(
        self, resource_types: Iterable[str], provider: ProviderConfig, place: str | None = None, /
    ) -> Iterator[Listing]:
        """The listing of each of these types, in no order; what they share is asked for once.

        Of a configuration that reaches several accounts (an organization's) there is one for each of these and type,
        also where it has no objects. Each type is answered at least once.
        """
        ...

    def place(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Scope | None:
        """Where a listing would look, without listing; None where that cannot be told."""
        ...

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        """The same object with creation time and tags, where the listing lacks them and another call gives them; and
        whether its own service still has it, where the type's own call tells.

        Where such a call is refused, that is the gap of the answer; that there are none is an answer.
        """
        ...


class CloudActions(Protocol):
    """The few calls of tfguard's own that change an object at its provider.

    Each is made once, through the provider configuration that is given, and only in the object's own account; nothing
    is forced. Whatever is in the way is in the answer, never an exception.
    """

    def delete(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Delete an object by its type's own call, in the gentlest form that the service has."""
        ...

    def restore(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Bring an object back into use that is deleted and only waits for its end."""
        ...

    def tag(self, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]) -> ActionAnswer:
        """Put these tags on an object, beside those that it has."""
        ...

    def untag(self, found: CloudObject, provider: ProviderConfig, names: Collection[str]) -> ActionAnswer:
        """Take these tags from an object."""
        ...


class ShardLister(Protocol):
    """Lists many places at once, for a scan."""

    def list(self, shards: Sequence[Shard], done: Callable[[Shard], None]) -> Iterator[Listing]:
        """The listing of every type of every shard, as each comes in, in no order; `done` is told each shard that has
        been listed. A refusal, a crash of a worker included, is a gap in a listing, never an exception and never left
        out: each type of each shard is answered once."""
        ...


@dataclass(frozen=True, slots=True)
class KnownState:
    """One state that a scan subtracts; without a `snapshot`, `failure` says why it could not be read.

    `location` names it for a person, without credentials. `records` is where the operations of its stack are recorded;
    None where no place beside the state can be told.
    """

    location: str
    workspace: str
    snapshot: StateSnapshot | None
    failure: str = ""
    records: RecordStore | None = None


class StateSource(Protocol):
    """The states that one pattern of `scan.stacks` or of the command line means."""

    @property
    def pattern(self) -> str:
        """The pattern as it was given, without credentials."""
        ...

    def read(self) -> Iterator[KnownState]:
        """Each state, read when it is its turn. One that cannot be read is told in its `failure`.

        Raises `InputError` when the pattern matches nothing, or when the place cannot be listed: which states there
        are is then not known. Can be called again, and reads anew.
        """
        ...


class AuditLog(Protocol):
    """Who made an object, as the cloud's own log tells it: evidence, and never proof."""

    def creations(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> AuditAnswer:
        """The calls that made these objects, the most important first, as far as the log may be read.

        A refusal is a note in the answer, never an exception.
        """
        ...


@dataclass(frozen=True, slots=True)
class EngineExit:
    """How an engine process ended: `exit_code` as a shell shows it (128 + N for signal N)."""

    exit_code: int
    signal: int | None = None
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ApplyExit:
    """How an apply ended, and how well its event stream could be read."""

    exit: EngineExit
    health: StreamHealth


@dataclass(frozen=True, slots=True)
class ImportProbe:
    """What the engine itself says about an object: `exists` is None when it could not tell."""

    exists: bool | None
    detail: str
    import_id: str = ""


@dataclass(frozen=True, slots=True)
class DeletionTarget:
    """One object to delete through the engine, outside the stack's configuration.

    `provider` is one of the stack's configurations. `place` is the object's own region or project and overrides the
    provider's; None leaves that. `final_snapshot` names the snapshot that is taken of it first; empty: none is.
    """

    type: str
    import_id: str
    provider: ProviderConfig
    place: str | None = None
    final_snapshot: str = ""


@dataclass(frozen=True, slots=True)
class Deletion:
    """How far the engine has come with deleting an object.

    `found` is False when the engine itself says that there is none, None when it could not tell. What is not
    `importable` the provider cannot import at all. `read` is what it read of the object. `deleted` is the engine's word
    that it is gone; without it, it may be gone all the same. `errors` are for a person, one short line each, without
    secrets. `raw` is what the engine said, which may quote one: in memory only, for whoever tells the kind of error.
    `blocked` tells that something else that hangs on the object or lies in it has to go first. `advice` is what to do
    where the engine was not even asked to delete it, since the provider would undo what keeps it; `errors` say that.
    """

    found: bool | None
    read: StateInstance | None = None
    deleted: bool = False
    errors: tuple[str, ...] = ()
    blocked: bool = False
    interrupted: bool = False
    importable: bool = True
    advice: str = ""
    raw: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)


class RunWatcher(Protocol):
    """What a flow wants to know while the engine applies."""

    def started(self, process: ProcessIdentity) -> None:
        """The engine runs now, as this process."""
        ...

    def event(self, event: EngineEvent) -> None:
        """One event of the engine's stream."""
        ...

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        """tfguard got a signal; `forwarded` tells whether the engine was sent an interrupt for it."""
        ...


class Engine(Protocol):
    """The engine, in one working directory and workspace."""

    @property
    def info(self) -> EngineInfo:
        """Its name and version."""
        ...

    def show_plan(self, plan_file: Path) -> Plan:
        """The plan in a plan file, reduced. Raises `InputError` for a file that this engine cannot read as a plan."""
        ...

    def plan(self, request: ChangeRequest, plan_file: Path, run_directory: Path) -> EngineExit:
        """Plan into `plan_file`, in the engine's own human form on the user's stdout."""
        ...

    def quiet_plan(self, arguments: Sequence[str], plan_file: Path) -> str | None:
        """Plan into `plan_file` without showing it, touching nothing; None when it worked, else why not."""
        ...

    def ask(self, request: ChangeRequest, plan: Plan) -> Approval:
        """Put the engine's own question to the user, exactly as it would, and take the answer."""
        ...

    def apply(
        self,
        request: ChangeRequest,
        plan_file: Path,
        run_directory: Path,
        user_agent: str,
        watcher: RunWatcher,
        plan: Plan,
    ) -> ApplyExit:
        """Apply a plan file in a session of its own, and follow it to its end, however long that takes.

        `user_agent` is added to what the provider tells the cloud about itself. `plan` is what the file holds: the
        engine's stream does not tell all of it.
        """
        ...

    def leftover_events(self, run_directory: Path) -> tuple[Sequence[EngineEvent], StreamHealth] | None:
        """The event stream of an apply whose wrapper died, read from its run directory; None when it is not there."""
        ...

    def pull_state(self) -> StateSnapshot:
        """The state as its backend holds it. Raises `InputError` when it cannot be read, never an empty state."""
        ...

    def read_state_file(self, path: Path) -> StateSnapshot:
        """The state in a file that is not the backend's. Raises `InputError` when it cannot be read."""
        ...

    def errored_state(self) -> ErroredState | None:
        """An `errored.tfstate` in the working directory, found by looking for the file, whatever was said of it."""
        ...

    def repair(self, request: RepairRequest, run_directory: Path, user_agent: str, watcher: RunWatcher) -> ApplyExit:
        """Run one of the engine's other changing commands as the user typed it, and follow it to its end."""
        ...

    def lock(self) -> StateLock | None:
        """The engine's lock on the state, as far as it can be found out without taking it away; None when none is."""
        ...

    def push_state(self, path: Path) -> EngineExit:
        """`state push`; the engine itself refuses another lineage or a lower serial."""
        ...

    def discard_import_blocks(self) -> None:
        """Remove import blocks that a killed adoption left in the configuration; nobody else's are touched."""
        ...

    def plan_imports(
        self, targets: Sequence[ImportTarget], draft: str, arguments: Sequence[str], plan_file: Path
    ) -> tuple[ImportTrouble, ...]:
        """Plan into `plan_file` what imports these targets, with drafted configuration beside the stack's own, without
        showing it and touching nothing. Empty when it worked, else why not. A block that the configuration has already
        is not written once more.

        Raises `InputError` when the folder cannot be written.
        """
        ...

    def draft(
        self,
        targets: Sequence[ImportTarget],
        references: Mapping[str, str],
        arguments: Sequence[str],
        secrets: frozenset[str],
        folder: Path,
    ) -> Draft:
        """Configuration for targets whose addresses have none, tried until a plan agrees with it; nothing is kept.

        `references` are expressions to be written in the place of whole values, `secrets` are values that must not
        stand in it. `folder` is private and empty, and takes plans. Raises as `plan_imports` does.
        """
        ...

    def declares(self, address: str) -> bool:
        """Whether the configuration has the resource of an address; of one in a module only a plan can tell: yes."""
        ...

    def written_imports(self) -> Sequence[WrittenImport]:
        """The import blocks that the configuration has, whether or not they are applied."""
        ...

    def probe_import(self, address: str, import_id: str, arguments: Sequence[str]) -> ImportProbe:
        """Ask the engine whether an object exists, by planning an import block for it."""
        ...

    def prepare_deletion(self, target: DeletionTarget, directory: Path, user_agent: str) -> Deletion:
        """Import an object into a private folder of its own, which changes nothing, and tell what the engine read.

        What an earlier try left in `directory` is thrown away. Raises `OperationAliveError` while an engine still works
        in it, and `InputError` when it cannot be written.
        """
        ...

    def delete_object(
        self,
        target: DeletionTarget,
        directory: Path,
        user_agent: str,
        watcher: RunWatcher,
        gives_up: Callable[[], bool],
    ) -> Deletion:
        """Delete what `prepare_deletion` has imported into `directory`, and nothing else; nothing is forced.

        A provider may try for a long time what something else blocks: while it does, `gives_up` is asked whether the
        engine is to be interrupted, once.
        The object is not read again, so that both belong right after each other. Can be repeated after a refusal.
        Raises `OperationAliveError` while an engine still works in it.
        """
        ...


class Credentials(Protocol):
    """What is known of how long a run's credentials last."""

    def expiries(self, providers: Sequence[ProviderConfig]) -> Sequence[Expiry]:
        """Every end that is written down for the environment, these providers and the backend, the earliest first."""
        ...


class Console(Protocol):
    """tfguard's own words to the user; the engine's output does not pass here."""

    def say(self, text: str) -> None:
        """One line on stderr."""
        ...

    def warn(self, text: str) -> None:
        """One line that should be noticed, on stderr."""
        ...

    def confirm(self, question: str) -> bool:
        """Ask yes or no on a terminal; without one the answer is no."""
        ...

    def ask(self, question: str) -> str | None:
        """The line that is typed or piped in as an answer; None when none comes."""
        ...
