"""States on this machine: files, folders, patterns of them, and the stacks whose folders these are.

A folder means all below it: its state files, and each stack in it that `init` has set up, through its backend. A folder
whose configuration has a backend that was not set up is a state that cannot be read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tfguard.engine.backend import StateLocation, data_directory, locate_state
from tfguard.engine.configuration import configuration_files
from tfguard.engine.workspaces import EngineStates
from tfguard.errors import InputError, NotInitialisedError, TfguardError
from tfguard.model.engine import EngineInfo
from tfguard.model.operation import Stack
from tfguard.model.state import StateSnapshot
from tfguard.ports import KnownState
from tfguard.states.kind import no_state
from tfguard.states.places import BY_BACKEND
from tfguard.states.reader import StateReader
from tfguard.stores.local import LocalStore
from tfguard.stores.state_patterns import HEAD, RECORD_SUFFIX, Glob, has_wildcard, is_companion, is_state_name

_STATE = "terraform.tfstate"
_WORKSPACES = "terraform.tfstate.d"
_NOT_ENTERED = frozenset({".terraform", ".git"})

_READS_MOST = EngineInfo("tofu", "1.99.0")
"""Stands for any engine, where it only matters which files may be configuration."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Of the stacks in folders, `set_up_alone` passes over those whose backend `init` has not set up (else a state that
    cannot be read), and `files_alone` those whose backend is not on this machine."""

    set_up_alone: bool = False
    files_alone: bool = False


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The states that `path`, or a pattern of paths, means. A relative one counts from `base`.

    `pattern` is what the user wrote. `wanted` are the workspaces, empty for all of them.
    """

    pattern: str
    path: str
    base: Path
    wanted: frozenset[str]
    reader: StateReader
    stacks: Stacks = field(default_factory=Stacks)

    def read(self) -> Iterator[KnownState]:
        """Each state, and each that was never written while a run has begun to."""
        looked = _Look(self.reader, self.base, self.wanted, self.stacks)
        path = self.base / self.path
        found = False
        if has_wildcard(self.path) and not path.exists():
            states = self._matching(looked)
        elif path.is_dir():
            states = looked.below(path)
        elif os.path.lexists(path) or _begun(path):
            states = looked.file(path)
        else:
            states = iter(())
        for state in states:
            found = True
            yield state
        if not found:
            raise no_state(self.pattern, self.wanted)

    def _matching(self, looked: _Look) -> Iterator[KnownState]:
        # The folder up to the first wildcard may have such a character in its name; what comes behind is matched.
        folder, slash, _ = Glob(self.path).start.rpartition("/")
        fixed = folder + slash
        yield from looked.matching(Path(os.path.normpath(self.base / fixed)), Glob(self.path[len(fixed) :]))


@dataclass(slots=True)
class _Look:
    """One walk: what it has met already is not met again."""

    reader: StateReader
    base: Path
    wanted: frozenset[str]
    stacks: Stacks
    entered: set[tuple[Path, bool]] = field(default_factory=set)
    seen: set[Path] = field(default_factory=set)

    def below(self, folder: Path) -> Iterator[KnownState]:
        """Everything in a folder and below it."""
        return self._walk(folder, folder, None)

    def matching(self, root: Path, glob: Glob) -> Iterator[KnownState]:
        """Everything below a folder that a pattern matches; of a folder that it matches, everything."""
        if root.is_dir():
            yield from self._walk(root, root, glob)

    def file(self, path: Path) -> Iterator[KnownState]:
        """One state file, whatever its name."""
        path = path.parent.resolve() / path.name
        workspace = path.parent.name if path.parent.parent.name == _WORKSPACES else "default"
        if path in self.seen or (self.wanted and workspace not in self.wanted):
            return
        self.seen.add(path)
        folder = path.parent.parent.parent if workspace != "default" else path.parent
        yield self._in_file(StateLocation(Stack("local", str(path), workspace, str(folder)), {}, path), path)

    def _walk(self, folder: Path, root: Path, glob: Glob | None) -> Iterator[KnownState]:
        name = "" if folder == root else folder.relative_to(root).as_posix()
        if glob and _means(glob, name):
            glob = None  # all that comes is meant
        met = (folder.resolve(), glob is None)
        if met in self.entered:
            return  # a link leads back
        self.entered.add(met)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield KnownState(str(folder), "", None, f"the folder {folder} cannot be read: {error.strerror}")
            return
        folders = {entry.name for entry in entries if _is_folder(entry)}
        if glob is None:
            yield from self._in_folder(folder, {entry.name for entry in entries}, folders)
        for entry in entries:
            path = folder / entry.name
            if entry.name in folders:
                own = entry.name in _NOT_ENTERED or entry.name.endswith(RECORD_SUFFIX)
                if not own and path != data_directory(folder, os.environ):
                    yield from self._walk(path, root, glob)
            elif glob and _fits(glob, path.relative_to(root).as_posix()):
                yield from self.file(path)

    def _in_folder(self, folder: Path, names: set[str], folders: set[str]) -> Iterator[KnownState]:
        """The states that a folder has itself: its stack's, and what is named as a state and is none of `folders`."""
        stack = self._stack(folder)
        if isinstance(stack, KnownState):
            yield stack
            stack = None
        if stack is not None and not (self.stacks.files_alone and stack.path is None):
            yield from self._of_stack(stack, folder)
        if stack is not None and stack.path is None:
            # What is left of the time before the backend was moved.
            left = {folder.resolve() / _STATE, *(folder.resolve() / _WORKSPACES).glob(f"*/{_STATE}")}
            self.seen.update(left)
        begun = {name.removesuffix(RECORD_SUFFIX) for name in names if name.endswith(RECORD_SUFFIX)}
        for name in sorted(names | begun):
            path = folder / name
            if is_state_name(name) and (name in names - folders or _begun(path)):
                yield from self.file(path)

    def _stack(self, folder: Path) -> StateLocation | KnownState | None:
        """Where the folder's stack has its state; a failure where that is not known, None without a stack."""
        set_up = data_directory(folder, self._environment(folder, "default")) / _STATE
        if not set_up.exists() and not any(configuration_files(folder, _READS_MOST)):
            return None
        try:
            return locate_state(folder, self._environment(folder, "default"), engine=_READS_MOST)
        except NotInitialisedError as error:
            return None if self.stacks.set_up_alone else KnownState(str(folder), "", None, error.what)
        except InputError as error:
            return KnownState(str(folder), "", None, error.what)

    def _environment(self, folder: Path, workspace: str) -> dict[str, str]:
        """The environment in which a folder's stack is located in one workspace."""
        environ = {**os.environ, "TF_WORKSPACE": workspace}
        if Path(environ.get("TF_DATA_DIR", "")).is_absolute() and folder != self.base:
            del environ["TF_DATA_DIR"]  # one folder for all stacks tells of one of them alone: that of this command
        return environ

    def _of_stack(self, stack: StateLocation, folder: Path) -> Iterator[KnownState]:
        """The states of a stack through its backend."""

        def located(workspace: str) -> StateLocation:
            return locate_state(folder, self._environment(folder, workspace), engine=_READS_MOST)

        try:
            if stack.path is not None:
                yield from self._local_stack(stack, located)
            elif (kind := BY_BACKEND.get(stack.stack.backend)) and not kind.engine_alone(stack.settings):
                yield from kind.of_stack(located, self.reader, self.wanted)
            else:
                yield from self._through_the_engine(folder, located)
        except TfguardError as error:
            yield KnownState(stack.stack.location, "", None, error.what)

    def _local_stack(self, stack: StateLocation, located: Callable[[str], StateLocation]) -> Iterator[KnownState]:
        folder = Path(stack.stack.directory) / stack.settings.get("workspace_dir", _WORKSPACES)
        others = [path.name for path in sorted(folder.glob("*")) if path.is_dir()]
        for workspace in ("default", *others):
            if self.wanted and workspace not in self.wanted:
                continue
            location = located(workspace)
            path = location.path
            if path is not None and path not in self.seen and (os.path.lexists(path) or _begun(path)):
                self.seen.add(path)
                yield self._in_file(location, path)

    def _through_the_engine(self, folder: Path, located: Callable[[str], StateLocation]) -> Iterator[KnownState]:
        states = EngineStates(self.reader.engine(), folder)
        for workspace in states.workspaces():
            if not self.wanted or workspace in self.wanted:
                yield self._pulled(states, located(workspace))

    def _pulled(self, states: EngineStates, location: StateLocation) -> KnownState:
        stack = location.stack
        return self.reader.known(
            location,
            lambda: states.pull(stack.workspace, stack.location),
            lambda data: self.reader.decrypted(data, stack.location),
            self.reader.records(location, None),
        )

    def _in_file(self, location: StateLocation, path: Path) -> KnownState:
        return self.reader.known(
            location,
            lambda: _content(path),
            lambda data: self._decrypted(data, location, path),
            self.reader.records(location, lambda: LocalStore(path.with_name(path.name + RECORD_SUFFIX))),
        )

    def _decrypted(self, data: bytes, location: StateLocation, path: Path) -> StateSnapshot:
        """An encrypted file by the key in the environment, else by that in the configuration of its folder."""
        if os.environ.get("TF_ENCRYPTION"):
            return self.reader.decrypted(data, str(path))
        return self.reader.encrypted(Path(location.stack.directory)).in_file(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """What may not be looked at counts as a folder, which then cannot be read; a link to itself is nothing."""
    try:
        return entry.is_dir()
    except PermissionError:
        return True
    except OSError:
        return False


def _content(path: Path) -> bytes | None:
    """The bytes of a state; None for one that a run has begun to make. Whatever else is not there is no empty state: a
    share may not be mounted. Raises `InputError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is waited for by default
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _unreadable(path, "it is no regular file")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        if path.is_symlink():
            raise _unreadable(path, "it is a link to what is not there") from error
        if not _begun(path):
            raise _unreadable(path, "it is not there any more") from error
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from error


def _unreadable(path: Path, reason: str) -> InputError:
    return InputError(f"the state at {path} cannot be read: {reason}", "check what lies there, and its permissions")


def _means(glob: Glob, folder: str) -> bool:
    """Whether a pattern means a folder; the one that it starts in has no name."""
    if not folder:
        return glob.text.startswith("**") and glob.matches("")
    return glob.matches(folder) or glob.matches(f"{folder}/")


def _fits(glob: Glob, name: str) -> bool:
    return glob.matches(name) and not is_companion(name) and (is_state_name(name) or not glob.is_open)


def _begun(path: Path) -> bool:
    """Whether a run has begun to make a state."""
    return Path(f"{path}{HEAD}").is_file()
