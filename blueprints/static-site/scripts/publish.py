"""Make the bucket BUCKET hold what is in site/, and nothing else.

--check tells whether it does (0), or not (1); --remove empties it; --check-removed tells whether it is empty.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

SITE = Path(__file__).parent.parent / "site"
CANNOT_TELL = 2


def wanted() -> dict[str, Path]:
    """Every file of the site by its key."""
    return {path.relative_to(SITE).as_posix(): path for path in sorted(SITE.rglob("*")) if path.is_file()}


def published(s3: Any, bucket: str) -> dict[str, str]:
    """What the bucket holds: keys, and the hash of each content as S3 tells it."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {found["Key"]: found["ETag"].strip('"') for page in pages for found in page.get("Contents", ())}


def changed(now: dict[str, str]) -> dict[str, Path]:
    """The files that the bucket does not hold as they are."""
    return {
        key: path
        for key, path in wanted().items()
        if now.get(key) != hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    }


def publish(s3: Any, bucket: str) -> None:
    """Upload what has changed, then delete what is not there any more."""
    now = published(s3, bucket)
    for key, path in changed(now).items():
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes(), ContentType=kind)
    for key in now.keys() - wanted().keys():
        s3.delete_object(Bucket=bucket, Key=key)


def main() -> int:
    """Publish, remove, or check. An error is neither done nor not done."""
    bucket, asked = os.environ["BUCKET"], (*sys.argv[1:], "")[0]
    try:
        s3 = boto3.client("s3")
        match asked:
            case "--check":
                now = published(s3, bucket)
                return 0 if not changed(now) and now.keys() == wanted().keys() else 1
            case "--check-removed":
                return 1 if published(s3, bucket) else 0
            case "--remove":
                for key in published(s3, bucket):
                    s3.delete_object(Bucket=bucket, Key=key)
            case _:
                publish(s3, bucket)
    except (BotoCoreError, ClientError) as error:
        print(f"the pages cannot be published: {error}", file=sys.stderr)
        return CANNOT_TELL
    return 0


if __name__ == "__main__":
    sys.exit(main())
