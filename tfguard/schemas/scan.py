"""The document of a scan: `tfguard.findings/v1` with what only a scan has, written and read back (`--state-file`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfguard.errors import CorruptRecordError, InputError
from tfguard.model.finding import Finding
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptFinding, KeptScan
from tfguard.schemas.codec import ShapeError, dump, load
from tfguard.schemas.document import SUM, with_sum
from tfguard.schemas.findings import SCHEMA, finding_body, findings_document

_ADVICE = "name a file that `tfguard scan --state-file FILE` wrote, or to begin anew one that is not there yet"
_MOST = 1 << 53


def scan_document(
    result: ScanResult, findings: Sequence[Finding], changes: Changes | None = None
) -> Mapping[str, object]:
    """The document of a scan that shows `findings`; `changes` are those since an earlier one, where that was asked.

    It carries a sum, since `--findings` takes it as well: what is deleted may hang on it.
    """
    document = findings_document(findings, result.coverage, result.summary)
    seen = changes.first_seen if changes else {}
    bodies = [
        {**finding_body(finding), **({"first_seen": dump(seen[finding.id])} if finding.id in seen else {})}
        for finding in findings
    ]
    scan = {
        "started_at": dump(result.started_at),
        "ended_at": dump(result.ended_at),
        "rules": dict(result.rules),
        "unused_rules": list(result.unused_rules),
        "expired_rules": list(result.expired_rules),
        "notes": list(result.notes),
        "places": dump(result.places, keep_none=True),
    }
    since = {"since": _since(changes)} if changes else {}
    whole = {**document, "findings": bodies, "scan": scan, "scope": dump(result.scope, keep_none=True), **since}
    return with_sum(whole)


def _since(changes: Changes) -> Mapping[str, object]:
    return {
        "at": dump(changes.at),
        "new": list(changes.new),
        "still": list(changes.still),
        "gone": [dump(finding) for finding in changes.gone],
        "unseen": [dump(finding) for finding in changes.unseen],
        "dropped": [dump(finding) for finding in changes.dropped],
    }


def kept_document(result: ScanResult, changes: Changes) -> bytes:
    """What `--state-file` keeps: every finding with when it was first seen. What nobody has looked at is kept on, with
    when it was last seen."""
    of_both = replace(result, coverage=changes.coverage, scope=changes.scope)
    whole = dict(scan_document(of_both, result.findings, changes))
    whole.pop("since", None)
    kept = [dump(finding, keep_none=True) for finding in changes.unseen]
    findings = whole["findings"]
    whole["findings"] = [*(findings if isinstance(findings, list) else []), *kept]
    return json.dumps(with_sum(whole), indent=1).encode() + b"\n"


def read_kept(data: bytes, where: str) -> KeptScan:
    """The scan that a document tells of. Raises `InputError`: what cannot be read is never "nothing was found"."""
    try:
        raw = json.loads(data)
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise InputError(f"{where} holds no findings that this tfguard can read", _ADVICE)
        kept = load(KeptScan, raw)
        _check(kept)
        _check_sum(raw)
    except (ValueError, RecursionError, CorruptRecordError) as error:
        why = str(error) if isinstance(error, ShapeError) else "it is cut or not JSON"
        shown = "".join(char if char.isprintable() else " " for char in why)
        raise InputError(f"{where} cannot be read as the findings of a scan: {shown}", _ADVICE) from error
    return replace(kept, findings=tuple(_dated(finding, kept) for finding in kept.findings))


def _check(kept: KeptScan) -> None:
    """A count too large for a floating-point number is none, and `metrics` could not print it."""
    counts = {**kept.summary, "states_read": kept.coverage.states_read, "types_listed": kept.coverage.types_listed}
    for name, count in counts.items():
        if not 0 <= count < _MOST:
            raise ShapeError((name,), "is no count")


def _check_sum(raw: Mapping[str, object]) -> None:
    """What was changed after it was written may lack findings, or have made a stray object of one that is none."""
    if SUM not in raw:
        raise ShapeError((), "it has no sum, which every scan writes")
    if with_sum(raw)[SUM] != raw[SUM]:
        raise ShapeError((), "it was changed after it was written")


def load_kept(path: Path) -> KeptScan:
    """The scan that `scan --state-file` kept in a file. Raises `InputError`."""
    kept = find_kept(path)
    if kept is None:
        raise InputError(f"{path} cannot be read: there is no such file", _ADVICE)
    return kept


def find_kept(path: Path) -> KeptScan | None:
    """The same; None where nothing was kept yet. A file that cannot be read is not one that is not there."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", _ADVICE) from error
    return read_kept(data, str(path))


def _dated(finding: KeptFinding, kept: KeptScan) -> KeptFinding:
    ended_at = kept.scan.ended_at
    return replace(finding, first_seen=finding.first_seen or ended_at, last_seen=finding.last_seen or ended_at)
