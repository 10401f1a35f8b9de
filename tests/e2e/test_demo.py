"""The README's first command keeps telling its story."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.e2e
@pytest.mark.usefixtures("engine", "cli_config")  # they skip where there is no engine or no provider
def test_demo_names_the_orphan_adopts_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "scripts.demo_story", str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "aws_iam_role.app: orphaned" in told.stdout
    assert "evidence: desired-identity: name = app" in told.stdout
    assert told.stdout.index("orphaned") < told.stdout.index("1 imported") < told.stdout.index("No changes.")
    assert [path.name for path in tmp_path.iterdir()] == ["cli.tfrc"]
