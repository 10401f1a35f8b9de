"""Who made an object, as the admin activity log tells it: asked only about candidates, a project at a time.

The log is kept for 400 days, and 60 requests a minute may be made to it: all candidates of a project are looked up
together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tfguard.catalog.catalog import Catalog
from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google import LazyLister
from tfguard.inventory.google_settings import CLOUD
from tfguard.inventory.items import to_time
from tfguard.inventory.user_agents import engine_in, operation_in
from tfguard.model.audit import AuditAnswer, Creation
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

if TYPE_CHECKING:
    from tfguard.inventory.google_access import GoogleAccess
    from tfguard.inventory.google_listing import GoogleLister

_URL = "https://logging.googleapis.com/v2/entries:list"
_SECONDS_BETWEEN = 1.1
_MOST_OBJECTS = 50
_MOST_PAGES = 4
_BETWEEN = '"" OR '
# A filter has at most 20,000 characters; what is beside the names is short.
_LONGEST_NAMES = 18_000
_PAGE = 1000
_KEPT_FOR = timedelta(days=400)
_APART = timedelta(minutes=15)
_CREATES = re.compile(r"(?:create|insert|enable|batchcreate|batchenable)", re.IGNORECASE)
_DELETES = re.compile(r"(?:delete|destroy|disable)", re.IGNORECASE)
_VERSION = re.compile(r"https://[^/]+/(?:[^/]+/)*?v\d+\w*/(.*)")


class GoogleAuditLog:
    """Implements `ports.AuditLog`. `pause` waits between two requests; False means that nobody waits any more."""

    def __init__(self, catalog: Catalog, pause: Callable[[float], bool], now: Callable[[], datetime]) -> None:
        self._catalog = catalog
        self._pause = pause
        self._now = now
        self._lister = LazyLister(catalog)

    def creations(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> AuditAnswer:
        """The calls that made these objects, as far as the log still has them and may be read.

        In each project the first ones are asked about, up to a bound: the most important come first.
        """
        answers: dict[str, Creation] = {}
        notes: list[str] = []
        for number, (project, (provider, found)) in enumerate(self._by_project(candidates).items()):
            if number and not self._pause(_SECONDS_BETWEEN):
                break
            told, note = self._ask(project, provider, found)
            answers.update(told)
            notes += [note] if note else []
        return AuditAnswer(answers, tuple(notes))

    def _by_project(
        self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]
    ) -> Mapping[str, tuple[ProviderConfig, list[CloudObject]]]:
        oldest = self._now() - _KEPT_FOR
        projects: dict[str, tuple[ProviderConfig, list[CloudObject]]] = {}
        for found, provider in candidates:
            known = found.cloud == CLOUD and found.account is not None
            if known and found.account and (found.created_at is None or found.created_at >= oldest):
                projects.setdefault(found.account, (provider, []))[1].append(found)
        return projects

    def _ask(
        self, account: str, provider: ProviderConfig, found: list[CloudObject]
    ) -> tuple[Mapping[str, Creation], str | None]:
        where = f"the audit log was not asked in {CLOUD} {account}"
        if unknown := settings_of.whom_is_unknown(provider, settings_of.LOGGING):
            return {}, f"{where}: {unknown}"
        try:
            from tfguard.inventory.google_access import CALL_ERRORS, refusal

            lister = self._lister()
        except ImportError:
            return {}, f"{where}: Google's libraries are not installed"
        asked = found[:_MOST_OBJECTS]
        names = {one.finding_id: set(self._names(one, lister, provider)) for one in asked}
        entries: list[Mapping[str, Any]] = []
        is_cut = False
        try:
            for number, batch in enumerate(_batches(asked, names)):
                if number and not self._pause(_SECONDS_BETWEEN):
                    break
                told, is_more = self._entries(lister.access_for(found[0], provider), account, batch, names)
                entries += told
                is_cut |= is_more
        except CALL_ERRORS as error:
            return {}, f"{where}: {refusal(error, 'ListLogEntries')}"
        answers = {}
        for one in asked:
            own = [entry for entry in entries if _payload(entry).get("resourceName") in names[one.finding_id]]
            if made := _creation(own, one.created_at):
                answers[one.finding_id] = _read(made)
        notes = []
        if (left := len(found) - _MOST_OBJECTS) > 0:
            notes.append(f"the audit log was not asked about {left} more objects in {CLOUD} {account}")
        if is_cut:
            notes.append(f"the audit log has more about these objects in {CLOUD} {account} than was read")
        return answers, "; ".join(notes) or None

    def _names(self, found: CloudObject, lister: GoogleLister, provider: ProviderConfig) -> Iterator[str]:
        """The names by which the log may know an object: its path, with the project's id or its number."""
        from tfguard.inventory.google_listing import filled_url

        entry = self._catalog.get(found.type)
        paths = {found.id, found.import_id}
        if entry is not None and entry.get is not None:
            try:
                address = _VERSION.fullmatch(filled_url(entry.get.url, found))
            except KeyError:
                address = None
            paths |= {address[1]} if address else set()
        if found.type == "google_storage_bucket":
            paths.add(f"projects/_/buckets/{found.identity.get('name', found.id)}")
        for path in sorted(paths):
            yield path
            own = f"projects/{found.account}/"
            if path.startswith(own) and (number := lister.number_of(found.account or "", provider)):
                yield f"projects/{number}/{path.removeprefix(own)}"

    def _entries(
        self, access: GoogleAccess, account: str, asked: Sequence[CloudObject], names: Mapping[str, set[str]]
    ) -> tuple[list[Mapping[str, Any]], bool]:
        """What the log has of these objects, the newest first, and whether it has more."""
        place = account if "/" in account else f"projects/{account}"
        told = " OR ".join(
            f'"{_quoted(name)}"' for name in sorted({name for one in asked for name in names[one.finding_id]})
        )
        oldest = self._now() - _KEPT_FOR
        since = min(one.created_at - _APART if one.created_at else oldest for one in asked)
        body = {
            "resourceNames": [place],
            "filter": f'logName="{place}/logs/cloudaudit.googleapis.com%2Factivity"'
            f' AND timestamp>="{since.astimezone(UTC).isoformat()}" AND protoPayload.resourceName=({told})',
            "orderBy": "timestamp desc",
            "pageSize": _PAGE,
        }
        found: list[Mapping[str, Any]] = []
        token: dict[str, str] = {}
        for number in range(_MOST_PAGES):
            if number and not self._pause(_SECONDS_BETWEEN):
                break
            url = access.address(_URL, settings_of.LOGGING)
            page = access.json("POST", url, "ListLogEntries", body={**body, **token})
            found += (entry for entry in page.get("entries", []) if isinstance(entry, dict))
            if not page.get("nextPageToken"):
                return found, False
            token = {"pageToken": str(page["nextPageToken"])}
        return found, True


def _batches(asked: Sequence[CloudObject], names: Mapping[str, set[str]]) -> Iterator[list[CloudObject]]:
    """The objects in groups whose names fit into one filter."""
    batch: list[CloudObject] = []
    size = 0
    for one in asked:
        own = sum(len(_quoted(name)) + len(_BETWEEN) for name in names[one.finding_id])
        if batch and size + own > _LONGEST_NAMES:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += own
    yield batch


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _creation(entries: Sequence[Mapping[str, Any]], created_at: datetime | None) -> Mapping[str, Any] | None:
    """The call that made what there is now: others of its name may have been made and deleted before."""
    worked = [entry for entry in entries if not _payload(entry).get("status") and to_time(entry.get("timestamp"))]
    made = [entry for entry in worked if _CREATES.match(_method(entry))]
    if created_at is not None:
        near = [entry for entry in made if abs(_time(entry) - created_at) <= _APART]
        return min(near, key=lambda entry: abs(_time(entry) - created_at), default=None)
    ends = [_time(entry) for entry in worked if _DELETES.match(_method(entry))]
    if not ends:
        return max(made, key=_time, default=None)
    return min((entry for entry in made if _time(entry) >= max(ends)), key=_time, default=None)


def _read(entry: Mapping[str, Any]) -> Creation:
    payload = _payload(entry)
    agent = str(_inner(payload, "requestMetadata").get("callerSuppliedUserAgent", ""))
    return Creation(
        at=_time(entry),
        call=str(payload.get("methodName", "")),
        actor=str(_inner(payload, "authenticationInfo").get("principalEmail", "")),
        operation_id=operation_in(agent),
        engine=engine_in(agent),
    )


def _method(entry: Mapping[str, Any]) -> str:
    """The last part of the method's name: `insert` of `v1.compute.networks.insert`."""
    return str(_payload(entry).get("methodName", "")).rpartition(".")[2]


def _time(entry: Mapping[str, Any]) -> datetime:
    return to_time(entry.get("timestamp")) or datetime.min.replace(tzinfo=UTC)


def _payload(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return _inner(entry, "protoPayload")


def _inner(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
