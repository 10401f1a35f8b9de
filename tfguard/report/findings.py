"""Findings, one function a format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tfguard.model.address import import_block
from tfguard.model.cloud import location_of
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.printable import all_printable, printable
from tfguard.model.secrets import is_withheld
from tfguard.report.operation import SETTLE_DUPLICATE, what_the_next_apply_does
from tfguard.report.paint import Paint

_COLUMNS = (
    "id",
    "verdict",
    "confidence",
    "address",
    "type",
    "account",
    "region",
    "import_id",
    "created_at",
    "disposition",
    "name",
)
_FORMULA = ("=", "+", "-", "@")


def findings_text(findings: Sequence[Finding], coverage: Coverage, paint: Paint) -> str:
    """For a person: each finding with its evidence, and how far the look reached as the last line."""
    lines = [line for finding in findings for line in finding_lines(finding, paint)] or ["no findings"]
    return "\n".join([*lines, coverage_line(coverage)]) + "\n"


def finding_lines(finding: Finding, paint: Paint) -> Iterator[str]:
    """A finding: what it is, where it belongs, the evidence, and what can be done or was decided about it."""
    finding = all_printable(finding)
    row = _row(finding)
    loud = ("red", "bold") if finding.needs_action else ("dim",) if finding.disposition else ("yellow", "bold")
    yield f"{paint(finding.id, 'bold')}  {paint(finding.verdict.value, *loud)}, {finding.confidence.value}"
    if finding.object is not None:
        where = " ".join(part for part in (row["account"], location_of(finding.object)) if part)
        since = f", created {row['created_at']}" if row["created_at"] else ""
        yield f"  {row['type']} {row['import_id']}{in_brackets(row['name'])} ({where}{since})"
    if finding.address or finding.addresses:
        yield f"  for {finding.address or 'one of ' + ', '.join(finding.addresses)}"
    for item in finding.evidence:
        yield f"  evidence: {item.kind.value}: {item.detail}"
    if finding.disposition:
        decision = finding.disposition
        yield f"  settled: {decision.kind.value} by {decision.actor}: {decision.reason}"
    elif finding.verdict is Verdict.DUPLICATED:
        yield f"  to settle: {SETTLE_DUPLICATE}"
    elif finding.verdict is Verdict.TAINTED:
        yield f"  {paint(what_the_next_apply_does(finding.object.stateful if finding.object else None), 'bold')}"
        yield f"  to keep it: `tfguard orphans retain {finding.id} --reason TEXT`; to replace it: apply"


def called(found: CloudObject) -> str:
    """What people call an object, where that is not what it is imported by: its name, or its tag `Name`."""
    names = (found.name, found.tags.get("Name"))
    return next((name for name in names if name and name not in (found.id, found.import_id)), "")


def in_brackets(name: str) -> str:
    """A name as it stands behind an id."""
    return f" ({name})" if name else ""


def coverage_line(coverage: Coverage) -> str:
    """How far the look reached; a gap is never left out."""
    if coverage.complete:
        return "coverage: complete"
    return printable("coverage: incomplete: " + "; ".join(f"{gap.scope}: {gap.reason}" for gap in coverage.gaps))


def findings_csv(findings: Sequence[Finding]) -> str:
    """For a spreadsheet, which takes no cell for a formula: an apostrophe stands before what would begin one."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for finding in findings:
        row = _row(all_printable(finding))
        writer.writerow({name: f"'{cell}" if cell.startswith(_FORMULA) else cell for name, cell in row.items()})
    return out.getvalue()


def findings_markdown(findings: Sequence[Finding]) -> str:
    """For a pull request or an issue."""
    head = [" | ".join(_COLUMNS), " | ".join("---" for _ in _COLUMNS)]
    body = [" | ".join(markdown(value) for value in _row(all_printable(finding)).values()) for finding in findings]
    return "".join(f"| {line} |\n" for line in [*head, *body])


def markdown(value: str) -> str:
    """`value` on one line, as a reader sees it: what would end it, or mean something in it, is written as an entity."""
    return re.sub(r"[&<>|\\`*]", lambda match: f"&#{ord(match[0])};", value)


def import_blocks(findings: Sequence[Finding]) -> str:
    """Import blocks for the findings that may be imported and that nothing else claims the address of.

    A second object for one address is never among them: a person has to choose (rule 11). Nor is one whose address
    is masked, or one that is deleted: it has to be restored first.
    """
    addresses = Counter(finding.address for finding in findings if not finding.disposition)
    return "\n".join(
        import_block(finding.address, finding.object.import_id)
        for finding in findings
        if finding.address and finding.object and "import" in finding.actions and addresses[finding.address] == 1
        if not is_withheld(finding.address) and not finding.object.soft_deleted
        if finding.verdict is not Verdict.DUPLICATED
    )


def json_lines(bodies: Sequence[Mapping[str, object]]) -> str:
    """One JSON document a line."""
    return "".join(json.dumps(body) + "\n" for body in bodies)


PLAIN_FORMATS: Mapping[str, Callable[[Sequence[Finding]], str]] = {
    "csv": findings_csv,
    "markdown": findings_markdown,
    "import-blocks": import_blocks,
}


def _row(finding: Finding) -> Mapping[str, str]:
    found = finding.object
    values = (
        finding.id,
        finding.verdict.value,
        finding.confidence.value,
        finding.address or "",
        found.type if found else "",
        (found.account if found else "") or "",
        found.region if found else "",
        found.import_id if found else "",
        f"{found.created_at:%Y-%m-%dT%H:%M:%SZ}" if found and found.created_at else "",
        finding.disposition.kind.value if finding.disposition else "",
        called(found) if found else "",
    )
    return dict(zip(_COLUMNS, values, strict=True))
