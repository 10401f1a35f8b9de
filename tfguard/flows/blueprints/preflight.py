"""Look before the first step of a request: whether there is what it needs, as far as that can be asked for.

Nothing is changed. Each check has a name, and can be left out for a reason. What cannot be looked at is said, and
stops nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

from tfguard.blueprint_ports import CallEnd, Quotas, StackPlace
from tfguard.catalog.catalog import Catalog
from tfguard.errors import (
    InputError,
    NoEngineError,
    NotInitialisedError,
    PreflightError,
    RecordError,
    TfguardError,
    UsageError,
)
from tfguard.flows.blueprints.context import BlueprintContext, stack_steps, values_of
from tfguard.flows.context import StackContext
from tfguard.flows.credentials import longest_run
from tfguard.flows.kept_steps import planned_steps
from tfguard.flows.looking import Looking, Surroundings
from tfguard.flows.providers import provider_for
from tfguard.model.blueprint import StepKind
from tfguard.model.blueprint_decision import DecisionKind
from tfguard.model.blueprint_request import Request
from tfguard.model.durations import in_words
from tfguard.model.inventory import Listing
from tfguard.model.operation import Step
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus, Quota
from tfguard.model.reference import references_in
from tfguard.model.state import EMPTY_STATE
from tfguard.ports import Inventory
from tfguard.reconcile.blueprint_steps import decide_stack
from tfguard.reconcile.look import ListingKey, listings_for

_OK, _FAILED, _UNKNOWN = CheckStatus.OK, CheckStatus.FAILED, CheckStatus.UNKNOWN
_SHOWN = 5
# Of the time that a request takes nothing is known at first: the shortest session that AWS gives out.
_WITHOUT_HISTORY = timedelta(minutes=15)
_LEAST_MARGIN = timedelta(minutes=2)
# A gap tells the code of a refusal and what was refused. Whoever may not ask can be told apart from whoever got none.
_REFUSED = re.compile(
    r"\b(AccessDenied|Unauthorized|NotAuthorized|AuthorizationError|Forbidden|ExpiredToken|InvalidClientTokenId"
    r"|UnrecognizedClient|SignatureDoesNotMatch|NoCredentials|PartialCredentials)\w* on "
)
_ERRORS: Mapping[CheckName, type[TfguardError]] = {CheckName.ENGINE: NoEngineError, CheckName.RECORDS: RecordError}


@dataclass(frozen=True, slots=True)
class PreflightPorts:
    """What is asked. `stack` gives a step's stack with everything around it, and raises `TfguardError`."""

    stack: Callable[[StackPlace], StackContext]
    inventory: Inventory
    catalog: Catalog
    quotas: Quotas


def preflight(
    context: BlueprintContext, request: Request, skipped: Mapping[str, str], around: PreflightPorts
) -> Sequence[CheckResult]:
    """Make every check but those of `skipped` (name -> reason), for what is still to be done of the request.

    A stack that was never set up is (`init`); else nothing is written anywhere. Raises `UsageError` for a name in
    `skipped` that no check has.
    """
    left_out = _known(skipped)
    looks = _Preflight(context, request, around, frozenset(left_out))
    results: list[CheckResult] = []
    for name, look in looks.checks().items():
        if name in left_out:
            results.append(CheckResult(name, CheckStatus.SKIPPED, left_out[name]))
        else:
            results += look()
    return results


def refuse_failures(context: BlueprintContext, results: Sequence[CheckResult]) -> None:
    """Say what is not known, what was skipped and what failed, a line each. Raises `PreflightError` where a check
    failed, `NoEngineError` or `RecordError` where that was the engine or a record."""
    for result in results:
        if result.status is CheckStatus.FAILED:
            context.console.warn(f"preflight: {result.name.value}: {result.detail}; {result.advice}")
        elif result.status is CheckStatus.UNKNOWN:
            context.console.warn(f"preflight: {result.name.value}: not known: {result.detail}")
        elif result.status is CheckStatus.SKIPPED:
            context.console.warn(f"preflight: {result.name.value}: skipped: {result.detail}")
    failed = tuple(dict.fromkeys(result.name for result in results if result.status is CheckStatus.FAILED))
    if failed:
        names = ", ".join(name.value for name in failed)
        raise _ERRORS.get(failed[0], PreflightError)(
            f"the preflight failed: {names}; nothing was changed",
            "do what stands beside each check, then run the command again; "
            f"`--skip-check {failed[0].value}=REASON` leaves a check out",
        )


def skipped_checks(results: Iterable[CheckResult]) -> Mapping[str, str]:
    """The checks that were left out, each with its reason: what the record keeps."""
    return {result.name.value: result.detail for result in results if result.status is CheckStatus.SKIPPED}


def _known(skipped: Mapping[str, str]) -> Mapping[CheckName, str]:
    known = {name.value: name for name in CheckName}
    for name, reason in skipped.items():
        if name not in known:
            raise UsageError(f"there is no check {name}", f"the checks are {', '.join(known)}")
        if not reason.strip():
            raise UsageError(f"the check {name} is skipped without a reason", f"give --skip-check {name}=REASON")
    return {known[name]: reason for name, reason in skipped.items()}


@dataclass(frozen=True, slots=True)
class _Planned:
    """One change that a step's plan makes, and the provider configuration that makes it."""

    change: PlannedChange
    step: Step
    provider: ProviderConfig


@dataclass(slots=True)
class _Preflight:
    """The checks of one request. Each keeps what the later ones need."""

    context: BlueprintContext
    request: Request
    around: PreflightPorts
    left_out: frozenset[CheckName]
    _stacks: dict[str, StackContext] = field(default_factory=dict)
    _troubles: dict[str, TfguardError] = field(default_factory=dict)
    _plans: dict[str, Plan] = field(default_factory=dict)
    _unplanned: dict[str, str] = field(default_factory=dict)
    _listed: dict[ListingKey, Listing] = field(default_factory=dict)

    def checks(self) -> Mapping[CheckName, Callable[[], Sequence[CheckResult]]]:
        """Every check by its name, in the order in which they are made."""
        names = self._to_do()
        self._open(names)
        return {
            CheckName.ENGINE: lambda: self._engine(names),
            CheckName.RECORDS: self._records,
            CheckName.STACKS: lambda: self._plan_all(names),
            CheckName.CREDENTIALS: self._credentials,
            CheckName.PERMISSIONS: lambda: self._permissions(names),
            CheckName.QUOTAS: lambda: self._quotas(names),
        }

    def _to_do(self) -> Sequence[str]:
        """The stacks that are not done: what is done and still true is not touched."""
        return [name for name in stack_steps(self.context.blueprint) if not self._done(name)]

    def _done(self, name: str) -> bool:
        record = self.request.step(name)
        if not record.done:
            return False
        try:
            look = self.context.stacks.look(values_of(self.context, self.request).place(name))
        except InputError:
            return False
        return decide_stack(record, look, self.request).kind is DecisionKind.SKIP

    def _open(self, names: Sequence[str]) -> None:
        for name in names:
            if not self._waits_for(name, ("workspace",)):
                self._open_one(name)

    def _open_one(self, name: str) -> None:
        self._troubles.pop(name, None)
        try:
            self._stacks[name] = self.around.stack(values_of(self.context, self.request).place(name))
        except TfguardError as error:
            self._troubles[name] = error

    # engine

    def _engine(self, names: Sequence[str]) -> Sequence[CheckResult]:
        failed = [
            CheckResult(CheckName.ENGINE, _FAILED, f"{name}: {error.what}", error.advice)
            for name, error in self._troubles.items()
            if isinstance(error, NoEngineError)
        ]
        found = sorted({f"{stack.engine.info.name} {stack.engine.info.version}" for stack in self._stacks.values()})
        if failed:
            return failed[:_SHOWN]
        if found:
            return [CheckResult(CheckName.ENGINE, _OK, ", ".join(found))]
        if names:
            return [CheckResult(CheckName.ENGINE, _UNKNOWN, f"no stack can be opened yet: {_some(names)}")]
        return [CheckResult(CheckName.ENGINE, _OK, "no stack is to be applied")]

    # records

    def _records(self) -> Sequence[CheckResult]:
        name = CheckName.RECORDS
        failed: list[CheckResult] = []
        try:
            self.context.requests.check_writable()
        except TfguardError as error:
            failed.append(CheckResult(name, _FAILED, f"the request: {error.what}", error.advice))
        for step, error in self._troubles.items():
            if isinstance(error, RecordError):
                failed.append(CheckResult(name, _FAILED, f"{step}: {error.what}", error.advice))
        for step, stack in self._stacks.items():
            try:
                stack.records.check_writable()
                stack.records.head()
            except TfguardError as error:
                failed.append(CheckResult(name, _FAILED, f"{step}: {error.what}", error.advice))
        if failed:
            return failed
        many = f", and those of {len(self._stacks)} stacks" if self._stacks else ""
        return [CheckResult(name, _OK, f"{self.context.requests.location}{many}")]

    # stacks

    def _plan_all(self, names: Sequence[str]) -> Sequence[CheckResult]:
        """Plan each stack that can be planned yet."""
        with ThreadPoolExecutor(self.context.blueprint.parallel) as pool:
            found = [result for result in pool.map(self._plan_one, names) if result is not None]
        planned = ", ".join(f"{name} ({_makes(plan)})" for name, plan in self._plans.items())
        if planned or not found:
            found.insert(0, CheckResult(CheckName.STACKS, _OK, f"planned: {planned or 'nothing is left to do'}"))
        return found

    def _plan_one(self, name: str) -> CheckResult | None:
        if isinstance(self._troubles.get(name), NoEngineError | RecordError):
            self._unplanned[name] = "it could not be opened"
            return None  # its own check says so
        if behind := self._waits_for(name, ("workspace", "vars")):
            return self._not_known(name, f"not known before {_some(behind)}")
        try:
            call = values_of(self.context, self.request).call(name)
            end = self.context.stacks.initialise(call.place, name)
            if end.exit_code:
                return self._unplannable(name, f"its `init` ended with {end.exit_code}{_last(end)}")
            if isinstance(self._troubles.get(name), NotInitialisedError):
                self._open_one(name)
            if (error := self._troubles.get(name)) is not None:
                return self._unplannable(name, error.what, error.advice)
            planned = self.context.stacks.plan(call)
        except TfguardError as error:
            return self._unplannable(name, error.what, error.advice)
        if isinstance(planned, Plan) and not planned.errored:
            self._plans[name] = planned
            return None
        why = planned if isinstance(planned, str) else "its plan has errors"
        return self._unplannable(name, why)

    def _waits_for(self, name: str, where: Collection[str]) -> Sequence[str]:
        """The steps whose outputs a stack's plan takes, and that are not there yet."""
        step = self.context.blueprint.steps[name]
        told = (reference.step for part in where for reference in references_in(getattr(step, part)))
        return sorted({other for other in told if other is not None and not self.request.step(other).done})

    def _unplannable(self, name: str, why: str, advice: str = "") -> CheckResult:
        """A stack that cannot be planned. It may read what a step before it makes, in a way that nobody told."""
        behind = [need for need in self.context.blueprint.steps[name].needs if not self.request.step(need).done]
        if behind:
            return self._not_known(name, f"not known before {_some(behind)} ({why})")
        self._unplanned[name] = why
        advice = advice or f"see what `tfguard -chdir={self.context.blueprint.steps[name].stack} plan` says"
        return CheckResult(CheckName.STACKS, _FAILED, f"{name}: {why}", advice)

    def _not_known(self, name: str, why: str) -> CheckResult:
        self._unplanned[name] = why
        return CheckResult(CheckName.STACKS, _UNKNOWN, f"{name}: {why}")

    def _without_plan(self, check: CheckName, names: Sequence[str], what: str) -> Iterator[CheckResult]:
        """What a check cannot look at for want of plans."""
        if CheckName.STACKS in self.left_out and names:
            yield CheckResult(check, _UNKNOWN, f"{what}: no stack is planned, since the check `stacks` is skipped")
            return
        for name in names:
            if name in self._unplanned:
                yield CheckResult(check, _UNKNOWN, f"{what} of {name}: {self._unplanned[name]}")

    # credentials

    def _credentials(self) -> Sequence[CheckResult]:
        name, now = CheckName.CREDENTIALS, self.context.clock.now()
        ends = {
            expiry
            for step, stack in self._stacks.items()
            if stack.credentials is not None
            for expiry in stack.credentials.expiries(self._providers(step))
            # What they are exchanged for lasts longer; but each stack exchanges them anew.
            if not (expiry.for_sign_in and len(self._stacks) == 1 and expiry.at > now)
        }
        if not ends:
            return [CheckResult(name, _OK, "no end of them is written down")]
        first, needed = min(ends, key=lambda one: one.at), self._time_needed()
        left = first.at - now
        if left <= timedelta():
            what = f"they expired {in_words(-left)} ago ({first.source})"
            return [CheckResult(name, _FAILED, what, "renew them")]
        if left < needed:
            what = f"they expire in {in_words(left)} ({first.source}), and the steps may take {in_words(needed)}"
            return [CheckResult(name, _FAILED, what, "renew them")]
        return [CheckResult(name, _OK, f"they last for {in_words(left)} ({first.source})")]

    def _providers(self, step: str) -> Sequence[ProviderConfig]:
        return tuple(self._plans[step].providers.values()) if step in self._plans else ()

    def _time_needed(self) -> timedelta:
        """How long what is left to do may take, one step behind the other: as long as the last runs of its stacks, and
        half of that again."""
        took: dict[str, timedelta] = {}
        for name in self.context.blueprint.order():
            own = longest_run(self._stacks[name].records) if name in self._stacks else None
            needs = self.context.blueprint.steps[name].needs
            took[name] = (own or timedelta()) + max((took[need] for need in needs), default=timedelta())
        longest = max(took.values())
        return max(_WITHOUT_HISTORY, longest + max(_LEAST_MARGIN, longest / 2))

    # permissions and quotas

    def _planned(self) -> Iterator[_Planned]:
        for name, plan in self._plans.items():
            for change, step in zip(plan.changing, planned_steps(plan, EMPTY_STATE), strict=True):
                config = self._stacks[name].around.config if name in self._stacks else self.context.config
                yield _Planned(change, step, provider_for(step, plan.providers, config))

    def _key(self, kind: str, provider: ProviderConfig, region: str | None) -> ListingKey:
        """One listing for each type and place, however many stacks ask for it."""
        place = self.around.inventory.place(kind, provider, region)
        known = str(place) if place is not None and place.account else f"{provider.key} {sorted(provider.settings)}"
        return (kind, known, region or "")

    def _list(self, wanted: Mapping[ListingKey, ProviderConfig]) -> None:
        new = {key: provider for key, provider in wanted.items() if key not in self._listed}
        around = self.around
        surroundings = Surroundings(
            around.inventory, around.catalog, self.context.config, self.context.clock, self.context.console
        )
        self._listed.update(Looking(surroundings, new).result())

    def _permissions(self, names: Sequence[str]) -> Sequence[CheckResult]:
        """Whether the objects of the planned types can be listed: without that nothing can be verified afterwards.
        Whether they may be made is told by the first create alone."""
        name, found = CheckName.PERMISSIONS, list[CheckResult]()
        wanted, unlisted = dict[ListingKey, ProviderConfig](), dict[str, None]()
        for planned in self._planned():
            keys = [
                self._key(kind, planned.provider, region or None)
                for kind, _, region in listings_for(planned.step, self.around.catalog)
                if self.around.inventory.covers(kind)
            ]
            wanted.update(dict.fromkeys(keys, planned.provider))
            if not keys and not self.around.catalog.state_only(planned.step.provider):
                unlisted[planned.step.type] = None
        self._list(wanted)
        for key in sorted(wanted):
            listing = self._listed[key]
            if listing.gap is not None:
                refused = _REFUSED.search(listing.gap.reason) is not None
                advice = "allow it (`tfguard catalog policy` writes the policy), or use credentials that may"
                what = f"{key[0]} in {listing.scope} cannot be listed: {listing.gap.reason}"
                found.append(CheckResult(name, _FAILED if refused else _UNKNOWN, what, advice if refused else ""))
        if well := sorted({key[0] for key in wanted if self._listed[key].gap is None}):
            what = f"{', '.join(well)} can be listed; whether they may be made is told by the first create"
            found.insert(0, CheckResult(name, _OK, what))
        if unlisted:
            found.append(CheckResult(name, _UNKNOWN, f"no call lists {', '.join(sorted(unlisted))}"))
        found += self._without_plan(name, names, "the types")
        return found or [CheckResult(name, _OK, "no object of a provider is planned")]

    def _quotas(self, names: Sequence[str]) -> Sequence[CheckResult]:
        """Whether what is planned fits below the account's limits, with what has to stay free."""
        name, found = CheckName.QUOTAS, list[CheckResult]()
        counts = dict[tuple[tuple[str, str], str, str], _Count](), 
        unlimited = dict[str, None]()
        for planned in self._planned():
            pass
        return found
