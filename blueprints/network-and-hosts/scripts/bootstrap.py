"""Run setup.sh on the host INSTANCE_ID, through SSM; with --check only tell whether it has run there (0), or not (1).

Each run is marked with what was run. So a host that was set up is known as long as SSM remembers its commands, 30 days;
after that it is set up once more, which changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

CANNOT_TELL = 2
RUNNING = ("Pending", "InProgress", "Delayed", "Cancelling")
LOOK_SECONDS = 3
WAIT_FOR_AGENT_SECONDS = 300


def earlier(ssm: Any, instance: str, mark: str) -> Iterator[str]:
    """The status of each command with this mark that the host has got."""
    for page in ssm.get_paginator("list_commands").paginate(InstanceId=instance):
        yield from (command["Status"] for command in page["Commands"] if command.get("Comment") == mark)


def send(ssm: Any, instance: str, mark: str, script: str) -> None:
    """Give the host its work. A host that has just started does not know SSM yet, so it is asked again."""
    end = time.monotonic() + WAIT_FOR_AGENT_SECONDS
    while True:
        try:
            ssm.send_command(
                InstanceIds=[instance],
                DocumentName="AWS-RunShellScript",
                Comment=mark,
                Parameters={"commands": [script]},
            )
        except ssm.exceptions.InvalidInstanceId:
            if time.monotonic() > end:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return


def main() -> int:
    """Set the host up, or check. An error is neither done nor not done."""
    instance, port = os.environ["INSTANCE_ID"], os.environ["PORT"]
    setup = (Path(__file__).parent / "setup.sh").read_text(encoding="utf-8")
    script = f"set -- {shlex.quote(port)}\n{setup}"
    mark = f"setup {hashlib.sha256(script.encode()).hexdigest()[:12]}"
    try:
        ssm = boto3.client("ssm")
        # What an earlier run has begun comes to its end first.
        while any(status in RUNNING for status in earlier(ssm, instance, mark)):
            time.sleep(LOOK_SECONDS)
        if "--check" in sys.argv[1:]:
            return 0 if "Success" in earlier(ssm, instance, mark) else 1
        send(ssm, instance, mark, script)
        while any(status in RUNNING for status in earlier(ssm, instance, mark)):
            time.sleep(LOOK_SECONDS)
        return 0 if "Success" in earlier(ssm, instance, mark) else 1
    except (BotoCoreError, ClientError) as error:
        print(f"the host cannot be set up: {error}", file=sys.stderr)
        return CANNOT_TELL


if __name__ == "__main__":
    sys.exit(main())
