"""An Azure Blob container for records.

Source: https://learn.microsoft.com/en-us/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from tfguard.errors import BusyStoreError, RecordError
from tfguard.ports import Blob
from tfguard.stores.common import RECORDS, UNFORESEEN, Held, may_pass
from tfguard.stores.objects import TOKEN, MissingError, TakenError

# By the service's own code alone: a 404 may also mean the container, and a 409 or 412 a lease or a policy.
_MISSING = frozenset({"BlobNotFound"})
_TAKEN = frozenset({"BlobAlreadyExists", "ConditionNotMet"})
_NO_CONTAINER = frozenset({"ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"})
_CREDENTIALS = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation"})
_CREDENTIALS_ADVICE = "renew the Azure credentials of this run (ARM_ variables, SAS token, account key or `az login`)"
_FORBIDDEN = 403
_SERVER_ERROR = 500
_QUERY = re.compile(r"\?\S*")
_DIRECTORY = "hdi_isfolder"


def no_azure() -> RecordError:
    """The optional dependency is missing."""
    return RecordError(
        "records in Azure Blob need azure-storage-blob and azure-identity, which are not installed",
        "install them: `pip install azure-storage-blob azure-identity`",
    )


def reason(error: Exception) -> str:
    """What an Azure library says went wrong: the service's code, or one line without a URL's query (a SAS token)."""
    if code := error_code(error):
        return code
    first_line = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {_QUERY.sub('', first_line)}"


def error_code(error: Exception) -> str:
    """The service's own code for an error; empty where the service did not answer with one."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


class AzureContainer:
    """The `Bucket` that azure-storage-blob reaches. A version is the blob's ETag.

    `client_factory` makes the library's `ContainerClient`, when the first call needs it; it may raise `RecordError`.
    `root` is the prefix below which records lie, and `held` what errors call the blobs.
    """

    def __init__(
        self, account: str, name: str, root: str, client_factory: Callable[[], Any], held: Held = RECORDS
    ) -> None:
        self._account = account
        self._name = name
        self._root = root
        self._client_factory = client_factory
        self._held = held

    def url(self, key: str) -> str:
        """`azblob://ACCOUNT/CONTAINER/KEY`."""
        return f"azblob://{self._account}/{self._name}/{key}"

    def get(self, key: str) -> Blob:
        """A blob. Raises `MissingError`."""
        with self._translated("read", key):
            answer = self._client.download_blob(key)
            data, told = answer.readall(), answer.properties
            if not told.etag:
                raise LookupError("no ETag")
            return Blob(data, told.etag, told.last_modified.astimezone(UTC))

    def put(self, key: str, data: bytes, expected: str | None, token: str) -> None:
        """Write a blob that has the ETag `expected` (None: that must not exist). Raises as `Bucket.put` does."""
        with self._translated("write", key):
            # Without `overwrite` the library sends `If-None-Match: *`.
            condition = {"overwrite": True, **_unchanged(expected)} if expected else {}
            self._client.upload_blob(key, data, metadata={TOKEN: token}, **condition)

    def token(self, key: str) -> str | None:
        """The token that a blob was written with. Raises `MissingError`."""
        with self._translated("read", key):
            metadata = self._client.get_blob_client(key).get_blob_properties().metadata or {}
            found = metadata.get(TOKEN)
            return found if isinstance(found, str) else None

    def delete(self, key: str, version: str) -> None:
        """Remove a blob that still has this ETag. Raises `TakenError` or `MissingError`."""
        try:
            with self._translated("remove", key):
                self._client.delete_blob(key, **_unchanged(version))
        except TakenError:
            self.token(key)  # raises `MissingError` for a blob that is gone: that fails the condition too
            raise

    def keys(self, key_prefix: str) -> list[str]:
        """The keys of all blobs that begin so, over all pages."""
        return list(self.each_key(key_prefix))

    def each_key(self, key_prefix: str) -> Iterator[str]:
        """The same, one by one as the pages come."""
        with self._translated("list", key_prefix):
            for blob in self._client.list_blobs(name_starts_with=key_prefix, include=["metadata"]):
                # An account with a hierarchical namespace lists its directories too, and tells them apart here alone.
                if (blob.metadata or {}).get(_DIRECTORY) != "true":
                    yield blob.name

    def now(self) -> datetime:
        """The time that the service writes above its answers, to the second."""
        dates: list[str] = []

        def note(answer: Any) -> None:
            dates.append(answer.http_response.headers["Date"])

        with self._translated("list", self._root):
            listing = self._client.list_blobs(name_starts_with=self._root, results_per_page=1, raw_response_hook=note)
            next(listing.by_page(), None)
            return parsedate_to_datetime(dates[-1]).astimezone(UTC)

    @cached_property
    def _client(self) -> Any:
        return self._client_factory()

    @contextlib.contextmanager
    def _translated(self, verb: str, key: str) -> Iterator[None]:
        """Turn the library's errors into `RecordError`, or into `MissingError` and `TakenError`."""
        try:
            from azure.core.exceptions import AzureError
        except ImportError as error:
            raise no_azure() from error
        try:
            yield
        except AzureError as error:
            code = error_code(error)
            if code in _MISSING:
                raise MissingError from None
            if code in _TAKEN:
                raise TakenError from None
            what = f"{self._held.doing(verb, self.url(key))}: {reason(error)}"
            kind = BusyStoreError if _may_pass(error) else RecordError
            raise kind(what, self._advice(code, error)) from error
        except (OSError, RuntimeError) as error:
            # A file with a token that is gone when the token is to be renewed, for one.
            what = f"{self._held.doing(verb, self.url(key))}: {reason(error)}"
            raise RecordError(what, _CREDENTIALS_ADVICE) from error
        except UNFORESEEN as error:
            what = f"{self._held.doing(verb, self.url(key))}: the answer has another form than Azure's"
            raise RecordError(what, self._reach_advice()) from error

    def _advice(self, code: str, error: Exception) -> str:
        from azure.core.exceptions import ClientAuthenticationError

        status = getattr(error, "status_code", None) or _SERVER_ERROR
        if code in _NO_CONTAINER:
            return f"create the container {self._name}{self._held.instead}"
        if code == "KeyBasedAuthenticationNotPermitted":
            return "set `use_azuread_auth = true` (ARM_USE_AZUREAD): the storage account refuses its keys"
        if code.startswith("Lease"):
            return "break the lease on that blob: tfguard alone writes below there, and needs none"
        if code in _CREDENTIALS or (isinstance(error, ClientAuthenticationError) and not code):
            return _CREDENTIALS_ADVICE
        if status == _FORBIDDEN:
            return (
                f"give this run the role Storage Blob Data Contributor on the container {self._name} (or a SAS token "
                "with `rcwdl` that has not expired), and let it through the firewall of the storage account "
                f"{self._account}"
            )
        if code and not code.endswith("NotFound") and status < _SERVER_ERROR:
            return f"let the storage account {self._account} allow this, or name another place with `records:`"
        return self._reach_advice()

    def _reach_advice(self) -> str:
        return (
            f"check that the storage account {self._account} exists and that this host reaches it (name, DNS, proxy, "
            "network), then try again"
        )


def _may_pass(error: Exception) -> bool:
    from azure.core.exceptions import IncompleteReadError, ServiceRequestTimeoutError, ServiceResponseError

    lost = (IncompleteReadError, ServiceRequestTimeoutError, ServiceResponseError)
    return isinstance(error, lost) or may_pass(getattr(error, "status_code", None))


def _unchanged(etag: str) -> dict[str, Any]:
    from azure.core import MatchConditions

    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}
