"""`scan --inventory` with `terraform query`. No engine of 1.14 is at hand: a stand-in prints the documented stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import Run

pytestmark = pytest.mark.e2e

PLACE = {"account_id": "123456789012", "region": "eu-west-1"}
TYPES = ("--type", "aws_vpc")
BLOCKS = 'list "aws_vpc" "all" {\n  provider = aws\n  limit    = 3\n}\n'


def vpc(name: str) -> str:
    return f"arn:aws:ec2:{PLACE['region']}:{PLACE['account_id']}:vpc/{name}"


def state(*names: str) -> str:
    instances = [{"index_key": name, "attributes": {"id": name, "arn": vpc(name)}} for name in names]
    provider = 'provider["registry.terraform.io/hashicorp/aws"]'
    resource = {"mode": "managed", "type": "aws_vpc", "name": "all", "provider": provider, "instances": instances}
    return json.dumps(
        {"version": 4, "terraform_version": "1.14.0", "serial": 1, "lineage": "l", "resources": [resource]}
    )


def stream(*names: str) -> str:
    where = {"address": "list.aws_vpc.all", "resource_type": "aws_vpc"}
    found = [{**where, "display_name": name, "identity": {**PLACE, "id": name}} for name in names]
    events = [
        {"type": "version", "terraform": "1.14.0", "ui": "1.2"},
        {"type": "list_start", "list_start": where},
        *({"type": "list_resource_found", "list_resource_found": one} for one in found),
        {"type": "list_complete", "list_complete": {**where, "total": len(found)}},
    ]
    return "".join(json.dumps({"@level": "info", "@module": "terraform.ui", **event}) + "\n" for event in events)


@pytest.fixture
def lists(workdir: Path) -> Path:
    """A folder with a state and, in `lists`, with list blocks."""
    (workdir / "app.tfstate").write_text(state("vpc-kept", "vpc-lost"))
    folder = workdir / "lists"
    folder.mkdir()
    (folder / "all.tfquery.hcl").write_text(BLOCKS)
    return folder


def stand_in(folder: Path, printed: str, exit_code: int = 0, first: str = "Terraform v1.14.0") -> str:
    """A stand-in for an engine, which knows two commands and lists nothing by itself."""
    (folder / "printed").write_text(printed)
    path = folder / "stand-in"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && {{ echo "{first}"; exit 0; }}\n'
        '[ "$*" = "query -json -no-color" ] && [ -f all.tfquery.hcl ] &&'
        f' {{ cat "{folder}/printed"; exit {exit_code}; }}\n'
        'echo "called with $*" >&2; exit 9\n'
    )
    path.chmod(0o755)
    return str(path)


def test_what_the_engine_lists_is_compared_with_the_states(lists: Path, workdir: Path, tfguard: Run) -> None:
    engine = stand_in(workdir, stream("vpc-kept", "vpc-new"))
    asked = ("scan", "app.tfstate", *TYPES, "--format", "json", "--inventory")
    done = tfguard("--engine", engine, *asked, "query:lists")
    assert done.returncode == 2, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"] == {"managed": 1, "unmanaged": 1, "missing": 1}
    assert document["coverage"]["gaps"] == []
    (lists / "found.jsonl").write_text(stream("vpc-kept", "vpc-new"))
    saved = json.loads(tfguard(*asked, "lists/found.jsonl").stdout)
    assert saved["summary"] == document["summary"]


def test_a_list_that_may_be_cut_tells_of_nothing_missing_and_is_never_clean(
    lists: Path, workdir: Path, tfguard: Run
) -> None:
    (workdir / "app.tfstate").write_text(state("vpc-1", "vpc-2", "vpc-3", "vpc-4"))
    engine = stand_in(workdir, stream("vpc-1", "vpc-2", "vpc-3"))
    done = tfguard("--engine", engine, "scan", "app.tfstate", *TYPES, "--inventory", f"query:{lists}")
    assert done.returncode == 3, done.stderr
    assert "list.aws_vpc.all found 3, and may be cut: its limit is 3" in done.stdout
    assert "missing" not in done.stdout


@pytest.mark.parametrize("how", ["fails", "is cut"])
def test_an_engine_that_does_not_come_to_its_end_is_a_gap(how: str, lists: Path, workdir: Path, tfguard: Run) -> None:
    printed = stream("vpc-kept", "vpc-lost")
    engine = stand_in(workdir, printed if how == "fails" else printed[:-200], exit_code=1)
    done = tfguard("--engine", engine, "scan", "app.tfstate", *TYPES, "--inventory", f"query:{lists}")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "coverage: incomplete" in done.stdout


def test_an_engine_that_lists_nothing_is_an_error(lists: Path, workdir: Path, tfguard: Run) -> None:
    error = {"type": "diagnostic", "diagnostic": {"severity": "error", "summary": "Inconsistent lock file"}}
    engine = stand_in(workdir, json.dumps({"@module": "terraform.ui", **error}) + "\n", exit_code=1)
    done = tfguard("--engine", engine, "scan", "app.tfstate", "--inventory", f"query:{lists}")
    assert done.returncode == 1
    assert "nothing was listed: Inconsistent lock file" in done.stderr


def test_an_engine_without_query_is_told_with_what_to_do(
    lists: Path, workdir: Path, tfguard: Run, engine: Path
) -> None:
    asked = ("scan", "app.tfstate", "--inventory", f"query:{lists}")
    tofu = tfguard("--engine", stand_in(workdir, "", first="OpenTofu v1.12.0"), *asked)
    assert (tofu.returncode, "tofu has no `query`" in tofu.stderr) == (1, True)
    real = tfguard("--engine", str(engine), *asked)
    version = json.loads(tfguard("--engine", str(engine), "version", "-json").stdout)["terraform_version"]
    if tuple(int(part) for part in version.split(".")[:2]) >= (1, 14):
        pytest.skip(f"the engine here is {version}, which has `query`")
    assert real.returncode == 1
    assert f"terraform {version} at {engine} has no `query`: it came with 1.14" in real.stderr
    assert "--engine PATH" in real.stderr


def test_a_folder_without_list_blocks_is_refused(workdir: Path, tfguard: Run) -> None:
    done = tfguard("scan", "app.tfstate", "--inventory", "query:.", cwd=workdir)
    assert (done.returncode, "has no file *.tfquery.hcl" in done.stderr) == (1, True)
