"""Backends beside whose state no record can lie: nothing starts until `records:` names a place, and the line works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, settings, status
from state_server import running_server

from fixtures.stand_in_engine import install

pytestmark = pytest.mark.e2e

FORMS = ("file:///DIR", "s3://BUCKET/PREFIX", "gs://BUCKET/PREFIX", "azblob://", "postgresql://HOST/DATABASE")
BACKENDS = {
    "http": {"address": "http://127.0.0.1:9/state"},
    "consul": {"address": "127.0.0.1:9", "path": "state"},
    "kubernetes": {"namespace": "default", "secret_suffix": "state"},
    "remote": {"organization": "o", "workspaces": [{"name": "w", "prefix": None}]},
    "cloud": {"organization": "o", "workspaces": {"name": "w", "tags": None}},
    "of-the-future": {"bucket": "b"},
}


def advised_line(stderr: str, kind: str, folder: Path) -> str:
    """The line for tfguard.yaml that a refusal advises, with a folder in it."""
    what, advice = stderr.splitlines()
    assert f"the backend '{kind}'" in what
    assert all(form in advice for form in FORMS), advice
    line = re.search(r"`(records: [^`]+)`", advice)
    assert line is not None
    return line[1].replace("/DIR", str(folder))


def add_line(stack: Path, line: str) -> None:
    """Add a line to a stack's tfguard.yaml."""
    file = settings(stack) / "tfguard.yaml"
    file.write_text(f"{file.read_text()}{line}\n")


@pytest.mark.parametrize("kind", BACKENDS)
def test_nothing_starts_without_a_place_and_the_advised_line_gives_one(
    workdir: Path, tmp_path: Path, tfguard: Run, run_env: dict[str, str], kind: str
) -> None:
    stack, told = workdir / "stack", workdir / "told"
    (stack / ".terraform").mkdir(parents=True)
    told.mkdir()
    document = {"version": 3, "backend": {"type": kind, "config": BACKENDS[kind], "hash": 1}}
    (stack / ".terraform" / "terraform.tfstate").write_text(json.dumps(document))
    (stack / "main.tf").write_text('resource "terraform_data" "one" {}\n')
    run_env |= {"STAND_IN": str(told), "TFGUARD_ENGINE": str(install(workdir / "bin"))}
    for command in (APPLY, ("destroy", "-auto-approve"), ("import", "terraform_data.one", "1")):
        done = tfguard(*command, cwd=stack)
        assert (done.returncode, done.stdout) == (10, "")
    log = told / "log"
    assert not log.exists() or set(log.read_text().split()) <= {"version", "holds"}
    assert not (stack / "terraform.tfstate").exists()

    add_line(stack, advised_line(done.stderr, kind, tmp_path / "records"))
    tfguard(*APPLY, cwd=stack)
    assert "plan holds" in log.read_text()
    assert (stack / "terraform.tfstate").exists(), "the stand-in has applied"
    assert list((tmp_path / "records").glob("*/operations/*/intent.json"))


def test_the_advised_line_works_with_a_real_engine_and_its_http_backend(
    plain_stack: StackFactory, tmp_path: Path, tfguard: Run
) -> None:
    with running_server() as server:
        backend = f'terraform {{\n  backend "http" {{\n    address = "{server.url}"\n  }}\n}}\n'
        stack = plain_stack(backend + 'resource "terraform_data" "one" {}\n')
        refused = tfguard(*APPLY, cwd=stack)
        assert refused.returncode == 10
        assert server.writes == 0
        add_line(stack, advised_line(refused.stderr, "http", tmp_path / "records"))
        done = tfguard(*APPLY, cwd=stack)
        assert (done.returncode, done.stderr) == (0, "")
        assert server.writes > 0
        assert status(tfguard, stack, code=0)["record"].startswith(str(tmp_path / "records"))
