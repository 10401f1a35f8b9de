"""States in S3, as Terraform's s3 backend lays them out."""

from __future__ import annotations

import functools
import os
from functools import partial

from tfguard.engine.backend import s3_state_key, s3_workspace_of
from tfguard.states.buckets import BucketKind, StateBucket, bucket_place
from tfguard.states.kind import Settings
from tfguard.stores import s3_client
from tfguard.stores.common import STATES
from tfguard.stores.urls import s3_place


def _open(settings: Settings, root: str) -> StateBucket:
    client = functools.cache(partial(s3_client.backend_client, settings))
    states = s3_client.backend_bucket(settings, root, client, STATES)
    return StateBucket(states, s3_client.backend_bucket(settings, root, client))


def _settings_of(key: str, settings: Settings) -> tuple[str, Settings]:
    workspace, own = s3_workspace_of(key, settings.get("workspace_key_prefix", ""))
    return workspace, {**settings, "key": own}


def _has_own_key(settings: Settings) -> bool:
    """Whether the objects have a key that only the engine sends along."""
    return bool(settings.get("sse_customer_key") or os.environ.get("AWS_SSE_CUSTOMER_KEY"))


S3 = bucket_place(
    "s3",
    "s3://BUCKET/PREFIX/",
    BucketKind(
        backend="s3",
        url=s3_place,
        open=_open,
        key=s3_state_key,
        settings_of=_settings_of,
        elsewhere=lambda settings: f"{settings.get('workspace_key_prefix') or 'env:'}/",
        own=frozenset({"workspace_key_prefix"}),
    ),
    _has_own_key,
)
