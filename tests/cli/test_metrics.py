"""`tfguard metrics` where there is nothing to count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfguard.cli.main import exit_code_of

WEB = "apiVersion: tfguard/v1\nkind: Blueprint\nname: web\nsteps: {a: {run: ['true']}}\n"


def test_a_folder_without_a_stack_has_no_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["metrics"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "there is no configuration in" in err and "no operation is recorded" in err
    assert "--state-file" in err


def test_a_stack_without_an_operation_has_metrics_and_is_told_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.tf").write_text('resource "terraform_data" "a" {}\n')
    assert exit_code_of(["metrics"]) == 0
    out, err = capfd.readouterr()
    assert "tfguard_gaps 1" in out
    assert "no operation is recorded" in err


def test_blueprints_without_a_request_are_told_by_name_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(WEB)
    assert exit_code_of(["metrics", "--blueprint", "one.yaml", "--blueprint", "two.yaml"]) == 0
    out, err = capfd.readouterr()
    for name in ("one.yaml", "two.yaml"):
        assert f'tfguard_blueprint_stuck{{blueprint="web",file="{name}"}} 0\n' in out
    assert out.count("# TYPE tfguard_blueprint_stuck gauge") == 1
    assert err.count("no request is recorded") == 2


def test_a_blueprint_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(WEB)
    (tmp_path / "two.yaml").write_text(WEB)
    (tmp_path / "two.tfguard").mkdir()
    (tmp_path / "two.tfguard" / "head.json").write_text("{")
    assert exit_code_of(["metrics", "--blueprint", "two.yaml", "--blueprint", "one.yaml"]) == 11
    out, err = capfd.readouterr()
    assert 'tfguard_blueprint_stuck{blueprint="web",file="one.yaml"} 0\n' in out
    for name, told in (("one.yaml", 0), ("two.yaml", 1)):
        assert f'tfguard_blueprint_unreadable{{file="{name}"}} {told}\n' in out
    assert "head.json" in err
    assert exit_code_of(["metrics", "--blueprint", "two.yaml"]) != 0


def test_blueprints_are_counted_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(["metrics", "--blueprint", "one.yaml", "--state-file", "kept.json"]) == 1
