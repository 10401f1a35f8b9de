"""How the servers that records are tested on start, end, and say that they cannot start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fixtures.record_servers import http_answers, serving


def _command(port: int) -> list[str]:
    return [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]


def _broken(_: int) -> list[str]:
    return [sys.executable, "-c", "print('first'); print('no room'); raise SystemExit(1)"]


def test_a_server_answers_inside_the_context_and_not_after_it(tmp_path: Path) -> None:
    with serving("web", _command, lambda port: http_answers(f"http://127.0.0.1:{port}/"), tmp_path / "log") as port:
        assert http_answers(f"http://127.0.0.1:{port}/")
    assert not http_answers(f"http://127.0.0.1:{port}/")


def test_a_server_that_ends_at_once_skips_the_test_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFGUARD_NEED_SERVERS", raising=False)
    with (
        pytest.raises(pytest.skip.Exception, match="web cannot be started: no room"),
        serving("web", _broken, lambda _: False, tmp_path / "log"),
    ):
        pass


def test_where_servers_are_required_one_that_cannot_start_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGUARD_NEED_SERVERS", "1")
    with (
        pytest.raises(pytest.fail.Exception, match="web cannot be started: no room"),
        serving("web", _broken, lambda _: False, tmp_path / "log"),
    ):
        pass
