"""A Google Cloud Storage bucket for records.

Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from tfguard.errors import BusyStoreError, RecordError
from tfguard.ports import Blob
from tfguard.stores.common import CALL_SECONDS, CONNECT_SECONDS, READ_SECONDS, RECORDS, UNFORESEEN, Held, may_pass, told
from tfguard.stores.objects import TOKEN, MissingError, TakenError

NO_ENCRYPTION: Mapping[str, Any] = MappingProxyType({})

_MEDIA: Mapping[str, str] = MappingProxyType({"alt": "media"})

_TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
# The last try may begin at its end.
_DEADLINE_SECONDS = CALL_SECONDS - CONNECT_SECONDS - READ_SECONDS
_READ_ATTEMPTS = 20
_WRITE_PERMISSIONS = "storage.objects.create and storage.objects.delete"
_READ_PERMISSIONS = "storage.objects.get and storage.objects.list"
_CREDENTIALS_ADVICE = "renew the Google credentials of this run (`gcloud auth application-default login`)"
_OTHER_ADVICE = "check network, endpoint and credentials of the bucket (`tfguard doctor`), then try again"


def no_google_library() -> RecordError:
    """The optional dependency is missing."""
    return RecordError(
        "records in Google Cloud Storage need google-cloud-storage, which is not installed",
        "install it: `pip install google-cloud-storage`",
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
    No try of a call begins when `deadline` seconds are over. `held` is what errors call the objects.
    """

    def __init__(
        self,
        name: str,
        root: str,
        access_factory: Callable[[], Access],
        encryption: Mapping[str, Any] = NO_ENCRYPTION,
        deadline: float = _DEADLINE_SECONDS,
        held: Held = RECORDS,
    ) -> None:
        self._name = name
        self._root = root
        self._access_factory = access_factory
        self._encryption = encryption
        self._deadline = deadline
        self._held = held

    def url(self, key: str) -> str:
        """`gs://BUCKET/KEY`."""
        return f"gs://{self._name}/{key}"

    def get(self, key: str) -> Blob:
        """An object. Raises `MissingError`."""
        for _ in range(_READ_ATTEMPTS):
            with self._translated("read", key, _READ_PERMISSIONS):
                answer = self._ask(f"download/storage/v1/b/{_quoted(self._name)}/o/{_quoted(key)}", _MEDIA, self._key)
                generation = int(answer.headers["X-Goog-Generation"])
                data = _checked(answer)
                if date := answer.headers.get("Last-Modified"):
                    return Blob(data, str(generation), _time(date))
            # Where the answer does not tell the time, the object does; one that was replaced meanwhile is missing.
            with contextlib.suppress(MissingError), self._translated("read", key, _READ_PERMISSIONS):
                found = self._blob(key, generation)
                found.reload(**self._patience)
                return Blob(data, str(generation), _to_the_second(found.updated))
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
            if not blob.generation:
                raise LookupError("no generation")

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
        return list(self.each_key(key_prefix))

    def each_key(self, key_prefix: str) -> Iterator[str]:
        """The same, one by one as the pages come."""
        with self._translated("list", key_prefix, "storage.objects.list"):
            for blob in self._access.client.list_blobs(self._name, prefix=key_prefix, **self._patience):
                yield blob.name

    def now(self) -> datetime:
        """The time that Google writes above its answers, to the second."""
        with self._translated("list", self._root, "storage.objects.list"):
            return _time(self._list_one().headers["Date"])

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
        """The answer to a list of at most one object."""
        parameters = {"prefix": self._root, "maxResults": "1", "fields": "kind"}
        return self._ask(f"storage/v1/b/{_quoted(self._name)}/o", parameters)

    @property
    def _key(self) -> Mapping[str, str]:
        """The headers with the key that content is encrypted with; none where Google keeps the key."""
        key = self._encryption.get("encryption_key")
        if key is None:
            return {}
        return {
            "X-Goog-Encryption-Algorithm": "AES256",
            "X-Goog-Encryption-Key": base64.b64encode(key).decode(),
            "X-Goog-Encryption-Key-Sha256": base64.b64encode(hashlib.sha256(key).digest()).decode(),
        }

    def _ask(self, path: str, parameters: Mapping[str, str], headers: Mapping[str, str] = NO_ENCRYPTION) -> Any:
        """The answer to a GET as it is, with the headers that the client keeps for itself."""
        from google.api_core.exceptions import from_http_response

        def attempt() -> Any:
            url = f"{self._access.api}/{path}"
            answer = self._access.session.get(url, params=parameters, headers=headers, timeout=_TIMEOUT)
            if not answer.ok:
                raise from_http_response(answer)
            return answer

        return self._patience["retry"](attempt)()

    @contextlib.contextmanager
    def _translated(self, verb: str, key: str, permission: str) -> Iterator[None]:
        """Turn Google's errors into `RecordError`, or into `MissingError` and `TakenError`, which callers expect."""
        try:
            from google.api_core.exceptions import Conflict, GoogleAPIError, NotFound, PreconditionFailed, RetryError
            from google.auth.exceptions import GoogleAuthError, RefreshError
            from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
        except ImportError as error:
            raise no_google_library() from error
        what = self._held.doing(verb, self.url(key))
        try:
            yield
        except NotFound as error:
            if verb == "list":
                advice = f"create the bucket {self._name}{self._held.instead}"
                raise RecordError(f"{what}: there is no bucket {self._name}", advice) from error
            # Google says the same of an object and of its bucket; only a bucket that is there can be listed.
            with self._translated("list", self._root, "storage.objects.list"):
                self._list_one()
            raise MissingError from None
        except (PreconditionFailed, Conflict):
            raise TakenError from None
        except RefreshError as error:
            reason = f"the credentials have expired or are refused ({told(error)})"
            raise RecordError(f"{what}: {reason}", _CREDENTIALS_ADVICE) from error
        # A bucket's name that cannot be one is a ValueError.
        except (
            *(GoogleAPIError, GoogleAuthError, DataCorruption, InvalidResponse),
            *(OSError, RuntimeError, ValueError),
        ) as error:
            cause = error.cause if isinstance(error, RetryError) and error.cause else error
            kind = BusyStoreError if _may_pass(cause) else RecordError
            raise kind(f"{what}: {told(cause)}", self._advice(cause, permission)) from error
        except UNFORESEEN as error:
            raise RecordError(
                f"{what}: the answer has another form than Google's ({told(error)})", _OTHER_ADVICE
            ) from error

    def _advice(self, error: BaseException, permission: str) -> str:
        code = getattr(error, "code", None)
        if code == HTTPStatus.FORBIDDEN:
            return f"allow {permission} on gs://{self._name}/{self._root}/* (and its KMS key, if it has one)"
        if code == HTTPStatus.UNAUTHORIZED:
            return _CREDENTIALS_ADVICE
        if code == HTTPStatus.BAD_REQUEST and "encrypt" in str(error).lower():
            return "give the `encryption_key` that the records were written with"
        return _OTHER_ADVICE


def _may_pass(error: BaseException) -> bool:
    from requests.exceptions import Timeout

    return isinstance(error, Timeout) or may_pass(getattr(error, "code", None))


def _to_the_second(time: datetime) -> datetime:
    """As exact as the clock that it is compared with."""
    return time.astimezone(UTC).replace(microsecond=0)


def _time(date: str) -> datetime:
    """The time in a header."""
    return parsedate_to_datetime(date).astimezone(UTC)


def _checked(answer: Any) -> bytes:
    """The content of an answer; `ValueError` when it is not what the checksum above it is of."""
    content = bytes(answer.content)
    named = dict(part.strip().split("=", 1) for part in answer.headers.get("X-Goog-Hash", "").split(",") if part)
    digest = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
    if named.get("md5", digest) != digest:
        raise ValueError("the content does not have the checksum that was told with it")
    return content


def _quoted(name: str) -> str:
    return quote(name, safe="")
