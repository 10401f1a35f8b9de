"""The document of a scan: `tfguard.findings/v1` with what only a scan has, written and read back (`--state-file`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfguard.errors import InputError
from tfguard.model.finding import Finding
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptFinding, KeptScan
from tfguard.schemas.codec import ShapeError, dump, load
from tfguard.schemas.findings import SCHEMA, finding_body, findings_document

_ADVICE = "name a file that `tfguard scan --state-file FILE` wrote, or remove it to begin anew"


def scan_document(
    result: ScanResult, findings: Sequence[Finding], changes: Changes | None = None
) -> Mapping[str, object]:
    """The document of a scan that shows `findings`; `changes` are those since an earlier one, where that was asked."""
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
    }
    since = {"since": _since(changes)} if changes else {}
    return {**document, "findings": bodies, "scan": scan, **since}


def _since(changes: Changes) -> Mapping[str, object]:
    return {
        "at": dump(changes.at),
        "new": list(changes.new),
        "still": list(changes.still),
        "gone": [dump(finding) for finding in changes.gone],
        "unseen": [dump(finding) for finding in changes.unseen],
    }


def kept_document(result: ScanResult, changes: Changes) -> bytes:
    """What `--state-file` keeps: every finding with when it was first seen. What nobody has looked at is kept on."""
    whole = dict(scan_document(result, result.findings, changes))
    whole.pop("since", None)
    kept = [dump(finding, keep_none=True) for finding in changes.unseen]
    findings = whole["findings"]
    whole["findings"] = [*(findings if isinstance(findings, list) else []), *kept]
    return json.dumps(whole, indent=1).encode() + b"\n"


def read_kept(data: bytes, where: str) -> KeptScan:
    """The scan that a document tells of. Raises `InputError`: what cannot be read is never "nothing was found"."""
    try:
        raw = json.loads(data)
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise InputError(f"{where} holds no findings that this tfguard can read", _ADVICE)
        kept = load(KeptScan, raw)
    except (ValueError, RecursionError, ShapeError) as error:
        why = str(error) if isinstance(error, ShapeError) else "it is cut or not JSON"
        raise InputError(f"{where} cannot be read as the findings of a scan: {why}", _ADVICE) from error
    return replace(kept, findings=tuple(_dated(finding, kept) for finding in kept.findings))


def load_kept(path: Path) -> KeptScan:
    """The scan that `scan --state-file` kept in a file. Raises `InputError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", _ADVICE) from error
    return read_kept(data, str(path))


def _dated(finding: KeptFinding, kept: KeptScan) -> KeptFinding:
    return finding if finding.first_seen else replace(finding, first_seen=kept.scan.ended_at)
