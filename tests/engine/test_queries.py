"""Queries change nothing of the environment that other threads read."""

from __future__ import annotations

import os

import pytest

from tfguard.engine.queries import _query_environment


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize("news", ["0", None])
def test_what_bends_an_answer_is_taken_out_meanwhile_and_all_else_stays(
    monkeypatch: pytest.MonkeyPatch, offline: bool, news: str | None
) -> None:
    monkeypatch.setenv("TF_CLI_ARGS", "-json")
    monkeypatch.setenv("TF_CLI_ARGS_show", "-no-color")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.delenv("CHECKPOINT_DISABLE", raising=False)
    if news is not None:
        monkeypatch.setenv("CHECKPOINT_DISABLE", news)
    before = dict(os.environ)
    with _query_environment(offline):
        assert not any(name.startswith("TF_CLI_ARGS") for name in os.environ)
        assert os.environ["AWS_REGION"] == "eu-west-1"
        assert os.environ.get("CHECKPOINT_DISABLE") == ("1" if offline else news)
    assert dict(os.environ) == before
