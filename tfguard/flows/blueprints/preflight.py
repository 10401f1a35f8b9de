"""Look before the first step of a request: whether there is what it needs, as far as that can be asked for.

Nothing is changed. Each check has a name, and can be left out for a reason. What cannot be looked at is said, and
stops nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tfguard.blueprint_ports import CallEnd
from tfguard.errors import (
    NoEngineError,
    NotInitialisedError,
    PreflightError,
    RecordError,
    TfguardError,
    UsageError,
)
from tfguard.flows.blueprints.context import BlueprintContext, stack_steps, values_of
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.preflight_clouds import CloudChecks, PreflightPorts, StackPlan
from tfguard.flows.blueprints.stopping import refuse_interrupted
from tfguard.flows.context import StackContext
from tfguard.flows.credentials import longest_run
from tfguard.model.blueprint import BlueprintStep
from tfguard.model.blueprint_decision import DecisionKind, Told
from tfguard.model.blueprint_request import BlueprintObject, Request, StepRecord
from tfguard.model.blueprint_view import PlanOutline
from tfguard.model.durations import in_words
from tfguard.model.naming import first_of
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus
from tfguard.model.reference import references_in
from tfguard.reconcile.blueprint_objects import holds_data, vanished_data

_OK, _FAILED, _UNKNOWN, _SKIPPED = CheckStatus.OK, CheckStatus.FAILED, CheckStatus.UNKNOWN, CheckStatus.SKIPPED
_NAMED = 5
_IN_PLACE = ("workspace", "environment")
_IN_PLAN = (*_IN_PLACE, "vars")
_TO_APPLY = (DecisionKind.RUN, DecisionKind.WAIT)
# How long a request takes nobody knows the first time: the shortest session that AWS gives out.
_WITHOUT_HISTORY = timedelta(minutes=15)
_LEAST_MARGIN = timedelta(minutes=2)
_ERRORS: Mapping[CheckName, type[TfguardError]] = {CheckName.ENGINE: NoEngineError, CheckName.RECORDS: RecordError}


def preflight(
    context: BlueprintContext, request: Request, skipped: Mapping[str, str], around: PreflightPorts
) -> Sequence[CheckResult]:
    """Make every check but those of `skipped` (name -> reason), for what is still to be done of the request.

    A stack that was never set up is (`init`), since it cannot be planned before; else nothing is written anywhere.
    Raises `UsageError` for a name in `skipped` that no check has, and for one without a reason.
    """
    return Preflight(context, request, skipped, around).run()


def refuse_failures(context: BlueprintContext, results: Sequence[CheckResult]) -> None:
    """Say what failed, what is not known and what was skipped, a line each.

    Raises `PreflightError` where a check failed, `NoEngineError` or `RecordError` where the first of them was about
    the engine or a record.
    """
    for result in results:
        told = f"preflight: {result.name.value}"
        if result.status is _FAILED:
            context.console.warn(f"{told}: {result.detail}; {result.advice}")
        elif result.status is not _OK:
            context.console.warn(f"{told}: {'skipped' if result.status is _SKIPPED else 'not known'}: {result.detail}")
    failed = tuple(dict.fromkeys(result.name for result in results if result.status is _FAILED))
    if failed:
        raise _ERRORS.get(failed[0], PreflightError)(
            f"the preflight failed: {', '.join(name.value for name in failed)}; nothing was changed",
            "do what stands beside each of them, then run the command again; "
            f"--skip-check {failed[0].value}=REASON leaves a check out",
        )


def skipped_checks(results: Iterable[CheckResult]) -> Mapping[str, str]:
    """The checks that were left out, each with its reason: what the record keeps."""
    return {result.name.value: result.detail for result in results if result.status is _SKIPPED}


def _known(skipped: Mapping[str, str]) -> Mapping[CheckName, str]:
    known = {name.value: name for name in CheckName}
    for name, reason in skipped.items():
        if name not in known:
            raise UsageError(f"there is no check {name}", f"the checks are {', '.join(known)}")
        if not reason.strip():
            raise UsageError(f"the check {name} is skipped without a reason", f"give --skip-check {name}=REASON")
    return {known[name]: reason for name, reason in skipped.items()}


class Preflight:
    """The checks of one request; each keeps what the later ones need. The arguments are those of `preflight`, which
    tells what is raised; `told` is what a person has said of steps."""

    def __init__(
        self,
        context: BlueprintContext,
        request: Request,
        skipped: Mapping[str, str],
        around: PreflightPorts,
        told: Mapping[str, Told] | None = None,
    ) -> None:
        self._context = context
        self._request = request
        self._around = around
        self._left_out = _known(skipped)
        self._values = values_of(context, request)
        self._stacks: dict[str, StackContext] = {}
        self._troubles: dict[str, TfguardError] = {}
        self._plans: dict[str, Plan] = {}
        self._unplanned: dict[str, str] = {}
        self._behind: dict[str, Sequence[str]] = {}
        self._later_ones: dict[str, Sequence[str]] = {}
        self._told = told or {}
        self._made: CloudChecks | None = None
        # What is done and still true is not touched.
        decided = decisions(context, request, self._told)
        self._names = [n for n in stack_steps(context.blueprint) if decided[n].kind is not DecisionKind.SKIP]
        self._to_apply = [n for n in self._names if decided[n].kind in _TO_APPLY]

    def run(self) -> Sequence[CheckResult]:
        """Make every check that is not left out; what was seen."""
        self._open_all()
        results: list[CheckResult] = []
        for name, look in self._checks().items():
            refuse_interrupted(self._context)
            skipped = self._left_out.get(name)
            results += look() if skipped is None else [CheckResult(name, _SKIPPED, skipped)]
        return results

    def plan_alone(self) -> None:
        """Make the plans, and no check, for `outlines` to tell."""
        self._open_all()
        self._plan_all()

    def outlines(self) -> Mapping[str, PlanOutline]:
        """What the engine would do in each stack that is to be applied, once `run` or `plan_alone` has asked it."""
        # What takes an output of these is planned by a value that may change before its turn.
        moving: set[str] = set()
        for name in stack_steps(self._context.blueprint):
            plan = self._plans.get(name)
            still = plan is not None and plan.asks_nothing(refresh_only=False)
            if name in self._to_apply and not (still and moving.isdisjoint(self._taken(name, _IN_PLAN))):
                moving.add(name)
        return {name: self._outline(name, moving) for name in self._to_apply}

    def _outline(self, name: str, moving: Collection[str]) -> PlanOutline:
        if (plan := self._plans.get(name)) is not None:
            changes = plan.changing
            return PlanOutline(
                add=sum(change.action.creates for change in changes),
                change=sum(change.action is Action.UPDATE for change in changes),
                destroy=sum(change.action.deletes for change in changes),
                deleted=tuple(change.address for change in changes if change.action is Action.DELETE),
                replaced=tuple(change.address for change in changes if change.action is Action.REPLACE),
                by_outputs_of=tuple(other for other in self._taken(name, _IN_PLAN) if other in moving),
            )
        if (behind := self._behind.get(name)) is not None:
            return PlanOutline(untold=f"cannot be planned before {first_of(behind, _NAMED)} gives its outputs")
        if CheckName.STACKS in self._left_out:
            return PlanOutline(untold="not planned: the check `stacks` is skipped")
        if name in self._later_ones:
            return PlanOutline(untold=f"cannot be planned before {first_of(self._later_ones[name], _NAMED)} is done")
        # Why, in the engine's own words, goes to the user alone (rule 10).
        return PlanOutline(untold="cannot be planned: the engine, or what it needs, refuses that", refused=True)

    def refusals(self) -> Mapping[str, str]:
        """Why each stack that is to be applied cannot be planned though its turn has come; for the user alone."""
        refused = [name for name, outline in self.outlines().items() if outline.refused]
        troubles = {name: error.what for name, error in self._troubles.items()}
        return {name: troubles.get(name) or self._unplanned.get(name, "it could not be opened") for name in refused}

    def _open_all(self) -> None:
        for name in self._names:
            if not self._waits_for(name, _IN_PLACE):
                self._open(name)

    def _checks(self) -> Mapping[CheckName, Callable[[], Sequence[CheckResult]]]:
        """Every check by its name, in the order in which they are to be made."""
        return {
            CheckName.ENGINE: self._engine,
            CheckName.STACKS: self._plan_all,
            CheckName.DATA: self._data,
            CheckName.RECORDS: self._records,
            CheckName.CREDENTIALS: self._credentials,
            CheckName.PERMISSIONS: lambda: self._clouds().permissions(),
            CheckName.QUOTAS: lambda: self._clouds().quotas(),
        }

    def _open(self, name: str) -> None:
        try:
            self._stacks[name] = self._around.stack(self._values.place(name))
            self._troubles.pop(name, None)
        except TfguardError as error:
            self._troubles[name] = error

    def _waits_for(self, name: str, parts: Collection[str]) -> Sequence[str]:
        """The steps whose outputs these parts of a step take, and that are not done yet."""
        return [other for other in self._taken(name, parts) if not self._request.step(other).done]

    def _taken(self, name: str, parts: Collection[str]) -> Sequence[str]:
        """The steps whose outputs these parts of a step take."""
        step = self._context.blueprint.steps[name]
        taken = {reference.step for part in parts for reference in references_in(getattr(step, part))}
        return sorted(other for other in taken if other is not None)

    def _engine(self) -> Sequence[CheckResult]:
        check = CheckName.ENGINE
        failed = [
            CheckResult(check, _FAILED, f"{name}: {error.what}", error.advice)
            for name, error in self._troubles.items()
            if isinstance(error, NoEngineError)
        ]
        infos = (stack.engine.info for stack in self._stacks.values())
        found = sorted({f"{info.name} {info.version}" for info in infos})
        if failed or found:
            return failed or [CheckResult(check, _OK, ", ".join(found))]
        if self._names:
            return [CheckResult(check, _UNKNOWN, f"no stack could be opened yet: {first_of(self._names, _NAMED)}")]
        return [CheckResult(check, _OK, "no stack is left to apply")]

    def _plan_all(self) -> Sequence[CheckResult]:
        with ThreadPoolExecutor(self._context.blueprint.parallel) as pool:
            found = [result for result in pool.map(self._plan, self._names) if result is not None]
        refuse_interrupted(self._context)
        planned = [f"{name} ({_makes(self._plans[name])})" for name in self._names if name in self._plans]
        if planned or not self._names:
            what = f"planned: {', '.join(planned)}" if planned else "no stack is left to apply"
            found.insert(0, CheckResult(CheckName.STACKS, _OK, what))
        return [*found, *self._shared()]

    def _shared(self) -> Iterator[CheckResult]:
        """The steps that have the state of another: by what is known now that the stacks are set up."""
        owners: dict[str, str] = {}
        for name in stack_steps(self._context.blueprint):
            if self._waits_for(name, _IN_PLACE):
                continue
            try:
                location = self._context.stacks.facts(self._values.place(name)).location
            except TfguardError:
                continue  # told where it is planned
            if (other := owners.setdefault(location, name)) != name:
                what = f"{name}: it has the same state as the step {other}: {location}"
                yield CheckResult(CheckName.STACKS, _FAILED, what, "give each its own backend, or its own `workspace:`")

    def _data(self) -> Sequence[CheckResult]:
        """Whether what holds data would be replaced or deleted."""
        check, found = CheckName.DATA, list[CheckResult]()
        for name in self._names:
            step, record = self._context.blueprint.steps[name], self._request.step(name)
            plan = self._plans.get(name)
            if plan is None and record.made and holds_data(step, record.standing):
                why = self._unplanned.get(name, "it is not planned")
                found.append(CheckResult(check, _UNKNOWN, f"what becomes of the data of {name}: {why}"))
            holding = [found.address for found in record.standing if holds_data(step, (found,))]
            # What is not applied asks when its turn comes.
            asks = name in self._to_apply and (name not in self._told or self._told[name].done)
            again = vanished_data(record, holding) if asks else ()
            for change in plan.changing if plan is not None else ():
                if change.action is Action.CREATE and change.address in again:
                    what = f"{name}: {change.address}, which holds data, would be made anew without it"
                    advice = f"restore it, or say `resume --again {name} --reason TEXT`"
                    found.append(CheckResult(check, _FAILED, what, advice))
                if change.action.deletes and self._holds_data(step, record, change):
                    word = "replaced" if change.action.creates else "deleted"
                    what = f"{name}: {change.address}, which holds data, would be {word}"
                    advice = f"see what `tfguard -chdir={step.stack} plan` says there, and undo what leads to that"
                    found.append(CheckResult(check, _FAILED, what, advice))
        return found or [CheckResult(check, _OK, "nothing that holds data is replaced or deleted")]

    def _holds_data(self, step: BlueprintStep, record: StepRecord, change: PlannedChange) -> bool:
        kind = self._around.catalog.get(change.type)
        seen = [found for found in record.standing if found.address == change.address]
        known = BlueprintObject(change.address, change.type, stateful=bool(kind and kind.stateful))
        return holds_data(step, (known, *seen))

    def _plan(self, name: str) -> CheckResult | None:
        """Plan a stack, or tell why not; None where another check tells it."""
        refuse_interrupted(self._context)
        trouble = self._troubles.get(name)
        if isinstance(trouble, NoEngineError | RecordError):
            self._unplanned[name] = "it could not be opened"
            return None
        if behind := self._waits_for(name, _IN_PLAN):
            self._behind[name] = behind
            return self._later(name, behind)
        if trouble is not None and not isinstance(trouble, NotInitialisedError):
            return self._unplannable(name, trouble.what, trouble.advice)
        try:
            call = self._values.call(name)
            end = self._context.stacks.initialise(call.place, name)
            if end.exit_code:
                return self._unplannable(
                    name, f"its `init` ended with {end.exit_code}{self._values.hidden(_last_words(end))}"
                )
            if trouble is not None:
                self._open(name)
            planned = self._context.stacks.plan(call)
        except TfguardError as error:
            return self._unplannable(name, error.what, error.advice)
        if isinstance(planned, str) or planned.errored:
            return self._unplannable(name, planned if isinstance(planned, str) else "its plan has errors")
        self._plans[name] = planned
        return None

    def _unplannable(self, name: str, why: str, advice: str = "") -> CheckResult:
        """It may read what a step before it makes, in a way that the blueprint does not tell: then that is no failure
        before that step is done."""
        step = self._context.blueprint.steps[name]
        if behind := [need for need in step.needs if not self._request.step(need).done]:
            self._later_ones[name] = behind
            return self._later(name, behind, f" ({why})")
        self._unplanned[name] = why
        advice = advice or f"see what `tfguard -chdir={step.stack} plan` says there"
        return CheckResult(CheckName.STACKS, _FAILED, f"{name}: {why}", advice)

    def _later(self, name: str, behind: Sequence[str], more: str = "") -> CheckResult:
        self._unplanned[name] = f"not known before {first_of(behind, _NAMED)}{more}"
        return CheckResult(CheckName.STACKS, _UNKNOWN, f"{name}: {self._unplanned[name]}")

    def _records(self) -> Sequence[CheckResult]:
        check, found = CheckName.RECORDS, list[CheckResult]()
        try:
            self._context.requests.check_writable()
        except TfguardError as error:
            found.append(CheckResult(check, _FAILED, f"of the request: {error.what}", error.advice))
        for name, trouble in self._troubles.items():
            if isinstance(trouble, RecordError):
                found.append(CheckResult(check, _FAILED, f"{name}: {trouble.what}", trouble.advice))
        for name, stack in self._stacks.items():
            try:
                stack.records.check_writable()
                stack.records.head()
            except TfguardError as error:
                found.append(CheckResult(check, _FAILED, f"{name}: {error.what}", error.advice))
        closed = [
            n for n in self._names if n not in self._stacks and not isinstance(self._troubles.get(n), RecordError)
        ]
        if closed:
            found.append(CheckResult(check, _UNKNOWN, f"where {first_of(closed, _NAMED)} would be recorded"))
        if not any(result.status is _FAILED for result in found):
            many = f", and the places of {len(self._stacks)} stack(s)" if self._stacks else ""
            found.insert(0, CheckResult(check, _OK, f"{self._context.requests.location}{many}"))
        return found

    def _credentials(self) -> Sequence[CheckResult]:
        check, now = CheckName.CREDENTIALS, self._context.clock.now()
        ends = [
            expiry
            for name, stack in self._stacks.items()
            if stack.credentials is not None
            for expiry in stack.credentials.expiries(self._providers(name))
            # One stack signs in at its beginning alone; of several each does so when its turn comes.
            if not expiry.for_sign_in or len(self._stacks) > 1 or expiry.at <= now
        ]
        if not ends:
            return [CheckResult(check, _OK, "no end of them is written down")]
        first, needed = min(ends, key=lambda one: one.at), self._time_needed()
        left = first.at - now
        if left <= timedelta():
            what = f"they expired {in_words(-left)} ago ({first.source})"
        elif left < needed:
            what = (
                f"they expire in {in_words(left)} ({first.source}), and what is to be done may take {in_words(needed)}"
            )
        else:
            return [CheckResult(check, _OK, f"they last for {in_words(left)} ({first.source})")]
        return [CheckResult(check, _FAILED, what, "renew them")]

    def _providers(self, name: str) -> Sequence[ProviderConfig]:
        return tuple(self._plans[name].providers.values()) if name in self._plans else ()

    def _time_needed(self) -> timedelta:
        """How long what is left may take: as long as the last runs of its stacks did, those one behind the other that
        need each other, and half of that again."""
        took: dict[str, timedelta] = {}
        for name in self._context.blueprint.order():
            own = longest_run(self._stacks[name].records) if name in self._stacks else None
            before = (took[need] for need in self._context.blueprint.steps[name].needs)
            took[name] = (own or timedelta()) + max(before, default=timedelta())
        longest = max(took.values())
        return max(_WITHOUT_HISTORY, longest + max(_LEAST_MARGIN, longest / 2))

    def _clouds(self) -> CloudChecks:
        """Made when every stack is planned that can be; it keeps what was listed."""
        if self._made is None:
            self._made = self._make_clouds()
        return self._made

    def _make_clouds(self) -> CloudChecks:
        plans = [
            StackPlan(name, self._plans[name], self._stacks[name].around.config)
            for name in self._names
            if name in self._plans and name in self._stacks
        ]
        untold = {name: self._unplanned.get(name, "it could not be opened") for name in self._names}
        if CheckName.STACKS in self._left_out:
            untold = dict.fromkeys(self._names, "the check `stacks` is skipped")
        for plan in plans:
            del untold[plan.name]
        return CloudChecks(self._context, self._around, plans, untold)


def _makes(plan: Plan) -> str:
    return f"{sum(change.action.creates for change in plan.changing)} to create"


def _last_words(end: CallEnd) -> str:
    return f": {end.tail[-1]}" if end.tail else ""
