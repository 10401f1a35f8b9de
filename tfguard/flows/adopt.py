"""Adopt a finding: import block, a plan that may do nothing else, recorded apply, block gone again (rule 15)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import ExitCode, InputError, NoStateError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.guard import GuardedRun, GuardOptions, Prepared, apply_prepared
from tfguard.flows.history import findings
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.settle import Settling, settle
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.flows.withholding import of_plan
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import Plan
from tfguard.model.request import ChangeRequest
from tfguard.model.secrets import WITHHELD_WORD, Withholding, is_withheld
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.adoption import objections, updates
from tfguard.reconcile.matching import lies_elsewhere


@dataclass(frozen=True, slots=True)
class AdoptOptions:
    """How to adopt. `address` chooses where several fit; `arguments` are the engine's `-var`, `-var-file` and `-state`.

    `applying` is what of them the apply of a plan file needs too.
    """

    address: str | None = None
    arguments: tuple[str, ...] = ()
    applying: tuple[str, ...] = ()
    yes: bool = False
    reason: str = ""


def adopt(
    context: StackContext, ids: Sequence[str], options: AdoptOptions, argv: Sequence[str], folder: Path
) -> GuardedRun:
    """Import the findings with these ids. `argv` is the command line as it may be recorded, `folder` takes run folders.

    Raises `UsageError` for a finding that is not there, is decided, or fits several addresses; `InputError` for a plan
    that would do more than import. Nothing has changed then, and no import block stays behind.
    """
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id) as upkeep:
        return _adopt(context, ids, options, argv, folder, operation_id, upkeep)


def _adopt(
    context: StackContext,
    ids: Sequence[str],
    options: AdoptOptions,
    argv: Sequence[str],
    folder: Path,
    operation_id: str,
    upkeep: Upkeep,
) -> GuardedRun:
    chosen = [_chosen(context, finding_id, options.address) for finding_id in ids]
    wanted = {address: finding.object.import_id for address, finding in chosen if finding.object}
    if len(wanted) < len(chosen):
        raise UsageError("two of these findings belong to one address", "adopt one of them; the other stays a finding")
    before = context.state_before()
    if _adopted_already(before, chosen):
        context.console.say("the state has it already at that address; nothing is left to adopt")
        _settle_those_that_saw(context, {finding.id for _, finding in chosen}, options)
        return GuardedRun(ExitCode.DONE)
    for address, finding in chosen:
        refuse_if_held(before, address, finding)
    for where, state in _known_states(context, before):
        for _, finding in chosen:
            refuse_if_known(state, where, finding)
    directory = open_run_folder(folder, operation_id, context.host, context.records.head().open_operations)
    try:
        options = _with_var_files(context, chosen, options)
        request = _request(options, wanted, directory / "plan")
        with context.engine.import_blocks(list(wanted.items())):
            # Only while it is planned: the plan file carries the block from then on.
            ready = _prepare(context, request, operation_id, directory, before, wanted)
        hidden = of_plan(ready.plan, before, folder)
        if not _approved(context, ready, wanted, options, hidden):
            return GuardedRun(1)
        guard = GuardOptions(adopts=tuple(finding.id for _, finding in chosen))
        run = apply_prepared(context, ready, argv, guard, upkeep)
        if run.exit_code == 0:
            _close(context, chosen, options, run, hidden)
        return run
    finally:
        close_run_folder(directory, operation_id, context.records)


def _chosen(context: StackContext, finding_id: str, address: str | None) -> tuple[str, Finding]:
    finding = next((item for item in findings(context.records)[0] if item.id == finding_id), None)
    decided = [item for item in context.records.dispositions() if item.finding_id == finding_id]
    if decision := finding.disposition if finding else next(reversed(decided), None):
        raise UsageError(
            f"{finding_id} was settled: {decision.kind.value} by {decision.actor} at {decision.at:%Y-%m-%d %H:%M}Z",
            "see `tfguard orphans list`",
        )
    if finding is None or finding.object is None:
        raise UsageError(f"there is no finding {finding_id} on this stack", "see `tfguard orphans list`")
    where = address or finding.address
    if where is None:
        raise UsageError(
            f"{finding_id} fits {len(finding.addresses)} addresses: {', '.join(finding.addresses)}",
            "say which one with --address ADDRESS",
        )
    if is_withheld(where):
        raise UsageError(
            f"{finding_id} belongs to {where}, of which a key is withheld since it is marked sensitive",
            "say the whole address with --address ADDRESS",
        )
    return where, finding


def _known_states(context: StackContext, own: StateSnapshot) -> Iterator[tuple[str, StateSnapshot]]:
    """This stack's state and every other one that is known. Raises `InputError` for one that cannot be read."""
    yield context.stack.location, own
    for source in context.known_places():
        try:
            for known in source.read():
                if known.location == context.stack.location:
                    continue
                if known.snapshot is None:
                    raise InputError(
                        f"{known.failure}; whether it has the object already is not known",
                        "make it readable, or take it out of `scan: {stacks: [...]}` in tfguard.yaml",
                    )
                yield known.location, known.snapshot
        except NoStateError:
            continue  # a pattern for what does not exist yet


def refuse_if_held(state: StateSnapshot, address: str, finding: Finding) -> None:
    """Raise `UsageError` when the address has another object already."""
    held = state.at(address)
    if held is not None and finding.object and not is_this_object(held, finding.object):
        hidden = Withholding(state.secrets)
        name = hidden.text(next(iter(held.identity.values()), address), "an object")
        at = hidden.address(address)
        raise UsageError(
            f"the state already holds {name} at {at}; {finding.id} would be a second object for one address",
            "delete the one that is not needed at the provider, then run `tfguard recover`",
        )


def refuse_if_known(state: StateSnapshot, where: str, finding: Finding) -> None:
    """Raise `UsageError` when a state has the object already, at whatever address (case B59)."""
    for instance in state.instances:
        if finding.object and is_this_object(instance, finding.object):
            at = Withholding(state.secrets).address(instance.address)
            raise UsageError(
                f"{finding.id} is managed already: the state {where} has it at {at}",
                "run `tfguard recover`; if the other stack should not have it, take it out there with `state rm` first",
            )


def is_this_object(instance: StateInstance, known: CloudObject) -> bool:
    """Whether an instance of a state is this very object: equal names in another region or account are none."""
    arn = instance.identity.get("arn")
    if instance.type != known.type or lies_elsewhere(instance.identity, known.account, known.region):
        return False
    return arn == known.arn if arn and known.arn else known.import_id in instance.identity.values()


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


def _request(options: AdoptOptions, wanted: Mapping[str, str], plan_file: Path) -> ChangeRequest:
    targets = tuple(f"-target={address}" for address in wanted)
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
        targets=tuple(wanted),
        var_files=(),
        variables=options.arguments,
        state_path=None,
        state_out=None,
        help=False,
    )


def _prepare(
    context: StackContext,
    request: ChangeRequest,
    operation_id: str,
    directory: Path,
    before: StateSnapshot,
    wanted: Mapping[str, str],
) -> Prepared:
    plan_file = directory / "plan"
    failed = context.engine.quiet_plan(request.planning, plan_file)
    if failed is not None:
        raise InputError(
            f"the import cannot be planned: {failed}",
            "add the -var and -var-file of the apply; check the address, and the provider's region and account",
        )
    plan = context.engine.show_plan(plan_file)
    if against := objections(plan, wanted):
        hidden = of_plan(plan, before, directory.parent)
        _refuse_beside_deposed(before, plan, wanted, hidden)
        said = (hidden.text(line, "something whose name is marked sensitive") for line in against)
        raise InputError(
            "the plan would do more than adopt, so it was not applied: " + "; ".join(said),
            "make the configuration match the object, or apply the other changes first; nothing was changed",
        )
    accepted = context.records.head().open_operations
    return Prepared(operation_id, request, plan, plan_file, directory, before, accepted)


def _refuse_beside_deposed(state: StateSnapshot, plan: Plan, wanted: Mapping[str, str], hidden: Withholding) -> None:
    """Raise `InputError` for an address to which the engine imports nothing, since a deposed object has it: what a
    create-before-destroy leaves that was killed before the new object was saved."""
    imported = {change.address for change in plan.changes if change.importing is not None}
    for instance in state.instances:
        if instance.deposed and instance.address in wanted and instance.address not in imported:
            at, new = hidden.address(instance.address), wanted[instance.address]
            old = hidden.text(next(iter(instance.identity.values()), instance.deposed), instance.deposed)
            raise InputError(
                f"{at} still has a deposed object, {old}, and the engine imports nothing to such an address",
                f"delete {new} at the provider, run `tfguard recover`, then apply again: that makes a new object, and "
                f"deletes the deposed one",
            )


def _approved(
    context: StackContext, ready: Prepared, wanted: Mapping[str, str], options: AdoptOptions, hidden: Withholding
) -> bool:
    changed = updates(ready.plan)
    for address, import_id in wanted.items():
        also = ", and update it in place to what the configuration says" if address in changed else ""
        context.console.say(f"will import {import_id} to {hidden.address(address)}{also}")
    if options.yes:
        return True
    if context.console.confirm("Adopt now?"):
        return True
    context.console.say("nothing was adopted; without a terminal, --yes approves")
    return False


def _close(
    context: StackContext,
    chosen: Sequence[tuple[str, Finding]],
    options: AdoptOptions,
    run: GuardedRun,
    hidden: Withholding,
) -> None:
    """Put the decision into the ledger and settle the operations that the findings came from."""
    actor = context.host.actor()
    after = context.read_state(None)
    adopted = [(address, finding) for address, finding in chosen if after.at(address) is not None]
    context.records.decide(
        [
            Disposition(
                finding_id=finding.id,
                kind=DispositionKind.IMPORT,
                at=context.clock.now(),
                actor=actor.signature,
                reason=hidden.text(options.reason, WITHHELD_WORD) or "adopted into the state",
                operation_id=run.operation.id if run.operation else "",
                address=hidden.address(address),
                import_id=finding.object.import_id if finding.object else None,
            )
            for address, finding in adopted
        ]
    )
    _settle_those_that_saw(context, {finding.id for _, finding in adopted}, options)


def _adopted_already(state: StateSnapshot, chosen: Sequence[tuple[str, Finding]]) -> bool:
    held = [(state.at(address), finding.object) for address, finding in chosen]
    return all(instance and known and is_this_object(instance, known) for instance, known in held)


def _settle_those_that_saw(context: StackContext, ids: Collection[str], options: AdoptOptions) -> None:
    """Settle every open operation that saw one of the objects: the run that made it, and an adoption that failed."""
    for operation in context.records.open_operations():
        if any(seen.finding_id in ids for step in operation.steps for seen in step.observed):
            settled = settle(context, operation, Settling(False, options.arguments))
            still = "settled" if not settled.open else "still open"
            context.console.say(f"operation {operation.id} is {still}")
