"""Look at the provider before and after a run, and turn what was seen into outcomes (docs/design.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import PLACEHOLDER
from tfguard.model.config import Config
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.failure import Failure
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, ObservedObject, Outcome, RecordedProvider, Step
from tfguard.model.plan import Plan, PlannedChange, ProviderConfig
from tfguard.model.secrets import WITHHELD_PLACE, Withholding, is_secret, is_withheld
from tfguard.model.state import StateSnapshot
from tfguard.ports import Clock, Console, ImportProbe, Inventory
from tfguard.reconcile.adoption import own_import_id
from tfguard.reconcile.look import ListingKey, Look, listings_for
from tfguard.reconcile.outcomes import conclude

_AT_ONCE = 8
_LISTENS_EVERY = 0.1
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 10.0
_MOST_PROBES = 5
_NO_ANSWER = (EvidenceKind.GAP, EvidenceKind.NOT_LOOKED_FOR)

# A profile or a role in tfguard.yaml says who asks; keys in the configuration that the plan does not carry do not then.
_OTHER_IDENTITY = frozenset({"profile", "assume_role.role_arn"})
_STATIC_KEYS = frozenset({"access_key", "secret_key", "token"})

_UNTOLD = "it names something that is marked sensitive"

# Provider settings that may be kept in a record: they say where to look, and hold no secret.
_KEPT_SETTINGS = frozenset(
    [
        "region",
        "profile",
        "assume_role.role_arn",
        "assume_role.session_name",
        "s3_use_path_style",
        "s3_force_path_style",
        "skip_requesting_account_id",
        "skip_credentials_validation",
        "allowed_account_ids.0",
        "project",
        "location",
        "use_fips_endpoint",
        "use_dualstack_endpoint",
        "sts_region",
    ]
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is needed to look: the inventory, the catalogue, and the user's settings."""

    inventory: Inventory
    catalog: Catalog
    config: Config
    clock: Clock
    console: Console


def planned_steps(plan: Plan, before: StateSnapshot, hidden: Withholding | None = None) -> tuple[Step, ...]:
    """The steps of a plan; an object that the configuration no longer has gets its provider from the state.

    Their addresses are those that `hidden` lets be written; states and events are brought in line with them.
    """
    named = (hidden or Withholding(plan.secrets)).address
    return tuple(replace(step, address=named(step.address)) for step in (_step(c, before) for c in plan.changing))


def _step(change: PlannedChange, before: StateSnapshot) -> Step:
    held = before.at(change.previous_address or change.address)
    key = change.provider_key or (held.provider_key if held else "") or change.provider.rpartition("/")[2]
    return Step(
        address=change.address,
        type=change.type,
        provider=change.provider,
        action=change.action,
        desired=change.desired,
        before=change.before,
        region=change.region,
        provider_key=key,
        withheld=change.withheld,
        deposed=change.deposed,
    )


def provider_for(step: Step, providers: Mapping[str, ProviderConfig], config: Config) -> ProviderConfig:
    """The provider configuration of a step, with tfguard.yaml filling in what the plan does not carry."""
    known = providers.get(step.provider_key) or ProviderConfig(step.provider_key, step.provider)
    added = config.providers.get(step.provider_key, {})
    replaced = _STATIC_KEYS if added.keys() & _OTHER_IDENTITY else frozenset()
    settings = {**added, **{name: value for name, value in known.settings.items() if name not in replaced}}
    return replace(known, settings=settings, unresolved=known.unresolved - added.keys() - replaced)


def recorded_providers(plan: Plan) -> tuple[RecordedProvider, ...]:
    """The provider configurations as they may be kept."""
    return tuple(_recorded(provider, plan.secrets) for _, provider in sorted(plan.providers.items()))


def _recorded(provider: ProviderConfig, secrets: frozenset[str]) -> RecordedProvider:
    kept = {
        name: value
        for name, value in provider.settings.items()
        if (name in _KEPT_SETTINGS or name.startswith("endpoints."))
        and not is_secret(value, secrets)
        and "@" not in value
    }
    identity = {name for name in provider.settings if name not in kept and _says_who(name)}
    return RecordedProvider(provider.key, provider.source, kept, tuple(sorted(provider.unresolved)), bool(identity))


def _says_who(name: str) -> bool:
    """Whether a setting decides who asks or where: without it a later look would ask as somebody else."""
    return not name.startswith(("default_tags", "ignore_tags", "skip_", "forbidden_", "allowed_", "max_retries"))


def provider_from_record(recorded: RecordedProvider) -> ProviderConfig:
    """The provider configuration of an earlier run, without what was not kept."""
    return ProviderConfig(recorded.key, recorded.source, recorded.settings, frozenset(recorded.unresolved))


class Looking:
    """Lists in the background, so that a question to the user and the lists take their time together.

    `ask` lists in the inventory's place.
    """

    def __init__(
        self,
        around: Surroundings,
        keys: Mapping[ListingKey, ProviderConfig],
        ask: Callable[[str, ProviderConfig, str | None], Listing] | None = None,
    ) -> None:
        self._clock = around.clock
        self._pool = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="tfguard-list")
        self._futures: dict[ListingKey, Future[Listing]] = {
            key: self._pool.submit(ask or around.inventory.list, key[0], provider, key[2] or None)
            for key, provider in keys.items()
        }

    def cancel(self) -> None:
        """Nobody wants the answer any more; what has not started does not start."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def result(self, seconds: float | None = None) -> Mapping[ListingKey, Listing]:
        """The listings; one that is not there after `seconds`, or when the user interrupts meanwhile, is a gap."""
        asked = time.monotonic()
        # A look that begins after an interrupt is there to settle it, and goes to its end.
        settles = self._clock.interrupted
        why = f"the list took longer than {seconds} s"
        waiting = set(self._futures.values())
        while waiting and (seconds is None or time.monotonic() - asked < seconds):
            if self._clock.interrupted and not settles:
                why = "the look was interrupted"
                break
            waiting = wait(waiting, timeout=_LISTENS_EVERY).not_done
        self.cancel()
        return {key: _answer(key, future, why) for key, future in self._futures.items()}


def _answer(key: ListingKey, future: Future[Listing], why_not: str) -> Listing:
    scope = Scope("", None, key[2], key[1])
    if not future.done() or future.cancelled():
        return Listing(key[0], scope, (), Gap(f"{key[1]} {key[0]}", why_not))
    if defect := future.exception():
        # A list that breaks is an incomplete look like any other (rule 12), and no reason to lose the outcome.
        return Listing(key[0], scope, (), Gap(f"{key[1]} {key[0]}", f"the list failed: {type(defect).__name__}"))
    return future.result()


def baseline_keys(
    steps: Iterable[Step], providers: Mapping[str, ProviderConfig], around: Surroundings
) -> Mapping[ListingKey, ProviderConfig]:
    """The listings to take before a run: one for each type and place in which something is to be created."""
    return _keys([step for step in steps if step.action.creates], providers, around)


def _keys(
    steps: Iterable[Step], providers: Mapping[str, ProviderConfig], around: Surroundings
) -> Mapping[ListingKey, ProviderConfig]:
    return {
        key: provider_for(step, providers, around.config)
        for step in steps
        for key in listings_for(step, around.catalog)
        if around.inventory.covers(key[0])
    }


def places_without_lists(keys: Mapping[ListingKey, ProviderConfig], around: Surroundings) -> tuple[BaselineEntry, ...]:
    """For `--baseline=off`: where the run works, so that no later look from elsewhere is taken for an answer."""
    places = {key: around.inventory.place(key[0], provider, key[2] or None) for key, provider in keys.items()}
    return tuple(
        BaselineEntry(
            type=key[0],
            cloud=place.cloud if place else "",
            account=place.account if place else None,
            region=place.region if place else UNKNOWN_REGION,
            complete=False,
            provider_key=key[1],
            asked_region=key[2],
            reason="--baseline=off",
        )
        for key, place in places.items()
    )


def baseline_entries(listings: Mapping[ListingKey, Listing]) -> tuple[BaselineEntry, ...]:
    """What a record keeps of the look before the run: which objects were there, by finding id alone."""
    return tuple(
        BaselineEntry(
            type=key[0],
            cloud=listing.scope.cloud,
            account=listing.scope.account,
            region=listing.scope.region,
            complete=listing.complete,
            provider_key=key[1],
            asked_region=key[2],
            object_ids=tuple(sorted(found.finding_id for found in listing.objects)),
            reason=listing.gap.reason if listing.gap else None,
        )
        for key, listing in listings.items()
    )


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
    keys = _keys(run.steps, run.providers, around)
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
    look = _with_details(look, keys, placed, around)
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
    listing = listings.get((step.type, step.provider_key, step.region or ""))
    if listing is None:
        return step
    return replace(step, cloud=listing.scope.cloud, account=listing.scope.account)


def _with_details(
    look: Look, keys: Mapping[ListingKey, ProviderConfig], steps: Sequence[Step], around: Surroundings
) -> Look:
    """The look with creation times for the few objects that came up, where only an extra call has them."""
    first = conclude(steps, look, around.catalog)
    wanted = {
        seen.finding_id for step in first for seen in step.observed if not seen.in_state and seen.created_at is None
    }
    if not wanted:
        return look
    listings = {
        key: replace(
            listing,
            objects=tuple(
                _detailed(found, keys[key], around) if found.finding_id in wanted else found
                for found in listing.objects
            ),
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


def _detailed(found: CloudObject, provider: ProviderConfig, around: Surroundings) -> CloudObject:
    try:
        return around.inventory.detail(found, provider).found
    except Exception:  # noqa: BLE001 (an answer that no parser expects adds nothing, and takes nothing away)
        return found


def also_hiding(hidden: Withholding, *states: StateSnapshot) -> Withholding:
    """What may not be written once these states are known: the providers' own secrets come up in them first."""
    copies = {
        name
        for state in states
        for held in state.instances
        for name in (held.identity.values() if hidden.values else ())
        if hidden.digest(name) in hidden.values
    }
    return replace(hidden, secrets=hidden.secrets.union(copies, *(state.secrets for state in states)))


def withheld_texts(texts: Sequence[str], hidden: Withholding) -> tuple[str, ...]:
    """Gaps as they may be written: that something was kept back is said."""
    return tuple(dict.fromkeys(hidden.text(text, "a place whose name is withheld: not looked at") for text in texts))


def without_secrets(steps: Sequence[Step], hidden: Withholding, *, marks_gone: bool = False) -> tuple[Step, ...]:
    """The steps as they may be kept, without what carries a marked value.

    With `marks_gone` the plan's values are not known, and what may carry one is left out by the attribute that it
    would stand in; so it is for a step whose marked value nobody knows yet.
    """
    kept = [_without_marked(step, hidden) for step in steps]
    withheld: dict[str, set[str]] = {}
    for step in kept:
        if marks_gone or step.address in hidden.silent:
            withheld.setdefault(step.type, set()).update(step.withheld)
    return tuple(_without_doubtful(step, withheld[step.type]) if step.type in withheld else step for step in kept)


def _without_doubtful(step: Step, withheld: Collection[str]) -> Step:
    """The step without what may carry a marked value, where the plan and with it the values are gone.

    `withheld` are the attributes that the record left out of any step of the type: an object can be another step's.
    """
    if any(_in_the_id(name) for name in step.withheld):
        evidence = tuple(replace(item, detail=_UNTOLD) for item in step.evidence)
        return replace(step, observed=(), evidence=evidence)
    observed = step.observed
    if any(_in_the_id(name) for name in withheld):
        observed = tuple(seen for seen in observed if seen.confidence is not Confidence.POSSIBLE)
    if any(not _in_the_id(name) for name in withheld):
        observed = tuple(replace(seen, name=None, tags={}) for seen in observed)
    return replace(step, observed=observed)


def _in_the_id(attribute: str) -> bool:
    """Whether an object's id may repeat this attribute's value; a tag is in no id."""
    return not attribute.startswith("tags.")


def _without_marked(step: Step, hidden: Withholding) -> Step:
    """The step without objects and words that carry a marked value: an ARN repeats a name, and nobody marks it."""

    def told(item: Evidence) -> Evidence:
        return replace(item, detail=hidden.text(item.detail, _UNTOLD))

    def names_one(seen: ObservedObject) -> bool:
        told_by = (seen.id, seen.import_id, seen.arn, seen.account, seen.region)
        named = any(text and hidden.tells(text) for text in told_by)
        return named or any(hidden.tells(item.detail) for item in seen.evidence)

    def unnamed(seen: ObservedObject) -> ObservedObject:
        tags = {key: value for key, value in seen.tags.items() if not (hidden.tells(key) or hidden.tells(value))}
        return replace(seen, name=None if seen.name and hidden.tells(seen.name) else seen.name, tags=tags)

    def place(text: str | None) -> str | None:
        return WITHHELD_PLACE if text and hidden.tells(text) else text

    step = replace(
        step,
        desired=_told(step.desired, hidden),
        before=_told(step.before, hidden),
        withheld=tuple(sorted({*step.withheld, *_untold(step.desired, hidden), *_untold(step.before, hidden)})),
        reported_id=None if step.reported_id and hidden.tells(step.reported_id) else step.reported_id,
        error=hidden.text(step.error, "its words may not be kept") if step.error else step.error,
        region=place(step.region),
        account=place(step.account),
        provider_key=hidden.address(step.provider_key),
    )
    kept = tuple(unnamed(seen) for seen in step.observed if not names_one(seen))
    evidence = tuple(told(item) for item in step.evidence)
    if len(kept) < len(step.observed):
        note = Evidence(EvidenceKind.SEVERAL_CANDIDATES, "an object whose name is marked sensitive is not named here")
        evidence = (*evidence, note)
    return replace(step, observed=kept, evidence=evidence)


def _told(identity: Mapping[str, str], hidden: Withholding) -> Mapping[str, str]:
    return {name: value for name, value in identity.items() if not hidden.tells(value)}


def _untold(identity: Mapping[str, str], hidden: Withholding) -> set[str]:
    return {name for name, value in identity.items() if hidden.tells(value)}
