"""Delete stray objects: shown, asked for, looked at again, deleted through the engine, and verified absent (rule 13).

Each stage is in the ledger before the next begins, so that whoever comes after a kill knows what was under way.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.permissions import api_name
from tfguard.errors import InterruptedRunError, RecordError, TfguardError, UsageError
from tfguard.flows.blockers import Patience, hanging_on, ids_of, told, told_of, told_of_none
from tfguard.flows.configured_accounts import ConfiguredAccounts
from tfguard.flows.context import StackContext
from tfguard.flows.known_states import is_held, is_this_object, known_states, refuse_if_known
from tfguard.flows.retain import decided_object
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.settle import settle_those_that_saw
from tfguard.flows.stray_findings import OwnOperations, findings_with, refuse_tainted
from tfguard.flows.stray_look import (
    NOBODY_TO_ASK,
    ProviderOf,
    Waits,
    object_now,
    provider_of,
    seen_at,
    surely_now,
)
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.model.cloud import CLOUDS, location_of, own_place_of
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind, LedgerDamage, latest
from tfguard.model.durations import in_words
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.failure import wants_final_snapshot
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject, Gap
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.model.retention_tags import are_own, is_kept_by, told_by
from tfguard.model.secrets import is_secret
from tfguard.model.state import StateSnapshot
from tfguard.ports import Deletion, DeletionTarget
from tfguard.reconcile.disposal import (
    DestroyRules,
    Refusal,
    changed_since,
    in_order,
    refusal,
)
from tfguard.reconcile.failures import classify

_SHOWN = 8
_LEFT = "nothing is forced; mend what is said there, then run it again"
_BLOCKED = "nothing is forced; delete or detach what hangs on it or lies in it first, then run it again"
_NAME_SNAPSHOT = "name the snapshot that is to be taken of it first with --final-snapshot NAME"
_NOT_BEGUN = "interrupted before it was begun"
_AGAIN = "look again: `tfguard orphans destroy` with the same finding goes on"
_STOPPED = "tfguard could not go on; why is in the run's output, not in the record"
_CANNOT_IMPORT = "the engine cannot import it"
_CANNOT_DELETE = "the engine could not delete it"
_NEVER_SEEN = Refusal(
    "whether it is gone cannot be told: the engine finds nothing under its id, and no list has such objects",
    "look for it at the provider: the region, the account or the form of the id may be another one",
)


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
    """A finding with its object as it is now, the provider configuration through which it is deleted, and what hangs
    on it, as far as that can be listed.

    What the finding itself has of the object is what a record may keep: a look shows names that it withholds.
    """

    finding: Finding
    object: CloudObject
    provider: ProviderConfig
    hanging: Sequence[CloudObject] = ()
    gaps: Sequence[Gap] = ()

    @property
    def name(self) -> str:
        """What has to be typed."""
        return self.object.name or self.object.import_id

    @property
    def names(self) -> tuple[str, ...]:
        """What approves it, the most exact first: its ARN, its import id, its name."""
        return tuple(dict.fromkeys(name for name in (self.object.arn, self.object.import_id, self.name) if name))

    @property
    def place(self) -> str | None:
        """The region or the project to ask, None where the provider configuration alone tells."""
        return own_place_of(self.object)


def destroy_orphans(
    context: StackContext,
    ids: Sequence[str],
    known: Sequence[Finding],
    options: DestroyOptions,
    folder: Path,
    provider_of: ProviderOf,
    tell: Callable[[Disposed], None],
) -> Sequence[Disposed]:
    """Delete the objects of these findings, one after the other, what hangs on others first.

    What becomes of each is told as soon as it is known, and stands in the ledger. Raises `UsageError` before anything
    is shown for an id that is none of `known` or more ids than allowed, `OperationAliveError` when another run holds
    the stack, and `RecordError` when the ledger cannot be written any more: then no other is begun.
    """
    findings = findings_with(ids, known)
    refuse_tainted(findings)
    _refuse_beside_damage(context.records.ledger_damage(), findings)
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
        run = _Run(context, options, directory, operation_id, provider_of, _Watcher(context, upkeep), tell)
        try:
            run.all_of(findings)
        except TfguardError:
            with suppress(TfguardError):  # what has stopped the run says more
                settle_those_that_saw(context, run.absent, options.arguments)
            raise
        finally:
            close_run_folder(directory, operation_id, context.records)
        settle_those_that_saw(context, run.absent, options.arguments)
    return run.done


def _refuse_beside_damage(damage: LedgerDamage | None, findings: Sequence[Finding]) -> None:
    """Raise `UsageError` for what a line of the ledger may keep that nobody can read, unless it was decided since."""
    for finding in findings:
        if damage is not None and finding.id not in damage.since:
            raise UsageError(
                f"whether {finding.id} is kept is not known: {damage.what}",
                f"ask whoever may keep it; `tfguard orphans retain {finding.id}` keeps it, and `tfguard orphans "
                f"release {finding.id} --reason TEXT` is your word that nobody does",
            )


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
        tell: Callable[[Disposed], None],
    ) -> None:
        self.done: list[Disposed] = []
        """What became of each so far."""

        self._tell = tell
        self._confirmed = Counter(options.confirmed)
        self._context = context
        self._watcher = watcher
        self._user_agent = f"tfguard/{operation_id}"
        self._around = context.around
        self._options = options
        self._directory = directory
        self._provider_of = provider_of
        self._own = OwnOperations(context.records)
        self._configured = ConfiguredAccounts(context.around)
        config, catalog = context.around.config, context.around.catalog
        self._rules = DestroyRules(
            options.stateful,
            config.consistency_grace,
            {cloud.name: config.scan.accounts(cloud.name) for cloud in CLOUDS},
            {entry.type: why for entry in catalog if (why := entry.never_destroyed) is not None},
        )

    @property
    def absent(self) -> frozenset[str]:
        """The findings whose objects are gone."""
        return frozenset(one.finding_id for one in self.done if one.absent)

    def all_of(self, findings: Sequence[Finding]) -> None:
        """Look, ask, delete and verify."""
        asked = [target for target in self._in_order(self._targets(findings)) if self._is_approved(target)]
        approved = [target for target in asked if not self._is_kept_by_now(target)]
        for target in approved:
            self._note(target, DestroyStage.REQUESTED, self._options.reason)
        for target in approved:
            self._delete(target)

    def _is_kept_by_now(self, target: _Target) -> bool:
        """Whether somebody has kept it since the findings were read. Told at once: a later line in the ledger would
        take the retention back."""
        entry = latest(self._context.records.dispositions()).get(target.finding.id)
        if entry is None or entry.kind is not DispositionKind.RETAIN or entry.until is None:
            return False
        if not entry.holds(self._context.clock.now()):
            return False
        against = self._refusal(replace(target.finding, disposition=entry), target.object)
        assert against is not None
        self._is(_not_begun(target.finding, target.object, against))
        return True

    def _states(self) -> Sequence[tuple[str, StateSnapshot]]:
        return tuple(known_states(self._context, self._context.state_before()))

    def _is(self, what: Disposed) -> None:
        """What became of one is known, and told at once."""
        self.done.append(what)
        self._tell(what)

    def _targets(self, findings: Sequence[Finding]) -> list[_Target]:
        """Those that may be deleted, as they are now."""
        states = self._states()
        targets: list[_Target] = []
        for finding in findings:
            assert finding.object is not None
            looked = self._look(finding, finding.object, states)
            if isinstance(looked, Disposed):
                self._is(looked)
            elif looked.object.stateful and any(target.object.stateful for target in targets):
                # Never in bulk (rule 13): each has to be thought of by itself.
                why = "it holds data, and so does another that is named here"
                self._is(_not_begun(finding, looked.object, Refusal(why, "delete what holds data one by one")))
            else:
                targets.append(looked)
        return targets

    def _in_order(self, targets: Sequence[_Target]) -> Sequence[_Target]:
        order = in_order(self._around.catalog, [target.object for target in targets])
        return sorted(targets, key=lambda target: order.index(target.object))

    def _is_approved(self, target: _Target) -> bool:
        self._show(target)
        if self._approves(target):
            return True
        advice = f"type its name; without a terminal give --yes --confirm {shlex.quote(target.name)}, once for each"
        self._is(_not_begun(target.finding, target.object, Refusal("not approved", advice)))
        return False

    def _look(
        self, finding: Finding, before: CloudObject, states: Sequence[tuple[str, StateSnapshot]]
    ) -> _Target | Disposed:
        """The object as it is now; else why it is left alone, or that it is gone already.

        `before` is how it was last seen: it must not have changed since.
        """
        if self._around.catalog.get(before.type) is None:
            return _not_begun(finding, before, _not_known(before.type))
        provider = provider_of(self._context, self._own, finding, before, self._options.arguments, self._provider_of)
        if provider is None:
            return _not_begun(finding, before, self._refusal(finding, before) or NOBODY_TO_ASK)
        target = _Target(finding, before, provider)
        now = self._surely_now(target)
        if now is None:
            self._note(target, DestroyStage.ABSENT, "it was gone already")
            return Disposed(finding.id, before, DestroyStage.ABSENT, "it is gone already: looked for, and not there")
        if isinstance(now, Waits):
            self._note(target, DestroyStage.ABSENT, f"{now.what}; it was not deleted again", now.found.gone_after)
            return Disposed(finding.id, before, DestroyStage.ABSENT, f"{now.what}; it is not deleted again", now.advice)
        if isinstance(now, Refusal):
            return _not_begun(finding, before, now)
        against = _changed(finding, before, now, states) or self._refusal(finding, now)
        against = against or _held_by(self._around.catalog, replace(finding, object=now), states)
        against = against or self._configured.refusal(now)
        if against is None:
            hanging, gaps = hanging_on(self._around, now, provider)
            target = replace(target, object=now, hanging=hanging, gaps=gaps)
            against = self._held_on(target, states)
        return _not_begun(finding, now, against) if against else target

    def _held_on(self, target: _Target, states: Sequence[tuple[str, StateSnapshot]]) -> Refusal | None:
        """What of that which hangs on it, and would go along or lose it, is not to go."""
        catalog, now = self._around.catalog, self._context.clock.now()
        kind = catalog.get(target.object.type)
        detached = kind.detaches if kind else ()
        decided = latest(self._context.records.dispositions())
        for child in target.hanging:
            what = f"on it hangs {ids_of([child])}"
            entry = decided.get(child.finding_id)
            where = next((place for place, state in states if is_held(catalog, state, child)), None)
            if where is not None:
                return Refusal(f"{what}, which the state {where} has", "take that out of it with its own stack first")
            if entry is not None and entry.kind is DispositionKind.RETAIN and entry.holds(now):
                return Refusal(
                    f"{what}, which is kept by {entry.actor}", f"end the retention of {child.finding_id} first"
                )
            if is_kept_by(child.tags, now) and not self._is_released(child.finding_id, child.tags):
                return Refusal(f"{what}, which is kept: {told_by(child.tags)}", "ask whoever keeps it")
            if child.type in detached:
                return Refusal(f"{what}, and the provider would take it out of that first", _BLOCKED)
        for gap in target.gaps:
            if gap.scope.rpartition(" ")[2] in detached:
                return Refusal(f"what it is in is not known: {gap.scope}: {gap.reason}", "make that readable")
        return None

    def _refusal(self, finding: Finding, found: CloudObject) -> Refusal | None:
        seen = None if found.created_at else seen_at(self._context, self._own, finding)
        now = self._context.clock.now()
        return refusal(finding, found, self._rules, now, seen, released=self._is_released(finding.id, found.tags))

    def _is_released(self, finding_id: str, tags: Mapping[str, str]) -> bool:
        """Whether the tag that keeps it is this ledger's own, which has released it and may not have taken that away.
        Of another date it is somebody else's."""
        ledger = self._context.records.dispositions()
        last = latest(entry for entry in ledger if entry.kind is not DispositionKind.DESTROY).get(finding_id)
        return last is not None and last.kind is DispositionKind.RELEASE and are_own(tags, finding_id, ledger)

    def _surely_now(self, target: _Target) -> CloudObject | Refusal | None:
        """The object as a list tells it now; None where it is surely gone."""
        if not self._around.inventory.covers(target.object.type):
            return target.object  # the engine itself is asked, before it deletes anything
        return surely_now(self._context, self._own, target.finding, target.object, target.provider)

    def _now(self, target: _Target) -> CloudObject | Refusal | None:
        """The object as a list tells it at this moment; None where that has it no more."""
        if not self._around.inventory.covers(target.object.type):
            return target.object
        return object_now(self._around, target.object, target.provider)

    def _show(self, target: _Target) -> None:
        found, finding = target.object, target.finding
        say = self._context.console.say
        say(f"{finding.id}: {found.type} {found.import_id}{f' ({found.name})' if found.name else ''}")
        place = f"{found.cloud} {found.account} {location_of(found)}"
        say(f"  in {place}; {finding.verdict.value}, {finding.confidence.value}")
        if found.created_at:
            age = in_words(self._context.clock.now() - found.created_at)
            say(f"  created {found.created_at:%Y-%m-%d %H:%M}Z, {age} ago")
        else:
            say("  when it was created is not told")
        say("  it HOLDS DATA" if found.stateful else "  it is not of a kind that holds data")
        if self._options.final_snapshot:
            say(f"  its final snapshot {self._options.final_snapshot} is taken first")
        if self._is_deleted_by_call(found):
            say(f"  it is deleted by {self._call_for(found)} itself: {self._why_by_call(found)}")
        if tagged := told_by(found.tags):
            say(f"  evidence: {tagged}")
        for item in finding.evidence:
            say(f"  evidence: {item.kind.value}: {item.detail}")
        for child in target.hanging[:_SHOWN]:
            say(f"  on it hangs {told(child)}")
        if len(target.hanging) > _SHOWN:
            say(f"  and {len(target.hanging) - _SHOWN} more objects")
        if not target.hanging:
            say(f"  {told_of_none(self._around.catalog, target.object)}")
        for gap in target.gaps[:_SHOWN]:
            say(f"  not looked at: {gap.scope}: {gap.reason}")

    def _approves(self, target: _Target) -> bool:
        if not self._options.yes:
            return self._context.console.ask(f"Type {target.name} to delete it:") in target.names
        name = next((one for one in target.names if self._confirmed[one]), None)
        if name is None:
            return False
        self._confirmed[name] -= 1  # a name that two have approves one of them
        return True

    def _delete(self, target: _Target) -> None:
        """Look once more, then delete and verify; whatever stops it is told, and in the ledger."""
        if self._context.clock.interrupted:
            return self._stopped(target, Refusal(_NOT_BEGUN, _AGAIN))
        try:
            # Somebody may have adopted it while the question was asked, or another was deleted.
            looked = self._look(target.finding, target.object, self._states())
            if isinstance(looked, Disposed):
                if looked.absent:
                    return self._is(looked)
                return self._stopped(target, Refusal(looked.what, looked.advice))
            if self._is_kept_by_now(target):
                return None
            self._note(target, DestroyStage.IN_PROGRESS, self._options.reason)
            stopped = self._try_to_delete(target) or self._verified(target)
        except (InterruptedRunError, RecordError):
            raise
        except TfguardError as error:
            stopped = Refusal(error.what, error.advice, _STOPPED)
        if stopped is None:
            return self._gone(target, "deleted, and verified to be gone")
        if isinstance(stopped, Waits):
            return self._gone(target, f"deleted, and verified: {stopped.what}", stopped)
        return self._stopped(target, stopped)

    def _gone(self, target: _Target, what: str, waits: Waits | None = None) -> None:
        # Told first: a ledger that cannot be written keeps nobody from knowing.
        advice = waits.advice if waits else ""
        self._is(Disposed(target.finding.id, target.object, DestroyStage.ABSENT, what, advice))
        reason = f"{self._options.reason}; {waits.what}" if waits else self._options.reason
        self._note(target, DestroyStage.ABSENT, reason, waits.found.gone_after if waits else None)

    def _stopped(self, target: _Target, why: Refusal) -> None:
        self._is(Disposed(target.finding.id, target.object, DestroyStage.STOPPED, why.what, why.advice))
        self._note(target, DestroyStage.STOPPED, why.for_record)

    def _try_to_delete(self, target: _Target) -> Refusal | None:
        """Import into a scratch folder, compare, and delete, once: the provider itself tries what is blocked again.

        What cannot be imported, or what the provider would detach first, is deleted by its type's own call.
        """
        engine, found = self._context.engine, target.object
        if self._is_deleted_by_call(found):
            return self._by_call(target)
        snapshot = self._options.final_snapshot
        wanted = DeletionTarget(found.type, found.import_id, target.provider, target.place, snapshot)
        directory = self._directory / target.finding.id
        imported = engine.prepare_deletion(wanted, directory, self._user_agent)
        if imported.found is False:
            # A list has just shown it, and will tell. Where none can, it may be the wrong region, account or id.
            return None if self._around.inventory.covers(found.type) else _NEVER_SEEN
        if not imported.importable and self._call_for(found):
            return self._by_call(target)
        if not imported.found:
            return _refused(_CANNOT_IMPORT, imported, _LEFT)
        if imported.read is not None and not is_this_object(self._around.catalog, imported.read, found):
            return Refusal("the engine reads another object under this id", "look at it, then find it anew")
        patience = self._patience_with(target)
        self._watcher.patience = patience
        done = engine.delete_object(wanted, directory, self._user_agent, self._watcher, patience.is_over)
        if done.deleted:
            return None
        if done.advice:
            return Refusal("; ".join(done.errors), f"nothing is forced; {done.advice}, then run it again")
        if done.interrupted:
            return Refusal("interrupted while it was deleted; whether it is gone was not verified", _AGAIN)
        if any(map(wants_final_snapshot, done.errors)):
            return _refused(_CANNOT_DELETE, done, _NAME_SNAPSHOT)
        within = f" within {in_words(self._options.wait)}" if patience.over else ""
        why = _refused(f"{_CANNOT_DELETE}{within}", done, _LEFT)
        return self._not_deleted(target, why) if done.blocked or patience.over else why

    def _patience_with(self, target: _Target) -> Patience:
        """The bound for a deletion that is tried again while the object is there, and something hangs on it."""

        def blocked() -> bool:
            there = isinstance(self._now(target), CloudObject)
            return there and bool(hanging_on(self._around, target.object, target.provider)[0])

        return Patience(self._context.clock, self._options.wait, blocked)

    def _not_deleted(self, target: _Target, why: Refusal) -> Refusal:
        """Why what something blocks is still there; that is named with all that tells whose it is, where lists can."""
        hanging, _ = hanging_on(self._around, target.object, target.provider)
        if not hanging:
            return replace(why, advice=_BLOCKED)
        also = f"; on it hangs {ids_of(hanging)}"
        return Refusal(f"{why.what}{also}", f"{_BLOCKED}: {told_of(hanging)}", f"{why.for_record}{also}")

    def _call_for(self, found: CloudObject) -> str | None:
        """The call that deletes such an object; None where none is known."""
        kind = self._around.catalog.get(found.type)
        return api_name(kind.delete.operation) if kind and kind.delete and self._context.actions else None

    def _is_deleted_by_call(self, found: CloudObject) -> bool:
        kind = self._around.catalog.get(found.type)
        return kind is not None and (kind.by_call or (not kind.importable and self._call_for(found) is not None))

    def _why_by_call(self, found: CloudObject) -> str:
        kind = self._around.catalog.get(found.type)
        return "the provider would detach it first" if kind and kind.by_call else "no engine can import it"

    def _by_call(self, target: _Target) -> Refusal | None:
        """Make the call that deletes it, once. What was not answered is left for the look afterwards to tell."""
        assert self._context.actions is not None
        if self._options.final_snapshot:
            return Refusal(f"{self._why_by_call(target.object)}, so that no final snapshot can be taken", _LEFT)
        answer = self._context.actions.delete(target.object, target.provider)
        if not answer.refused or answer.absent or answer.unanswered:
            return None
        what = "it could not be deleted"
        why = Refusal(f"{what}: {answer.refused}", _LEFT, f"{what}: {answer.cause}")
        return self._not_deleted(target, why) if answer.blocked else why

    def _verified(self, target: _Target) -> Refusal | None:
        """Look until the object is gone, for as long as the consistency grace lasts; `Waits` counts as gone."""
        end = self._context.clock.now() + max(self._rules.grace, timedelta(seconds=2))
        while True:
            now = self._still_there(target)
            if now is None or isinstance(now, Waits):
                return now
            if self._context.clock.now() >= end or not self._context.clock.sleep(2):
                what = "its deletion was asked for, and that it is gone is not verified"
                return Refusal(f"{what}: {now.what}", _AGAIN, f"{what}: {now.for_record}")

    def _still_there(self, target: _Target) -> Refusal | None:
        """Why it is not known to be gone; None where it is. The engine is asked for what no list can tell."""
        found = target.object
        if self._around.inventory.covers(found.type):
            now = self._now(target)
            return Refusal("it is still there", _AGAIN) if isinstance(now, CloudObject) else now
        wanted = DeletionTarget(found.type, found.import_id, target.provider, target.place)
        again = self._context.engine.prepare_deletion(wanted, self._directory / "verify", self._user_agent)
        if again.found is None:
            return _refused("the engine could not tell", again, _AGAIN)
        return Refusal("the engine can still import it", _AGAIN) if again.found else None

    def _note(self, target: _Target, stage: DestroyStage, reason: str, until: datetime | None = None) -> None:
        found = target.finding.object
        assert found is not None
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


def _changed(
    finding: Finding, before: CloudObject, now: CloudObject, states: Sequence[tuple[str, StateSnapshot]]
) -> Refusal | None:
    # A finding tells no tags at all where one repeats a value that a state marks as sensitive.
    secrets = frozenset().union(*(state.secrets for _, state in states))
    if not before.tags and any(is_secret(text, secrets) for text in (*now.tags, *now.tags.values())):
        now = replace(now, tags={})
    if changes := changed_since(replace(finding, object=before), now):
        return Refusal(
            f"it has changed since it was found: {', '.join(changes)}",
            "look at it, then find it anew: `tfguard recover`, or a scan",
        )
    return None


def _held_by(catalog: Catalog, finding: Finding, states: Sequence[tuple[str, StateSnapshot]]) -> Refusal | None:
    """What every known state is searched for first: an object that one of them has is nobody's to delete here."""
    try:
        for where, state in states:
            refuse_if_known(catalog, state, where, finding)
    except UsageError as error:
        return Refusal(error.what, "it is managed: delete it with its own stack")
    return None


def _not_known(resource_type: str) -> Refusal:
    """What the engine reads of such an object cannot be compared with what was found."""
    return Refusal(
        f"{resource_type} is not in the catalogue, so that nothing tells whether the engine reads this very object",
        "look at it, and delete it at the provider; `tfguard catalog list` tells which types are known",
    )


def _refused(what: str, deletion: Deletion, advice: str) -> Refusal:
    """What the engine refused: with its words for the user, with the kinds of its errors alone for the record. Where it
    said nothing the words are tfguard's own."""
    words = "; ".join(deletion.errors) or "it does not say why"
    kinds = dict.fromkeys(classify(summary, detail).detail for summary, detail in deletion.raw)
    return Refusal(f"{what}: {words}", advice, f"{what}: {'; '.join(kinds) or words}")
