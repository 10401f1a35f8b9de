"""Whether an object lies below what tfguard.yaml has a scan look at: an organization, or folders, name no account."""

from __future__ import annotations

from tfguard.flows.looking import Surroundings
from tfguard.model.cloud import cloud_named
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.plan import ProviderConfig
from tfguard.reconcile.disposal import Refusal


class ConfiguredAccounts:
    """Asks once for all accounts below what is configured, when the first object is to be deleted."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._listings: dict[str, list[Listing]] = {}

    def refusal(self, found: CloudObject) -> Refusal | None:
        """Why an object must not be deleted: nothing tells that it lies there. None where nothing of the kind is
        configured, too."""
        cloud = cloud_named(found.cloud)
        above = self._around.config.scan.above(found.cloud)
        if cloud is None or not above:
            return None
        tops = [f"{setting}s/{number}" for setting, number in above]
        if found.account in tops:
            return None
        listings = self._below(found.cloud, cloud.accounts_type)
        if any(one.account == found.account for listing in listings for one in listing.objects):
            return None
        gap = next((listing.gap for listing in listings if listing.gap is not None), None)
        why = f": {gap.reason}" if gap else ""
        return Refusal(
            f"{found.type} {found.import_id} is in {found.account}, of which nothing tells that it lies in "
            f"{', '.join(tops)}{why}",
            cloud.name_it,
        )

    def _below(self, cloud: str, accounts_type: str) -> list[Listing]:
        if cloud not in self._listings:
            base = dict(self._around.config.providers.get(cloud, {}))
            source = f"registry.terraform.io/hashicorp/{cloud}"
            self._listings[cloud] = [
                self._around.inventory.list(
                    accounts_type, ProviderConfig(f"{cloud}.{setting}s/{number}", source, {**base, setting: number})
                )
                for setting, number in self._around.config.scan.above(cloud)
            ]
        return self._listings[cloud]
