"""What the commands of a blueprint print where there is no request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tfguard.cli.blueprint import command
from tfguard.cli.invocation import Invocation


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A blueprint that was never applied."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "main.tf").write_text("")
    path = tmp_path / "b.yaml"
    path.write_text("apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nsteps: {a: {stack: a}}\n")
    return path


@pytest.mark.parametrize("words", [("status",), ("destroy", "--yes")])
def test_without_a_request_a_program_gets_its_document(file: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(command, [*words, str(file), "--format", "json"], obj=Invocation())
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["schema"], told["request_id"], told["state"]) == ("tfguard.blueprint/v1", None, None)
    assert [step["status"] for step in told["steps"]] == ["pending"]


def test_without_a_request_there_is_a_picture(file: Path) -> None:
    done = CliRunner().invoke(command, ["status", str(file), "--format", "svg"], obj=Invocation())
    assert done.stdout.lstrip().startswith("<svg") or "<svg" in done.stdout[:200]


def test_without_a_request_a_person_is_told_so(file: Path) -> None:
    done = CliRunner().invoke(command, ["status", str(file)], obj=Invocation())
    assert done.stdout.startswith("no request is recorded at ")
