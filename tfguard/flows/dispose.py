"""Delete stray objects: shown, asked for, looked at again, deleted through the engine, and verified absent (rule 13).

Each stage is in the ledger before the next begins, so that whoever comes after a kill knows what was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from tfguard.catalog.permissions import api_name
from tfguard.errors import InterruptedRunError, TfguardError, UsageError
from tfguard.flows.blockers import Patience, hanging_on, ids_of, told, told_of
from tfguard.flows.context import StackContext
from tfguard.flows.known_states import is_this_object, known_states, refuse_if_known
from tfguard.flows.retain import decided_object
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.settle import settle_those_that_saw
from tfguard.flows.stray_findings import OwnOperations, findings_with, refuse_tainted
from tfguard.flows.stray_look import NOBODY_TO_ASK, ProviderOf, Waits, object_now, provider_of, region_of
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.durations import in_words
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.failure import wants_final_snapshot
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.model.retention_tags import told_by
from tfguard.model.state import StateSnapshot
from tfguard.ports import Deletion, DeletionTarget
from tfguard.reconcile.disposal import (
    DestroyRules,
    Refusal,
    changed_since,
    in_order,
    refusal,
)

_SHOWN = 8
_LEFT = "nothing is forced; mend what is said there, then run it again"
_BLOCKED = "nothing is forced; delete or detach what hangs on it or lies in it first, then run it again"
_NAME_SNAPSHOT = "name the snapshot that is to be taken of it first with --final-snapshot NAME"
_NOT_BEGUN = "interrupted before it was begun"
_AGAIN = "look again: `tfguard orphans destroy` with the same finding goes on"


@dataclass(frozen=True, slots=True)
class DestroyOptions:
    """What the user has allowed: objects that hold data, how many at once, and which by name without a question.

    `arguments` are the `-var` and `-var-file` of the stack, where its provider has to be read from the configuration.
    `wait` is how long a deletion is tried that something blocks. `final_snapshot` names the snapshot that is taken of
    the one object, a database, before it goes.
    """

    reason: str
    stateful: bool = False
    most: int = 10
    yes: bool = False
    confirmed: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    wait: timedelta = timedelta(minutes=2)
    final_snapshot: str = ""


@dataclass(frozen=True, slots=True)
class Disposed:
    """What became of one finding: `stage` is the last that was reached, None where nothing was begun."""

    finding_id: str
    object: CloudObject
    stage: DestroyStage | None
    what: str
    advice: str = ""

    @property
    def absent(self) -> bool:
        """Whether the object was verified to be gone."""
        return self.stage is DestroyStage.ABSENT


@dataclass(frozen=True, slots=True)
class _Target:
    """A finding with its object as it is now, and the provider configuration through which it is deleted."""

    finding: Finding
    object: CloudObject
    provider: ProviderConfig

    @property
    def name(self) -> str:
        """What has to be typed."""
        return self.object.name or self.object.import_id

    @property
    def region(self) -> str | None:
        """The region to ask, None for what exists once in an account."""
        return region_of(self.object)


def destroy_orphans(
    context: StackContext,
    ids: Sequence[str],
    known: Sequence[Finding],
    options: DestroyOptions,
    folder: Path,
    provider_of: ProviderOf,
) -> Sequence[Disposed]:
    """Delete the objects of these findings, one after the other, what hangs on others first.

    Raises `UsageError` before anything is shown for an id that is none of `known` or more ids than allowed, and
    `OperationAliveError` when another run holds the stack. What becomes of each is told, and stands in the ledger.
    """
    findings = findings_with(ids, known)
    refuse_tainted(findings)
    if bare := [finding for finding in findings if finding.object is None]:
        raise UsageError(
            f"{bare[0].id} is {bare[0].verdict.value}: there is no object that could be deleted",
            f"see `tfguard orphans show {bare[0].id}`",
        )
    if len(findings) > options.most:
        raise UsageError(
            f"{len(findings)} objects are more than {options.most} at once", "name fewer, or allow more with --max N"
        )
    if options.final_snapshot:
        if len(findings) > 1:
            raise UsageError("--final-snapshot names the snapshot of one object", "delete the others without it")
        options = replace(options, reason=f"{options.reason}; final snapshot {options.final_snapshot}")
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id) as upkeep:
        directory = open_run_folder(folder, operation_id, context.host, context.records.head().open_operations)
        try:
            run = _Run(context, options, directory, operation_id, provider_of, _Watcher(context, upkeep))
            done = run.all_of(findings)
        finally:
            close_run_folder(directory, operation_id, context.records)
        settle_those_that_saw(context, {one.finding_id for one in done if one.absent}, options.arguments)
    return done


class _Watcher:
    """Lets the lease name the engine that deletes, and passes on what the user should see."""

    def __init__(self, context: StackContext, upkeep: Upkeep) -> None:
        self._console = context.console
        self._upkeep = upkeep
        self.patience: Patience | None = None

    def started(self, process: ProcessIdentity) -> None:
        """The engine runs as this process."""
        self._upkeep.engine_runs(process)

    def event(self, event: EngineEvent) -> None:
        """Lets the patience begin with the deletion; the engine's errors come with its answer."""
        if event.kind is EventKind.APPLY_START and self.patience is not None:
            self.patience.begins()

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        """A signal came."""
        what = "passed on to the engine" if forwarded else "the engine has it from the terminal"
        self._console.warn(f"{signal_name}: {what}; waiting for it to end")


class _Run:
    """One `orphans destroy`."""

    def __init__(
        self,
        context: StackContext,
        options: DestroyOptions,
        directory: Path,
        operation_id: str,
        provider_of: ProviderOf,
        watcher: _Watcher,
    ) -> None:
        self._context = context
        self._watcher = watcher
        self._user_agent = f"tfguard/{operation_id}"
        self._around = context.around
        self._options = options
        self._directory = directory
        self._provider_of = provider_of
        self._own = OwnOperations(context.records)
        scan = context.around.config.scan.aws
        self._rules = DestroyRules(
            options.stateful,
            context.around.config.consistency_grace,
            tuple(account.id for account in scan.accounts) if scan else (),
        )

    def all_of(self, findings: Sequence[Finding]) -> Sequence[Disposed]:
        """Look, ask, delete and verify."""
        done: list[Disposed] = []
        targets: list[_Target] = []
        states = tuple(known_states(self._context, self._context.state_before()))
        for finding in findings:
            looked = self._look(finding, states)
            (targets if isinstance(looked, _Target) else done).append(looked)  # type: ignore[arg-type]
        holding_data = [target for target in targets if target.object.stateful]
        for target in holding_data[1:]:
            # Never in bulk (rule 13): each has to be thought of by itself.
            targets.remove(target)
            why = Refusal("it holds data, and so does another that is named here", "delete what holds data one by one")
            done.append(_not_begun(target.finding, target.object, why))
        order = in_order(self._around.catalog, [target.object for target in targets])
        targets.sort(key=lambda target: order.index(target.object))
        approved = []
        for target in targets:
            self._show(target)
            if self._approves(target):
                approved.append(target)
            else:
                advice = f"type its name; without a terminal give --yes --confirm '{target.name}'"
                done.append(_not_begun(target.finding, target.object, Refusal("not approved", advice)))
        for target in approved:
            self._note(target, DestroyStage.REQUESTED, self._options.reason)
        if approved:
            # Somebody may have adopted one while the question was asked.
            states = tuple(known_states(self._context, self._context.state_before()))
        done += [self._delete(target, states) for target in approved]
        return done

    def _look(self, finding: Finding, states: Sequence[tuple[str, StateSnapshot]]) -> _Target | Disposed:
        """The object as it is now; else why it is left alone, or that it is gone already."""
        found = finding.object
        assert found is not None
        provider = provider_of(self._context, finding, found, self._options.arguments, self._provider_of)
        if provider is None:
            against = refusal(finding, found, self._rules, self._context.clock.now())
            return _not_begun(finding, found, against or NOBODY_TO_ASK)
        target = _Target(finding, found, provider)
        now = self._now(target)
        if now is None:
            self._note(target, DestroyStage.ABSENT, "it was gone already")
            return Disposed(finding.id, found, DestroyStage.ABSENT, "it is gone already: looked for, and not there")
        if isinstance(now, Waits):
            self._note(target, DestroyStage.ABSENT, f"{now.what}; it was not deleted again", now.found.gone_after)
            return Disposed(finding.id, found, DestroyStage.ABSENT, f"{now.what}; it is not deleted again", now.advice)
        if isinstance(now, Refusal):
            return _not_begun(finding, found, now)
        target = replace(target, object=now)
        against = self._changed(target) or refusal(finding, now, self._rules, self._context.clock.now())
        against = against or _held_by(finding, states)
        return _not_begun(finding, now, against) if against else target

    def _now(self, target: _Target) -> CloudObject | Refusal | None:
        """The object as a list tells it now; None where it is surely gone."""
        if not self._around.inventory.covers(target.object.type):
            return target.object  # the engine itself is asked, before it deletes anything
        return object_now(self._around, target.object, target.provider)

    def _changed(self, target: _Target) -> Refusal | None:
        if changes := changed_since(target.finding, target.object):
            return Refusal(
                f"it has changed since it was found: {', '.join(changes)}",
                "look at it, then find it anew: `tfguard recover`, or a scan",
            )
        return None

    def _show(self, target: _Target) -> None:
        found, finding = target.object, target.finding
        say = self._context.console.say
        say(f"{finding.id}: {found.type} {found.import_id}{f' ({found.name})' if found.name else ''}")
        say(f"  in {found.cloud} {found.account} {found.region}; {finding.verdict.value}, {finding.confidence.value}")
        if found.created_at:
            age = in_words(self._context.clock.now() - found.created_at)
            say(f"  created {found.created_at:%Y-%m-%d %H:%M}Z, {age} ago")
        else:
            say("  when it was created is not told")
        say("  it HOLDS DATA" if found.stateful else "  it is not of a kind that holds data")
        if self._options.final_snapshot:
            say(f"  its final snapshot {self._options.final_snapshot} is taken first")
        if self._is_deleted_by_call(found):
            say(f"  no engine can import it: it is deleted by {self._call_for(found)}")
        if tagged := told_by(found.tags):
            say(f"  evidence: {tagged}")
        for item in finding.evidence:
            say(f"  evidence: {item.kind.value}: {item.detail}")
        hanging, gaps = hanging_on(self._around, target.object, target.provider)
        for child in hanging[:_SHOWN]:
            say(f"  on it hangs {told(child)}")
        if len(hanging) > _SHOWN:
            say(f"  and {len(hanging) - _SHOWN} more objects")
        if not hanging:
            say("  nothing that can be listed hangs on it")
        for gap in gaps[:_SHOWN]:
            say(f"  not looked at: {gap.scope}: {gap.reason}")

    def _approves(self, target: _Target) -> bool:
        if self._options.yes:
            return target.name in self._options.confirmed
        return self._context.console.ask(f"Type {target.name} to delete it:") == target.name

    def _delete(self, target: _Target, states: Sequence[tuple[str, StateSnapshot]]) -> Disposed:
        """Look once more, then delete and verify; whatever stops it is in the ledger."""
        if self._context.clock.interrupted:
            self._note(target, DestroyStage.STOPPED, _NOT_BEGUN)
            return Disposed(target.finding.id, target.object, DestroyStage.STOPPED, _NOT_BEGUN, _AGAIN)
        try:
            looked = self._look(replace(target.finding, object=target.object), states)
            if isinstance(looked, Disposed):
                if not looked.absent:
                    self._note(target, DestroyStage.STOPPED, looked.what)
                return replace(looked, stage=looked.stage or DestroyStage.STOPPED)
            self._note(target, DestroyStage.IN_PROGRESS, self._options.reason)
            stopped = self._try_to_delete(target) or self._verified(target)
        except InterruptedRunError:
            raise
        except TfguardError as error:
            stopped = Refusal(error.what, error.advice)
        if stopped is None:
            self._note(target, DestroyStage.ABSENT, self._options.reason)
            return Disposed(target.finding.id, target.object, DestroyStage.ABSENT, "deleted, and verified to be gone")
        if isinstance(stopped, Waits):
            reason = f"{self._options.reason}; {stopped.what}"
            self._note(target, DestroyStage.ABSENT, reason, stopped.found.gone_after)
            what = f"deleted, and verified: {stopped.what}"
            return Disposed(target.finding.id, target.object, DestroyStage.ABSENT, what, stopped.advice)
        self._note(target, DestroyStage.STOPPED, stopped.what)
        return Disposed(target.finding.id, target.object, DestroyStage.STOPPED, stopped.what, stopped.advice)

    def _try_to_delete(self, target: _Target) -> Refusal | None:
        """Import into a scratch folder, compare, and delete, once: the provider itself tries what is blocked again.

        What cannot be imported is deleted by its type's own call.
        """
        engine, found = self._context.engine, target.object
        if self._is_deleted_by_call(found):
            return self._by_call(target)
        snapshot = self._options.final_snapshot
        wanted = DeletionTarget(found.type, found.import_id, target.provider, target.region, snapshot)
        directory = self._directory / target.finding.id
        imported = engine.prepare_deletion(wanted, directory, self._user_agent)
        if imported.found is False:
            return None
        if not imported.importable and self._call_for(found):
            return self._by_call(target)
        if not imported.found:
            return Refusal(f"the engine cannot import it: {_said(imported)}", _LEFT)
        if imported.read is not None and not is_this_object(imported.read, found):
            return Refusal("the engine reads another object under this id", "look at it, then find it anew")
        patience = self._patience_with(target)
        self._watcher.patience = patience
        done = engine.delete_object(wanted, directory, self._user_agent, self._watcher, patience.is_over)
        if done.deleted:
            return None
        if done.interrupted:
            return Refusal("interrupted while it was deleted; whether it is gone was not verified", _AGAIN)
        if any(map(wants_final_snapshot, done.errors)):
            return Refusal(f"the engine could not delete it: {_said(done)}", _NAME_SNAPSHOT)
        within = f" within {in_words(self._options.wait)}" if patience.over else ""
        return self._not_deleted(
            target, f"the engine could not delete it{within}: {_said(done)}", done.blocked or patience.over
        )

    def _patience_with(self, target: _Target) -> Patience:
        """The bound for a deletion that is tried again while the object is there, and something hangs on it."""

        def blocked() -> bool:
            there = isinstance(self._now(target), CloudObject)
            return there and bool(hanging_on(self._around, target.object, target.provider)[0])

        return Patience(self._context.clock, self._options.wait, blocked)

    def _not_deleted(self, target: _Target, what: str, blocked: bool) -> Refusal:
        """Why it is still there; what is in the way is named with all that tells whose it is, where lists tell it."""
        if not blocked:
            return Refusal(what, _LEFT)
        hanging, _ = hanging_on(self._around, target.object, target.provider)
        if not hanging:
            return Refusal(what, _BLOCKED)
        return Refusal(f"{what}; on it hangs {ids_of(hanging)}", f"{_BLOCKED}: {told_of(hanging)}")

    def _call_for(self, found: CloudObject) -> str | None:
        """The call that deletes such an object; None where none is known."""
        kind = self._around.catalog.get(found.type)
        return api_name(kind.delete.operation) if kind and kind.delete and self._context.actions else None

    def _is_deleted_by_call(self, found: CloudObject) -> bool:
        kind = self._around.catalog.get(found.type)
        return kind is not None and not kind.importable and self._call_for(found) is not None

    def _by_call(self, target: _Target) -> Refusal | None:
        """Make the call that deletes it, once. What was not answered is left for the look afterwards to tell."""
        assert self._context.actions is not None
        if self._options.final_snapshot:
            return Refusal("no engine can import it, so that no final snapshot can be taken", _LEFT)
        answer = self._context.actions.delete(target.object, target.provider)
        if not answer.refused or answer.absent or answer.unanswered:
            return None
        return self._not_deleted(target, f"it could not be deleted: {answer.refused}", answer.blocked)

    def _verified(self, target: _Target) -> Refusal | None:
        """Look until the object is gone, for as long as the consistency grace lasts; `Waits` counts as gone."""
        if not self._around.inventory.covers(target.object.type):
            wanted = DeletionTarget(target.object.type, target.object.import_id, target.provider, target.region)
            again = self._context.engine.prepare_deletion(wanted, self._directory / "verify", self._user_agent)
            return None if again.found is False else Refusal("the engine can still import it", _AGAIN)
        end = self._context.clock.now() + max(self._rules.grace, timedelta(seconds=2))
        while True:
            now = self._now(target)
            if now is None or isinstance(now, Waits):
                return now
            if self._context.clock.now() >= end or not self._context.clock.sleep(2):
                what = now.what if isinstance(now, Refusal) else "it is still there"
                return Refusal(f"its deletion was asked for, and that it is gone is not verified: {what}", _AGAIN)

    def _note(self, target: _Target, stage: DestroyStage, reason: str, until: datetime | None = None) -> None:
        found = target.object
        self._context.records.decide(
            [
                Disposition(
                    finding_id=target.finding.id,
                    kind=DispositionKind.DESTROY,
                    at=self._context.clock.now(),
                    actor=self._context.host.actor().signature,
                    reason=reason,
                    operation_id=self._own.of(target.finding),
                    address=target.finding.address,
                    import_id=found.import_id,
                    until=until,
                    stage=stage,
                    object=decided_object(found),
                )
            ]
        )


def _not_begun(finding: Finding, found: CloudObject, why: Refusal) -> Disposed:
    return Disposed(finding.id, found, None, why.what, why.advice)


def _held_by(finding: Finding, states: Sequence[tuple[str, StateSnapshot]]) -> Refusal | None:
    """What every known state is searched for first: an object that one of them has is nobody's to delete here."""
    try:
        for where, state in states:
            refuse_if_known(state, where, finding)
    except UsageError as error:
        return Refusal(error.what, "it is managed: delete it with its own stack")
    return None


def _said(deletion: Deletion) -> str:
    return "; ".join(deletion.errors) or "it does not say why"
