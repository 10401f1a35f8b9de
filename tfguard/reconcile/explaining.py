"""Which recorded operation explains an object that no state knows. Pure.

Looks alone explain nothing: an operation must have named the object, or have been at work when it came into being.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.disposition import DispositionKind
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Verdict
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject
from tfguard.model.operation import ObservedObject, Operation, Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.reconcile.look import listing_key
from tfguard.reconcile.matching import CLOCK_SKEW, Likeness, Window, candidate, likeness, same_object
from tfguard.reconcile.state_index import Claim

_SURE = (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)
_REFUSED = (EvidenceKind.ENGINE_REFUSAL, EvidenceKind.NEVER_STARTED, EvidenceKind.EXISTED_BEFORE)
_SEEN = {Outcome.ORPHANED: Verdict.ORPHANED, Outcome.DUPLICATED: Verdict.DUPLICATED, Outcome.UNKNOWN: Verdict.ORPHANED}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One step of a recorded operation that explains an object.

    `places` are the addresses that the object can belong to, in their states. `named`: the operation tells the object
    by its name or id. `live`: the operation runs now. `made`: the step was to make an object, and not to take one away.
    """

    operation_id: str
    places: tuple[Claim, ...]
    verdict: Verdict
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    provider_key: str
    named: bool
    live: bool
    made: bool


@dataclass(frozen=True, slots=True)
class Stack:
    """The recorded operations of one state's stack, as far as they were read; `live` is the one that runs now."""

    location: str
    workspace: str
    operations: tuple[Operation, ...]
    live: str | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step that left something to explain. `seen` is an object that its operation saw as no state's."""

    stack: tuple[str, str]
    operation_id: str
    command: str
    live: bool
    kind: ResourceType
    step: Step
    window: Window
    concluded: bool
    place: tuple[str | None, str | None]
    seen: ObservedObject | None = None


class Explainer:
    """Joins objects with the operations of all stacks.

    Of an operation only what can explain an object is kept, so that many thousands of them fit.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._entries: dict[tuple[str, str], list[_Entry]] = {}
        self._live: dict[tuple[str, str], list[_Live]] = {}
        self._seen: dict[str, list[_Entry]] = {}
        self._keyed: dict[tuple[str, str, str], list[_Entry]] = {}
        self._loose: dict[str, list[_Entry]] = {}
        self._stale = False

    def take(self, stack: Stack, now: datetime) -> None:
        """Take in what a stack's operations tell, in place of what was taken in of it before."""
        key = (stack.location, stack.workspace)
        settled: set[tuple[str, str, str]] = set()
        entries: list[_Entry] = []
        for operation in sorted(stack.operations, key=lambda one: one.id, reverse=True):
            live = operation.id == stack.live
            found = list(self._entries_of(key, operation, live, now))
            entries += [entry for entry in found if not self._is_settled(entry, settled)]
            for step in operation.steps:
                if step.outcome in (Outcome.RECORDED, Outcome.TAINTED):
                    settled.update(self._names_of(step))
        self._entries[key] = entries
        self._live[key] = [
            _Live(operation.id, operation.intent.started_at, frozenset(e.account for e in operation.intent.baseline))
            for operation in stack.operations
            if operation.id == stack.live
        ]
        self._stale = True

    def mentions(self, found: CloudObject) -> bool:
        """Whether any operation names the object."""
        return any(told.named for told in self._explanations(found))

    def explain(self, found: CloudObject) -> tuple[Explanation, ...]:
        """What explains an object, the surest first, and of equally sure ones the newest."""
        told = sorted(self._explanations(found), key=lambda one: one.operation_id, reverse=True)
        return tuple(sorted(told, key=lambda one: _SURE.index(one.confidence), reverse=True))

    def may_be_making(self, found: CloudObject, now: datetime, grace: timedelta) -> str | None:
        """The operation that runs now and may just have made an object that nothing else explains."""
        made = found.created_at
        if made is None:
            return None
        for one in (live for several in self._live.values() for live in several):
            here = found.account is None or not one.accounts or found.account in one.accounts or None in one.accounts
            if here and made >= one.started_at - CLOCK_SKEW and now - made < grace:
                return one.operation_id
        return None

    def _explanations(self, found: CloudObject) -> Iterator[Explanation]:
        self._index()
        kind = self._catalog.get(found.type)
        if kind is None or not (self._seen or self._keyed or self._loose):
            return
        ids = (found.finding_id, replace(found, account=None).finding_id) if self._seen else ()
        seen = [entry for finding_id in dict.fromkeys(ids) for entry in self._seen.get(finding_id, ())]
        yield from (told for entry in seen if (told := _as_seen(entry, found)))
        told_of = {(entry.operation_id, entry.step.address) for entry in seen}
        keys = [key for key in kind.keys if key in found.identity]
        named = [
            entry for key in keys
            for entry in self._keyed.get((kind.type, key, kind.comparable(key, found.identity[key])), ())
        ]  # fmt: skip
        for entry in _once([*named, *self._loose.get(found.type, ())]):
            if (entry.operation_id, entry.step.address) not in told_of and (told := _as_planned(entry, found)):
                yield told

    def _index(self) -> None:
        if not self._stale:
            return
        seen, keyed, loose = defaultdict(list), defaultdict(list), defaultdict(list)
        for entry in (entry for entries in self._entries.values() for entry in entries):
            if entry.seen is not None:
                seen[entry.seen.finding_id or ""].append(entry)
                continue
            names = set(_keys(entry.kind, entry.step.before if entry.step.action.deletes else {}))
            names |= set(_keys(entry.kind, entry.step.before if entry.step.action is Action.FORGET else {}))
            wanted = set(_keys(entry.kind, entry.step.desired if entry.step.action.creates else {}))
            for name in names | wanted:
                keyed[name].append(entry)
            if entry.step.action.creates and not wanted:
                loose[entry.kind.type].append(entry)
        self._seen, self._keyed, self._loose, self._stale = dict(seen), dict(keyed), dict(loose), False

    def _entries_of(self, stack: tuple[str, str], operation: Operation, live: bool, now: datetime) -> Iterator[_Entry]:
        windows: dict[tuple[str, str, str], Window] = {}
        for step in operation.steps:
            kind = self._catalog.get(self._catalog.canonical(step.type))
            if kind is None or not _leaves_something(step, operation, live):
                continue
            key = listing_key(step)
            if key not in windows:
                windows[key] = _window(operation, key, live, now)
            entry = _Entry(
                stack, operation.id, operation.intent.command, live, kind,
                replace(step, observed=()), windows[key], operation.result is not None and not live,
                _place(operation, step),
            )  # fmt: skip
            strays = [seen for seen in step.observed if seen.finding_id and not seen.in_state]
            for seen in strays if step.outcome in _SEEN else ():
                yield replace(entry, seen=seen)
            yield entry

    def _names_of(self, step: Step) -> Iterator[tuple[str, str, str]]:
        """Everything under which a step's objects are known."""
        kind = self._catalog.get(self._catalog.canonical(step.type))
        if kind is not None:
            yield from _keys(kind, step.before)
            yield from _keys(kind, step.desired)
            yield from ((kind.type, "import", seen.import_id) for seen in step.observed)

    def _is_settled(self, entry: _Entry, settled: set[tuple[str, str, str]]) -> bool:
        """Whether a later operation of the stack had the object in its state: what was before explains nothing then."""
        if entry.seen is not None:
            told = ((entry.kind.arn_key, entry.seen.arn), ("name", entry.seen.name), ("id", entry.seen.id))
            return (entry.kind.type, "import", entry.seen.import_id) in settled or any(
                (entry.kind.type, key, value) in settled for key, value in told if key
            )
        return any(name in settled for name in self._names_of(entry.step))


@dataclass(frozen=True, slots=True)
class _Live:
    operation_id: str
    started_at: datetime
    accounts: frozenset[str | None]


def _once(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    told: set[int] = set()
    for entry in entries:
        if id(entry) not in told:
            told.add(id(entry))
            yield entry


def _keys(kind: ResourceType, identity: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield from ((kind.type, key, kind.comparable(key, identity[key])) for key in kind.keys if key in identity)


def _leaves_something(step: Step, operation: Operation, live: bool) -> bool:
    """Whether an object may exist for a step, or still exist, that the state has not."""
    if step.action not in (Action.CREATE, Action.REPLACE, Action.DELETE, Action.FORGET) and not step.observed:
        return False
    if live:
        return True
    if step.outcome in (Outcome.RECORDED, Outcome.TAINTED):
        return False
    result = operation.result
    never_started = result is not None and result.stream.whole and step.status is StepStatus.PENDING
    return not (never_started and not step.observed)


def _window(operation: Operation, key: tuple[str, str, str], live: bool, now: datetime) -> Window:
    before = [one for one in operation.intent.baseline if (one.type, one.provider_key, one.asked_region) == key]
    if live:
        ended = now
    elif operation.result is not None:
        ended = operation.result.ended_at
    else:  # nobody saw its end; the last thing that is known of it
        ended = max([operation.intent.started_at, *(entry.at for entry in operation.journal)])
    return Window(
        operation.intent.started_at,
        ended,
        frozenset(name for entry in before for name in entry.object_ids),
        bool(before) and all(entry.complete for entry in before),
        frozenset(entry.account for entry in before),
    )


def _place(operation: Operation, step: Step) -> tuple[str | None, str | None]:
    """The account and region that a step worked in, as far as its record tells."""
    key = listing_key(step)
    entries = (one for one in operation.intent.baseline if (one.type, one.provider_key, one.asked_region) == key)
    known = next(entries, None)
    return (known.account, known.region) if known else (step.account, step.region)


def _lies_elsewhere(entry: _Entry, found: CloudObject) -> bool:
    account, region = entry.place
    if account is not None and found.account not in (None, account):
        return True
    return region not in (None, "", UNKNOWN_REGION, "global", found.region) and found.region != "global"


def _as_seen(entry: _Entry, found: CloudObject) -> Explanation | None:
    """The object that an operation itself saw as no state's."""
    seen = entry.seen
    if seen is None:
        return None
    confidence, told = seen.confidence, "saw it, in no state"
    if found.created_at is not None and found.created_at > entry.window.ended_at + CLOCK_SKEW:
        # Some services move the time when an object is changed, so that it may be the same one.
        confidence = Confidence.POSSIBLE
        told += f" (now it says that it was created at {found.created_at.isoformat()}, after that)"
    evidence = [*(seen.evidence or entry.step.evidence), _told(entry, told)]
    return _explanation(entry, found, confidence, evidence, named=True)


def _as_planned(entry: _Entry, found: CloudObject) -> Explanation | None:
    if _lies_elsewhere(entry, found):
        return None
    step = entry.step
    gone = step.action.deletes or step.action is Action.FORGET
    if gone and step.before and same_object(entry.kind, step.before, found):
        return _as_left_behind(entry, found)
    return _as_made(entry, found) if step.action.creates else None


def _as_made(entry: _Entry, found: CloudObject) -> Explanation | None:
    """An object that a step wanted and did not get into the state."""
    step, window = entry.step, entry.window
    match = candidate(entry.kind, step.desired, found, window)
    if match is None or step.disposition in (DispositionKind.IMPORT.value, DispositionKind.DESTROY.value):
        return None
    inside = window.made_inside(found) or (not entry.concluded and window.made_after_start(found))
    confidence = match.confidence
    if not inside:
        if entry.concluded and step.outcome is Outcome.ABSENT:
            return None  # it was looked for, and was not there
        if match.named:
            if found.created_at is not None and not step.open:
                return None  # made at another time, under the name that the step wanted
            confidence = Confidence.POSSIBLE  # whoever it was may have made it since
        elif not match.named:
            # That it was not there before says little by now, unless nobody could look after the run.
            unlooked = step.outcome in (None, Outcome.UNKNOWN) and window.baseline_complete
            if found.created_at is not None or not unlooked or not _looks_alike(entry, found):
                return None
            confidence = Confidence.POSSIBLE
    elif step.outcome is Outcome.ABSENT and not (match.named or _has_prefix(entry, found)):
        return None
    if step.outcome is Outcome.ABSENT and any(item.kind in _REFUSED for item in step.evidence):
        return None
    failed = "failed at it" if step.status is StepStatus.ERROR else "planned it, and did not get it into the state"
    return _explanation(entry, found, confidence, [*match.evidence, _told(entry, failed)], named=match.named)


def _looks_alike(entry: _Entry, found: CloudObject) -> bool:
    return likeness(entry.kind, entry.step.desired, found)[0] > Likeness.NOTHING_TO_COMPARE


def _has_prefix(entry: _Entry, found: CloudObject) -> bool:
    return likeness(entry.kind, entry.step.desired, found)[0] >= Likeness.PREFIX


def _as_left_behind(entry: _Entry, found: CloudObject) -> Explanation | None:
    """An object that a step was to delete, or took out of the state, and that still exists."""
    step, made = entry.step, found.created_at
    if made is not None and made > entry.window.ended_at + CLOCK_SKEW:
        return None  # another one under an old name
    if made is None and entry.concluded and step.outcome is Outcome.ABSENT:
        return None  # it was seen to be gone
    confidence = Confidence.LIKELY if made is None and step.action is not Action.FORGET else Confidence.CERTAIN
    if step.action is Action.FORGET:
        kind, said = EvidenceKind.REMOVED_FROM_STATE, "took it out of the state"
    else:
        kind, said = EvidenceKind.DESIRED_IDENTITY, "was to delete it, and it still exists"
    name = ", ".join(f"{key} = {step.before[key]}" for key in entry.kind.keys if key in step.before)
    return _explanation(entry, found, confidence, [Evidence(kind, name), _told(entry, said)], named=True)


def _explanation(
    entry: _Entry, found: CloudObject, confidence: Confidence, evidence: Sequence[Evidence], *, named: bool
) -> Explanation:
    addresses = (entry.seen.addresses if entry.seen else ()) or (entry.step.address,)
    evidence = [item for item in evidence if item.detail]
    if entry.window.made_inside(found) and not any(i.kind is EvidenceKind.CREATED_IN_WINDOW for i in evidence):
        evidence.append(Evidence(EvidenceKind.CREATED_IN_WINDOW, _created(found, "inside the run's window")))
    return Explanation(
        operation_id=entry.operation_id,
        places=tuple(Claim(*entry.stack, address) for address in addresses),
        verdict=_SEEN.get(entry.step.outcome or Outcome.UNKNOWN, Verdict.ORPHANED) if entry.seen else Verdict.ORPHANED,
        confidence=confidence,
        evidence=tuple(evidence),
        provider_key=entry.step.provider_key,
        named=named,
        live=entry.live,
        made=entry.step.action.creates,
    )


def _told(entry: _Entry, what: str) -> Evidence:
    location, workspace = entry.stack
    of = location if workspace in ("", "default") else f"{location} ({workspace})"
    error = f": {entry.step.error}" if entry.step.error and not entry.step.evidence else ""
    detail = f"operation {entry.operation_id} ({entry.command}) of {of} {what}, at {entry.step.address}{error}"
    return Evidence(EvidenceKind.OPERATION, detail)


def _created(found: CloudObject, when: str) -> str:
    return f"created at {found.created_at.isoformat()}, {when}" if found.created_at else ""
