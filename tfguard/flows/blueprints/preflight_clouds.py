"""The part of a preflight that asks the clouds: what may be listed, and what an account has room for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfguard.blueprint_ports import Quotas, StackPlace
from tfguard.catalog.catalog import Catalog
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.context import StackContext
from tfguard.flows.kept_steps import planned_steps
from tfguard.flows.looking import Looking, Surroundings
from tfguard.flows.providers import provider_for
from tfguard.model.config import Config
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.operation import Step
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus, Quota
from tfguard.model.secrets import WITHHELD_PLACE
from tfguard.model.state import EMPTY_STATE
from tfguard.ports import Inventory
from tfguard.reconcile.look import ListingKey, listings_for

_OK, _FAILED, _UNKNOWN = CheckStatus.OK, CheckStatus.FAILED, CheckStatus.UNKNOWN
# A gap tells the code of a refusal and what was refused; whatever else is in the way (a network, a region that is not
# known) says nothing of permissions.
_REFUSED = re.compile(
    r"\b(AccessDenied|Unauthorized|NotAuthorized|AuthorizationError|Forbidden|ExpiredToken|InvalidClientTokenId"
    r"|UnrecognizedClient|SignatureDoesNotMatch|NoCredentials|PartialCredentials|PermissionDenied|PERMISSION_DENIED"
    r"|Unauthenticated|UNAUTHENTICATED)\w* on "
)


@dataclass(frozen=True, slots=True)
class PreflightPorts:
    """What a preflight asks. `stack` gives a step's stack with everything around it, and raises `TfguardError`."""

    stack: Callable[[StackPlace], StackContext]
    inventory: Inventory
    catalog: Catalog
    quotas: Quotas


@dataclass(frozen=True, slots=True)
class StackPlan:
    """What the stack of a step would change, and the settings that hold for it."""

    name: str
    plan: Plan
    config: Config


@dataclass(frozen=True, slots=True)
class _Planned:
    """One change, and the provider configuration that makes it."""

    change: PlannedChange
    step: Step
    provider: ProviderConfig


@dataclass(slots=True)
class _Demand:
    """How many objects are planned that count towards a limit, and whom to ask about the place."""

    quota: Quota
    provider: ProviderConfig
    place: str | None
    planned: int = 0


@dataclass(slots=True)
class CloudChecks:
    """The checks that need plans. `untold` are the steps that have none, and why."""

    context: BlueprintContext
    around: PreflightPorts
    plans: Sequence[StackPlan]
    untold: Mapping[str, str]
    _places: dict[object, str] = field(default_factory=dict)
    _listed: dict[ListingKey, Listing] = field(default_factory=dict)

    def permissions(self) -> Sequence[CheckResult]:
        """Whether the objects of the planned types can be listed: else nothing could be verified afterwards."""
        check, found, unlisted = CheckName.PERMISSIONS, list[CheckResult](), dict[str, None]()
        wanted: dict[ListingKey, ProviderConfig] = {}
        for planned in self._all():
            kinds = [key[0] for key in listings_for(planned.step, self.around.catalog)]
            listed = [kind for kind in kinds if self.around.inventory.covers(kind)]
            for kind in listed:
                wanted[self._key(kind, planned.provider, planned.step.own_place)] = planned.provider
            if not listed and not self.around.catalog.state_only(planned.step.provider):
                unlisted[planned.step.type] = None
        listings = self._list(wanted)
        for kind, listing in sorted((key[0], listing) for key, listing in listings.items() if listing.gap is not None):
            assert listing.gap is not None
            what = f"{kind} in {listing.scope} cannot be listed: {listing.gap.reason}"
            if _REFUSED.search(listing.gap.reason):
                advice = "allow it (`tfguard catalog policy` prints what is needed), or use credentials that may"
                found.append(CheckResult(check, _FAILED, what, advice))
            else:
                found.append(CheckResult(check, _UNKNOWN, what))
        if well := sorted({key[0] for key, listing in listings.items() if listing.gap is None}):
            what = f"{', '.join(well)} can be listed; whether they may be made is told by the first create alone"
            found.insert(0, CheckResult(check, _OK, what))
        if unlisted:
            found.append(CheckResult(check, _UNKNOWN, f"nothing lists {', '.join(sorted(unlisted))}"))
        return self._with_untold(check, found)

    def quotas(self) -> Sequence[CheckResult]:
        """Whether all that is planned fits below the limits of its accounts, with what has to stay free."""
        check, demands, unlimited = CheckName.QUOTAS, dict[object, _Demand](), dict[str, None]()
        for planned in self._all():
            if not planned.change.action.creates or self.around.catalog.state_only(planned.step.provider):
                continue
            kind = self.around.catalog.get(planned.step.type)
            if kind is None or not kind.quotas or planned.step.own_place == WITHHELD_PLACE:
                unlimited[planned.step.type] = None
            elif _adds_one(planned.change):
                key = self._key(kind.type, planned.provider, planned.step.own_place)
                for quota in kind.quotas:
                    if _counts(quota, planned.change.desired):
                        place = (quota.key, key[1])
                        demand = demands.setdefault(place, _Demand(quota, planned.provider, planned.step.own_place))
                        demand.planned += 1
        found = [self._fits(demand) for demand in demands.values()]
        if unlimited:
            what = f"whether a limit applies to {', '.join(sorted(unlimited))}: the catalogue names none"
            found.append(CheckResult(check, _UNKNOWN, what))
        return self._with_untold(check, found)

    def _fits(self, demand: _Demand) -> CheckResult:
        check, counted = CheckName.QUOTAS, self.around.catalog.counted_by(demand.quota)
        keys = {entry.type: self._key(entry.type, demand.provider, demand.place) for entry, _ in counted}
        listings = self._list(dict.fromkeys(keys.values(), demand.provider))
        scope = next(iter(listings.values())).scope
        what = f"{', '.join(sorted(keys))} in {scope}"
        for listing in listings.values():
            if listing.gap is not None:
                return CheckResult(
                    check, _UNKNOWN, f"how many {listing.type} there are in {scope}: {listing.gap.reason}"
                )
        limit = self.around.quotas.limit(demand.quota, demand.provider, scope)
        if limit.value is None:
            return CheckResult(check, _UNKNOWN, f"the limit of {what}: {limit.reason}")
        used = sum(_counted(listings[keys[entry.type]].objects, quota) for entry, quota in counted)
        free = self.context.blueprint.preflight.kept_free(limit.value)
        what += f": {used} exist, {demand.planned} planned, {free} kept free; the limit is {limit.value}"
        needed = used + demand.planned + free
        if needed <= limit.value:
            return CheckResult(check, _OK, what)
        advice = (
            f"have the quota {demand.quota.service} {demand.quota.code} raised to {needed}, or remove what is not used"
        )
        return CheckResult(check, _FAILED, what, advice)

    def _all(self) -> Iterator[_Planned]:
        for one in self.plans:
            for change, step in zip(one.plan.changing, planned_steps(one.plan, EMPTY_STATE), strict=True):
                yield _Planned(change, step, provider_for(step, one.plan.providers, one.config))

    def _key(self, kind: str, provider: ProviderConfig, own_place: str | None) -> ListingKey:
        """The same for every stack that works in a place: what is planned there adds up, and is listed once."""
        place = self.around.inventory.place(kind, provider, own_place)
        where: object = (place.cloud, place.account, place.region) if place is not None and place.account else None
        if where is None:
            where = (tuple(sorted(provider.settings.items())), own_place, place.region if place is not None else None)
        name = self._places.setdefault(where, f"{provider.key} #{len(self._places) + 1}")
        return (kind, name, own_place or "")

    def _list(self, wanted: Mapping[ListingKey, ProviderConfig]) -> Mapping[ListingKey, Listing]:
        around, context = self.around, self.context
        surroundings = Surroundings(around.inventory, around.catalog, context.config, context.clock, context.console)
        new = {key: provider for key, provider in wanted.items() if key not in self._listed}
        self._listed.update(Looking(surroundings, new).result())
        return {key: self._listed[key] for key in wanted}

    def _with_untold(self, check: CheckName, found: list[CheckResult]) -> Sequence[CheckResult]:
        for name, why in self.untold.items():
            found.append(CheckResult(check, _UNKNOWN, f"what {name} makes: {why}"))
        return found or [CheckResult(check, _OK, "no object of a provider is to be made")]


def _adds_one(change: PlannedChange) -> bool:
    """Whether there is one object more for a time: what is replaced goes first, if nobody says otherwise."""
    return change.importing is None and (change.action is not Action.REPLACE or change.create_first)


def _counts(quota: Quota, identity: Mapping[str, str]) -> bool:
    """Whether an object counts towards a limit. What is not known of it does not exempt it."""
    return all(identity.get(name, value) == value for name, value in quota.only.items())


def _counted(objects: Sequence[CloudObject], quota: Quota) -> int:
    """How many of these objects count; what another account has shared is not this one's."""
    own = (found for found in objects if not (found.owner and found.account and found.owner != found.account))
    return sum(_counts(quota, found.identity) for found in own)
