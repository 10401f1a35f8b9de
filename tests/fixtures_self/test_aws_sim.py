"""The simulated cloud starts, resets and stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from fixtures.aws_sim import MotoServer, aws_client

ROOT = Path(__file__).parent.parent.parent


def wait_for_file(path: Path, timeout: float = 30.0) -> str:
    deadline = time.monotonic() + timeout
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)
    return path.read_text()


def test_reset_empties_the_account(moto: MotoServer) -> None:
    moto.client("sqs").create_queue(QueueName="left")
    moto.reset()
    assert "QueueUrls" not in moto.client("sqs").list_queues()


def test_server_is_gone_after_stop() -> None:
    with MotoServer() as server:
        url = server.url
        assert aws_client("sts", url).get_caller_identity()["Account"] == "123456789012"
    with pytest.raises(EndpointConnectionError):
        aws_client("sts", url).get_caller_identity()


def test_url_of_a_server_that_does_not_run_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="start"):
        _ = MotoServer().url


def test_server_ends_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from fixtures.aws_sim import MotoServer; s = MotoServer().start();"
            "print(s.pid, flush=True); time.sleep(600)",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    server = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    deadline = time.monotonic() + 10
    while _is_running(server):
        assert time.monotonic() < deadline, "the server outlived its owner"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    """Whether a process that is not our child still runs; one that waits to be reaped does not."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


@pytest.mark.parametrize("end", ["sigterm", "stdin"])
def test_command_serves_moto_and_proxy_until_told_to_stop(tmp_path: Path, end: str) -> None:
    told = tmp_path / "aws.json"
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {fault: deny, action: ListRoles}\n")
    log = tmp_path / "calls.jsonl"
    command = subprocess.Popen(
        [sys.executable, "-m", "fixtures.aws_sim", "--output", str(told), "--rules", str(rules), "--log", str(log)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    urls = json.loads(wait_for_file(told))
    iam = aws_client("iam", urls["proxy"])
    with pytest.raises(iam.exceptions.ClientError, match="AccessDenied"):
        iam.list_roles()
    assert aws_client("iam", urls["moto"]).list_roles()["Roles"] == []
    assert [json.loads(line)["done"] for line in log.read_text().splitlines()] == ["deny"]
    if end == "sigterm":
        command.send_signal(signal.SIGTERM)
    command.communicate(timeout=20)
    assert command.returncode == 0
    with pytest.raises(EndpointConnectionError):
        aws_client("iam", urls["moto"]).list_roles()
