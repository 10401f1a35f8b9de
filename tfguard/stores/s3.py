"""An S3 bucket for records.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from tfguard.errors import BusyStoreError, RecordError
from tfguard.ports import Blob
from tfguard.stores.common import RECORDS, UNFORESEEN, Held, may_pass, told
from tfguard.stores.objects import TOKEN, MissingError, TakenError

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_MISSING = frozenset({"NoSuchKey"})
# An answer to HEAD has no body that could tell more. Elsewhere a bare 404 is not S3's, and no "there is no record".
_MISSING_BY_STATUS = _MISSING | {"404", "NotFound"}
_TAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "OperationAborted", "412", "409"})
_REFUSED = frozenset({"AccessDenied", "AllAccessDisabled", "Forbidden", "403"})
_ELSEWHERE = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
)
_CREDENTIALS = frozenset({"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
_BUSY = frozenset({"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable"})
_OTHER_ADVICE = "check network, endpoint, region and credentials of the bucket (`tfguard doctor`), then try again"


def no_boto3() -> RecordError:
    """The optional dependency is missing."""
    return RecordError("records in S3 need boto3, which is not installed", "install it: `pip install boto3`")


class S3Bucket:
    """The `Bucket` that boto3 reaches. A version is the object's ETag.

    `client_factory` makes boto3's S3 client, when the first call needs it. `put_options` go with every put
    (`ServerSideEncryption`, ...). `root` is the prefix below which records lie, for the advice about permissions, and
    `held` what errors call the objects.
    """

    def __init__(
        self,
        name: str,
        root: str,
        client_factory: Callable[[], Any],
        put_options: Mapping[str, str] = NO_OPTIONS,
        held: Held = RECORDS,
    ) -> None:
        self._name = name
        self._root = root
        self._client_factory = client_factory
        self._put_options = put_options
        self._held = held

    def url(self, key: str) -> str:
        """`s3://BUCKET/KEY`."""
        return f"s3://{self._name}/{key}"

    def get(self, key: str) -> Blob:
        """An object. Raises `MissingError`."""
        with self._translated("read", key, "s3:GetObject and s3:ListBucket"):
            answer = self._client.get_object(Bucket=self._name, Key=key)
            return Blob(answer["Body"].read(), answer["ETag"], answer["LastModified"].astimezone(UTC))

    def put(self, key: str, data: bytes, expected: str | None, token: str) -> None:
        """Write an object that has the ETag `expected` (None: that must not exist). Raises as `Bucket.put` does."""
        condition = {"IfMatch": expected} if expected else {"IfNoneMatch": "*"}
        options = {**self._put_options, **condition, "Metadata": {TOKEN: token}}
        with self._translated("write", key, "s3:PutObject"):
            answer = self._client.put_object(Bucket=self._name, Key=key, Body=data, **options)
            _check_told(answer, "ETag")

    def token(self, key: str) -> str | None:
        """The token that an object was written with. Raises `MissingError`."""
        with self._translated("read", key, "s3:GetObject and s3:ListBucket", _MISSING_BY_STATUS):
            found = self._client.head_object(Bucket=self._name, Key=key)["Metadata"].get(TOKEN)
            return found if isinstance(found, str) else None

    def delete(self, key: str, version: str) -> None:
        """Remove an object that still has this ETag. Raises `TakenError` or `MissingError`."""
        with self._translated("remove", key, "s3:DeleteObject"):
            self._client.delete_object(Bucket=self._name, Key=key, IfMatch=version)

    def keys(self, key_prefix: str) -> list[str]:
        """The keys of all objects that begin so, over all pages."""
        return list(self.each_key(key_prefix))

    def each_key(self, key_prefix: str) -> Iterator[str]:
        """The same, one by one as the pages come."""
        with self._translated("list", key_prefix, "s3:ListBucket"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=key_prefix):
                _check_told(page, "IsTruncated")
                if page["IsTruncated"]:  # boto3 stops where the answer does not say where it goes on
                    _check_told(page, "NextContinuationToken")
                yield from (entry["Key"] for entry in page.get("Contents", ()))

    def now(self) -> datetime:
        """The time that S3 writes above its answers, to the second."""
        with self._translated("list", self._root, "s3:ListBucket"):
            answer = self._client.list_objects_v2(Bucket=self._name, Prefix=self._root, MaxKeys=1)
            return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).astimezone(UTC)

    @cached_property
    def _client(self) -> Any:
        return self._client_factory()

    @contextlib.contextmanager
    def _translated(self, verb: str, key: str, permission: str, missing: frozenset[str] = _MISSING) -> Iterator[None]:
        """Turn boto3's errors into `RecordError`, or into `MissingError` and `TakenError`, which callers expect."""
        try:
            from botocore.exceptions import (
                BotoCoreError,
                ClientError,
                ConnectionClosedError,
                ConnectTimeoutError,
                ReadTimeoutError,
            )
            from botocore.parsers import ResponseParserError
            from urllib3.exceptions import HTTPError
        except ImportError as error:
            raise no_boto3() from error
        what = self._held.doing(verb, self.url(key))
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            if code in missing:
                raise MissingError from None
            if code in _TAKEN:
                raise TakenError from None
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            kind = BusyStoreError if code in _BUSY or may_pass(status) else RecordError
            raise kind(f"{what}: {code}", self._advice(code, permission)) from error
        except (ConnectTimeoutError, ReadTimeoutError, ConnectionClosedError) as error:
            raise BusyStoreError(f"{what}: {told(error)}", _OTHER_ADVICE) from error
        except (BotoCoreError, HTTPError, OSError, RuntimeError) as error:
            raise RecordError(f"{what}: {told(error)}", _OTHER_ADVICE) from error
        except (ResponseParserError, *UNFORESEEN) as error:
            reason = f"the answer has another form than S3's ({told(error)})"
            raise RecordError(f"{what}: {reason}", _OTHER_ADVICE) from error

    def _advice(self, code: str, permission: str) -> str:
        if code == "NoSuchBucket":
            return f"create the bucket {self._name}{self._held.instead}"
        if code in _REFUSED:
            below = "/".join(filter(None, (self._name, self._root, "*")))
            return f"allow {permission} on arn:aws:s3:::{below} (and its KMS key, if it has one)"
        if code in _ELSEWHERE:
            return f"set `region` to the region of the bucket {self._name}"
        if code in _CREDENTIALS:
            return "renew the AWS credentials of this run"
        return _OTHER_ADVICE


def _check_told(answer: Mapping[str, Any], name: str) -> None:
    """That an answer has what S3 never leaves out: to boto3, any other page is an answer in which nothing stands."""
    if name not in answer:
        raise LookupError(f"no {name}")
