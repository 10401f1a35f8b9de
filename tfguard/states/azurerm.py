"""States in Azure Blob Storage, as Terraform's azurerm backend lays them out."""

from __future__ import annotations

import functools
from functools import partial

from tfguard.engine.backend import azurerm_state_blob, azurerm_workspace_of
from tfguard.states.buckets import BucketKind, StateBucket, bucket_place
from tfguard.states.kind import Settings
from tfguard.stores import azblob_client
from tfguard.stores.common import STATES
from tfguard.stores.urls import azblob_place


def _open(settings: Settings, root: str) -> StateBucket:
    client = functools.cache(partial(azblob_client.container_client, settings))
    states = azblob_client.backend_container(settings, root, client, STATES)
    return StateBucket(states, azblob_client.backend_container(settings, root, client))


def _settings_of(key: str, settings: Settings) -> tuple[str, Settings]:
    workspace, own = azurerm_workspace_of(key)
    return workspace, {**settings, "key": own}


AZURERM = bucket_place(
    "azblob",
    "azblob://ACCOUNT/CONTAINER/PREFIX/",
    BucketKind(
        backend="azurerm",
        url=azblob_place,
        open=_open,
        key=azurerm_state_blob,
        settings_of=_settings_of,
        flat=True,
    ),
)
