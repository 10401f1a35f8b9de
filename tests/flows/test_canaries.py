"""Whatever secrets a plan, a state, a stream and a command line hold, none is in anything that is written (rule 10)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.canaries.garden import Garden
from fixtures.canaries.pipeline import run_scene


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
def test_no_canary_is_in_any_written_byte_and_no_step_is_wrongly_gone(seed: int) -> None:
    scene = Garden(Random(seed)).scene()
    with tempfile.TemporaryDirectory() as folder:
        found = run_scene(scene, Path(folder))
    assert found.leaks == []
    assert found.wrong == []
    assert found.looked_at > 0
