"""The file of `scan --state-file`: nothing else is written over, and scans that end at once lose nothing."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from tfguard.cli import kept_files
from tfguard.cli.main import exit_code_of
from tfguard.errors import ExitCode, InputError
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.scan import ScanResult
from tfguard.schemas.scan import load_kept
from tfguard.stores import file_lock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATE = json.dumps({"version": 4, "serial": 3, "lineage": "l", "outputs": {}, "resources": []})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tfstate").write_text(STATE)
    return tmp_path


def exported(*queues: str, account: str = "111111111111", region: str = "eu-west-1") -> None:
    """What exists, in place of list calls."""
    rows = [{"type": "aws_sqs_queue", "id": f"arn:aws:sqs:{region}:{account}:{name}"} for name in queues]
    Path("export.jsonl").write_text(
        "".join(json.dumps({**row, "arn": row["id"], "account": account, "region": region}) + "\n" for row in rows)
    )


def scan(*arguments: str, patterns: Sequence[str] = ("a.tfstate",), kind: str = "aws_sqs_queue") -> int:
    return exit_code_of(["scan", *patterns, "--inventory", "export.jsonl", "--type", kind, *arguments])


def result(*names: str, at: datetime = NOW) -> ScanResult:
    objects = [CloudObject("aws", "111111111111", "eu-west-1", "aws_sqs_queue", name, name) for name in names]
    findings = [Finding(one.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, one) for one in objects]
    listed = frozenset({("aws", "111111111111", "eu-west-1", "aws_sqs_queue")})
    began = NOW - timedelta(hours=1)
    return ScanResult(tuple(findings), Coverage(1, 1), {}, {}, began, at, complete_listings=listed)


def names(path: Path) -> list[str]:
    return sorted(one.object.id for one in load_kept(path).findings if one.object)


@pytest.mark.parametrize("since", [(), ("--since", "last"), ("--since", "weekly.json")], ids=str)
@pytest.mark.parametrize("content", [STATE, "", "notes\n", "[]", '{"schema": "tfguard.findings/v1"}'])
def test_a_file_that_is_no_kept_scan_is_refused_before_anything_is_listed_and_stays(
    here: Path, capfd: pytest.CaptureFixture[str], content: str, since: tuple[str, ...]
) -> None:
    exported("q")
    assert scan("--state-file", "weekly.json") == ExitCode.FOUND
    (here / "export.jsonl").unlink()  # whoever gets as far as that says so
    capfd.readouterr()
    (here / "precious").write_text(content)
    assert scan("--state-file", "precious", *since) == ExitCode.ERROR
    told = capfd.readouterr()
    assert (told.out, "precious" in told.err, "export.jsonl" in told.err) == ("", True, False)
    assert (here / "precious").read_text() == content
    assert not (here / "precious.lock").exists()


@pytest.mark.parametrize(
    "kind", ["folder", "pipe", "in no folder", "below a file", "lock is a folder", "link to state"]
)
def test_a_file_that_cannot_be_kept_is_noticed_before_anything_is_listed(
    here: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    path = here / "kept.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "in no folder":
        path = here / "none" / "kept.json"
    elif kind == "below a file":
        path = here / "a.tfstate" / "kept.json"
    elif kind == "lock is a folder":
        (here / "kept.json.lock").mkdir()
    else:
        path.symlink_to(here / "a.tfstate")
    assert scan("--state-file", str(path)) == ExitCode.ERROR
    told = capfd.readouterr()
    named = "a.tfstate" if kind == "link to state" else "kept.json"
    assert (told.out, named in told.err, "export.jsonl" in told.err) == ("", True, False)
    assert (here / "a.tfstate").read_text() == STATE
    assert kind not in ("folder", "pipe", "link to state") or not list(here.glob("*.lock"))


def test_the_file_behind_a_link_is_the_one_that_is_kept(here: Path) -> None:
    exported("q")
    (here / "link.json").symlink_to(here / "kept.json")
    assert scan("--state-file", "link.json") == ExitCode.FOUND
    assert (here / "link.json").is_symlink()
    assert names(here / "kept.json") == ["arn:aws:sqs:eu-west-1:111111111111:q"]


def test_with_another_file_to_compare_with_the_kept_one_loses_nothing(here: Path) -> None:
    exported("weekly")
    scan("--state-file", "weekly.json")
    exported("a", "b")
    scan("--state-file", "last.json")
    exported("b")  # which proves no absence
    scan("--state-file", "last.json", "--since", "weekly.json")
    assert [name.rpartition(":")[2] for name in names(here / "last.json")] == ["a", "b"]


def test_a_narrower_scan_says_so_and_what_is_kept_is_incomplete(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "b.tfstate").write_text(STATE)
    exported("q")
    both = ("a.tfstate", "b.tfstate")
    scan("--state-file", "kept.json", patterns=both)

    def complete() -> bool:
        capfd.readouterr()
        assert exit_code_of(["metrics", "--state-file", "kept.json"]) == 0
        return "tfguard_complete 1\n" in capfd.readouterr().out

    assert complete()
    scan("--state-file", "kept.json")
    assert f"did not look at the states of {here / 'b.tfstate'}" in capfd.readouterr().err
    assert not complete()
    scan("--state-file", "kept.json", patterns=(f"{here}/a.tfstate", "./b.tfstate"))
    assert complete()


def test_scans_that_end_at_once_lose_nothing(tmp_path: Path) -> None:
    path, together = tmp_path / "kept.json", Barrier(8)

    def keep(number: int) -> None:
        together.wait(60)
        kept_files.keep(path, result(f"q{number}"), str)

    kept_files.keep(path, result("old"), str)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(8)))
    assert names(path) == ["old", *(f"q{number}" for number in range(8))]


def test_what_another_scan_has_kept_meanwhile_is_merged_and_damage_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    kept_files.check(path)
    kept_files.keep(path, result("quick"), str)
    changes = kept_files.keep(path, replace(result("slow"), ended_at=NOW + timedelta(minutes=1)), str)
    assert (names(path), len(changes.unseen)) == (["quick", "slow"], 1)
    path.write_text("")
    with pytest.raises(InputError, match="cannot be read as the findings"):
        kept_files.keep(path, result("slow"), str)
    assert path.read_text() == ""


def test_a_lock_that_is_never_let_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "LOCK_PATIENCE", 0.05)
    path = tmp_path / "kept.json"
    with (tmp_path / "kept.json.lock").open("wb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        for attempt in (lambda: kept_files.check(path), lambda: kept_files.keep(path, result("q"), str)):
            with pytest.raises(InputError, match=r"kept\.json\.lock was held by another process"):
                attempt()
    assert not path.exists()


def test_a_rule_that_a_narrowed_scan_could_not_test_is_not_called_unused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported("a")
    rules = [{"type": kind, "reason": "r"} for kind in ("aws_vpc", "aws_vpx")]
    (here / "tfguard.yaml").write_text(json.dumps({"scan": {"ignore": rules}}))
    scan()
    told = capsys.readouterr().out
    assert "scan.ignore[0]" not in told
    assert "  unused: scan.ignore[1] (aws_vpx: r): its type matches none of the catalogue" in told.splitlines()
