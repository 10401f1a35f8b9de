"""A Google Cloud Storage bucket for records.

Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from tfguard.errors import RecordError
from tfguard.ports import Blob
from tfguard.stores.objects import TOKEN, MissingError, TakenError

NO_ENCRYPTION: Mapping[str, Any] = MappingProxyType({})

# Connect, and between two bytes of an answer.
_TIMEOUT = (10, 60)
_DEADLINE_SECONDS = 60.0
_READ_ATTEMPTS = 20
_WRITE_PERMISSIONS = "storage.objects.create and storage.objects.delete"
_READ_PERMISSIONS = "storage.objects.get and storage.objects.list"
_CREDENTIALS_ADVICE = "renew the Google credentials of this run (`gcloud auth application-default login`)"
_OTHER_ADVICE = "check network, endpoint and credentials of the bucket (`tfguard doctor`), then try again"


def no_google_library() -> RecordError:
    """The optional dependency is missing."""
    return RecordError(
        "records in Google Cloud Storage need google-cloud-storage, which is not installed",
        "install it: `pip install 'tfguard[gcs]'`",
    )


@dataclass(frozen=True, slots=True)
class Access:
    """What reaches a bucket: Google's storage client, its HTTP session for what the client does not tell, and the
    root of the API without a slash at its end."""

    client: Any
    session: Any
    api: str


class GcsBucket:
    """The `Bucket` that Google's client reaches. A version is the object's generation.

    `access_factory` makes the client when the first call needs it. `encryption` are arguments of `Bucket.blob`
    (`encryption_key`, `kms_key_name`). `root` is the prefix below which records lie, for the advice about permissions.
    No try of a call begins when `deadline` seconds are over.
    """

    def __init__(
        self,
        name: str,
        root: str,
        access_factory: Callable[[], Access],
        encryption: Mapping[str, Any] = NO_ENCRYPTION,
        deadline: float = _DEADLINE_SECONDS,
    ) -> None:
        self._name = name
        self._root = root
        self._access_factory = access_factory
        self._encryption = encryption
        self._deadline = deadline

    def url(self, key: str) -> str:
        """`gs://BUCKET/KEY`."""
        return f"gs://{self._name}/{key}"

    def get(self, key: str) -> Blob:
        """An object. Raises `MissingError`."""
        for _ in range(_READ_ATTEMPTS):
            with self._translated("read", key, _READ_PERMISSIONS):
                found = self._blob(key)
                found.reload(**self._patience)
            # One that was replaced meanwhile is missing. Not the blob that was found: it would be fetched from the
            # address that it carries, which is not that of a custom endpoint.
            with contextlib.suppress(MissingError), self._translated("read", key, _READ_PERMISSIONS):
                data = self._blob(key, found.generation).download_as_bytes(**self._patience)
                return Blob(data, str(found.generation), _to_the_second(found.updated))
        raise RecordError(
            f"cannot read the record {self.url(key)}: others replace it faster than it can be read",
            "wait until the other runs on this stack have started or stopped, then try again",
        )

    def put(self, key: str, data: bytes, expected: str | None, token: str) -> None:
        """Write an object that has the generation `expected` (None: that must not exist). Raises as `Bucket.put`."""
        with self._translated("write", key, _WRITE_PERMISSIONS):
            blob = self._blob(key)
            blob.metadata = {TOKEN: token}
            blob.upload_from_string(
                data,
                content_type="application/octet-stream",
                if_generation_match=int(expected) if expected else 0,
                **self._patience,
            )

    def token(self, key: str) -> str | None:
        """The token that an object was written with. Raises `MissingError`."""
        with self._translated("read", key, _READ_PERMISSIONS):
            blob = self._blob(key)
            blob.reload(**self._patience)
        found = (blob.metadata or {}).get(TOKEN)
        return found if isinstance(found, str) else None

    def delete(self, key: str, version: str) -> None:
        """Remove an object that still has this generation. Raises `TakenError` or `MissingError`."""
        with self._translated("remove", key, "storage.objects.delete"):
            self._blob(key).delete(if_generation_match=int(version), **self._patience)

    def keys(self, key_prefix: str) -> list[str]:
        """The keys of all objects that begin so, over all pages."""
        with self._translated("list", key_prefix, "storage.objects.list"):
            pages = self._access.client.list_blobs(self._name, prefix=key_prefix, **self._patience)
            return [blob.name for blob in pages]

    def now(self) -> datetime:
        """The time that Google writes above its answers, to the second."""
        date = self._list_one().headers["Date"]
        return parsedate_to_datetime(date).astimezone(UTC)

    @cached_property
    def _access(self) -> Access:
        return self._access_factory()

    @cached_property
    def _patience(self) -> Mapping[str, Any]:
        """How long every call waits, and tries again: every one may be repeated, for no put is without a condition."""
        from google.cloud.storage.retry import DEFAULT_RETRY

        retry = DEFAULT_RETRY.with_delay(initial=0.5, maximum=8.0, multiplier=2.0).with_timeout(self._deadline)
        return {"timeout": _TIMEOUT, "retry": retry}

    def _blob(self, key: str, generation: int | None = None) -> Any:
        return self._access.client.bucket(self._name).blob(key, generation=generation, **self._encryption)

    def _list_one(self) -> Any:
        """A list of at most one object, as the HTTP answer that the client keeps for itself."""
        with self._translated("list", self._root, "storage.objects.list"):
            return self._patience["retry"](self._try_to_list_one)()

    def _try_to_list_one(self) -> Any:
        from google.api_core.exceptions import from_http_response

        url = f"{self._access.api}/storage/v1/b/{quote(self._name, safe='')}/o"
        parameters = {"prefix": self._root, "maxResults": "1", "fields": "kind"}
        answer = self._access.session.get(url, params=parameters, timeout=_TIMEOUT)
        if not answer.ok:
            raise from_http_response(answer)
        return answer

    @contextlib.contextmanager
    def _translated(self, verb: str, key: str, permission: str) -> Iterator[None]:
        """Turn Google's errors into `RecordError`, or into `MissingError` and `TakenError`, which callers expect."""
        try:
            from google.api_core.exceptions import Conflict, GoogleAPIError, NotFound, PreconditionFailed, RetryError
            from google.auth.exceptions import GoogleAuthError, RefreshError
            from google.cloud.storage.exceptions import DataCorruption
        except ImportError as error:
            raise no_google_library() from error
        what = f"cannot {verb} the record {self.url(key)}"
        try:
            yield
        except NotFound as error:
            if verb == "list":
                advice = f"create the bucket {self._name}, or name another place with `records:` in tfguard.yaml"
                raise RecordError(f"{what}: there is no bucket {self._name}", advice) from error
            # Google says the same of an object and of its bucket; only a bucket that is there can be listed.
            self._list_one()
            raise MissingError from None
        except (PreconditionFailed, Conflict):
            raise TakenError from None
        except RefreshError as error:
            reason = f"the credentials have expired or are refused ({_first_line(error)})"
            raise RecordError(f"{what}: {reason}", _CREDENTIALS_ADVICE) from error
        # A bucket's name that cannot be one is a ValueError.
        except (GoogleAPIError, GoogleAuthError, DataCorruption, OSError, ValueError) as error:
            cause = error.cause if isinstance(error, RetryError) and error.cause else error
            raise RecordError(f"{what}: {_first_line(cause)}", self._advice(cause, permission)) from error

    def _advice(self, error: BaseException, permission: str) -> str:
        code = getattr(error, "code", None)
        if code == HTTPStatus.FORBIDDEN:
            return f"allow {permission} on gs://{self._name}/{self._root}/* (and its KMS key, if it has one)"
        if code == HTTPStatus.UNAUTHORIZED:
            return _CREDENTIALS_ADVICE
        if code == HTTPStatus.BAD_REQUEST and "encrypt" in str(error).lower():
            return "give the `encryption_key` that the records were written with"
        return _OTHER_ADVICE


def _to_the_second(time: datetime) -> datetime:
    """As exact as the clock that it is compared with."""
    return time.astimezone(UTC).replace(microsecond=0)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
