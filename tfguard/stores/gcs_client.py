"""Google's storage client, from the settings of the engine's own `gcs` backend: records and state are reached alike.

What the settings do not say comes from the environment, as with the engine.
Source: https://developer.hashicorp.com/terraform/language/backend/gcs
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tfguard.errors import RecordError
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
# An account may become another with this one alone.
_ALL_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
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
            return {"encryption_key": base64.b64decode(_content(key), validate=True)}
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
        from google.cloud import storage
    except ImportError as error:
        raise no_google_library() from error
    domain = settings.get("universe_domain") or os.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or "googleapis.com"
    api = _endpoint(settings) or f"https://storage.{domain}"
    try:
        with warnings.catch_warnings():
            # Google's words about kinds of credentials are for who writes programs, not for who runs this one.
            warnings.simplefilter("ignore")
            credentials = _credentials(settings, domain)
        options = ClientOptions(api_endpoint=api, universe_domain=domain)
        client = storage.Client(project=None, credentials=credentials, client_options=options)
        return Access(client, AuthorizedSession(credentials), api)
    except (GoogleAuthError, *UNFORESEEN) as error:
        raise _refusal((str(error).splitlines() or [""])[0]) from error


def _credentials(settings: Settings, domain: str) -> Any:
    """The credentials that the backend would use."""
    from google.auth.impersonated_credentials import Credentials as Impersonated

    account = _setting(settings, "impersonate_service_account")
    source = _own_credentials(settings, domain, _ALL_SCOPES if account else _SCOPES)
    if not account:
        return source
    return Impersonated(source, account, list(_SCOPES), _listed(settings, "impersonate_service_account_delegates"))


def _own_credentials(settings: Settings, domain: str, scopes: tuple[str, ...]) -> Any:
    """The credentials before any account takes another's place."""
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.oauth2.credentials import Credentials as Token

    if token := _setting(settings, "access_token"):
        return Token(token, universe_domain=domain)
    if found := _setting(settings, "credentials"):
        return google.auth.load_credentials_from_dict(_account_key(found), scopes=scopes)[0]
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return AnonymousCredentials()
    return google.auth.default(scopes=scopes)[0]


def _endpoint(settings: Settings) -> str | None:
    """The API's root. The engine wants the path of its buckets in the setting, Google's own client must not have it."""
    if custom := _setting(settings, "storage_custom_endpoint"):
        return _API_PATH.sub("", custom.rstrip("/"))
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    return f"{'' if '://' in emulator else 'http://'}{emulator.rstrip('/')}" if emulator else None


def _setting(settings: Settings, name: str) -> str | None:
    return settings.get(name) or next((os.environ[v] for v in _VARIABLES[name] if os.environ.get(v)), None)


def _listed(settings: Settings, name: str) -> list[str]:
    """The items of a list, in their order."""
    return list(itertools.takewhile(bool, (settings.get(f"{name}.{number}", "") for number in itertools.count())))


def _account_key(value: str) -> dict[str, Any]:
    try:
        document = json.loads(_content(value))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        # The value itself may be a key that was cut, so it is not shown.
        raise ValueError("its credentials are neither JSON nor a file with JSON that can be read")
    return document


def _content(value: str) -> str:
    """The content of the file that the value names, or the value itself."""
    path = Path(value).expanduser()
    try:
        return path.read_text().strip()
    except OSError:
        return value.strip()


def _refusal(reason: str) -> RecordError:
    return RecordError(
        f"the Google Cloud Storage client cannot be made: {reason}",
        "correct the gcs backend's settings or the GOOGLE_ variables, or run `gcloud auth application-default login`",
    )
