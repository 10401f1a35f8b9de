"""What GitHub Actions shows of a run: a step summary in Markdown, and annotations. Pure; nothing is written here.

Every text comes from the record, which holds no secret. Names are whatever somebody chose, so that nothing in them may
mean something in Markdown, HTML or a workflow command.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tfguard.model.cloud import location_of
from tfguard.model.evidence import Evidence
from tfguard.model.finding import Finding, Verdict, tainted_id
from tfguard.model.inventory import Coverage
from tfguard.model.operation import Operation, OperationStatus, Outcome, Step
from tfguard.report.findings import coverage_line
from tfguard.report.operation import SETTLE_DUPLICATE, object_line, what_the_next_apply_does, worst_first

_ROWS = 50
_EVIDENCE = 100
# GitHub shows so many annotations of one kind for a step, and drops the rest without a word.
_SHOWN = 10
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Annotation:
    """One line of the job's summary page: `about` is the id of the finding that it speaks of, where there is one."""

    level: str
    title: str
    message: str
    about: str


def operation_summary(operation: Operation, status: OperationStatus, next_actions: Sequence[str]) -> str:
    """An operation: its steps with what became of them, worst first, the evidence, and the next commands."""
    intent, result = operation.intent, operation.result
    how = "open" if operation.open else "settled"
    code = f", exit code {result.exit_code}" if result and result.exit_code is not None else ""
    lines = [
        f"### tfguard: {_text(intent.command)}, {status.value}, {how}",
        "",
        f"Operation {_text(operation.id)} of {_text(intent.actor.user)} on {_text(intent.actor.host)}, "
        f"state {_text(intent.stack.location)} (workspace {_text(intent.stack.workspace)}){code}.",
        "",
    ]
    if result and result.errored_state and not result.errored_state.pushed:
        lines += [f"**The state was not saved: it is in {_text(result.errored_state.path)}.**", ""]
    steps = worst_first(operation.steps)
    counts = Counter(step.outcome.value if step.outcome else "not looked up" for step in steps)
    lines += [", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "No steps.", ""]
    lines += _table(("step", "action", "engine", "outcome", "objects"), (_step_row(step) for step in steps))
    lines += _evidence(
        (step.address, item)
        for step in steps
        if step.open
        for item in (*step.evidence, *(found for seen in step.observed for found in seen.evidence))
    )
    gaps = result.gaps if result else ()
    lines += [f"- not complete: {_text(gap)}" for gap in gaps[:_ROWS]] + _left_out(len(gaps) - _ROWS)
    if any(step.open and step.outcome is Outcome.DUPLICATED for step in steps):
        lines += ["", _text(f"To settle a duplicate: {SETTLE_DUPLICATE}")]
    return "\n".join([*lines, *_commands(next_actions)]) + "\n\n"


def findings_summary(findings: Sequence[Finding], coverage: Coverage, command: str) -> str:
    """The findings of a stack with their evidence, how far the look reached, and how to adopt what can be adopted.

    `command` is how tfguard was called.
    """
    waiting = [finding for finding in findings if finding.needs_action]
    marked = [finding for finding in findings if finding.verdict is Verdict.TAINTED and finding.disposition is None]
    lines = [f"### tfguard: findings that need a decision: {len(waiting)}", ""]
    lines += [_text(coverage_line(coverage)), ""]
    lines += _table(("finding", "verdict", "confidence", "for", "object"), (_finding_row(f) for f in waiting))
    lines += _evidence((finding.id, item) for finding in waiting for item in finding.evidence)
    if any(finding.verdict is Verdict.DUPLICATED for finding in waiting):
        lines += ["", _text(f"To settle a duplicate: {SETTLE_DUPLICATE}")]
    if marked:
        lines += ["", f"In the state, and tainted: {len(marked)}. The next apply replaces what is not kept.", ""]
        lines += _table(("finding", "for", "object", "next apply"), (_tainted_row(finding) for finding in marked))
    # Which of several objects for one address is to be adopted, a person has to choose (rule 11).
    alone = [finding for finding in waiting if finding.verdict is not Verdict.DUPLICATED]
    adopt = [f"{command} import --orphan {finding.id}" for finding in alone if "import" in finding.actions]
    keep = [f"{command} orphans retain {finding.id} --reason TEXT" for finding in marked]
    return "\n".join([*lines, *_commands([*adopt, *keep])]) + "\n\n"


def operation_annotations(operation: Operation) -> Iterator[Annotation]:
    """One annotation for each stray object of an operation, for each step of which nothing is known, and for each
    object that is left tainted."""
    for step in worst_first(operation.steps):
        if step.outcome is None or not step.open:
            if step.tainted and operation.intent.command != "taint":
                stateful = next((seen.stateful for seen in step.observed if seen.in_state), None)
                then = what_the_next_apply_does(stateful)
                about = tainted_id(operation.lineage, step.address)
                yield Annotation("warning", f"tainted: {step.address}", f"{about}: {then}{_why(step.evidence)}", about)
            continue
        level = "warning" if step.outcome is Outcome.UNKNOWN else "error"
        title = f"{step.outcome.value}: {step.address}"
        strays = [seen for seen in step.observed if seen.finding_id and not seen.in_state]
        for seen in strays:
            message = f"{object_line(seen)}{_why(seen.evidence or step.evidence)}"
            yield Annotation(level, title, message, seen.finding_id or "")
        if not strays:
            yield Annotation(level, title, f"nothing is proved{_why(step.evidence)}", "")


def finding_annotations(findings: Iterable[Finding]) -> Iterator[Annotation]:
    """One annotation for each finding that waits for a decision."""
    for finding in findings:
        if finding.disposition is not None:
            continue
        level = "error" if finding.needs_action and finding.verdict is not Verdict.UNKNOWN else "warning"
        where = _where(finding) or (finding.object.type if finding.object else finding.id)
        then = f"; {_what_then(finding)}" if finding.verdict is Verdict.TAINTED else ""
        yield Annotation(
            level,
            f"{finding.verdict.value}: {where}",
            f"{finding.id}: {_object(finding)}, {finding.confidence.value}{then}{_why(finding.evidence)}",
            finding.id,
        )


def workflow_commands(annotations: Iterable[Annotation]) -> tuple[str, ...]:
    """The annotations as lines that GitHub reads: of each level no more than it shows, the last one counts the rest."""
    kept: list[str] = []
    by_level: dict[str, list[Annotation]] = {}
    for annotation in annotations:
        by_level.setdefault(annotation.level, []).append(annotation)
    for level, found in by_level.items():
        shown = found if len(found) <= _SHOWN else found[: _SHOWN - 1]
        kept += [_command(level, item.title, item.message) for item in shown]
        if shown is not found:
            rest = f"{len(found) - len(shown)} more are not shown here; see the summary, or `tfguard orphans list`"
            kept.append(_command(level, "and more", rest))
    return tuple(kept)


def _command(level: str, title: str, message: str) -> str:
    name = _data(f"tfguard: {title}").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{_data(message)}"


def _data(text: str) -> str:
    """Text inside a workflow command; a newline would end it, and begin another."""
    return _one_line(text)[:_LONGEST].replace("%", "%25")


def _why(evidence: Sequence[Evidence]) -> str:
    return "".join(f"; {item.kind.value}: {item.detail}" for item in evidence[:3])


def _step_row(step: Step) -> tuple[str, ...]:
    engine = f"{step.status.value}: {step.error}" if step.error else step.status.value
    outcome = step.outcome.value if step.outcome else "not looked up"
    decided = f", {step.disposition}" if step.disposition else ""
    objects = "; ".join(object_line(seen) for seen in step.observed)
    return step.address, step.action.value, engine, f"{outcome}{decided}", objects


def _where(finding: Finding) -> str:
    return finding.address or (f"one of {', '.join(finding.addresses)}" if finding.addresses else "")


def _finding_row(finding: Finding) -> tuple[str, ...]:
    where = _where(finding)
    return finding.id, finding.verdict.value, finding.confidence.value, where, _object(finding)


def _tainted_row(finding: Finding) -> tuple[str, ...]:
    return finding.id, finding.address or "", _object(finding), _what_then(finding)


def _what_then(finding: Finding) -> str:
    return what_the_next_apply_does(finding.object.stateful if finding.object else None)


def _object(finding: Finding) -> str:
    found = finding.object
    if found is None:
        return "no object is known"
    since = f", created {found.created_at:%Y-%m-%d %H:%M:%SZ}" if found.created_at else ""
    where = " ".join(part for part in (found.cloud, found.account or "", location_of(found)) if part)
    return f"{found.type} {found.import_id} ({where}{since})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    found = list(rows)
    if not found:
        return []
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(_text(cell) for cell in row)} |" for row in found[:_ROWS]]
    return [*lines, *_left_out(len(found) - _ROWS), ""]


def _evidence(items: Iterable[tuple[str, Evidence]]) -> list[str]:
    each = dict.fromkeys(items)
    lines = [f"- {_text(about)}: {_text(item.kind.value)}: {_text(item.detail)}" for about, item in each]
    return ["#### Evidence", "", *lines[:_EVIDENCE], *_left_out(len(lines) - _EVIDENCE)] if lines else []


def _left_out(number: int) -> list[str]:
    return ["", f"{number} more are not shown here."] if number > 0 else []


def _commands(commands: Sequence[str]) -> list[str]:
    """Commands to be copied: as they are, in a fence that none of them can close."""
    if not commands:
        return []
    lines = [_one_line(command) for command in commands]
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line) or [""]))
    return ["", "Next:", "", f"{fence}sh", *lines[:_ROWS], fence, *_left_out(len(lines) - _ROWS)]


def _text(value: str) -> str:
    """Text that shows exactly `value`: whatever could mean something in Markdown or HTML is written as an entity."""
    return re.sub(r"[^\w -]|_", lambda match: f"&#{ord(match[0])};", _one_line(value)[:_LONGEST])


def _one_line(value: str) -> str:
    """Without line breaks and without characters that steer a terminal or turn the reading direction."""
    kept = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in value)
    return " ".join(kept.split())
