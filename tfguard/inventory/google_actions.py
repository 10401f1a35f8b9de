"""The few calls of Google Cloud that change something: delete what no engine can import, and restore.

Each is made once: an answer that was lost is told, and nothing is tried again of our own accord (docs/design.md, rule
17). Before a deletion the object's own service is asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ObjectCall, ResourceType
from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google import NO_LIBRARY, LazyLister
from tfguard.inventory.google_settings import CLOUD
from tfguard.inventory.items import fill, placeholders
from tfguard.model.action import ActionAnswer
from tfguard.model.failure import blocks_deletion
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

if TYPE_CHECKING:
    from tfguard.inventory.google_listing import GoogleLister

_NO_LABELS = "tfguard sets no labels at Google Cloud: put the retention into tfguard's own ledger (without --tag)"


@dataclass(frozen=True, slots=True)
class _Change:
    """A call that changes something: `name` is what permissions and errors call it; `url` is a template over the
    arguments that the catalogue gives."""

    name: str
    method: str
    url: str
    services: tuple[str, ...]


_MANAGER = "https://cloudresourcemanager.googleapis.com/v3"
_CHANGES: Mapping[str, _Change] = {
    "delete_service_account_key": _Change(
        "DeleteServiceAccountKey", "DELETE", "https://iam.googleapis.com/v1/{name}", ("iam",)
    ),
    "undelete_project": _Change(
        "UndeleteProject", "POST", f"{_MANAGER}/{{name}}:undelete", settings_of.RESOURCE_MANAGER
    ),
    "undelete_folder": _Change("UndeleteFolder", "POST", f"{_MANAGER}/{{name}}:undelete", settings_of.RESOURCE_MANAGER),
}

OPERATIONS = tuple(_CHANGES)
"""Every operation that a `delete` or `restore` of the catalogue may name for a type of this cloud."""


class GoogleActions:
    """Changes objects of Google Cloud by the calls of the catalogue. Implements `ports.CloudActions`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lister = LazyLister(catalog)

    def delete(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Delete an object by its type's own call, after its service was asked whether it is there."""
        entry = self._entry(found)
        call = entry.delete if entry else None
        if entry is None or call is None:
            return ActionAnswer(refused=f"no call is known that deletes {found.type}")

        def confirmed(lister: GoogleLister) -> ActionAnswer:
            answer = lister.detail(entry, found, provider)
            if answer.gone:
                return ActionAnswer(refused="its service says that it is not there", absent=True)
            if answer.gap is not None:
                return ActionAnswer(refused=answer.gap.reason)
            return _made(lister, found, provider, [call])

        return self._asked(entry, provider, confirmed)

    def restore(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Bring an object back into use that is deleted and only waits for its end."""
        entry = self._entry(found)
        if entry is None or not entry.restore:
            return ActionAnswer(refused=f"no call is known that restores {found.type}")
        return self._asked(entry, provider, lambda lister: _made(lister, found, provider, entry.restore))

    def tag(self, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]) -> ActionAnswer:  # noqa: ARG002 (the port's)
        """Refused: labels are the configuration's."""
        return ActionAnswer(refused=_NO_LABELS)

    def untag(self, found: CloudObject, provider: ProviderConfig, names: Collection[str]) -> ActionAnswer:  # noqa: ARG002 (the port's)
        """Refused, as `tag` is."""
        return ActionAnswer(refused=_NO_LABELS)

    def _entry(self, found: CloudObject) -> ResourceType | None:
        entry = self._catalog.get(found.type)
        return entry if entry is not None and entry.cloud == CLOUD else None

    def _asked(
        self, entry: ResourceType, provider: ProviderConfig, ask: Callable[[GoogleLister], ActionAnswer]
    ) -> ActionAnswer:
        names = (*settings_of.RESOURCE_MANAGER, *settings_of.endpoint_names(entry.service))
        if unknown := settings_of.whom_is_unknown(provider, names):
            return ActionAnswer(refused=unknown)
        try:
            lister = self._lister()
        except ImportError:
            return ActionAnswer(refused=NO_LIBRARY)
        return ask(lister)


def _made(
    lister: GoogleLister, found: CloudObject, provider: ProviderConfig, calls: Sequence[ObjectCall]
) -> ActionAnswer:
    """Make the calls one after the other, until one is refused."""
    from tfguard.inventory.google_access import CALL_ERRORS, answered, is_not_found, refusal

    access, done = lister.access_for(found, provider), list[str]()
    for call in calls:
        change = _CHANGES.get(call.operation)
        if change is None:
            return ActionAnswer(tuple(done), f"no call is known by the name {call.operation}")
        try:
            arguments = fill(dict(call.arguments), placeholders(found, ""))
            url = str(fill(change.url, arguments if isinstance(arguments, dict) else {}))
        except KeyError as error:  # a template names what this object does not have
            return ActionAnswer(tuple(done), f"no {error.args[0]} is known of it, which the call needs")
        try:
            access.json(change.method, access.address(url, change.services), change.name, once=True)
        except CALL_ERRORS as error:
            why = refusal(error, change.name)
            return ActionAnswer(
                tuple(done),
                why,
                absent=is_not_found(error),
                blocked=blocks_deletion(f"{why.partition(' ')[0]}:"),
                unanswered=not answered(error),
            )
        done.append(change.name)
    return ActionAnswer(tuple(done))
