"""Many runs start on one stack at the same moment, on every store: one runs, the rest are told so and start nothing.

`TFGUARD_STARTS` says how many; docs/benchmarks.md has the figures for two hundred.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping

import boto3
import pytest
from helpers import APPLY, Run, StackFactory, Start, settings

from fixtures.azure_sim import ACCOUNT, ACCOUNT_KEY, AzureServer
from fixtures.postgres_server import ADMIN, DATABASE, PASSWORD, PostgresServer
from fixtures.record_servers import GcsServer, new_name

pytestmark = pytest.mark.e2e

STARTS = int(os.environ.get("TFGUARD_STARTS", "20"))
# One that is overtaken here would append a second line.
LASTING = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "echo $PPID >> started; until [ -e go ]; do sleep 0.05; done"
  }
}
"""
Place = tuple[str, Mapping[str, str]]
"""What stands in `records:`, and what the environment has to say besides."""


def local(request: pytest.FixtureRequest) -> Place:
    return f"file://{request.getfixturevalue('workdir')}/records", {}


def s3(request: pytest.FixtureRequest) -> Place:
    server: str = request.getfixturevalue("s3_server")
    session = boto3.Session(aws_access_key_id="testing", aws_secret_access_key="testing", region_name="us-east-1")
    bucket = new_name("starts")
    session.client("s3", endpoint_url=server).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/all?region=us-east-1&use_path_style=true&endpoint={server}", {}


def gcs(request: pytest.FixtureRequest) -> Place:
    server: GcsServer = request.getfixturevalue("gcs_server")
    bucket = server.make_bucket(new_name("starts"))
    return f"gs://{bucket}/all?endpoint={server.endpoint}", {"GOOGLE_OAUTH_ACCESS_TOKEN": "testing"}


def azblob(request: pytest.FixtureRequest) -> Place:
    server: AzureServer = request.getfixturevalue("azure_server")
    name = new_name("starts")
    server.container(name).create_container()
    environment = {"ARM_ACCESS_KEY": ACCOUNT_KEY, "SSL_CERT_FILE": str(server.certificate)}
    return f"azblob://{ACCOUNT}/{name}/all?endpoint={server.endpoint}", environment


def postgres(request: pytest.FixtureRequest) -> Place:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    place = f"postgresql://{ADMIN}@127.0.0.1:{server.port}/{DATABASE}?sslmode=disable"
    return place, {"PGPASSWORD": PASSWORD}


@pytest.mark.parametrize("place", [local, s3, gcs, azblob, postgres], ids=lambda place: place.__name__)
def test_of_many_starts_one_runs_and_the_rest_are_told(
    place: Callable[[pytest.FixtureRequest], Place],
    request: pytest.FixtureRequest,
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    records, environment = place(request)
    stack = settings(plain_stack(LASTING), records=f'"{records}"')
    began = time.monotonic()
    said = [(stack / f"said-{number}").open("w+") for number in range(STARTS)]
    started = [tfguard_popen(*APPLY, cwd=stack, env=environment, stdout=file, stderr=file) for file in said]
    for process in started:
        # The server, elsewhere a machine of its own, shares this one's cores with all of them: it goes first.
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)
    while sum(process.poll() is None for process in started) > 1:
        assert time.monotonic() - began < 900
        time.sleep(0.05)
    took = time.monotonic() - began
    (stack / "go").touch()
    codes = sorted(process.wait(120) for process in started)
    texts = [(file.seek(0), file.read())[1] for file in said]
    assert codes == [0] + [12] * (STARTS - 1), "\n".join(sorted({text[-400:] for text in texts}))
    assert len((stack / "started").read_text().splitlines()) == 1
    assert sum("is running (pid" in text for text in texts) == STARTS - 1
    print(f"{place.__name__}: {STARTS} starts, {codes.count(0)} ran, {codes.count(12)} told in {took:.1f} s")

    history = tfguard("history", "--format", "json", cwd=stack, env=environment)
    assert history.returncode == 0, history.stderr
    (operation,) = json.loads(history.stdout)["operations"]
    assert (operation["status"], operation["open"]) == ("ok", False)
    for file in said:
        file.close()
