"""Adopt findings: import blocks, a plan that may do nothing else, recorded apply, blocks gone again (rule 15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import ExitCode, InputError, UsageError
from tfguard.flows.adopt_choice import Choice, Placed
from tfguard.flows.adopt_plan import Candidate, Planned, Planner
from tfguard.flows.context import StackContext
from tfguard.flows.drafted_file import DEFAULT, clear_marked, drafted_file, keep_draft, marked_block
from tfguard.flows.guard import GuardedRun, GuardOptions, Prepared, apply_prepared
from tfguard.flows.restore import Restorer, not_restored
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.settle import settle_those_that_saw
from tfguard.flows.stray_look import ProviderOf, end_of
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.model.address import import_block, without_instance_key
from tfguard.model.cloud import cloud_of_type, own_place_of
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.importing import Draft, ImportTarget
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.request import ChangeRequest
from tfguard.model.secrets import WITHHELD_WORD, Withholding
from tfguard.reconcile.adoption import references_to, update_in_words, updates

_NO_CHANGE = "; nothing was changed"


@dataclass(frozen=True, slots=True)
class AdoptOptions:
    """How to adopt. `address` chooses where several fit, or where nothing does; `arguments` are the engine's `-var`,
    `-var-file` and `-state`.

    `applying` is what of them the apply of a plan file needs too, `var_files` are the files that they name.
    `allow_update` approves that an object is brought in line with the configuration, where nobody is asked. `out` is
    the file for drafted configuration; with `keep` a draft that cannot be planned is left beside it.
    """

    address: str | None = None
    arguments: tuple[str, ...] = ()
    applying: tuple[str, ...] = ()
    yes: bool = False
    reason: str = ""
    allow_update: bool = False
    out: str = DEFAULT
    keep: bool = False
    var_files: tuple[str, ...] = ()


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
    with context.scratch() as scratch:
        adoption = _Adoption(context, ids, replace(options, allow_update=True), scratch, known, elsewhere)
        planned = adoption.planned(scratch / "plan")
        adoption.tell_refused()
    if planned is None:
        return "", ExitCode.ERROR
    changed = updates(planned.plan)
    parts = [_reviewable(one, changed.get(one.address, ()), planned.hidden) for one in planned.candidates]
    return "\n".join(parts), ExitCode.ERROR if adoption.refused else ExitCode.DONE


def _reviewable(candidate: Candidate, differs: Sequence[str], hidden: Withholding) -> str:
    found = candidate.finding.object
    where = " ".join(filter(None, (found.cloud, found.account, found.region))) if found else ""
    called = hidden.text(found.name or found.id, "") if found else ""
    notes = [f"# {candidate.finding.id}: {found.type if found else ''} {called} ({where})"]
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
        self._choice = Choice(context, ids, known, options.address)
        # Those that the state has now, or of which nobody knows whether it has them.
        self._maybe_adopted: set[str] = set()
        self._directory = Path(context.stack.directory)
        self._file = drafted_file(self._directory, options.out)
        self.refused = self._choice.refused

    def run(self, argv: Sequence[str], operation_id: str, upkeep: Upkeep) -> GuardedRun:
        """Adopt, and say what became of each."""
        context = self._context
        chosen = self._choice.chosen()
        if chosen and self._choice.held_already(chosen):
            context.console.say("the state has it already at that address; nothing is left to adopt")
            ids = {finding.id for _, finding in chosen}
            self._clear_marked(ids)
            settle_those_that_saw(self._context, ids, self._options.arguments)
            self.tell_refused()
            return GuardedRun(self._exit_code)
        directory = open_run_folder(self._folder, operation_id, context.host, context.records.head().open_operations)
        try:
            planned = self._plan_of(self._restored(chosen), directory / "plan")
            if planned is None or not self._approved(planned) or not self._still_stray(planned):
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
        chosen = self._choice.chosen()
        for _, finding in chosen:
            if waiting := self._restorer.waiting(finding):
                self.refused[finding.id] = UsageError(
                    f"{finding.id} is deleted, and {end_of(waiting)}: no plan can import it before it is restored",
                    f"`tfguard orphans import {finding.id}` restores it first, after a question",
                )
            elif finding.object and Withholding(self._choice.state.secrets).tells(finding.object.import_id):
                self.refused[finding.id] = _no_text_for(finding)
            elif written := self._choice.written(finding):
                self.refused[finding.id] = UsageError(
                    f"the configuration has an import block for {finding.id} already, to {written.address}",
                    f"`tfguard orphans import {finding.id}` uses it, and so does an apply",
                )
        return self._plan_of(self._choice.left(chosen), plan_file)

    def tell_refused(self) -> None:
        """Say of each finding that is not adopted why. Where only one was asked for, raise that."""
        for finding_id in self.refused.keys() & self._restorer.restored.keys():
            error = self.refused[finding_id]  # the restoration was a change
            self.refused[finding_id] = InputError(error.what, error.advice.removesuffix(_NO_CHANGE))
        if len(self._choice.ids) == 1 and (alone := self.refused.get(self._choice.ids[0])):
            raise alone
        for finding_id, error in self.refused.items():
            self._context.console.warn(f"{finding_id} was not adopted: {error.what}; {error.advice}")

    @property
    def _exit_code(self) -> ExitCode:
        return ExitCode.ERROR if self.refused else ExitCode.DONE

    # --- what is deleted, and comes back first ---

    def _restored(self, chosen: Sequence[Placed]) -> list[Placed]:
        """The findings whose objects are in use, after those that wait for their end were restored: each is said and
        asked about, and refused where that is not approved or does not work."""
        for address, finding in chosen:
            if (waiting := self._restorer.waiting(finding)) is None:
                continue
            with self._choice.refusing(finding.id):
                self._refuse_needless_restore(finding, waiting)
                if not self._approved_to_restore(finding, waiting, address):
                    raise not_restored(finding, waiting)
                self._restorer.restore(finding, waiting)
        return self._choice.left(chosen)

    def _refuse_needless_restore(self, finding: Finding, waiting: CloudObject) -> None:
        """Raise `UsageError` where the import would be refused once the object is restored, since it always updates."""
        kind = self._context.around.catalog.get(waiting.type)
        if kind and kind.fills and self._options.yes and not self._options.allow_update:
            raise UsageError(
                f"{finding.id} is deleted, and {end_of(waiting)}; its import would also update it in place: "
                f"{', '.join(kind.fills)}",
                "add --allow-update; it was not restored",
            )

    def _approved_to_restore(self, finding: Finding, waiting: CloudObject, address: str) -> bool:
        console = self._context.console
        called = waiting.name or waiting.import_id
        console.say(f"{finding.id}: {waiting.type} {called} is deleted, and {end_of(waiting)}")
        console.say(f"will restore it ({', '.join(self._restorer.calls(waiting))}), then plan its import to {address}")
        return self._options.yes or console.confirm("Restore now?")

    def _tell_restored(self) -> None:
        for finding_id, calls in self._restorer.restored.items():
            if finding_id not in self._maybe_adopted:
                self._context.console.warn(
                    f"{finding_id} was restored ({', '.join(calls)}) and NOT imported: it exists again, costs what it "
                    "costs, and is a finding; import, retain or destroy it"
                )

    # --- configuration for those that have none, and the plan ---

    def _plan_of(self, chosen: Sequence[Placed], plan_file: Path) -> Planned | None:
        if not chosen:
            return None
        if not self._options.var_files:
            files = self._choice.var_files(chosen)
            arguments = (*(f"-var-file={name}" for name in files), *self._options.arguments)
            self._options = replace(self._options, arguments=arguments, var_files=files)
        candidates = self._drafted([Candidate(finding, self._target(address, finding)) for address, finding in chosen])
        planner = Planner(
            self._context,
            self._choice.state,
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
        # A block that the configuration has may name it in another way, and the engine takes no second one.
        written = self._choice.written(finding)
        if written and written.import_id and written.address == address:
            import_id = written.import_id
        return ImportTarget(address, import_id, drafted=not self._context.engine.declares(address))

    def _drafted(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with configuration for those that have none; those for which none can be had are refused."""
        secrets = self._choice.state.secrets
        for one in candidates:
            if one.target.drafted and without_instance_key(one.address) != one.address:
                self.refused[one.finding.id] = UsageError(
                    f"the configuration has no {one.address}, and none can be drafted for an address with a key",
                    "say with --to ADDRESS where it is to go",
                )
            elif one.target.drafted and Withholding(secrets).tells(one.target.import_id):
                self.refused[one.finding.id] = _no_text_for(one.finding)
        candidates = [one for one in candidates if one.finding.id not in self.refused]
        bare = [one for one in candidates if one.target.drafted]
        if not bare:
            return candidates
        through = self._providers(bare)
        targets = [replace(one.target, provider=through[one.address]) for one in bare]
        with self._context.scratch() as scratch:
            draft = self._context.engine.draft(targets, self._references(), self._options.arguments, secrets, scratch)
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
            for held in self._choice.state.instances
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
                kept = keep_draft(self._file, draft.texts[one.address])
                advice = f"mend {kept.name}, move it into a file that ends with .tf, then run the command again"
            elif one.address in draft.texts:
                advice = "look at the draft with --keep, or write the resource yourself; nothing was changed"
            self.refused[one.finding.id] = InputError(what, advice)

    def _prepared(self, planned: Planned, operation_id: str, directory: Path) -> Prepared:
        context = self._context
        request = _request(self._options, [one.address for one in planned.candidates], directory / "plan")
        accepted = context.records.head().open_operations
        before, plan_file = self._choice.state, directory / "plan"
        return Prepared(operation_id, request, planned.plan, plan_file, directory, before, accepted)

    def _approved(self, planned: Planned) -> bool:
        console, changed = self._context.console, updates(planned.plan)
        for one in planned.candidates:
            also = update_in_words(changed.get(one.address))
            if one.text:
                also += f", with configuration in {self._file.path.name}"
            console.say(f"will import {one.target.import_id} to {planned.hidden.address(one.address)}{also}")
            for name in one.variables:
                console.say(f"  var.{name} is for a value marked as sensitive: every plan needs it from now on")
        if self._options.yes or console.confirm("Adopt now?"):
            return True
        console.say("nothing was adopted; without a terminal, --yes approves")
        return False

    def _still_stray(self, planned: Planned) -> bool:
        """Whether no known state has got any of them since the question was asked; a person may have taken long.

        The plan holds them all, so that none is adopted where one must not be.
        """
        placed = [(one.address, one.finding) for one in planned.candidates]
        self._choice.refuse_held(placed, self._context.state_before())
        left = self._choice.left(placed)
        if len(left) == len(placed):
            return True
        for _, finding in left:
            self.refused[finding.id] = InputError(
                "the plan would adopt another one too, which must not be any more, so it was not applied",
                f"run the command again{_NO_CHANGE}",
            )
        return False

    # --- the apply, and what it leaves ---

    def _applied(self, planned: Planned, ready: Prepared, argv: Sequence[str], upkeep: Upkeep) -> GuardedRun:
        context = self._context
        guard = GuardOptions(adopts=tuple(one.finding.id for one in planned.candidates))
        drafted = [one for one in planned.candidates if one.text]
        if drafted:
            # Before the apply: what is in the state and in no configuration would be deleted by the next one. And with
            # the blocks: what is in the configuration and not in the state would be made a second time.
            blocks = (marked_block(one.finding.id, one.address, one.target.import_id) for one in drafted)
            self._file.put("\n".join((*blocks, *(one.text for one in drafted))))
        run = None
        try:
            run = apply_prepared(context, ready, argv, guard, upkeep)
        finally:
            if run is None or run.operation is None:
                self._leave(drafted, ())
        if run.operation is None:
            return run
        adopted = self._in_state(planned.candidates)
        if adopted is None:
            self._keep_all(planned, drafted)
            return run
        self._maybe_adopted = {one.finding.id for one in adopted}
        self._leave(drafted, adopted)
        self._clear_marked(self._maybe_adopted)
        if len(planned.candidates) + len(self.refused) > 1:
            for one in adopted:
                context.console.say(f"{one.finding.id} was adopted: {planned.hidden.address(one.address)}")
        for one in planned.candidates:
            if one not in adopted:
                why = InputError("the apply did not bring it into the state", "see `tfguard status`")
                self.refused[one.finding.id] = why
        self._decide(adopted, planned.hidden, run)
        return run

    def _in_state(self, candidates: Sequence[Candidate]) -> list[Candidate] | None:
        """Those of them that the state has; None where it cannot be read, so that nobody knows."""
        try:
            after = self._context.read_state(None)
        except InputError as error:
            self._context.console.warn(f"{error.what}: whether the objects were adopted is not known")
            return None
        return [one for one in candidates if after.at(one.address) is not None]

    def _keep_all(self, planned: Planned, drafted: Sequence[Candidate]) -> None:
        """Leave everything as it may be needed: what is in the state must not lose its configuration."""
        self._maybe_adopted = {one.finding.id for one in planned.candidates}
        again = "run `tfguard recover`, then this again"
        if drafted:
            again += f"; {self._file.path.name} keeps the configuration, with import blocks that are harmless"
        for one in planned.candidates:
            self.refused[one.finding.id] = InputError("whether the state has it is not known", again)

    def _leave(self, drafted: Sequence[Candidate], adopted: Collection[Candidate]) -> None:
        """Have the file keep the configuration of what was adopted, and no import block."""
        if not drafted:
            return
        told = "look at it: the configuration of what was adopted has to stay, and its import blocks may go"
        try:
            if not self._file.put("\n".join(one.text for one in drafted if one in adopted)):
                self._context.console.warn(f"somebody changed what was written to {self._file.path} meanwhile; {told}")
        except InputError as error:
            self._context.console.warn(f"{error.what}; {told}")

    def _clear_marked(self, finding_ids: Collection[str]) -> None:
        """Take away what an earlier adoption of these findings left that was killed."""
        try:
            clear_marked(self._directory, finding_ids)
        except OSError as error:
            self._context.console.warn(f"import blocks stay in {self._directory}, where they do no harm: {error}")

    def _decide(self, adopted: Sequence[Candidate], hidden: Withholding, run: GuardedRun) -> None:
        """Put the decisions into the ledger, and settle the operations that the findings came from."""
        context = self._context
        actor = context.host.actor()
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
                    import_id=_recorded_id(one.finding, hidden),
                )
                for one in adopted
            ]
        )
        settle_those_that_saw(context, {one.finding.id for one in adopted}, self._options.arguments)


def _recorded_id(finding: Finding, hidden: Withholding) -> str | None:
    found = finding.object
    return found.import_id if found and not hidden.tells(found.import_id) else None


def _no_text_for(finding: Finding) -> InputError:
    return InputError(
        f"the id of {finding.id} repeats a value that is marked as sensitive, and would be written in clear",
        f"write the resource yourself, then run `tfguard orphans import {finding.id}`{_NO_CHANGE}",
    )


def fitting_provider(finding: Finding, known: Mapping[str, ProviderConfig]) -> str:
    """The root module's provider configuration that looks where a finding's object is; empty for the default one.

    The one through which it was seen comes first, unless that looks elsewhere; where nothing fits, the engine tells.
    """
    found = finding.object
    place = own_place_of(found) if found else None
    if found is None or place in (None, ""):
        return ""
    cloud = cloud_of_type(found.type)
    setting, names = (cloud.own_place, cloud.sources) if cloud else ("region", (found.type.partition("_")[0],))
    fits = [
        key
        for key, one in known.items()
        if ":" not in key and key.partition(".")[0] in names
        if one.settings.get(setting) == place
    ]
    best = finding.provider_key if finding.provider_key in fits else min(fits, default="")
    return best if "." in best else ""


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
        var_files=options.var_files,
        variables=options.arguments,
        state_path=None,
        state_out=None,
        help=False,
    )
