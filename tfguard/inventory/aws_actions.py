"""The few calls of AWS that change something: delete, restore, and tag one object.

It deletes what no engine can import, and what the provider would detach first (`by_call`).

Each call is made once: an answer that was lost, or a throttled call, is told, and nothing is tried again of our own
accord (docs/design.md, rule 17).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.permissions import api_name
from tfguard.catalog.types import ObjectCall, ResourceType
from tfguard.inventory.actions import TAGGING
from tfguard.inventory.aws_access import CALL_ERRORS, AwsAccesses, Client, answered, is_not_found, refusal
from tfguard.inventory.aws_places import NoPlaceError, Place, find_place
from tfguard.inventory.items import fill, placeholders
from tfguard.model.action import ActionAnswer
from tfguard.model.failure import blocks_deletion
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

_ONCE = 1


@dataclass(frozen=True, slots=True)
class _Call:
    """One call that is to be made, by the client's method."""

    client: Client
    operation: str
    arguments: Mapping[str, object]


class AwsCalls:
    """Makes the calls for `inventory.actions.AwsActions`; knows the SDK."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._accesses = AwsAccesses(catalog)
        self._lock = Lock()

    def make(
        self, entry: ResourceType, found: CloudObject, provider: ProviderConfig, calls: Iterable[ObjectCall]
    ) -> ActionAnswer:
        """Make an entry's own calls on an object, one after the other, until one is refused."""

        def prepared(place: Place) -> list[_Call]:
            client = self._client(entry.service, place, provider)
            values = placeholders(found, place.partition)
            return [_Call(client, call.operation, _filled(call.arguments, values)) for call in calls]

        return self._made(entry, found, provider, prepared)

    def tag(
        self, entry: ResourceType, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]
    ) -> ActionAnswer:
        """Put these tags on an object, beside those that it has."""
        arguments = {"ResourceARNList": [found.arn], "Tags": dict(tags)}
        return self._tagging(entry, found, provider, "tag_resources", arguments)

    def untag(
        self, entry: ResourceType, found: CloudObject, provider: ProviderConfig, names: Collection[str]
    ) -> ActionAnswer:
        """Take these tags from an object."""
        arguments = {"ResourceARNList": [found.arn], "TagKeys": list(names)}
        return self._tagging(entry, found, provider, "untag_resources", arguments)

    def _tagging(
        self,
        entry: ResourceType,
        found: CloudObject,
        provider: ProviderConfig,
        operation: str,
        arguments: Mapping[str, object],
    ) -> ActionAnswer:
        def prepared(place: Place) -> list[_Call]:
            return [_Call(self._client(TAGGING, place, provider), operation, arguments)]

        return self._made(entry, found, provider, prepared)

    def _made(
        self,
        entry: ResourceType,
        found: CloudObject,
        provider: ProviderConfig,
        prepared: Callable[[Place], list[_Call]],
    ) -> ActionAnswer:
        region = None if found.region == "global" else found.region
        try:
            place = find_place(entry, provider, self._accesses, region)
            if place.doubt is not None:
                return ActionAnswer(refused=f"whose account it would be in is not known: {place.doubt}")
            if place.scope.account != found.account:
                return ActionAnswer(refused=f"the credentials are those of account {place.scope.account} now")
            calls = prepared(place)
        except NoPlaceError as problem:
            return ActionAnswer(refused=problem.reason)
        except KeyError as error:  # a template names what this object does not have
            return ActionAnswer(refused=f"no {error.args[0]} is known of it, which the call needs")
        except CALL_ERRORS as error:
            return ActionAnswer(refused=refusal(error, f"preparing to ask {entry.service}"))
        return _one_after_the_other(calls)

    def _client(self, service: str, place: Place, provider: ProviderConfig) -> Client:
        """A client that makes one attempt at each call, in the region that the listing's client asks."""
        access = self._accesses.of(provider.settings)
        return access.client(service, place.client.meta.region_name, _ONCE)


def _one_after_the_other(calls: Iterable[_Call]) -> ActionAnswer:
    done: list[str] = []
    for call in calls:
        named = api_name(call.operation)
        try:
            answer = getattr(call.client, call.operation)(**call.arguments)
        except CALL_ERRORS as error:
            why = refusal(error, named)
            return ActionAnswer(
                tuple(done),
                why,
                absent=is_not_found(error),
                blocked=blocks_deletion(f"{why.partition(' ')[0]}:"),
                unanswered=not answered(error),
            )
        if failed := _failed_in(answer):
            return ActionAnswer(tuple(done), f"{failed} on {named}")
        done.append(named)
    return ActionAnswer(tuple(done))


def _failed_in(answer: object) -> str:
    """The error's code in an answer that says yes to the call and no to the object, as the tagging API does."""
    failed = answer.get("FailedResourcesMap") if isinstance(answer, dict) else None
    if not isinstance(failed, dict) or not failed:
        return ""
    codes = [str(one.get("ErrorCode") or "an error") for one in failed.values() if isinstance(one, dict)]
    return codes[0] if codes else "an error"


def _filled(arguments: Mapping[str, object], values: Mapping[str, str]) -> Mapping[str, object]:
    filled = fill(dict(arguments), values)
    return filled if isinstance(filled, dict) else {}
