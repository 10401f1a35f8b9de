"""Which of several findings one plan can adopt: what stands in the way of some is told, and the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfguard.errors import InputError, InterruptedRunError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.withholding import of_plan
from tfguard.model.address import resource_type
from tfguard.model.finding import Finding
from tfguard.model.importing import ImportTarget
from tfguard.model.plan import Plan
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.adoption import Objection, elsewhere, objections, own_import_id, updates, wanted_ids

# Of two hundred that all need one missing thing, nobody wants to wait for four hundred plans.
_MOST_PLANS = 24

_CANNOT_PLAN = "add the -var and -var-file of the apply; check the address, and the provider's region and account"
_WOULD_DO_MORE = "make the configuration match the object, or apply the other changes first; nothing was changed"
_WOULD_UPDATE = "add --allow-update, or make the configuration match the object; nothing was changed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding with where it is to go. `text` is the configuration that was drafted for it, where it had none;
    `variables` are those that it declares for values that are marked as sensitive, `fills` what its
    apply will write that no configuration asks for."""

    finding: Finding
    target: ImportTarget
    text: str = field(default="", repr=False)
    variables: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Where it is to go."""
        return self.target.address

    @property
    def address_type(self) -> str:
        """The type of the resource there: not always that of the object."""
        return resource_type(self.address)


Refusals = dict[str, TfguardError]
"""Why findings cannot be adopted, by their ids."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that adopts these candidates and does nothing else."""

    candidates: tuple[Candidate, ...]
    plan: Plan
    hidden: Withholding


@dataclass(slots=True)
class Planner:
    """Plans adoptions into `plan_file`. `arguments` are the engine's `-var`, `-var-file` and `-state`.

    With `may_update` a plan may bring what it imports in line with the configuration. `folder` holds run folders.
    """

    context: StackContext
    before: StateSnapshot
    folder: Path
    plan_file: Path
    arguments: tuple[str, ...]
    may_update: bool
    refused: Refusals = field(default_factory=dict)
    plans: int = 0
    spelled: set[str] = field(default_factory=set)
    alone_fails: bool | None = None

    def plan(self, candidates: Sequence[Candidate]) -> Planned | None:
        """The plan that adopts as many of them as can be; the others are in `refused`, by the finding's id.

        None when nothing is left. Raises `InputError` where no plan can be made, whatever it is to import.
        """
        planned = self._as_many_as_can(tuple(candidates))
        if not isinstance(planned, Planned):
            # They were planned in parts; the plan file holds only the last one of these.
            planned = self._at_once(planned)
        return planned if isinstance(planned, Planned) else None

    def _as_many_as_can(self, candidates: tuple[Candidate, ...]) -> Planned | tuple[Candidate, ...]:
        """One plan for all that can be adopted, or those that can, each seen to work in a plan of some of them."""
        planned = self._at_once(candidates)
        if isinstance(planned, Planned) or len(planned) < 2:
            return planned
        if self.plans >= _MOST_PLANS:
            advice = "adopt the others first, then those alone that this says it of"
            self._refuse(planned, InputError("something that several of these need stands in the way", advice))
            return ()
        half = len(planned) // 2
        parts = [self._as_many_as_can(part) for part in (planned[:half], planned[half:])]
        return tuple(one for part in parts for one in (part.candidates if isinstance(part, Planned) else part))

    def _at_once(self, candidates: tuple[Candidate, ...]) -> Planned | tuple[Candidate, ...]:
        """The plan for as many of them as nothing is said against; else those among which the fault has to be sought:
        it is something else that one of them needs, and nobody says which one."""
        while candidates:
            self._stop_if_interrupted()
            self.plans += 1
            told = self._try(candidates)
            if isinstance(told, Planned):
                return told
            respelled = self._respelled(candidates, told)
            if respelled != candidates:
                candidates = respelled
                continue
            about = {one.address: one for one in candidates}
            named = {one.address for one in told.against if one.address in about}
            for address in sorted(named):
                self._refuse([about[address]], told.error([one for one in told.against if one.address == address]))
            if not named and len(candidates) == 1:
                self._refuse(candidates, told.error(told.against))
                return ()
            if not named:
                return candidates
            candidates = tuple(one for one in candidates if one.address not in named)
        return ()

    def _try(self, candidates: Sequence[Candidate]) -> Planned | _Against:
        targets = [one.target for one in candidates]
        draft = "\n".join(one.text for one in candidates if one.text)
        aimed = tuple(f"-target={target.address}" for target in targets)
        troubles = self.context.engine.plan_imports(targets, draft, (*aimed, *self.arguments), self.plan_file)
        general = next((one for one in troubles if one.general), None)
        if general is not None and self._fails_without():
            raise InputError(f"the import cannot be planned: {general.what}", _CANNOT_PLAN)
        if troubles:
            return _Against([Objection(one.address, one.what) for one in troubles])
        plan = self.context.engine.show_plan(self.plan_file)
        changed = updates(plan)
        updatable = {
            one.address
            for one in candidates
            if self.may_update and (not one.text or {*changed.get(one.address, ())} <= {*one.fills})
        }
        wanted = wanted_ids(targets)
        objects = {one.address: one.finding.object for one in candidates if one.finding.object}
        against = [*elsewhere(plan, objects, self.context.around.catalog), *objections(plan, wanted, updatable)]
        hidden = of_plan(plan, self.before, self.folder)
        if not against:
            return Planned(tuple(candidates), plan, hidden)
        return _Against(against, plan, hidden, _beside_deposed(self.before, plan, wanted, hidden), not self.may_update)

    def _fails_without(self) -> bool:
        """Whether the stack cannot be planned without any import either; else it is one object that cannot be read,
        and providers do not say which one."""
        if self.alone_fails is None:
            self.alone_fails = isinstance(self.context.plan_now(self.arguments), str)
        return self.alone_fails

    def _respelled(self, candidates: tuple[Candidate, ...], told: _Against) -> tuple[Candidate, ...]:
        """The candidates with ids made of the configuration's own values, where a listed object's own id does not fit.

        Each is tried once.
        """
        named = {one.address for one in told.against}
        catalog = self.context.around.catalog
        doubtful = {
            one.address: kind
            for one in candidates
            if one.address in named and one.address not in self.spelled
            if (kind := catalog.get(one.address_type)) is not None and kind.import_as is not None
        }
        if not doubtful:
            return candidates
        self.spelled |= doubtful.keys()
        plan: Plan | str | None = told.plan
        if plan is None:  # the id was refused, so that a plan without the import has to tell
            plan = self.context.plan_now((*(f"-target={address}" for address in doubtful), *self.arguments))
        desired = {change.address: change.desired for change in plan.changes} if isinstance(plan, Plan) else {}
        ids = {address: own_import_id(kind, desired.get(address, {})) for address, kind in doubtful.items()}
        return tuple(_with_id(one, ids.get(one.address)) for one in candidates)

    def _refuse(self, candidates: Iterable[Candidate], why: TfguardError) -> None:
        for one in candidates:
            self.refused[one.finding.id] = why

    def _stop_if_interrupted(self) -> None:
        if self.context.clock.interrupted:
            raise InterruptedRunError("interrupted; nothing was changed", "run the command again")


@dataclass(frozen=True, slots=True)
class _Against:
    """What is said against a plan; without a `plan`, why there is none."""

    against: Sequence[Objection]
    plan: Plan | None = None
    hidden: Withholding = field(default_factory=Withholding)
    deposed: Mapping[str, TfguardError] = field(default_factory=dict)
    needs_word: bool = False

    def error(self, against: Sequence[Objection]) -> TfguardError:
        """The error that says some of it."""
        for one in against:
            if one.address is not None and one.address in self.deposed:
                return self.deposed[one.address]
        said = "; ".join(dict.fromkeys(one.what for one in against))
        if self.plan is None:
            return InputError(f"the import cannot be planned: {said}", _CANNOT_PLAN)
        said = "; ".join(
            self.hidden.text(what, "something whose name is marked sensitive")
            for what in dict.fromkeys(one.what for one in against)
        )
        only_updates = self.needs_word and all(" in place: " in one.what for one in against)
        advice = _WOULD_UPDATE if only_updates else _WOULD_DO_MORE
        return InputError(f"the plan would do more than adopt, so it was not applied: {said}", advice)


def _with_id(candidate: Candidate, import_id: str | None) -> Candidate:
    if import_id is None:
        return candidate
    return replace(candidate, target=replace(candidate.target, import_id=import_id))


def _beside_deposed(
    state: StateSnapshot, plan: Plan, wanted: Mapping[str, str], hidden: Withholding
) -> Mapping[str, TfguardError]:
    """Why the engine imports nothing to an address that a deposed object has: what a create-before-destroy leaves that
    was killed before the new object was saved."""
    imported = {change.address for change in plan.changes if change.importing is not None}
    found: dict[str, TfguardError] = {}
    for instance in state.instances:
        if instance.deposed and instance.address in wanted and instance.address not in imported:
            at, new = hidden.address(instance.address), wanted[instance.address]
            old = hidden.text(next(iter(instance.identity.values()), instance.deposed), instance.deposed)
            found[instance.address] = InputError(
                f"{at} still has a deposed object, {old}, and the engine imports nothing to such an address",
                f"delete {new} at the provider, run `tfguard recover`, then apply again: that makes a new object, and "
                f"deletes the deposed one",
            )
    return found
