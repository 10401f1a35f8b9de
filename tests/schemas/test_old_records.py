"""What every earlier tfguard wrote is still read in full, and reading changes nothing of it."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from tfguard.flows.history import findings
from tfguard.flows.records import Records
from tfguard.model.disposition import DispositionKind
from tfguard.model.lease import Liveness
from tfguard.model.operation import Approved, OperationStatus, Outcome
from tfguard.ports import Host
from tfguard.schemas.operation import operation_document
from tfguard.stores.local import LocalStore

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir() if path.is_dir())
RECORD = "terraform.tfstate.tfguard"
ORPHAN = "o-1770bbf2"


class Now:
    """Long after the records were written."""

    interrupted = False

    def now(self) -> datetime:
        return datetime(2025, 6, 1, tzinfo=UTC)

    def sleep(self, seconds: float) -> bool:
        pytest.fail(f"nothing is waited for, least of all {seconds} s")


class NothingRuns:
    """A host that is asked for nothing but whether a run lives: whoever reads starts nothing."""

    def liveness(self, *_: object) -> Liveness:
        return Liveness.GONE

    def __getattr__(self, name: str) -> NoReturn:
        pytest.fail(f"the host was asked for {name}")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def opened(version: str, kind: str, folder: Path) -> Records:
    """The record of this kind that this version wrote, on a copy."""
    shutil.copytree(DATA / version / kind / RECORD, folder / RECORD)
    host: Host = NothingRuns()  # type: ignore[assignment]
    return Records(LocalStore(folder / RECORD), Now(), host)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_are_records_of_every_earlier_version() -> None:
    assert VERSIONS == ["v1-before-repairs", "v1-first", "v1-with-repairs"]


@pytest.mark.parametrize("kind", ["settled", "interrupted", "orphaned"])
def test_everything_is_read_and_nothing_is_changed(version: str, kind: str, tmp_path: Path) -> None:
    records = opened(version, kind, tmp_path)
    before = contents(tmp_path)
    head, ids = records.head(), records.operation_ids()
    assert head.current == ids[-1]
    for operation_id in ids:
        operation = records.operation(operation_id)
        assert operation.id == operation_id
        assert operation.journal_cut == 0
        document = json.loads(json.dumps(operation_document(operation, records.location, [])))
        assert document["open"] == (operation_id in head.open_operations)
        assert document["approved_at"] == (document["approval"] and document["started_at"])
    findings(records)
    assert contents(tmp_path) == before


def test_how_each_operation_was_approved_is_known_with_who_and_when(version: str, tmp_path: Path) -> None:
    records = opened(version, "settled", tmp_path)
    intents = [records.operation(operation_id).intent for operation_id in records.operation_ids()]
    # Repairs are approved by nobody.
    other = None if version == "v1-with-repairs" else "plan-file"
    assert {intent.approval and intent.approval.how for intent in intents} == {"auto-approve", other}
    for intent in intents:
        how = intent.approval.how if intent.approval else None
        assert intent.approval == (Approved(how, "deploy", intent.started_at) if how else None)


def test_a_settled_record_tells_each_outcome(version: str, tmp_path: Path) -> None:
    records = opened(version, "settled", tmp_path)
    assert records.head().open_operations == ()
    operations = [records.operation(operation_id) for operation_id in records.operation_ids()]
    assert [op.result and op.result.status for op in operations[:2]] == [OperationStatus.OK, OperationStatus.ERROR]
    first = {step.address: step.outcome for step in operations[0].steps}
    assert first == dict.fromkeys(("terraform_data.a", "terraform_data.b[0]", "terraform_data.b[1]"), Outcome.RECORDED)
    assert findings(records)[0] == ()


def test_an_interrupted_operation_is_open_and_its_lease_is_known(version: str, tmp_path: Path) -> None:
    records = opened(version, "interrupted", tmp_path)
    head = records.head()
    assert head.lease is not None
    assert head.open_operations == (head.lease.operation_id,)
    operation = records.operation(head.lease.operation_id)
    assert operation.result is None
    assert {"apply_start", "apply_complete"} <= {entry.kind for entry in operation.journal}


def test_findings_and_decisions_are_kept(version: str, tmp_path: Path) -> None:
    records = opened(version, "orphaned", tmp_path)
    found, coverage = findings(records)
    undecided = [finding for finding in found if finding.disposition is None]
    assert [(one.id, one.address, one.object and one.object.import_id) for one in undecided] == [
        (ORPHAN, "aws_iam_role.last", "last")
    ]
    assert coverage.complete
    kinds = [entry.kind for entry in records.dispositions()]
    kept = {"v1-first": 0, "v1-before-repairs": 1, "v1-with-repairs": 2}[version]
    assert kinds == [DispositionKind.IMPORT, *[DispositionKind.RETAIN] * kept]
    # What v1-first had was adopted, and is no finding; what was kept is one, with its decision.
    assert len(found) == 1 + kept
