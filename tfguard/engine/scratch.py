"""Delete one object through the engine in a folder of its own: import it, leave its block out, apply.

No configuration has to be written for it, so that every importable type of every provider can go
(docs/facts/terraform.md, section 11). The folder holds a provider block, the state of this one object, and what the
engine said; whoever named it removes it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.backend import data_directory
from tfguard.engine.cautious import more_cautious, why_spared, with_final_snapshot
from tfguard.engine.diagnostics import Severity, diagnostic_of
from tfguard.engine.documents import Json, mapping, parse_json, sequence
from tfguard.engine.events import StreamReader
from tfguard.engine.host import engine_writing_to
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.process import Following, Launch, run_followed
from tfguard.engine.queries import captured
from tfguard.engine.short_errors import errors_in_text, short_error
from tfguard.engine.state import is_encrypted, parse_state
from tfguard.errors import InputError, OperationAliveError
from tfguard.model.cloud import OTHERS, cloud_of_source
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.failure import blocks_deletion
from tfguard.model.lease import ProcessIdentity
from tfguard.model.secrets import is_secret
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot
from tfguard.ports import Deletion, DeletionTarget, EngineExit, RunWatcher

_NAME = "orphan"
_CONFIGURATION = "main.tf.json"
_LOCK_FILE = ".terraform.lock.hcl"
_NOT_THERE = "Cannot import non-existent remote object"
# What the two SDKs for providers say of a resource that has no import at all.
_NO_IMPORT = re.compile(r"^resource \w+ doesn't support import\W*$|^Resource Import Not Implemented$")
_BUILTIN = "terraform.io/builtin/"
_GLOBAL = "global"
_NO_PROJECT = re.compile(r"(organizations|folders)/")

# Of no use for a delete; the names of tags may have dots in them.
_LEFT_OUT = frozenset({"alias", "default_labels", "default_tags", "ignore_tags", "version"})
# Of a map every key is a name of the user's, dots and digits in it mean nothing.
_MAPS = frozenset({"default_labels", "labels", "tags"})
_CREDENTIAL = re.compile(r"secret|token|password|private_key|access_key|api_key|credentials", re.IGNORECASE)
_FILE_SETTING = re.compile(r"(?:^|[._])(?:file|files\.\d+|credentials|bundle)$")
_FILE_VARIABLE = re.compile(r"(_FILE|_CREDENTIALS|_BUNDLE)$")
# Of the environment: what bends a command line, or means the stack and not this folder.
_OF_THE_STACK = ("TF_CLI_ARGS", "TF_VAR_", "TF_WORKSPACE", "TF_DATA_DIR", "TF_INPUT", "TF_IN_AUTOMATION")


def provider_block(settings: Mapping[str, str]) -> dict[str, object]:
    """The arguments of a provider block in JSON syntax, from settings whose nested names are dotted.

    `a.0` is an item of a list. `a.b` is an argument of the block `a`, or a key of the map `a`: both are objects there.
    """
    root: dict[str, object] = {}
    for name, value in settings.items():
        inner, parts = root, _parts(name)
        for part in parts[:-1]:
            below = inner.setdefault(part, {})
            if not isinstance(below, dict):
                below = inner[part] = {}
            inner = below
        if not isinstance(inner.get(parts[-1]), dict):
            inner[parts[-1]] = value
    return {name: _lists_in(value) for name, value in root.items()}


def _parts(name: str) -> list[str]:
    parts = name.split(".")
    at = next((i for i, part in enumerate(parts) if part in _MAPS), len(parts))
    return [*parts[: at + 1], ".".join(parts[at + 1 :])] if at + 1 < len(parts) else parts


def _lists_in(value: object, name: str = "") -> object:
    if not isinstance(value, dict):
        return value
    if name not in _MAPS and all(key.isdecimal() for key in value):
        return [_lists_in(value[key]) for key in sorted(value, key=int)]
    return {key: _lists_in(inner, key) for key, inner in value.items()}


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a command of the engine ended, and what it wrote."""

    exit: EngineExit
    events: Sequence[EngineEvent]
    stderr: str


class _Nobody:
    """Watches the commands that change nothing at the provider."""

    def started(self, process: ProcessIdentity) -> None:
        """Of no interest."""

    def event(self, event: EngineEvent) -> None:
        """Of no interest."""

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        """Of no interest: the command's end tells it too."""


_NOBODY = _Nobody()


@dataclass(frozen=True, slots=True)
class ScratchDeletion:
    """One object to delete in `directory`, with the provider settings, plugins and engine of the stack in `stack`.

    `environ` is the user's environment, with the user agent in it that the provider's calls shall carry.
    """

    installed: InstalledEngine
    stack: Path
    catalog: Catalog
    environ: Mapping[str, str]
    gate: SignalGate
    target: DeletionTarget
    directory: Path

    def prepare(self) -> Deletion:
        """Import the object into this folder alone, which changes nothing at the provider, and tell what was read.

        What an earlier try left in the folder is thrown away. Raises `OperationAliveError` while an engine still works
        in it, and `InputError` when it cannot be written.
        """
        if unknown := self._unknown_settings():
            names, key = ", ".join(unknown), self.target.provider.key
            return Deletion(None, errors=(f"{names} of the provider {key} is not known: it decides who would delete",))
        self._refuse_while_in_use()
        self._make_folder()
        initialised = self._run("init", self._init_arguments())
        if initialised.exit.exit_code != 0 or initialised.exit.interrupted:
            return self._failed(initialised, before=f"the provider {self._source} cannot be set up here: ")
        imported = self._run("import", ("-input=false", "-no-color", self._address, self.target.import_id))
        if imported.exit.exit_code != 0:
            return self._not_imported(imported)
        _, snapshot = self._state()
        read = self._only(snapshot)
        if read is None:
            return Deletion(None, errors=("the import brought something else than this one object",))
        return Deletion(True, read, interrupted=imported.exit.interrupted)

    def delete(self, watcher: RunWatcher, gives_up: Callable[[], bool] = lambda: False) -> Deletion:
        """Delete what `prepare` has imported, and nothing else. Can be called again after a refusal.

        While the provider tries, `gives_up` is asked whether that is to be ended, by one interrupt to the engine.
        Raises `OperationAliveError` while an engine still works in the folder.
        """
        self._refuse_while_in_use()
        document, snapshot = self._state()
        read = self._only(snapshot)
        if read is None:
            return Deletion(None, errors=("nothing was imported to be deleted",))
        attributes = _attributes_in(document)
        if spared := why_spared(self.target.type, attributes):
            held, advice = spared
            return Deletion(True, read, errors=(f"{held}, and the provider would undo that first",), advice=advice)
        if why := self._made_cautious(document, attributes):
            return Deletion(True, read, errors=(why,))
        self._write_configuration(with_resource=False)
        plan_file = self.directory / "plan"
        try:
            # Not refreshed: that would take back what makes it cautious.
            options = ("-json", "-input=false", "-refresh=false", f"-out={plan_file.name}")
            planned = self._run("plan", options)
            if planned.exit.exit_code != 0 or planned.exit.interrupted:
                return self._failed(planned, read, snapshot)
            if not self._deletes_this_alone(planned.events):
                return Deletion(True, read, errors=("the plan is not to delete this one object",))
            applied = self._run("apply", ("-json", "-input=false", plan_file.name), watcher, gives_up)
        finally:
            plan_file.unlink(missing_ok=True)
        gone = any(
            event.kind is EventKind.APPLY_COMPLETE and (event.address, event.action) == (self._address, "delete")
            for event in applied.events
        )
        if applied.exit.exit_code == 0 and gone:
            return Deletion(True, read, deleted=True, interrupted=applied.exit.interrupted)
        return self._failed(applied, read, snapshot)

    @property
    def _address(self) -> str:
        return f"{self.target.type}.{_NAME}"

    @property
    def _source(self) -> str:
        return self.target.provider.source

    def _unknown_settings(self) -> Sequence[str]:
        """The settings that decide whom the provider asks, or where, and whose values are not known."""
        known = {*self.target.provider.settings, *self._settings()}
        unknown = (name for name in self.target.provider.unresolved if name not in known)
        spare = _LEFT_OUT | (cloud_of_source(self._source) or OTHERS).spare
        return sorted(name for name in unknown if name.split(".")[0] not in spare)

    def _settings(self) -> Mapping[str, str]:
        """The settings of the provider block, with the object's own place, and files as this folder finds them."""
        place, cloud = self.target.place, cloud_of_source(self._source)
        left_out = _LEFT_OUT | cloud.made_up if cloud else _LEFT_OUT
        settings = {
            name: self._anchored(value) if _FILE_SETTING.search(name) else value
            for name, value in self.target.provider.settings.items()
            if name.split(".")[0] not in left_out
        }
        if place in (None, "", _GLOBAL) or _NO_PROJECT.match(place):
            return settings
        return {**settings, cloud.own_place if cloud else "region": place}

    def _anchored(self, value: str) -> str:
        """The name of a file, which the engine takes as relative to its working directory."""
        with suppress(OSError):  # a key itself may stand there, which is too long for a name
            path = self.stack / value
            return str(path.absolute()) if value and path.is_file() else value
        return value

    def _refuse_while_in_use(self) -> None:
        if engine_writing_to(self.directory):
            raise OperationAliveError(
                f"an engine still works in {self.directory}", "wait for its end, then run the command again"
            )

    def _make_folder(self) -> None:
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.directory.chmod(0o700)
            for left in self.directory.iterdir():
                if left.is_dir() and not left.is_symlink():
                    shutil.rmtree(left)
                else:
                    left.unlink()
            if (self.stack / _LOCK_FILE).is_file():
                shutil.copyfile(self.stack / _LOCK_FILE, self.directory / _LOCK_FILE)
            self._write_configuration(with_resource=True)
        except OSError as error:
            raise InputError(
                f"{self.directory} cannot be written: {error.strerror}", "make the working folder writable"
            ) from error

    def _write_configuration(self, *, with_resource: bool) -> None:
        """The provider block, and the resource that is imported. Every value is a variable's: none lies in a file."""
        local, version = self._source.rpartition("/")[2], self._version
        names = list(self._settings())
        required = {"source": self._source} | ({"version": version} if version else {})
        kept_nowhere = {"ephemeral": True} if self.installed.info.takes_variables_with_a_plan else {}
        document: dict[str, object] = {
            "terraform": {"required_providers": {local: required}},
            "provider": {local: provider_block({name: f"${{var.{_variable(i)}}}" for i, name in enumerate(names)})},
        }
        if names:
            declared = {"type": "string", "sensitive": True, **kept_nowhere}
            document["variable"] = {_variable(i): declared for i in range(len(names))}
        if with_resource:
            document["resource"] = {self.target.type: {_NAME: {"provider": local}}}
        (self.directory / _CONFIGURATION).write_text(json.dumps(document, indent=2) + "\n")

    @property
    def _version(self) -> str | None:
        return None if self._source.startswith(_BUILTIN) else self.installed.providers.get(self._source)

    def _init_arguments(self) -> Sequence[str]:
        """From the stack's own plugins, without the network; where it has none, as the engine is set up."""
        plugins = data_directory(self.stack, self.environ).absolute() / "providers"
        installed = self._version is not None and (plugins / self._source / self._version).is_dir()
        own = (f"-plugin-dir={plugins}",) if installed else ()
        return "-input=false", "-no-color", *own

    def _environment(self) -> Mapping[str, str]:
        kept = {
            name: self._anchored(value) if _FILE_VARIABLE.search(name) else value
            for name, value in self.environ.items()
            if not name.startswith(_OF_THE_STACK)
        }
        given = {f"TF_VAR_{_variable(i)}": value for i, value in enumerate(self._settings().values())}
        return {**kept, **given}

    def _run(
        self,
        command: str,
        arguments: Sequence[str],
        watcher: RunWatcher = _NOBODY,
        gives_up: Callable[[], bool] = lambda: False,
    ) -> _Ended:
        """Run one command as every changing command of the engine is run, in a session of its own, to its end."""
        for stream in ("stdout", "stderr"):
            (self.directory / f"{command}.{stream}").unlink(missing_ok=True)
        reader, events, said = StreamReader(), list[EngineEvent](), bytearray()

        def take(found: Sequence[EngineEvent]) -> None:
            events.extend(found)
            for event in found:
                watcher.event(event)

        following = Following(
            lambda chunk: take(reader.feed(chunk)),
            said.extend,
            watcher.started,
            watcher.interrupted,
            gives_up=gives_up,
        )
        ended = run_followed(self._launch(command, arguments), self.gate, following)
        take(reader.finish())
        return _Ended(ended, events, said.decode("utf-8", "replace"))

    def _launch(self, command: str, arguments: Sequence[str], answer: bytes | None = None) -> Launch:
        argv = [str(self.installed.binary), f"-chdir={self.directory}", command, *arguments]
        return Launch(argv, self._environment(), self.directory, command, answer=answer)

    def _state(self) -> tuple[Json, StateSnapshot]:
        """The state of this folder; through the engine where TF_ENCRYPTION has it encrypted, which costs half a second.

        Nothing for one of 0 bytes, which a kill can leave.
        """
        path = self.directory / "terraform.tfstate"
        data = path.read_bytes() if path.exists() else b""
        if is_encrypted(path):
            answer = captured(self.installed.binary, self.directory, "state", "pull", elsewhere=True)
            data = answer.stdout.encode() if answer.exit_code == 0 else b""
        if not data.strip():
            return {}, EMPTY_STATE
        snapshot = parse_state(data, str(self.directory), self.catalog)
        return mapping(parse_json(data)), snapshot

    def _only(self, snapshot: StateSnapshot) -> StateInstance | None:
        """The imported object, if the state holds it and nothing else."""
        alone = len(snapshot.instances) == 1 and snapshot.addresses == {self._address}
        return snapshot.instances[0] if alone else None

    def _made_cautious(self, document: Json, attributes: Json) -> str | None:
        """Change in the state what would let the delete do more, or without a last snapshot; why that cannot be."""
        resource, instance = _imported(document)
        snapshot = with_final_snapshot(attributes, self.target.final_snapshot) if self.target.final_snapshot else {}
        if self.target.final_snapshot and not snapshot:
            return f"no final snapshot can be taken of an {self.target.type}"
        changed = {**more_cautious(self.target.type, attributes), **snapshot}
        if not changed:
            return None
        held = {**instance, "attributes": {**attributes, **changed}}
        serial = document.get("serial")
        new = {
            **document,
            "serial": serial + 1 if isinstance(serial, int) else 1,
            "resources": [{**resource, "instances": [held]}],
        }
        launch = self._launch("state", ("push", "-"), json.dumps(new).encode())
        ended = run_followed(launch, self.gate, Following(_unheard, _unheard))
        return None if ended.exit_code == 0 else "the state of the import cannot be written"

    def _deletes_this_alone(self, events: Sequence[EngineEvent]) -> bool:
        planned = [event for event in events if event.kind is EventKind.PLANNED_CHANGE]
        return [(event.address, event.action) for event in planned] == [(self._address, "delete")]

    def _not_imported(self, ended: _Ended) -> Deletion:
        summaries = [summary for summary, _ in errors_in_text(ended.stderr)]
        if summaries == [_NOT_THERE] and not ended.exit.interrupted:
            return Deletion(False)
        failed = self._failed(ended)
        cannot = len(summaries) == 1 and _NO_IMPORT.search(summaries[0]) is not None
        return replace(failed, importable=not cannot or ended.exit.interrupted)

    def _failed(
        self,
        ended: _Ended,
        read: StateInstance | None = None,
        snapshot: StateSnapshot | None = None,
        before: str = "",
    ) -> Deletion:
        told = [
            (diagnostic.summary, diagnostic.detail)
            for diagnostic in (diagnostic_of(event) for event in ended.events if event.kind is EventKind.DIAGNOSTIC)
            if diagnostic.severity is Severity.ERROR
        ] or list(errors_in_text(ended.stderr))
        secrets = self._secrets() | (snapshot.secrets if snapshot else frozenset())
        errors = dict.fromkeys(before + _shown(summary, detail, secrets) for summary, detail in told)
        if not errors and ended.exit.exit_code:
            errors[f"{before}the engine ended with {ended.exit.exit_code}, and gave no reason"] = None
        return Deletion(
            found=True if read else None,
            read=read,
            errors=tuple(errors),
            blocked=any(blocks_deletion(f"{summary} {detail}") for summary, detail in told),
            interrupted=ended.exit.interrupted,
            raw=tuple(told),
        )

    def _secrets(self) -> frozenset[str]:
        """The credentials at hand, which a provider may quote."""
        both = (*self.target.provider.settings.items(), *self.environ.items())
        return frozenset(value for name, value in both if value and _CREDENTIAL.search(name))


def _shown(summary: str, detail: str, secrets: frozenset[str]) -> str:
    if is_secret(f"{summary} {detail}", secrets):
        return "an error that quotes a credential or a marked value; its words are withheld"
    return short_error(summary, detail)


def _imported(document: Json) -> tuple[Json, Json]:
    """The one resource in a state of this folder, and its instance."""
    resource = mapping(sequence(document.get("resources"))[0])
    return resource, mapping(sequence(resource.get("instances"))[0])


def _attributes_in(document: Json) -> Json:
    return mapping(_imported(document)[1].get("attributes"))


def _variable(number: int) -> str:
    return f"setting_{number}"


def _unheard(_chunk: bytes) -> None:
    """What `state push` says is of no interest beside its exit code."""
