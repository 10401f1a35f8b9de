"""Adopt findings: import blocks, a plan that may do nothing else, recorded apply, blocks gone again (rule 15)."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tfguard.errors import ExitCode, InputError, UsageError
from tfguard.flows.adopt_plan import Candidate, Planned, Planner, Refusals
from tfguard.flows.context import StackContext
from tfguard.flows.drafted_file import DEFAULT, drafted_file, keep_draft
from tfguard.flows.guard import GuardedRun, GuardOptions, Prepared, apply_prepared
from tfguard.flows.history import findings
from tfguard.flows.known_states import is_this_object, known_states, refuse_if_held, refuse_if_known
from tfguard.flows.restore import Restorer, not_restored
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.settle import settle_those_that_saw
from tfguard.flows.stray_findings import findings_with, refuse_tainted
from tfguard.flows.stray_look import ProviderOf, end_of
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.model.address import import_block, without_instance_key
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.ids import new_operation_id
from tfguard.model.importing import Draft, ImportTarget
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.request import ChangeRequest
from tfguard.model.secrets import WITHHELD_WORD, is_withheld
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.adoption import derived_address, references_to, updates

Placed = tuple[str, Finding]
"""An address, and the finding that is to go there."""

_NO_CHANGE = "; nothing was changed"
_NOT_HERE = {
    Verdict.MANAGED: "is managed already",
    Verdict.FOREIGN: "belongs to another account",
}


@dataclass(frozen=True, slots=True)
class AdoptOptions:
    """How to adopt. `address` chooses where several fit, or where nothing does; `arguments` are the engine's `-var`,
    `-var-file` and `-state`.

    `applying` is what of them the apply of a plan file needs too. `allow_update` approves that an object is brought in
    line with the configuration, where nobody is asked. `out` is the file for drafted configuration; with `keep` a draft
    that cannot be planned is left beside it.
    """

    address: str | None = None
    arguments: tuple[str, ...] = ()
    applying: tuple[str, ...] = ()
    yes: bool = False
    reason: str = ""
    allow_update: bool = False
    out: str = DEFAULT
    keep: bool = False


def adopt(
    context: StackContext,
    ids: Sequence[str],
    options: AdoptOptions,
    argv: Sequence[str],
    folder: Path,
    known: Sequence[Finding],
    elsewhere: ProviderOf,
) -> GuardedRun:
    """Import those of the `known` findings that have these ids: one plan, one approval, one recorded apply. `argv` is
    the command line as it may be recorded, `folder` takes run folders; `elsewhere` tells whom to ask about an object
    that no operation here tells of. What is deleted and waits for its end is restored first, once that is approved.

    One that cannot be adopted stops no other: it is said why, and the exit code is 1. Where there is only one, its
    error is raised: `UsageError` for a finding that is not there, is decided, or fits several addresses; `InputError`
    for a plan that would do more than import. Nothing has changed then, and no import block stays behind; but what was
    restored for it stays restored, which is said aloud and stands in the ledger.
    """
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id) as upkeep:
        return _Adoption(context, ids, options, folder, known, elsewhere).run(argv, operation_id, upkeep)


def blocks_for(
    context: StackContext,
    ids: Sequence[str],
    options: AdoptOptions,
    known: Sequence[Finding],
    elsewhere: ProviderOf,
) -> tuple[str, ExitCode]:
    """Import blocks for these findings, seen to work in a plan, with the configuration that some of them need.

    Changes and records nothing. What cannot be adopted is said and left out; the exit code is 1 then. Raises as `adopt`
    does.
    """
    with tempfile.TemporaryDirectory(prefix="tfguard-") as scratch:
        adoption = _Adoption(context, ids, replace(options, allow_update=True), Path(scratch), known, elsewhere)
        planned = adoption.planned(Path(scratch) / "plan")
        adoption.tell_refused()
    if planned is None:
        return "", ExitCode.ERROR
    changed = updates(planned.plan)
    parts = [_reviewable(one, changed.get(one.address, ())) for one in planned.candidates]
    return "\n".join(parts), ExitCode.ERROR if adoption.refused else ExitCode.DONE


def _reviewable(candidate: Candidate, differs: Sequence[str]) -> str:
    found = candidate.finding.object
    where = " ".join(filter(None, (found.cloud, found.account, found.region))) if found else ""
    notes = [
        f"# {candidate.finding.id}: {found.type if found else ''} {found.name or found.id if found else ''} ({where})"
    ]
    if differs:
        notes.append(f"# The apply will update it in place: {', '.join(differs)}")
    lines = "".join(f"{' '.join(note.split())}\n" for note in notes)
    return lines + import_block(candidate.address, candidate.target.import_id) + candidate.text


class _Adoption:
    """One call of `adopt`, from the choice of findings to the report."""

    def __init__(
        self,
        context: StackContext,
        ids: Sequence[str],
        options: AdoptOptions,
        folder: Path,
        known: Sequence[Finding],
        elsewhere: ProviderOf,
    ) -> None:
        self._context, self._options, self._folder = context, options, folder
        self._restorer = Restorer(context, options.arguments, elsewhere)
        self._adopted: set[str] = set()
        self._ids = tuple(dict.fromkeys(ids))
        self._known = {finding.id: finding for finding in known}
        self._file = drafted_file(Path(context.stack.directory), options.out)
        self.refused: Refusals = {}

    def run(self, argv: Sequence[str], operation_id: str, upkeep: Upkeep) -> GuardedRun:
        """Adopt, and say what became of each."""
        context = self._context
        chosen = self._chosen()
        if chosen and self._held_already(chosen):
            context.console.say("the state has it already at that address; nothing is left to adopt")
            settle_those_that_saw(self._context, {finding.id for _, finding in chosen}, self._options.arguments)
            self.tell_refused()
            return GuardedRun(self._exit_code)
        directory = open_run_folder(self._folder, operation_id, context.host, context.records.head().open_operations)
        try:
            planned = self._plan_of(self._restored(chosen), directory / "plan")
            if planned is None or not self._approved(planned):
                self.tell_refused()
                return GuardedRun(ExitCode.ERROR)
            ready = self._prepared(planned, operation_id, directory)
            run = self._applied(planned, ready, argv, upkeep)
            self.tell_refused()
            return replace(run, exit_code=run.exit_code or self._exit_code)
        finally:
            self._tell_restored()
            close_run_folder(directory, operation_id, context.records)

    def planned(self, plan_file: Path) -> Planned | None:
        """The plan alone; what would have to be restored first is left out."""
        chosen = self._chosen()
        for _, finding in chosen:
            if waiting := self._restorer.waiting(finding):
                self.refused[finding.id] = UsageError(
                    f"{finding.id} is deleted, and {end_of(waiting)}: no plan can import it before it is restored",
                    f"`tfguard orphans import {finding.id}` restores it first, after a question",
                )
        return self._plan_of(self._left(chosen), plan_file)

    def tell_refused(self) -> None:
        """Say of each finding that is not adopted why. Where only one was asked for, raise that."""
        for finding_id in self.refused.keys() & self._restorer.restored.keys():
            error = self.refused[finding_id]  # the restoration was a change
            self.refused[finding_id] = InputError(error.what, error.advice.removesuffix(_NO_CHANGE))
        if len(self._ids) == 1 and (alone := self.refused.get(self._ids[0])):
            raise alone
        for finding_id, error in self.refused.items():
            self._context.console.warn(f"{finding_id} was not adopted: {error.what}; {error.advice}")

    @cached_property
    def _state(self) -> StateSnapshot:
        return self._context.state_before()

    @property
    def _exit_code(self) -> ExitCode:
        return ExitCode.ERROR if self.refused else ExitCode.DONE

    # --- which findings, and where to ---

    def _chosen(self) -> list[Placed]:
        """The findings with their addresses; those of which it is clear that they cannot be adopted are refused."""
        chosen: list[Placed] = []
        for finding_id in self._ids:
            with self._refusing(finding_id):
                chosen.append(self._place(finding_id, [address for address, _ in chosen]))
        several = Counter(address for address, _ in chosen)
        for address, finding in chosen:
            if several[address] > 1:
                self.refused[finding.id] = UsageError(
                    f"two of these findings belong to one address, {address}",
                    "adopt one of them; the other stays a finding",
                )
        chosen = self._left(chosen)
        if chosen and not self._held_already(chosen):
            self._refuse_held(chosen)
        return self._left(chosen)

    def _left(self, chosen: Sequence[Placed]) -> list[Placed]:
        return [(address, finding) for address, finding in chosen if finding.id not in self.refused]

    @contextmanager
    def _refusing(self, finding_id: str) -> Iterator[None]:
        try:
            yield
        except (UsageError, InputError) as error:
            self.refused[finding_id] = error

    def _place(self, finding_id: str, taken: Collection[str]) -> Placed:
        finding = self._known.get(finding_id)
        decided = [item for item in self._context.records.dispositions() if item.finding_id == finding_id]
        decision = finding.disposition if finding else next(reversed(decided), None)
        if decision and not (finding and finding.verdict is Verdict.SOFT_DELETED):
            raise UsageError(
                f"{finding_id} was settled: {decision.kind.value} by {decision.actor} at {decision.at:%Y-%m-%d %H:%M}Z",
                "see `tfguard orphans list`",
            )
        (finding,) = findings_with([finding_id], self._known.values())
        refuse_tainted([finding])
        if finding.object is None:
            raise UsageError(
                f"{finding_id} is {finding.verdict.value}: there is no object that could be adopted",
                f"see `tfguard orphans show {finding_id}`",
            )
        if why := _NOT_HERE.get(finding.verdict):
            raise UsageError(f"{finding_id} {why}", f"see `tfguard orphans show {finding_id}`")
        kind = self._context.around.catalog.get(finding.object.type)
        if kind is not None and not kind.importable:
            raise UsageError(
                f"{finding_id} is an {kind.type}, which no engine can import",
                "keep it with `tfguard orphans retain`, or delete it with `tfguard orphans destroy`",
            )
        where = self._options.address or finding.address
        if where is None and finding.addresses:
            raise UsageError(
                f"{finding_id} fits {len(finding.addresses)} addresses: {', '.join(finding.addresses)}",
                "say which one with --address ADDRESS",
            )
        if where is None:
            return self._new_address(finding.object, taken), finding
        if is_withheld(where):
            raise UsageError(
                f"{finding_id} belongs to {where}, of which a key is withheld since it is marked sensitive",
                "say the whole address with --address ADDRESS",
            )
        if self._options.address is None and finding.operation_id not in (None, *self._own_operations):
            raise UsageError(
                f"{finding_id} belongs to {where} of another stack: operation {finding.operation_id} is not on record "
                "here",
                "import it there, or say with --to ADDRESS where it is to go here",
            )
        return where, finding

    @cached_property
    def _own_operations(self) -> frozenset[str | None]:
        """Those that findings can come from: of the record's own, and not of a scan that knew other stacks'."""
        records = self._context.records
        told = {finding.operation_id for finding in findings(records)[0]}
        return frozenset({*told, *records.operation_ids()})

    def _new_address(self, found: CloudObject, taken: Collection[str]) -> str:
        unfit = {*taken, *self._state.addresses}
        while self._context.engine.declares(address := derived_address(found, unfit)):
            unfit.add(address)
        return address

    def _held_already(self, chosen: Sequence[Placed]) -> bool:
        held = [(self._state.at(address), finding.object) for address, finding in chosen]
        return all(instance and known and is_this_object(instance, known) for instance, known in held)

    def _refuse_held(self, chosen: Sequence[Placed]) -> None:
        """Refuse what would be a second object for its address, and what any known state has already (case B59)."""
        for address, finding in chosen:
            with self._refusing(finding.id):
                refuse_if_held(self._state, address, finding)
        for where, state in known_states(self._context, self._state):
            held = {instance.type for instance in state.instances}
            for _, finding in self._left(chosen):
                if finding.object and finding.object.type in held:
                    with self._refusing(finding.id):
                        refuse_if_known(state, where, finding)

    # --- what is deleted, and comes back first ---

    def _restored(self, chosen: Sequence[Placed]) -> list[Placed]:
        """The findings whose objects are in use, after those that wait for their end were restored: each is said and
        asked about, and refused where that is not approved or does not work."""
        for address, finding in chosen:
            if (waiting := self._restorer.waiting(finding)) is None:
                continue
            with self._refusing(finding.id):
                if not self._approved_to_restore(finding, waiting, address):
                    raise not_restored(finding, waiting)
                self._restorer.restore(finding, waiting, address)
        return self._left(chosen)

    def _approved_to_restore(self, finding: Finding, waiting: CloudObject, address: str) -> bool:
        console = self._context.console
        called = waiting.name or waiting.import_id
        console.say(f"{finding.id}: {waiting.type} {called} is deleted, and {end_of(waiting)}")
        console.say(f"will restore it ({', '.join(self._restorer.calls(waiting))}), then plan its import to {address}")
        return self._options.yes or console.confirm("Restore now?")

    def _tell_restored(self) -> None:
        for finding_id, calls in self._restorer.restored.items():
            if finding_id not in self._adopted:
                self._context.console.warn(
                    f"{finding_id} was restored ({', '.join(calls)}) and NOT imported: it exists again, costs what it "
                    "costs, and is a finding; import, retain or destroy it"
                )

    # --- configuration for those that have none, and the plan ---

    def _plan_of(self, chosen: Sequence[Placed], plan_file: Path) -> Planned | None:
        if not chosen:
            return None
        self._options = _with_var_files(self._context, chosen, self._options)
        candidates = self._drafted([Candidate(finding, self._target(address, finding)) for address, finding in chosen])
        planner = Planner(
            self._context,
            self._state,
            self._folder,
            plan_file,
            self._options.arguments,
            may_update=self._options.allow_update or not self._options.yes,
        )
        planned = planner.plan(candidates) if candidates else None
        self.refused.update(planner.refused)
        return planned

    def _target(self, address: str, finding: Finding) -> ImportTarget:
        import_id = finding.object.import_id if finding.object else ""
        return ImportTarget(address, import_id, drafted=not self._context.engine.declares(address))

    def _drafted(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with configuration for those that have none; those for which none can be had are refused."""
        for one in candidates:
            if one.target.drafted and without_instance_key(one.address) != one.address:
                self.refused[one.finding.id] = UsageError(
                    f"the configuration has no {one.address}, and none can be drafted for an address with a key",
                    "say with --to ADDRESS where it is to go",
                )
        candidates = [one for one in candidates if one.finding.id not in self.refused]
        bare = [one for one in candidates if one.target.drafted]
        if not bare:
            return candidates
        through = self._providers(bare)
        targets = [replace(one.target, provider=through[one.address]) for one in bare]
        draft = self._context.engine.draft(targets, self._references(), self._options.arguments)
        self._refuse_undrafted(bare, draft)
        return [
            replace(
                one,
                text=draft.texts[one.address],
                variables=draft.variables.get(one.address, ()),
                fills=draft.fills.get(one.address, ()),
            )
            if one.target.drafted
            else one
            for one in candidates
            if one.finding.id not in self.refused
        ]

    def _providers(self, bare: Sequence[Candidate]) -> Mapping[str, str]:
        """The provider configuration for each address that has none: the one that looks where the object is."""
        plan = self._context.plan_now(self._options.arguments)
        known = plan.providers if isinstance(plan, Plan) else {}
        return {one.address: fitting_provider(one.finding, known) for one in bare}

    def _references(self) -> Mapping[str, str]:
        catalog = self._context.around.catalog
        named = [
            (held.address, {name: value for name, value in held.identity.items() if name in kind.keys})
            for held in self._state.instances
            if held.deposed is None and (kind := catalog.get(held.type))
        ]
        return references_to(named)

    def _refuse_undrafted(self, bare: Sequence[Candidate], draft: Draft) -> None:
        for one in bare:
            said = [trouble.what for trouble in draft.troubles if trouble.address in (None, one.address)]
            if not said:
                continue
            what = f"no configuration can be drafted for {one.address}: {'; '.join(dict.fromkeys(said))}"
            advice = "write the resource yourself, then run the command again; nothing was changed"
            if self._options.keep and one.address in draft.texts:
                kept = keep_draft(self._file, draft.texts[one.address], what)
                advice = f"mend {kept.name}, move it into a file that ends with .tf, then run the command again"
            elif one.address in draft.texts:
                advice = "look at the draft with --keep, or write the resource yourself; nothing was changed"
            self.refused[one.finding.id] = InputError(what, advice)

    def _prepared(self, planned: Planned, operation_id: str, directory: Path) -> Prepared:
        context = self._context
        request = _request(self._options, [one.address for one in planned.candidates], directory / "plan")
        accepted = context.records.head().open_operations
        return Prepared(operation_id, request, planned.plan, directory / "plan", directory, self._state, accepted)

    def _approved(self, planned: Planned) -> bool:
        console, changed = self._context.console, updates(planned.plan)
        for one in planned.candidates:
            also = ", and update it in place to what the configuration says" if one.address in changed else ""
            if differs := changed.get(one.address):
                also += f": {', '.join(differs)}"
            if one.text:
                also += f", with configuration in {self._file.path.name}"
            console.say(f"will import {one.target.import_id} to {planned.hidden.address(one.address)}{also}")
            for name in one.variables:
                console.say(f"  var.{name} is for a value marked as sensitive: every plan needs it from now on")
        if self._options.yes or console.confirm("Adopt now?"):
            return True
        console.say("nothing was adopted; without a terminal, --yes approves")
        return False

    # --- the apply, and what it leaves ---

    def _applied(self, planned: Planned, ready: Prepared, argv: Sequence[str], upkeep: Upkeep) -> GuardedRun:
        context = self._context
        guard = GuardOptions(adopts=tuple(one.finding.id for one in planned.candidates))
        drafted = [one for one in planned.candidates if one.text]
        adopted: list[Candidate] = []
        if drafted:
            # Before the apply: what is in the state and in no configuration would be deleted by the next one.
            self._file.add(_joined(drafted))
        try:
            run = apply_prepared(context, ready, argv, guard, upkeep)
            if run.operation is not None:
                adopted = self._close(planned, run)
        finally:
            left = [one for one in drafted if one in adopted]
            if drafted and not left:
                self._file.undo()
            elif left != drafted:
                self._file.add(_joined(left))
        if len(planned.candidates) + len(self.refused) > 1:
            for one in adopted:
                context.console.say(f"{one.finding.id} was adopted: {planned.hidden.address(one.address)}")
        for one in planned.candidates:
            if run.operation is not None and one not in adopted:
                why = InputError("the apply did not bring it into the state", "see `tfguard status`")
                self.refused[one.finding.id] = why
        return run

    def _close(self, planned: Planned, run: GuardedRun) -> list[Candidate]:
        """Put the decisions into the ledger and settle the operations that the findings came from; what is in state."""
        context, hidden = self._context, planned.hidden
        actor = context.host.actor()
        try:
            after = context.read_state(None)
        except InputError:
            return []  # that has been said, and the operation stays open
        adopted = [one for one in planned.candidates if after.at(one.address) is not None]
        context.records.decide(
            [
                Disposition(
                    finding_id=one.finding.id,
                    kind=DispositionKind.IMPORT,
                    at=context.clock.now(),
                    actor=actor.signature,
                    reason=hidden.text(self._options.reason, WITHHELD_WORD) or "adopted into the state",
                    operation_id=run.operation.id if run.operation else "",
                    address=hidden.address(one.address),
                    import_id=one.finding.object.import_id if one.finding.object else None,
                )
                for one in adopted
            ]
        )
        self._adopted = {one.finding.id for one in adopted}
        settle_those_that_saw(self._context, self._adopted, self._options.arguments)
        return adopted


def _joined(drafted: Sequence[Candidate]) -> str:
    return "\n".join(one.text for one in drafted)


def fitting_provider(finding: Finding, known: Mapping[str, ProviderConfig]) -> str:
    """The root module's provider configuration that looks where a finding's object is; empty for the default one.

    The one through which it was seen comes first, unless that looks elsewhere; where nothing fits, the engine tells.
    """
    found = finding.object
    if found is None or found.region in ("", "global"):
        return ""
    fits = [
        key
        for key, one in known.items()
        if ":" not in key and key.partition(".")[0] == found.type.partition("_")[0]
        if one.settings.get("region") == found.region
    ]
    best = finding.provider_key if finding.provider_key in fits else min(fits, default="")
    return best if "." in best else ""


def _with_var_files(
    context: StackContext, chosen: Sequence[tuple[str, Finding]], options: AdoptOptions
) -> AdoptOptions:
    """The options with the -var-file of the runs that the findings come from, where the user names none."""
    if any(argument.lstrip("-").startswith("var-file") for argument in options.arguments):
        return options
    ids = {finding.operation_id for _, finding in chosen if finding.operation_id}
    files = {
        name: None for operation_id in sorted(ids) for name in context.records.operation(operation_id).intent.var_files
    }
    return replace(options, arguments=(*(f"-var-file={name}" for name in files), *options.arguments))


def _request(options: AdoptOptions, addresses: Sequence[str], plan_file: Path) -> ChangeRequest:
    targets = tuple(f"-target={address}" for address in addresses)
    return ChangeRequest(
        command="import",
        plan_file=str(plan_file),
        planning=(*targets, *options.arguments),
        applying=options.applying,
        auto_approve=options.yes,
        destroy=False,
        refresh_only=False,
        json=False,
        color=False,
        input=False,
        compact_warnings=True,
        locking=True,
        targets=tuple(addresses),
        var_files=(),
        variables=options.arguments,
        state_path=None,
        state_out=None,
        help=False,
    )
