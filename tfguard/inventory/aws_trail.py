"""Who made an object, as CloudTrail tells it: asked only about candidates, slowly, and never about its absence.

LookupEvents takes two requests a second in an account and region, one attribute to look for, and no user agent: events
are looked up by the object's names, and read here (docs/facts/inventories.md, section 3).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.permissions import api_name
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.aws_access import CALL_ERRORS, AwsAccess, AwsAccesses, Client, refusal
from tfguard.inventory.user_agents import engine_in, operation_in
from tfguard.model.audit import AuditAnswer, Creation
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

_SECONDS_BETWEEN = 0.5
_MOST_OBJECTS = 50
_MOST_PAGES = 4
_PLACES_AT_ONCE = 8
_KEPT_FOR = timedelta(days=90)
_APART = timedelta(minutes=15)
_CREATES = re.compile(r"(?:Create|Run|Put|Allocate|Register|Request|Import|Copy|Restore|Publish|Add|Authorize|Upload)")


@dataclass
class _Place:
    """One account and region, with what is asked about there."""

    client: Client
    name: str
    found: list[CloudObject] = field(default_factory=list)
    last: float = 0.0


class CloudTrail:
    """Implements `ports.AuditLog`. `pause` waits between two requests; False means that nobody waits any more."""

    def __init__(self, catalog: Catalog, pause: Callable[[float], bool], now: Callable[[], datetime]) -> None:
        self._catalog = catalog
        self._accesses = AwsAccesses(catalog)
        self._pause = pause
        self._now = now

    def creations(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> AuditAnswer:
        """The calls that made these objects, as far as the log still has them and may be read.

        In each account and region the first ones are asked about, up to a bound: the most important come first.
        """
        places, notes = self._places(candidates)
        answers: dict[str, Creation] = {}
        with ThreadPoolExecutor(_PLACES_AT_ONCE) as pool:
            for found, note in pool.map(self._ask, places):
                answers.update(found)
                notes += [note] if note else []
        return AuditAnswer(answers, tuple(notes))

    def _places(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> tuple[list[_Place], list[str]]:
        places: dict[tuple[str | None, str], _Place] = {}
        notes: dict[str, None] = {}
        oldest = self._now() - _KEPT_FOR
        for found, provider in candidates:
            if found.cloud != "aws" or (found.created_at is not None and found.created_at < oldest):
                continue
            try:
                access = self._accesses.of(provider.settings)
                region = _events_of_global_objects(access) if found.region == "global" else found.region
                place = places.get((found.account, region))
                if place is None:
                    client = access.client("cloudtrail", region, attempts=1)
                    place = places[found.account, region] = _Place(client, f"aws {found.account} {region}")
            except CALL_ERRORS as error:
                where = f"aws {found.account} {found.region}"
                notes[f"CloudTrail was not asked in {where}: {refusal(error, 'LookupEvents')}"] = None
                continue
            place.found.append(found)
        return list(places.values()), list(notes)

    def _ask(self, place: _Place) -> tuple[Mapping[str, Creation], str | None]:
        answers: dict[str, Creation] = {}
        for found in place.found[:_MOST_OBJECTS]:
            try:
                creation = self._creation(place, found)
            except CALL_ERRORS as error:
                return answers, f"CloudTrail was not asked in {place.name}: {refusal(error, 'LookupEvents')}"
            if creation is not None:
                answers[found.finding_id] = creation
        left = len(place.found) - _MOST_OBJECTS
        return answers, f"CloudTrail was not asked about {left} more objects in {place.name}" if left > 0 else None

    def _creation(self, place: _Place, found: CloudObject) -> Creation | None:
        """The call that made the object, under whichever of its names the log knows it."""
        entry = self._catalog.get(found.type)
        creates = entry.create if entry else None
        deletes = api_name(entry.delete.operation) if entry and entry.delete else None
        seen: list[Mapping[str, object]] = []
        for name in dict.fromkeys(value for value in (found.id, found.name, found.import_id, found.arn) if value):
            seen += [event for event in self._events(place, name) if _worked(event)]
            if found.created_at is not None and (made := _nearest(seen, creates, found.created_at)):
                return _read(made)
        made = _last_life(seen, creates, deletes) if found.created_at is None else None
        return _read(made) if made else None

    def _events(self, place: _Place, name: str) -> Iterator[Mapping[str, object]]:
        token: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            wait = place.last + _SECONDS_BETWEEN - time.monotonic()
            if wait > 0 and not self._pause(wait):
                return
            place.last = time.monotonic()
            page = place.client.lookup_events(
                LookupAttributes=[{"AttributeKey": "ResourceName", "AttributeValue": name}], MaxResults=50, **token
            )
            yield from (event for event in page.get("Events", []) if isinstance(event, dict))
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}


def _events_of_global_objects(access: AwsAccess) -> str:
    """The region that has the events of what exists once in an account: each partition has its own."""
    usual = settings_of.GLOBAL_REGIONS["aws"]
    near = access.region() or usual
    return settings_of.GLOBAL_REGIONS.get(access.partition(near), usual)


def _worked(event: Mapping[str, object]) -> bool:
    """Whether an event changed something, and says when."""
    if event.get("ReadOnly") == "true" or not isinstance(event.get("EventTime"), datetime):
        return False
    return not _detail(event).get("errorCode")


def _is_creation(event: Mapping[str, object], creates: str | None) -> bool:
    name = str(event.get("EventName", ""))
    return name == creates or (creates is None and _CREATES.match(name) is not None)


def _nearest(
    events: Sequence[Mapping[str, object]], creates: str | None, created_at: datetime
) -> Mapping[str, object] | None:
    """The call that made something when the object is said to have come into being."""
    made = [event for event in events if _is_creation(event, creates) and abs(_time(event) - created_at) <= _APART]
    return min(made, key=lambda event: abs(_time(event) - created_at), default=None)


def _last_life(
    events: Sequence[Mapping[str, object]], creates: str | None, deletes: str | None
) -> Mapping[str, object] | None:
    """The call that made what there is now: others of its name may have been made and deleted before.

    The first one after the last deletion; without a deletion the last one, since not every log has all.
    """
    made = [event for event in events if _is_creation(event, creates)]
    ends = [_time(event) for event in events if str(event.get("EventName", "")) == deletes]
    if not ends:
        return max(made, key=_time, default=None)
    return min((event for event in made if _time(event) >= max(ends)), key=_time, default=None)


def _read(event: Mapping[str, object]) -> Creation:
    agent = str(_detail(event).get("userAgent", ""))
    return Creation(
        at=_time(event),
        call=str(event.get("EventName", "")),
        actor=str(event.get("Username", "")),
        operation_id=operation_in(agent),
        engine=engine_in(agent),
    )


def _time(event: Mapping[str, object]) -> datetime:
    at = event.get("EventTime")
    return at.astimezone(UTC) if isinstance(at, datetime) else datetime.min.replace(tzinfo=UTC)


def _detail(event: Mapping[str, object]) -> Mapping[str, object]:
    try:
        told = json.loads(str(event.get("CloudTrailEvent", "")))
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
