"""Fixtures of tests that run the engine very often: a provider that is started once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.chaos.world import World


@pytest.fixture(scope="session")
def world(seed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:  # noqa: ARG001 (skips without one)
    """A cloud behind a proxy, and a provider that stays up."""
    with World(tmp_path_factory.mktemp("world").resolve(), s3=False) as running:
        yield running
