"""What a scan is made of: the places that are asked, and the states that are subtracted."""

from __future__ import annotations

from dataclasses import dataclass

from tfguard.model.plan import ProviderConfig


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a scan's listing that knows nothing of the others and can be pickled: one service at one place.

    `provider` says whom to ask and as whom (for an account of `scan.aws.accounts`, with its role and its account
    guard). `region` is None for what exists once in an account. `types` are the Terraform types to list, all of
    `service`, the SDK's name of it.
    """

    cloud: str
    provider: ProviderConfig
    region: str | None
    service: str
    types: tuple[str, ...]
