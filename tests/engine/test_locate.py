"""Which engine is taken, and what it says it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfguard.engine.locate import call_environment, find_binary, read_version
from tfguard.errors import NoEngineError


def program(path: Path, text: str = "exit 0") -> Path:
    """A script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_option_comes_before_the_file_and_that_before_the_environment(tmp_path: Path) -> None:
    one, two, three = (program(tmp_path / name) for name in ("one", "two", "three"))
    environ = {"PATH": str(tmp_path), "TFGUARD_ENGINE": "three"}
    assert find_binary("one", "two", environ) == one
    assert find_binary(None, "two", environ) == two
    assert find_binary(None, None, environ) == three


def test_terraform_comes_before_tofu_on_the_path(tmp_path: Path) -> None:
    tofu = program(tmp_path / "a/tofu")
    environ = {"PATH": f"{tmp_path}/a:{tmp_path}/b"}
    assert find_binary(None, None, environ) == tofu
    terraform = program(tmp_path / "b/terraform")
    assert find_binary(None, None, environ) == terraform


def test_a_path_names_a_file_that_can_be_run(tmp_path: Path) -> None:
    assert find_binary(str(program(tmp_path / "mine")), None, {}) == tmp_path / "mine"
    (tmp_path / "text").write_text("")
    for choice in (str(tmp_path / "text"), str(tmp_path / "none"), str(tmp_path), "none"):
        with pytest.raises(NoEngineError, match="not there or cannot be run"):
            find_binary(choice, None, {"PATH": str(tmp_path)})


def test_a_link_to_tfguard_under_the_engines_name_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    itself = program(tmp_path / "bin/the-program")
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim/terraform").symlink_to(itself)
    monkeypatch.setattr("sys.argv", [str(itself)])
    environ = {"PATH": f"{tmp_path}/shim:{tmp_path}/real"}
    for choice in (None, "terraform", f"{tmp_path}/shim/terraform"):
        with pytest.raises(NoEngineError, match=f"{tmp_path}/shim/terraform is tfguard itself"):
            find_binary(choice, None, environ)
    real = program(tmp_path / "real/terraform")
    for choice in (None, "terraform"):
        assert find_binary(choice, None, environ) == real


@pytest.mark.parametrize(
    "text",
    [
        'exec tfguard "$@"',
        'tfguard "$@"',
        '/opt/tools/bin/tfguard "$@"',
        'cd /x && "$HOME/.local/bin/tfguard" "$@"; exit $?',
        'exec python3 -m tfguard "$@"',
        "import sys\nfrom tfguard.cli.main import run\nsys.exit(run())",
        "'''exec' /a/long/path/python \"$0\" \"$@\"\n' '''\nfrom tfguard.cli.main import run\nrun()",
    ],
)
def test_a_script_that_calls_tfguard_is_passed_over(tmp_path: Path, text: str) -> None:
    program(tmp_path / "shim/terraform", text)
    real = program(tmp_path / "real/terraform")
    assert find_binary(None, None, {"PATH": f"{tmp_path}/shim:{tmp_path}/real"}) == real


@pytest.mark.parametrize(
    "text",
    [
        '# tfguard calls this one\nexec /opt/terraform "$@"',
        'exec /opt/tfguard-tools/terraform "$@"',
        'exec /srv/tfguard/bin/terraform "$@"',
        'exec my-tfguard-less-terraform "$@"',
    ],
)
def test_any_other_script_is_an_engine(tmp_path: Path, text: str) -> None:
    script = program(tmp_path / "terraform", text)
    assert find_binary(None, None, {"PATH": str(tmp_path)}) == script


def test_a_program_that_is_no_script_is_an_engine_whatever_stands_in_it(tmp_path: Path) -> None:
    binary = tmp_path / "terraform"
    binary.write_bytes(b"\x7fELF tfguard ")
    binary.chmod(0o755)
    assert find_binary(None, None, {"PATH": str(tmp_path)}) == binary
    environ = {"PATH": "/bin"}
    assert call_environment(binary, environ) is environ


def test_what_a_script_becomes_sees_that_tfguard_called_itself(tmp_path: Path) -> None:
    script = program(tmp_path / "terraform", 'exec /opt/renamed "$@"')
    environ = call_environment(script, {"PATH": str(tmp_path)})
    with pytest.raises(NoEngineError, match="called by itself") as caught:
        find_binary(None, None, environ)
    assert caught.value.exit_code == 13


def test_a_tfguard_below_another_ones_engine_calls_one_too_but_not_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = program(tmp_path / "terraform", '/opt/renamed "$@"')
    environ: Mapping[str, str] = {"PATH": str(tmp_path)}
    depth = 0
    with pytest.raises(NoEngineError, match="called by itself"):
        for depth in range(100):
            monkeypatch.setattr("os.getpid", lambda pid=100_000 + depth: pid)
            assert find_binary(None, None, environ) == script
            environ = call_environment(script, environ)
    assert 4 < depth < 20


def test_the_binary_behind_a_wrapper_that_forwards_no_signals_is_taken(tmp_path: Path) -> None:
    program(tmp_path / "terraform")
    real = program(tmp_path / "terraform-bin")
    assert find_binary(None, None, {"PATH": str(tmp_path)}) == real
    program(tmp_path / "terraform", 'exec tfguard "$@"')  # tfguard in the wrapper's place
    assert find_binary(None, None, {"PATH": str(tmp_path)}) == real


@pytest.mark.parametrize(
    ("says", "name", "version"),
    [
        ("Terraform v1.5.0", "terraform", "1.5.0"),
        ("Terraform v1.13.0-beta1\non linux", "terraform", "1.13.0-beta1"),
        ("OpenTofu v1.12.3", "tofu", "1.12.3"),
        ("Warning: x\n\nTerraform v2.0.1", "terraform", "2.0.1"),
    ],
)
def test_the_version_is_read(tmp_path: Path, says: str, name: str, version: str) -> None:
    binary = program(
        tmp_path / "engine", f"cat <<'END'\n{says}\n+ provider registry.terraform.io/hashicorp/aws v5.1.0\nEND"
    )
    found = read_version(binary, tmp_path)
    assert (found.info.name, found.info.version) == (name, version)
    assert found.providers == {"registry.terraform.io/hashicorp/aws": "5.1.0"}


@pytest.mark.parametrize("body", ["echo Terraform v1.4.9", "echo OpenTofu v1.5.9"])
def test_one_that_is_too_old_is_told_with_its_version(tmp_path: Path, body: str) -> None:
    with pytest.raises(NoEngineError, match="is too old") as caught:
        read_version(program(tmp_path / "engine", body), tmp_path)
    assert caught.value.exit_code == 13


def test_one_that_leads_back_to_tfguard_is_told_from_one_that_does_not_answer(tmp_path: Path) -> None:
    body = '[ "$TFGUARD_CALLED_BY" = version ] && exit 13; echo Terraform v1.9.0'
    with pytest.raises(NoEngineError, match="leads back to tfguard") as caught:
        read_version(program(tmp_path / "engine", body), tmp_path)
    assert caught.value.exit_code == 13
    assert "TFGUARD_CALLED_BY" not in os.environ


@pytest.mark.parametrize("body", ["exit 1", "echo hello", "echo Terraform v1.9.0; exit 3"])
def test_one_that_does_not_answer_is_none(tmp_path: Path, body: str) -> None:
    with pytest.raises(NoEngineError, match="does not answer"):
        read_version(program(tmp_path / "engine", body), tmp_path)
