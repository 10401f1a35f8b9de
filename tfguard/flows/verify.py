"""Look at the provider after a run, and turn what was seen into outcomes (docs/design.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import PLACEHOLDER
from tfguard.flows.direct_look import with_direct_answers
from tfguard.flows.kept_steps import without_secrets
from tfguard.flows.looking import Looking, Surroundings, keys_of
from tfguard.flows.withholding import also_hiding, withheld_texts
from tfguard.model.evidence import EvidenceKind
from tfguard.model.failure import Failure
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.operation import BaselineEntry, ObservedObject, Outcome, Step
from tfguard.model.plan import ProviderConfig
from tfguard.model.secrets import Withholding, is_withheld
from tfguard.model.state import StateSnapshot
from tfguard.ports import ImportProbe
from tfguard.reconcile.adoption import own_import_id
from tfguard.reconcile.look import ListingKey, Look
from tfguard.reconcile.outcomes import conclude

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0
_MOST_PROBES = 5
_NO_ANSWER = (EvidenceKind.GAP, EvidenceKind.NOT_LOOKED_FOR)


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run when its steps are to be concluded. Times are in UTC.

    `read_state` gives the state now and is asked again at each look: a state can change between two. `probe` asks the
    engine itself about a step and an import id, where no list answers. `open_creates` are the addresses of which the
    engine began a create and did not report its end. `hidden` is what may not be written, `marks_gone` tells that the
    plan is gone and with it its marked values, `masks_known` whether masked addresses can be told again.
    `read_known` gives the other states that are known: what they hold is
    nobody's stray.
    """

    steps: tuple[Step, ...]
    baseline: Sequence[BaselineEntry]
    providers: Mapping[str, ProviderConfig]
    failures: Mapping[str, Failure]
    started_at: datetime
    quiet_since: datetime
    stream_whole: bool
    read_state: Callable[[], StateSnapshot]
    errored: StateSnapshot | None = None
    hidden: Withholding = field(default_factory=Withholding)
    marks_gone: bool = True
    masks_known: bool = True
    probe: Callable[[Step, str], ImportProbe] | None = None
    open_creates: frozenset[str] = frozenset()
    read_known: Callable[[], tuple[StateSnapshot, ...]] = tuple


@dataclass(frozen=True, slots=True)
class Verdict:
    """The concluded steps, where the look was incomplete, and the state that it rests on."""

    steps: tuple[Step, ...]
    gaps: tuple[str, ...]
    state: StateSnapshot


def verify(run: Run, around: Surroundings, patient: bool) -> Verdict:
    """Conclude every step. With `patient`, wait out the consistency grace as long as that can change something."""
    pause, grace_ends = _FIRST_PAUSE, run.quiet_since + around.config.consistency_grace
    while True:
        # A list is as old as its question: one that was asked for within the grace proves nothing after it.
        asked_at = around.clock.now()
        verdict = _look_once(run, around, asked_at)
        waiting = [step.address for step in verdict.steps if _may_settle(step)]
        if not patient or not waiting or asked_at >= grace_ends:
            return verdict
        left = max(grace_ends - around.clock.now(), timedelta(0))
        if pause == _FIRST_PAUSE:
            around.console.say(
                f"looking for {', '.join(waiting[:3])} for up to {left.total_seconds():.0f} s more: "
                "what is not listed yet may exist all the same (Ctrl-C leaves it unknown)"
            )
        # A moment longer than what is left, so that the last look is after the end of the grace.
        if not around.clock.sleep(min(pause, left.total_seconds() + 0.05)):
            return verdict
        pause = min(pause * 2, _LONGEST_PAUSE)


def _may_settle(step: Step) -> bool:
    """Whether waiting can turn this unknown into something: a lagging list can, a refused one or candidates cannot."""
    final = {*_NO_ANSWER, EvidenceKind.SEVERAL_CANDIDATES} & {evidence.kind for evidence in step.evidence}
    return step.open and step.outcome is Outcome.UNKNOWN and not final and not step.observed


def _look_once(run: Run, around: Surroundings, asked_at: datetime) -> Verdict:
    keys = keys_of(run.steps, run.providers, around)
    listings = Looking(around, keys).result()
    # Read after the listing: a run in flight creates an object before it writes its state.
    state = run.read_state().readdressed(run.hidden.address)
    known = tuple(other.readdressed(run.hidden.address) for other in run.read_known())
    look = Look(
        state=state,
        listings=listings,
        baseline=run.baseline,
        started_at=run.started_at,
        quiet_since=run.quiet_since,
        now=asked_at,
        grace=around.config.consistency_grace,
        stream_whole=run.stream_whole,
        errored=run.errored.readdressed(run.hidden.address) if run.errored else None,
        failures=run.failures,
        open_creates=run.open_creates,
        elsewhere=known,
        masks_known=run.masks_known,
    )
    placed = [_placed(step, listings) for step in run.steps]
    look = with_direct_answers(_with_details(look, keys, placed, around), keys, placed, around)
    look = replace(look, probes=_probes(run, conclude(placed, look, around.catalog), look, around.catalog))
    steps = conclude(placed, look, around.catalog)
    answers = [answer for key in listings if (answer := look.listing(key))]
    gaps = {f"{one.gap.scope}: {one.gap.reason}" for one in answers if one.gap}
    if unlisted := _unlisted_types(run.steps, around):
        gaps.add(f"{', '.join(unlisted)}: not in the catalogue, so a second object would go unseen")
    hidden = also_hiding(run.hidden, state, *known)
    return Verdict(
        without_secrets(steps, hidden, marks_gone=run.marks_gone), withheld_texts(sorted(gaps), hidden), state
    )


def _unlisted_types(steps: Iterable[Step], around: Surroundings) -> list[str]:
    """The types of which something was to be made and that nobody can list (rule 12: a gap has a name)."""
    making = [step for step in steps if step.action.creates and not around.catalog.state_only(step.provider)]
    return sorted({step.type for step in making if around.catalog.get(step.type) is None})


def _placed(step: Step, listings: Mapping[ListingKey, Listing]) -> Step:
    listing = listings.get((step.type, step.provider_key, step.own_place or ""))
    if listing is None:
        return step
    return replace(step, cloud=listing.scope.cloud, account=listing.scope.account)


def _with_details(
    look: Look, keys: Mapping[ListingKey, ProviderConfig], steps: Sequence[Step], around: Surroundings
) -> Look:
    """The look with creation times, and the ends of what is deleted, for the few objects that came up: where only an
    extra call has them. Without those that their own service does not have any more."""
    first = conclude(steps, look, around.catalog)
    wanted = {
        seen.finding_id
        for step in first
        for seen in step.observed
        if not seen.in_state
        and (seen.created_at is None or (seen.soft_deleted and seen.gone_after is None) or _has_get(seen, around))
    }
    if not wanted:
        return look

    def detailed(objects: Iterable[CloudObject], provider: ProviderConfig) -> tuple[CloudObject, ...]:
        told = (_detailed(found, provider, around) if found.finding_id in wanted else found for found in objects)
        return tuple(found for found in told if found is not None)

    listings = {
        key: replace(
            listing,
            objects=detailed(listing.objects, keys[key]),
            soft_deleted=detailed(listing.soft_deleted, keys[key]),
        )
        for key, listing in look.listings.items()
    }
    return replace(look, listings=listings)


def _probes(run: Run, steps: Sequence[Step], look: Look, catalog: Catalog) -> Mapping[str, ImportProbe]:
    """The engine's own read of the creates that no list could answer for (the ladder's third step)."""
    if run.probe is None:
        return {}
    found: dict[str, ImportProbe] = {}
    for step in steps:
        refused = step.outcome is Outcome.UNKNOWN and any(e.kind in _NO_ANSWER for e in step.evidence)
        import_id = desired_import_id(step, catalog)
        if not refused or look.is_from_elsewhere(step, catalog) or is_withheld(step.address):
            continue
        if step.action.creates and import_id and len(found) < _MOST_PROBES:
            found[step.address] = run.probe(step, import_id)
    return found


def desired_import_id(step: Step, catalog: Catalog) -> str | None:
    """The import id of the wanted object, where the plan knows every part of it (case B53: never a guess)."""
    kind = catalog.get(step.type)
    if kind is not None and kind.import_as is not None:
        return own_import_id(kind, step.desired)
    if kind is None or not PLACEHOLDER.search(kind.import_id):  # else it is a path into a listed item
        return None
    try:
        return kind.import_id.format_map(step.desired)
    except (KeyError, ValueError, IndexError):
        return None


def _has_get(seen: ObservedObject, around: Surroundings) -> bool:
    kind = around.catalog.get(seen.type)
    return kind is not None and kind.get is not None


def _detailed(found: CloudObject, provider: ProviderConfig, around: Surroundings) -> CloudObject | None:
    try:
        answer = around.inventory.detail(found, provider)
        return None if answer.gone else answer.found
    except Exception:  # noqa: BLE001 (an answer that no parser expects adds nothing, and takes nothing away)
        return found
