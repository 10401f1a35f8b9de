"""A scan's findings for a person and for other programs, one function a format."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from tfguard.model.address import import_block
from tfguard.model.cloud import location_of
from tfguard.model.evidence import Confidence, Evidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import Coverage
from tfguard.model.operation import Stack
from tfguard.model.printable import all_printable, printable
from tfguard.model.scan import ScanResult
from tfguard.model.since import KEPT_DAYS, Changes, KeptFinding
from tfguard.report.findings import called, findings_markdown, import_blocks, in_brackets, markdown
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
    Verdict.SOFT_DELETED: "deleted, and gone after a time; an import restores them first",
    Verdict.FOREIGN: "another account owns them",
    Verdict.IGNORED: "left out by a rule",
    Verdict.MANAGED: "a state knows them",
}
_LEFT_OUT = (Verdict.SOFT_DELETED, Verdict.FOREIGN, Verdict.IGNORED, Verdict.MANAGED)
_CONFIDENCE = tuple(Confidence)
_MOST_LEFT_OUT = 20
_MOST_GAP_LINES = 20
_MOST_PLACES = 3
_MOST_NAMES = 6
_ELSEWHERE = "see --format json"
_COMMANDS = {"import": "import --orphan ID", "retain": "orphans retain ID", "destroy": "orphans destroy ID"}
_FROM_FILE = "with --findings FILE (what `scan --state-file FILE` kept)"
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
        usual = _usual_evidence(findings)
        lines += [printable(f"  evidence, of those without their own: {_told(item)}") for item in usual]
        most = _MOST_LEFT_OUT if verdict in _LEFT_OUT else len(findings)
        for finding in findings[:most]:
            lines += _finding_lines(finding, paint, usual, is_new=finding.id in new)
        if len(findings) > most:
            lines.append(f"  and {len(findings) - most} more: {_ELSEWHERE}")
        lines += [printable(f"  {line}") for line in _next_lines(findings, result.stacks)]
        lines.append("")
    if not shown:
        lines.append("no findings")
    lines += map(printable, (*_since_lines(changes), *_rest(result), f"looked at: {_looked_at(result)}"))
    lines += gap_lines(result.coverage)
    return "\n".join([*lines, scan_coverage(result)]) + "\n"


def scan_coverage(result: ScanResult) -> str:
    """How far a scan reached, in one line."""
    coverage = result.coverage
    reach = f"{_count(coverage.states_read, 'state')}, {_count(coverage.types_listed, 'type')}"
    how = "complete" if coverage.complete else f"incomplete, {_count(len(coverage.gaps), 'gap')}"
    return f"coverage: {how} ({reach})"


def gap_lines(coverage: Coverage) -> list[str]:
    """The gaps, a line for each reason with how many have it; of their places and types it names the first few."""
    reasons: dict[str, dict[str, list[str]]] = {}
    counts = Counter(gap.reason for gap in coverage.gaps)
    for gap in sorted(coverage.gaps, key=lambda gap: gap.scope):
        place, _, last = gap.scope.rpartition(" ")
        is_type = bool(place) and _TYPE.fullmatch(last) is not None
        types = reasons.setdefault(gap.reason, {}).setdefault(place if is_type else gap.scope, [])
        types += [last] if is_type else []
    lines = []
    for reason, places in list(reasons.items())[:_MOST_GAP_LINES]:
        where = _few([_with_types(*one) for one in places.items()], _MOST_PLACES, "; ", "place")
        head = "gap" if counts[reason] == 1 else f"{counts[reason]} gaps"
        lines.append(printable(f"{head}: {where}: {reason}"))
    if left := sum(counts[reason] for reason in list(reasons)[_MOST_GAP_LINES:]):
        lines.append(f"and {left} more gaps: {_ELSEWHERE}")
    return lines


def _with_types(place: str, types: Sequence[str]) -> str:
    return f"{place}: {_few(types, _MOST_NAMES, ', ')}" if types else place


def _few(texts: Sequence[str], most: int, separator: str, word: str = "") -> str:
    """The first few of them, and how many more there are of what `word` calls them."""
    left = len(texts) - most
    if left <= 0:
        return separator.join(texts)
    more = f"{separator}and {_count(left, f'more {word}')}" if word else f" and {left} more"
    return separator.join(texts[:most]) + more


def _looked_at(result: ScanResult) -> str:
    """The accounts by the regions that were looked at in them."""
    accounts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for place in result.places:
        accounts.setdefault((place.cloud, place.regions), []).append(place.account or "unknown-account")
    parts = [
        f"{cloud} {_few(names, _MOST_LEFT_OUT, ', ')} in {', '.join(regions)}"
        for (cloud, regions), names in accounts.items()
    ]
    return "; ".join(parts) or "nothing"


def scan_markdown(result: ScanResult, shown: Sequence[Finding]) -> str:
    """For a pull request or an issue."""
    said = [*gap_lines(result.coverage), scan_coverage(result)]
    lines = [markdown(line) for line in said]
    return "\n\n".join([findings_markdown(shown).rstrip("\n"), *lines]) + "\n"


def scan_import_blocks(result: ScanResult, shown: Sequence[Finding]) -> str:
    """Import blocks for what has an address, and for what nothing claims: those with an address made of their names.

    The latter need a configuration: `plan -generate-config-out=FILE` writes one.
    """
    taken = {finding.address for finding in shown if finding.address}
    blocks = [import_blocks(shown)]
    for finding in shown:
        if finding.verdict is Verdict.UNMANAGED and finding.object and "import" in finding.actions:
            address = _free_address(finding.object.type, finding.object.name or finding.object.import_id, taken)
            block = import_block(address, finding.object.import_id)
            blocks.append(f"# {printable(finding.id)}: the address is a proposal\n{block}")
    said = [f"# {line}" for line in (*gap_lines(result.coverage), scan_coverage(result))]
    return "\n".join([*(block for block in blocks if block), *said]) + "\n"


def _usual_evidence(findings: Sequence[Finding]) -> tuple[Evidence, ...]:
    """The evidence that most of the findings have, if several have exactly the same; it is said once."""
    [(usual, count)] = Counter(finding.evidence for finding in findings).most_common(1)
    return usual if count > 1 else ()


def _told(item: Evidence) -> str:
    return f"{item.kind.value}: {item.detail}"


def _next_lines(findings: Sequence[Finding], stacks: Mapping[str, Stack]) -> list[str]:
    """What can be done about a group of findings, once for each stack whose operations left them, and for the rest."""
    lines: list[str] = []
    groups: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for finding in findings:
        if not finding.actions:
            continue
        stack = stacks.get(finding.operation_id or "")
        operations = groups.setdefault((_program(stack) if stack else "", finding.actions), {})
        operations.update({finding.operation_id: None} if finding.operation_id else {})
    for (program, actions), operations in sorted(groups.items(), key=lambda group: not group[0][0]):
        each = " | ".join(_COMMANDS[action] for action in actions)
        if program:
            of = _few(list(operations), _MOST_PLACES, ", ")
            lines.append(f"next, for those of {of}: {program} recover, then {program} {each}")
        else:
            lines.append(f"next: tfguard {each}, {_FROM_FILE}")
    return lines


def _program(stack: Stack) -> str:
    """How tfguard is called for a stack from anywhere."""
    workspace = f"TF_WORKSPACE={shlex.quote(stack.workspace)} " if stack.workspace not in ("", "default") else ""
    return f"{workspace}tfguard -chdir={shlex.quote(stack.directory)}"


def _finding_lines(finding: Finding, paint: Paint, usual: tuple[Evidence, ...], *, is_new: bool) -> list[str]:
    own = finding.evidence != usual
    finding = all_printable(finding)
    found = finding.object
    mark = paint(" new", "yellow") if is_new else ""
    if found is None:
        lines = [f"  {paint(finding.id, 'bold')}  {finding.address}{mark}"]
    else:
        where = " ".join(part for part in (found.account, location_of(found)) if part)
        made = f", created {found.created_at:%Y-%m-%dT%H:%M:%SZ}" if found.created_at else ""
        data = ", holds data" if found.stateful else ""
        lines = [
            f"  {paint(finding.id, 'bold')}  {found.type} {found.import_id}{in_brackets(called(found))}{mark}",
            f"    {finding.confidence.value}; {where}{made}{data}",
        ]
        if addresses := finding.addresses or ((finding.address,) if finding.address else ()):
            known = finding.verdict is Verdict.MANAGED
            lines.append(f"    {'at' if known else 'for'} {' or '.join(addresses)}")
    if own:
        lines += [f"    evidence: {text}" for text in map(_told, finding.evidence)] or ["    evidence: none"]
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
    lines += [f"  not looked at for {KEPT_DAYS} days, and not kept: {_kept_line(one)}" for one in changes.dropped]
    return [*lines, ""]


def _kept_line(finding: KeptFinding) -> str:
    found = finding.object
    what = f"{found.type} {found.import_id}" if found else finding.address or ""
    return f"{finding.id}  {finding.verdict.value}  {what}"


def _rest(result: ScanResult) -> list[str]:
    """What the findings do not show: all counts, the rules that left something out, those that never did."""
    known = [(verdict.value, result.summary.get(verdict.value, 0)) for verdict in _ORDER]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in known if count)
    lines = [f"objects: {counts}" if counts else "objects: none"]
    lines += [f"  {count} left out: {rule}" for rule, count in sorted(result.rules.items(), key=_most_first)]
    lines += [f"  unused: {rule}" for rule in result.unused_rules]
    lines += [f"  expired, and not used any more: {rule}" for rule in result.expired_rules]
    return [*lines, *(f"note: {note}" for note in result.notes)]


def _most_first(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


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
