"""Keep tainted objects: look whether each is still there and the one that the state means, untaint it, and plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfguard.errors import InputError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.history import that_tell
from tfguard.flows.providers import provider_for
from tfguard.flows.repair import repair_held
from tfguard.flows.retain import decided_object
from tfguard.flows.settle import Settling, providers_of, settle
from tfguard.flows.stray_findings import findings_with
from tfguard.flows.tainted import hidden_as_before
from tfguard.flows.upkeep import holding
from tfguard.model.cloud import cloud_of_type
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Operation, Step
from tfguard.model.plan import Action, PlannedChange
from tfguard.model.request import RepairRequest
from tfguard.model.state import StateInstance
from tfguard.reconcile.disposal import changed_since
from tfguard.reconcile.matching import same_object
from tfguard.reconcile.tainted import tainted_in
from tfguard.reconcile.wanted import lists_lag

_COMMAND = "untaint"
_GONE_ADVICE = "the next apply creates it anew; to drop it from the state instead, run `tfguard state rm`"


@dataclass(frozen=True, slots=True)
class UntaintOptions:
    """Why, and what of the engine's options the stack needs: `-var`, `-var-file`, and the file that `-state` named."""

    reason: str
    variables: tuple[str, ...] = ()
    state_path: str | None = None

    @property
    def state(self) -> tuple[str, ...]:
        """`-state`, where the stack's state needs it."""
        return (f"-state={self.state_path}",) if self.state_path else ()

    @property
    def planning(self) -> tuple[str, ...]:
        """What a plan has to be given."""
        return (*self.state, *self.variables)


@dataclass(frozen=True, slots=True)
class Untainted:
    """What became of one finding: whether the next apply leaves the object alive, as far as a plan tells."""

    finding_id: str
    kept: bool
    what: str
    advice: str = ""


def untaint(
    context: StackContext,
    ids: Sequence[str],
    known: Sequence[Finding],
    options: UntaintOptions,
    folder: Path,
    tell: Callable[[Untainted], None],
) -> Sequence[Untainted]:
    """Untaint the objects of these tainted findings, each as a recorded `untaint` of its own, and told at once.

    One that cannot be kept stops no other. `folder` takes run folders. Raises `UsageError` for an id that is none of
    `known`, `OperationAliveError` when another run holds the stack, and `RecordError` when the record cannot be
    written: then no other is begun.
    """
    done: list[Untainted] = []
    for finding in findings_with(ids, known):
        try:
            one = _untaint(context, finding, options, folder)
        except (UsageError, InputError) as error:
            one = Untainted(finding.id, False, error.what, error.advice)
        done.append(one)
        tell(one)
    return done


def _untaint(context: StackContext, finding: Finding, options: UntaintOptions, folder: Path) -> Untainted:
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id) as upkeep:
        operations = that_tell(context.records)[0]
        held = _held(context, finding, operations)
        made_by = next((one for one in operations if one.id == finding.operation_id), context.last_operation())
        _refuse_unless_there(context, finding, held, made_by, options)
        early = options.variables if context.engine.info.evaluates_early else ()
        arguments = (*options.state, *early, held.address)
        run = repair_held(
            context,
            _request(arguments, held, options),
            (_COMMAND, *options.state, held.address),
            folder,
            operation_id,
            upkeep,
        )
        if run.exit_code != 0 or any(step.tainted for step in (run.operation.steps if run.operation else ())):
            return Untainted(finding.id, False, "the engine did not untaint it; see its words above")
        context.records.decide([_decision(context, finding, operation_id, options.reason)])
    _settle_those_that_left_it(context, finding, options)
    return _kept(finding, _planned(context, held.address, options))


def _held(context: StackContext, finding: Finding, operations: Sequence[Operation]) -> StateInstance:
    """What the state has at the finding's address, which must be tainted."""
    if finding.verdict is not Verdict.TAINTED:
        raise UsageError(f"{finding.id} is {finding.verdict.value}, and not tainted", "keep the two kinds one by one")
    state = context.state_before()
    hidden = hidden_as_before(operations, state)
    held = next((one for one in tainted_in(state) if hidden.address(one.address) == finding.address), None)
    if held is None:
        raise UsageError(f"the state has nothing tainted at {finding.address} any more", "see `tfguard orphans list`")
    return held


def _refuse_unless_there(
    context: StackContext, finding: Finding, held: StateInstance, made_by: Operation | None, options: UntaintOptions
) -> None:
    """Raise `UsageError` unless the very object that the state means still exists: a list says so, else the engine."""
    if made_by is not None and _is_listed(context, finding, held, made_by, options):
        return
    planned = _planned(context, held.address, options)
    if isinstance(planned, str):
        raise UsageError(
            f"whether {finding.address} still exists cannot be told: {planned}",
            f"let a plan work (-var, -var-file), or decide yourself: `tfguard {_COMMAND} ADDRESS`",
        )
    if planned is None or planned.action is Action.CREATE:
        raise _gone(finding)


def _is_listed(
    context: StackContext, finding: Finding, held: StateInstance, made_by: Operation, options: UntaintOptions
) -> bool:
    """Whether a list has the object; False where it cannot tell. Raises `UsageError` where it has not, or another."""
    kind, inventory = context.around.catalog.get(held.type), context.around.inventory
    if kind is None or not inventory.covers(held.type) or not any(key in held.identity for key in kind.keys):
        return False
    step = Step(held.address, held.type, held.provider, Action.UPDATE, provider_key=held.provider_key)
    provider = provider_for(step, providers_of(context, made_by, [step], options.variables), context.around.config)
    account = finding.object.account if finding.object else held.account or None
    cloud = cloud_of_type(held.type)
    place = account if cloud is not None and cloud.place_is_account else held.region or None
    listing = inventory.list(held.type, provider, place)
    if account and listing.scope.account not in (None, account):
        raise UsageError(
            f"{finding.address} is in the account {account}, and the list tells of {listing.scope.account}",
            "run it with the credentials of the object's account",
        )
    same = [one for one in listing.objects if same_object(kind, held.identity, one)]
    if same:
        looked = inventory.detail(same[0], provider)
        if looked.gone:
            raise _gone(finding)
        now = looked.found
        if finding.object is not None and (changes := changed_since(finding, now)):
            raise UsageError(
                f"{finding.address} is not what the apply left there any more: {', '.join(changes)} changed",
                f"look at it at the provider; then `tfguard {_COMMAND} ADDRESS`, or an apply that replaces it",
            )
        return True
    if any(same_object(kind, held.identity, one) for one in listing.soft_deleted):
        raise UsageError(
            f"{finding.address} is deleted already, and waits for its end",
            "restore it with the provider's own tools first, or let the next apply replace it",
        )
    if listing.complete and not lists_lag(kind, context.around.catalog):
        raise _gone(finding)
    return False


def _gone(finding: Finding) -> UsageError:
    what = f"the state knows an object at {finding.address} that is not there any more: nothing is left to keep"
    return UsageError(what, _GONE_ADVICE)


def _planned(context: StackContext, address: str, options: UntaintOptions) -> PlannedChange | str | None:
    """What a plan with a refresh says about the address: its change, None where it has none; else why there is none."""
    with context.scratch() as folder:
        plan_file = folder / "plan"
        failed = context.engine.quiet_plan((f"-target={address}", *options.planning), plan_file)
        if failed is not None:
            return failed
        changes = context.engine.show_plan(plan_file).changes
    return next((one for one in changes if one.address == address and one.deposed is None), None)


def _request(arguments: tuple[str, ...], held: StateInstance, options: UntaintOptions) -> RepairRequest:
    return RepairRequest(
        command=_COMMAND,
        arguments=arguments,
        operands=(held.address,),
        json=False,
        locking=True,
        forced=False,
        changes_nothing=False,
        state_path=options.state_path,
        state_out=None,
        targets=(),
        var_files=(),
        variables=options.variables,
    )


def _decision(context: StackContext, finding: Finding, operation_id: str, reason: str) -> Disposition:
    found = finding.object
    return Disposition(
        finding_id=finding.id,
        kind=DispositionKind.UNTAINT,
        at=context.clock.now(),
        actor=context.host.actor().signature,
        reason=reason,
        operation_id=operation_id,
        address=finding.address,
        import_id=found.import_id if found else None,
        object=decided_object(found) if found else None,
    )


def _settle_those_that_left_it(context: StackContext, finding: Finding, options: UntaintOptions) -> None:
    """Let an open operation that left the object tainted tell what it is now."""
    for operation in context.records.open_operations():
        if any(step.tainted and step.address == finding.address for step in operation.steps):
            settle(context, operation, Settling(patient=False, arguments=options.variables))


def _kept(finding: Finding, planned: PlannedChange | str | None) -> Untainted:
    where = finding.address
    if isinstance(planned, str):
        what = f"{where} is untainted; what the next apply does with it cannot be told: {planned}"
        return Untainted(finding.id, True, what, "run `tfguard plan` with the stack's variables")
    if planned is None or planned.action in (Action.NOOP, Action.READ):
        return Untainted(finding.id, True, f"{where} is untainted, and the next apply leaves it as it is")
    if planned.action is Action.UPDATE:
        differs = f": {', '.join(planned.differs)}" if planned.differs else ""
        return Untainted(finding.id, True, f"{where} is untainted; the next apply changes it in place{differs}")
    why = f", since {', '.join(planned.forced_by)} cannot be changed" if planned.forced_by else ""
    return Untainted(
        finding.id,
        False,
        f"{where} is untainted, and the next apply would {planned.action.value} it all the same{why}",
        "bring the configuration in line with the object, then look at `tfguard plan`",
    )
