"""Google's storage client, from the settings of the engine's own `gcs` backend: records and state are reached alike.

What the settings do not say comes from the environment, as with the engine.
Source: https://developer.hashicorp.com/terraform/language/backend/gcs
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfguard.errors import RecordError
from tfguard.google_credentials import GOOGLE, WantedCredentials, content, credentials_for, first_set, listed
from tfguard.stores.common import RECORDS, UNFORESEEN, Held
from tfguard.stores.gcs import Access, GcsBucket, no_google_library
from tfguard.stores.objects import ObjectStore

Settings = Mapping[str, str]

# What the engine reads where a setting is missing, the first that is set.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "credentials": ("GOOGLE_BACKEND_CREDENTIALS", "GOOGLE_CREDENTIALS"),
    "access_token": ("GOOGLE_OAUTH_ACCESS_TOKEN",),
    "impersonate_service_account": (
        "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
    ),
    "storage_custom_endpoint": ("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"),
    "encryption_key": ("GOOGLE_ENCRYPTION_KEY",),
    "kms_encryption_key": ("GOOGLE_KMS_ENCRYPTION_KEY",),
}
_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_API_PATH = re.compile(r"/storage/v1(?:/b)?/?$")


def backend_store(settings: Settings, prefix: str) -> ObjectStore:
    """The store below `prefix` in the bucket of the backend that `settings` describe.

    Raises `RecordError` for an encryption key that is none.
    """
    return ObjectStore(backend_bucket(settings, prefix, partial(backend_access, settings)), prefix)


def backend_bucket(settings: Settings, root: str, access: Callable[[], Access], held: Held = RECORDS) -> GcsBucket:
    """The bucket of the backend that `settings` describe, for objects below `root`; `access` makes its client."""
    return GcsBucket(settings["bucket"], root, access, encryption(settings), held=held)


def encryption(settings: Settings) -> Mapping[str, Any]:
    """How the backend wants its objects encrypted, as arguments of `Bucket.blob`. Raises `RecordError`."""
    if key := _setting(settings, "encryption_key"):
        try:
            return {"encryption_key": base64.b64decode(content(key), validate=True)}
        except (binascii.Error, ValueError):
            raise _refusal("its encryption_key is not in base64") from None
    if name := _setting(settings, "kms_encryption_key"):
        return {"kms_key_name": name}
    return {}


def backend_access(settings: Settings) -> Access:
    """What reaches the backend's bucket. Raises `RecordError` for settings that are refused, or without the library."""
    try:
        from google.api_core.client_options import ClientOptions
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import AuthorizedSession
        from google.cloud.storage import Client
    except ImportError as error:
        raise no_google_library() from error
    domain = settings.get("universe_domain") or os.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or GOOGLE
    api = _endpoint(settings) or f"https://storage.{domain}"
    try:
        credentials = credentials_for(_wanted(settings, domain))
        options = ClientOptions(api_endpoint=api, universe_domain=domain)
        client = Client(project=None, credentials=credentials, client_options=options)
        return Access(client, AuthorizedSession(credentials), api)
    except (GoogleAuthError, *UNFORESEEN) as error:
        raise _refusal((str(error).splitlines() or [""])[0]) from error


def _wanted(settings: Settings, domain: str) -> WantedCredentials:
    """Who the backend would be."""
    return WantedCredentials(
        access_token=_setting(settings, "access_token"),
        key=_setting(settings, "credentials"),
        impersonate=_setting(settings, "impersonate_service_account"),
        delegates=listed(settings, "impersonate_service_account_delegates"),
        scopes=_SCOPES,
        universe_domain=domain,
        anonymous=bool(os.environ.get("STORAGE_EMULATOR_HOST")),
    )


def _endpoint(settings: Settings) -> str | None:
    """The API's root. The engine wants the path of its buckets in the setting, Google's own client must not have it."""
    if custom := _setting(settings, "storage_custom_endpoint"):
        return _API_PATH.sub("", custom.rstrip("/"))
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    return f"{'' if '://' in emulator else 'http://'}{emulator.rstrip('/')}" if emulator else None


def _setting(settings: Settings, name: str) -> str | None:
    return first_set(settings, name, _VARIABLES[name], os.environ)


def _refusal(reason: str) -> RecordError:
    return RecordError(
        f"the Google Cloud Storage client cannot be made: {reason}",
        "correct the gcs backend's settings or the GOOGLE_ variables, or run `gcloud auth application-default login`",
    )
