"""The kinds of places that states lie in, besides folders. A new one is a file beside this, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping

from tfguard.states.azurerm import AZURERM
from tfguard.states.gcs import GCS
from tfguard.states.kind import PlaceKind
from tfguard.states.pg import PG
from tfguard.states.s3 import S3

PLACES: Mapping[str, PlaceKind] = {"s3": S3, "gs": GCS, "azblob": AZURERM, "postgresql": PG}
"""By the scheme of their URLs."""

BY_BACKEND: Mapping[str, PlaceKind] = {kind.backend: kind for kind in PLACES.values()}
