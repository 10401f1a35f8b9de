"""States in Google Cloud Storage, as Terraform's gcs backend lays them out."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial

from tfguard.engine.backend import gcs_state_object, gcs_workspace_of
from tfguard.states.buckets import BucketKind, StateBucket, bucket_place
from tfguard.states.kind import Settings
from tfguard.stores import gcs_client
from tfguard.stores.common import STATES
from tfguard.stores.urls import gcs_place


def _open(settings: Settings, root: str) -> StateBucket:
    client = functools.cache(partial(gcs_client.backend_access, settings))
    states = gcs_client.backend_bucket(settings, root, client, STATES)
    return StateBucket(states, gcs_client.backend_bucket(settings, root, client))


def _settings_of(key: str, settings: Settings) -> tuple[str, Settings] | None:
    found = gcs_workspace_of(key)
    if found is None:
        return None
    workspace, prefix = found
    return workspace, {**settings, "prefix": prefix} if prefix else settings


def _spellings(settings: Settings) -> Sequence[Settings]:
    """The backend cleans the prefix before it uses it."""
    prefix = settings.get("prefix", "")
    ways = (f"{prefix}/", f"/{prefix}", f"/{prefix}/", "")
    return [{**settings, "prefix": way} for way in ways if way != prefix]


GCS = bucket_place(
    "gs",
    "gs://BUCKET/PREFIX/",
    BucketKind(
        backend="gcs",
        url=gcs_place,
        open=_open,
        key=gcs_state_object,
        settings_of=_settings_of,
        spellings=_spellings,
    ),
)
