"""Records in an S3 bucket. Every put says which version it replaces, or that there must be none.

A journal `events.jsonl` is a row of objects `events.jsonl/part-000000001`, ... that are only ever added, so that a
writer that takes over cannot overwrite what the one before it has told.

Every put carries a token of its own. The SDK repeats a put whose answer was lost, and is then told that the object is
there already: the token tells whether it was ours.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import MappingProxyType
from typing import Any

from tfguard.errors import ConflictError, RecordError
from tfguard.ports import Blob
from tfguard.stores.common import aside_name, check_name, conflict

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_PART = re.compile(r"/part-\d{9}$", re.ASCII)
_TOKEN = "tfguard-write"
_READERS = 8
_APPEND_ATTEMPTS = 20
_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "OperationAborted", "412", "409"})
_REFUSED = frozenset({"AccessDenied", "AllAccessDisabled", "Forbidden", "403"})
_ELSEWHERE = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
)
_CREDENTIALS = frozenset({"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
_OTHER_ADVICE = "check network, endpoint, region and credentials of the bucket (`tfguard doctor`), then try again"


class _MissingError(Exception):
    """There is no such object."""


class _TakenError(Exception):
    """The object is not in the state that the request names."""


def no_boto3() -> RecordError:
    """The optional dependency is missing."""
    return RecordError("records in S3 need boto3, which is not installed", "install it: `pip install 'tfguard[aws]'`")


class S3Store:
    """A `RecordStore` below `prefix` in `bucket`. A version is the object's ETag.

    `client_factory` makes boto3's S3 client, when the first call needs it. `put_options` go with every put
    (`ServerSideEncryption`, ...).
    """

    def __init__(
        self, bucket: str, prefix: str, client_factory: Callable[[], Any], put_options: Mapping[str, str] = NO_OPTIONS
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix.rstrip("/")
        self._client_factory = client_factory
        self._put_options = put_options
        self._next_part: dict[str, int] = {}

    @property
    def location(self) -> str:
        """The URL of the bucket and prefix."""
        return self._url(self._prefix)

    def check_writable(self) -> None:
        """Nothing: whether a bucket takes an object is only told by putting one there."""

    def read(self, name: str) -> Blob | None:
        """The document, or None when there is none."""
        try:
            return self._get(self._key(name))
        except _MissingError:
            return None

    def create(self, name: str, data: bytes) -> None:
        """Write a document that must not exist yet; `ConflictError` when it does."""
        self.replace(name, data, None)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document if it still has the version `expected` (None: must not exist); else `ConflictError`."""
        self._put(self._key(name), data, {"IfMatch": expected} if expected else {"IfNoneMatch": "*"})

    def append(self, name: str, data: bytes) -> None:
        """Add whole lines to a journal, behind what any other writer has added."""
        key = self._key(name)
        if not data:
            return
        for _ in range(_APPEND_ATTEMPTS):
            number = self._next_part.get(key) or self._count_parts(key) + 1
            try:
                self._put(f"{key}/part-{number:09}", data, {"IfNoneMatch": "*"})
            except ConflictError:
                self._next_part.pop(key, None)
            else:
                self._next_part[key] = number + 1
                return
        raise conflict(self._url(key))

    def read_journal(self, name: str) -> bytes:
        """All that was appended under `name`, in order; empty when nothing was."""
        keys = self._part_keys(self._key(name))
        with ThreadPoolExecutor(_READERS) as readers:
            return b"".join(blob.data for blob in readers.map(self._get_listed, keys))

    def names(self, prefix: str) -> Sequence[str]:
        """The names of the documents and journals below `prefix` (empty: all), sorted."""
        keys = self._keys(f"{self._key(prefix)}/" if prefix else self._root)
        names = (_PART.sub("", key.removeprefix(self._root)) for key in keys)
        return sorted({name for name in names if name and not name.endswith("/")})

    def move_aside(self, name: str) -> str:
        """Keep a document or journal as `<name>.unreadable-<n>`, and tell that name; `ConflictError` when it is gone.

        Everything is copied before anything is removed: dying in between leaves both.
        """
        key = self._key(name)
        sources = self._part_keys(key) or [key]
        try:
            blobs = {source: self._get(source) for source in sources}
        except _MissingError:
            raise conflict(self._url(key)) from None
        for number in itertools.count(1):
            target = aside_name(name, number)
            try:
                for source, blob in blobs.items():
                    self._put(self._key(target) + source.removeprefix(key), blob.data, {"IfNoneMatch": "*"})
            except ConflictError:
                continue
            break
        for source, blob in blobs.items():
            self._delete(source, blob.version)
        self._next_part.pop(key, None)
        return target

    @property
    def _root(self) -> str:
        return f"{self._prefix}/" if self._prefix else ""

    def _key(self, name: str) -> str:
        return self._root + check_name(name)

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    @cached_property
    def _client(self) -> Any:
        return self._client_factory()

    def _get(self, key: str) -> Blob:
        with self._translated("read", key, "s3:GetObject and s3:ListBucket"):
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            return Blob(answer["Body"].read(), answer["ETag"])

    def _get_listed(self, key: str) -> Blob:
        try:
            return self._get(key)
        except _MissingError:
            raise conflict(self._url(key)) from None

    def _put(self, key: str, data: bytes, condition: Mapping[str, str]) -> None:
        token = secrets.token_hex(16)
        options = {**self._put_options, **condition, "Metadata": {_TOKEN: token}}
        try:
            with self._translated("write", key, "s3:PutObject"):
                self._client.put_object(Bucket=self._bucket, Key=key, Body=data, **options)
        except (_TakenError, _MissingError):
            if not self._has_token(key, token):
                raise conflict(self._url(key)) from None

    def _has_token(self, key: str, token: str) -> bool:
        try:
            with self._translated("read", key, "s3:GetObject and s3:ListBucket"):
                metadata = self._client.head_object(Bucket=self._bucket, Key=key)["Metadata"]
        except _MissingError:
            return False
        return bool(metadata.get(_TOKEN) == token)

    def _delete(self, key: str, version: str) -> None:
        try:
            with self._translated("remove", key, "s3:DeleteObject"):
                self._client.delete_object(Bucket=self._bucket, Key=key, IfMatch=version)
        except (_TakenError, _MissingError):
            raise conflict(self._url(key)) from None

    def _keys(self, key_prefix: str) -> list[str]:
        with self._translated("list", key_prefix, "s3:ListBucket"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=key_prefix)
            return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def _part_keys(self, key: str) -> list[str]:
        return sorted(found for found in self._keys(f"{key}/part-") if _PART.sub("", found) == key)

    def _count_parts(self, key: str) -> int:
        keys = self._part_keys(key)
        return int(keys[-1].rpartition("-")[2]) if keys else 0

    @contextlib.contextmanager
    def _translated(self, verb: str, key: str, permission: str) -> Iterator[None]:
        """Turn boto3's errors into `RecordError`, or into `_MissingError` and `_TakenError`, which callers expect."""
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise no_boto3() from error
        what = f"cannot {verb} the record {self._url(key)}"
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            if code in _MISSING:
                raise _MissingError from None
            if code in _TAKEN:
                raise _TakenError from None
            raise RecordError(f"{what}: {code}", self._advice(code, permission)) from error
        except BotoCoreError as error:
            first_line = (str(error).splitlines() or [""])[0]
            raise RecordError(f"{what}: {type(error).__name__}: {first_line}", _OTHER_ADVICE) from error

    def _advice(self, code: str, permission: str) -> str:
        if code == "NoSuchBucket":
            return f"create the bucket {self._bucket}, or name another place with `records:` in tfguard.yaml"
        if code in _REFUSED:
            return f"allow {permission} on arn:aws:s3:::{self._bucket}/{self._root}* (and its KMS key, if it has one)"
        if code in _ELSEWHERE:
            return f"set `region` to the region of the bucket {self._bucket}"
        if code in _CREDENTIALS:
            return "renew the AWS credentials of this run"
        return _OTHER_ADVICE
