"""`tfguard metrics` where there is nothing to count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfguard.cli.main import exit_code_of


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
