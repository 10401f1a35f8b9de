"""The findings that `scan --state-file` kept: damage is told, and never taken for a scan that found nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.fuzz.scan_targets import kept_scans
from tfguard.errors import InputError
from tfguard.schemas.scan import find_kept, load_kept, read_kept

KEPT, PRINTED = kept_scans()[0], kept_scans()[-1]


def changed(**changes: object) -> bytes:
    """What was kept, with something else in it."""
    return json.dumps({**json.loads(KEPT), **changes}).encode()


def without_sum(data: bytes) -> bytes:
    """What is left when somebody takes the sum out, to change anything else."""
    return json.dumps({name: value for name, value in json.loads(data).items() if name != "sum"}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut or not JSON"),
        (KEPT[:-20], "cut or not JSON"),
        (b"[]", "holds no findings"),
        (changed(schema="tfguard.findings/v2"), "holds no findings"),
        (changed(findings=[]), "it was changed after it was written"),
        (KEPT.replace(b'"unmanaged"', b'"orphaned"'), "it was changed after it was written"),
        (KEPT.replace(b'"sum":', b'"sun":'), "it has no sum, which every scan writes"),
        (without_sum(KEPT), "it has no sum, which every scan writes"),
        (without_sum(PRINTED).replace(b'"unknown"', b'"orphaned"'), "it has no sum, which every scan writes"),
        (changed(findings=None), "findings: must be a list"),
        (changed(summary={"managed": -1}), "managed: is no count"),
    ],
)
def test_damage_is_told(data: bytes, why: str) -> None:
    with pytest.raises(InputError) as caught:
        read_kept(data, "f.json")
    assert why in caught.value.what
    assert len(caught.value.what.splitlines()) == 1


def test_what_a_scan_printed_as_json_is_read() -> None:
    assert [one.id for one in read_kept(PRINTED, "f").findings] == [one.id for one in read_kept(KEPT, "f").findings]


def test_only_a_file_that_is_not_there_is_a_first_scan(tmp_path: Path) -> None:
    assert find_kept(tmp_path / "none") is None
    with pytest.raises(InputError, match="there is no such file"):
        load_kept(tmp_path / "none")
    (tmp_path / "file").write_bytes(KEPT)
    for unreadable in (tmp_path, tmp_path / "file" / "inside", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be read"):
            find_kept(unreadable)
