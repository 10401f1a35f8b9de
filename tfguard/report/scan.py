"""A scan's findings for a person and for other programs, one function a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby

from tfguard.model.address import import_block
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import Coverage
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptFinding
from tfguard.report.findings import findings_csv, findings_markdown, import_blocks
from tfguard.report.operation import SETTLE_DUPLICATE
from tfguard.report.paint import Paint

_ORDER = (
    Verdict.ORPHANED,
    Verdict.DUPLICATED,
    Verdict.UNMANAGED,
    Verdict.UNKNOWN,
    Verdict.RETAINED,
    Verdict.MISSING,
    Verdict.SOFT_DELETED,
    Verdict.FOREIGN,
    Verdict.IGNORED,
    Verdict.MANAGED,
)
_LOUD = {Verdict.ORPHANED: ("red", "bold"), Verdict.DUPLICATED: ("red", "bold"), Verdict.UNMANAGED: ("yellow", "bold")}
_MEANING = {
    Verdict.ORPHANED: "an operation made them, and no state knows them",
    Verdict.DUPLICATED: "more than one object for one address",
    Verdict.UNMANAGED: "no state that was read knows them, and no operation explains them",
    Verdict.UNKNOWN: "cannot be told; never delete these",
    Verdict.RETAINED: "kept on purpose",
    Verdict.MISSING: "in a state, and not at the provider",
    Verdict.SOFT_DELETED: "wait for their end",
    Verdict.FOREIGN: "another account owns them",
    Verdict.IGNORED: "left out by a rule",
    Verdict.MANAGED: "a state knows them",
}
_CONFIDENCE = tuple(Confidence)
_TYPE = re.compile(r"[a-z0-9]+_[a-z0-9_]+")


def in_order(findings: Sequence[Finding], costly: Collection[str]) -> list[Finding]:
    """By verdict, then by confidence, then by what costs most: what holds data, what is paid by the hour (`costly`
    names the types), all else."""

    def rank(finding: Finding) -> tuple[int, int, int, str, str, str]:
        found = finding.object
        kind = found.type if found else ""
        cost = 0 if found and found.stateful else 1 if kind in costly else 2
        where = f"{found.account} {found.region} {found.import_id}" if found else finding.address or ""
        return (_ORDER.index(finding.verdict), _CONFIDENCE.index(finding.confidence), cost, kind, where, finding.id)

    return sorted(findings, key=rank)


def scan_text(result: ScanResult, shown: Sequence[Finding], changes: Changes | None, paint: Paint) -> str:
    """For a person: the findings in groups, what was left out and why, and how far the scan reached as the last line.

    `shown` are in order. `changes` are those since an earlier scan, where that was asked.
    """
    new = frozenset(changes.new) if changes and changes.at else frozenset()
    lines: list[str] = []
    for verdict, group in groupby(shown, lambda finding: finding.verdict):
        findings = list(group)
        title = paint(f"{verdict.value} ({len(findings)})", *_LOUD.get(verdict, ("bold",)))
        lines.append(f"{title}: {_MEANING[verdict]}")
        for finding in findings:
            lines += _finding_lines(finding, paint, is_new=finding.id in new)
        lines.append("")
    if not shown:
        lines.append("no findings")
    lines += _since_lines(changes)
    lines += _rest(result)
    lines += gap_lines(result.coverage)
    return "\n".join([*lines, scan_coverage(result)]) + "\n"


def scan_coverage(result: ScanResult) -> str:
    """How far a scan reached, in one line."""
    coverage = result.coverage
    reach = f"{_count(coverage.states_read, 'state')}, {_count(coverage.types_listed, 'type')}"
    how = "complete" if coverage.complete else f"incomplete, {_count(len(coverage.gaps), 'gap')}"
    return f"coverage: {how} ({reach})"


def gap_lines(coverage: Coverage) -> list[str]:
    """Every gap, those with one reason at one place in one line."""
    places: dict[tuple[str, str], list[str]] = {}
    for gap in coverage.gaps:
        place, _, last = gap.scope.rpartition(" ")
        is_type = bool(place) and _TYPE.fullmatch(last) is not None
        places.setdefault((place if is_type else gap.scope, gap.reason), []).extend([last] if is_type else [])
    return [
        f"gap: {place}{f': {names}' if (names := ', '.join(types)) else ''}: {reason}"
        for (place, reason), types in places.items()
    ]


def scan_csv(result: ScanResult, shown: Sequence[Finding], changes: Changes | None, paint: Paint) -> str:  # noqa: ARG001
    """For a spreadsheet; the coverage is said on stderr."""
    return findings_csv(shown)


def scan_markdown(result: ScanResult, shown: Sequence[Finding], changes: Changes | None, paint: Paint) -> str:  # noqa: ARG001
    """For a pull request or an issue."""
    said = [*gap_lines(result.coverage), scan_coverage(result)]
    lines = [re.sub(r"[&<>|\\`*\r\n]", lambda match: f"&#{ord(match[0])};", line) for line in said]
    return "\n\n".join([findings_markdown(shown).rstrip("\n"), *lines]) + "\n"


def scan_import_blocks(result: ScanResult, shown: Sequence[Finding], changes: Changes | None, paint: Paint) -> str:  # noqa: ARG001
    """Import blocks for what has an address, and for what nothing claims: those with an address made of their names.

    The latter need a configuration: `plan -generate-config-out=FILE` writes one.
    """
    taken = {finding.address for finding in shown if finding.address}
    blocks = [import_blocks(shown)]
    for finding in shown:
        if finding.verdict is Verdict.UNMANAGED and finding.object and "import" in finding.actions:
            address = _free_address(finding.object.type, finding.object.name or finding.object.import_id, taken)
            block = import_block(address, finding.object.import_id)
            blocks.append(f"# {finding.id}: the address is a proposal\n{block}")
    said = [f"# {line}" for line in (*gap_lines(result.coverage), scan_coverage(result))]
    return "\n".join([*(block for block in blocks if block), *said]) + "\n"


PLAIN_SCAN_FORMATS: Mapping[str, Callable[[ScanResult, Sequence[Finding], Changes | None, Paint], str]] = {
    "text": scan_text,
    "csv": scan_csv,
    "markdown": scan_markdown,
    "import-blocks": scan_import_blocks,
}


def _finding_lines(finding: Finding, paint: Paint, *, is_new: bool) -> list[str]:
    found = finding.object
    mark = paint(" new", "yellow") if is_new else ""
    if found is None:
        lines = [f"  {paint(finding.id, 'bold')}  {finding.address}{mark}"]
    else:
        where = " ".join(part for part in (found.account, found.region) if part)
        made = f", created {found.created_at:%Y-%m-%dT%H:%M:%SZ}" if found.created_at else ""
        data = ", holds data" if found.stateful else ""
        lines = [
            f"  {paint(finding.id, 'bold')}  {found.type} {found.import_id}{mark}",
            f"    {finding.confidence.value}; {where}{made}{data}",
        ]
        if addresses := finding.addresses or ((finding.address,) if finding.address else ()):
            known = finding.verdict is Verdict.MANAGED
            lines.append(f"    {'at' if known else 'for'} {' or '.join(addresses)}")
    lines += [f"    evidence: {item.kind.value}: {item.detail}" for item in finding.evidence]
    if finding.verdict is Verdict.DUPLICATED and not finding.disposition:
        lines.append(f"    to settle: {SETTLE_DUPLICATE}")
    return lines


def _since_lines(changes: Changes | None) -> list[str]:
    if changes is None:
        return []
    if changes.at is None:
        return ["since: there was no earlier scan, so that all findings are new", ""]
    counts = f"{len(changes.new)} new, {len(changes.gone)} gone, {len(changes.still)} still there"
    lines = [f"since {changes.at:%Y-%m-%dT%H:%M:%SZ}: {counts}"]
    lines += [f"  gone: {_kept_line(finding)}" for finding in changes.gone]
    lines += [f"  not looked at again: {_kept_line(finding)}" for finding in changes.unseen]
    return [*lines, ""]


def _kept_line(finding: KeptFinding) -> str:
    found = finding.object
    what = f"{found.type} {found.import_id}" if found else finding.address or ""
    return f"{finding.id}  {finding.verdict.value}  {what}"


def _rest(result: ScanResult) -> list[str]:
    """What the findings do not show: all counts, the rules that left something out, those that never did."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in result.summary.items() if count)
    lines = [f"objects: {counts}" if counts else "objects: none"]
    lines += [f"  {count} left out: {rule}" for rule, count in sorted(result.rules.items(), key=lambda pair: -pair[1])]
    lines += [f"  unused: {rule}" for rule in result.unused_rules]
    lines += [f"  expired, and not used any more: {rule}" for rule in result.expired_rules]
    return [*lines, *(f"note: {note}" for note in result.notes)]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _free_address(kind: str, name: str, taken: set[str]) -> str:
    """An address that nothing else in the output has, and adds it to `taken`."""
    label = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-") or "this"
    label = label if label[0].isalpha() else f"_{label}"
    address, number = f"{kind}.{label}", 2
    while address in taken:
        address, number = f"{kind}.{label}_{number}", number + 1
    taken.add(address)
    return address
