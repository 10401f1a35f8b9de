"""Counters of a scan, a stack's record or a blueprint's request: Prometheus text (format 0.0.4), or values. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tfguard.model.blueprint_request import RequestState
from tfguard.model.blueprint_view import BlueprintCounts
from tfguard.model.finding import Finding, Verdict
from tfguard.model.operation import StepStatus
from tfguard.model.since import KeptFinding, KeptScan


@dataclass(frozen=True, slots=True)
class Sample:
    """One value with its labels."""

    name: str
    value: float
    labels: Mapping[str, str]


_HELP: Mapping[str, str] = {
    "tfguard_findings": "Objects that need a decision or a look, by verdict, type and account.",
    "tfguard_objects": "Objects that the last scan saw, by verdict.",
    "tfguard_gaps": "Places where the last look was incomplete.",
    "tfguard_complete": "1 when the last look left nothing out.",
    "tfguard_oldest_finding_age_seconds": "Since the oldest finding was first told.",
    "tfguard_scan_duration_seconds": "How long the last scan took.",
    "tfguard_scan_end_timestamp_seconds": "When the last scan ended, as seconds since 1970.",
    "tfguard_states_read": "States that the last scan read.",
    "tfguard_types_listed": "Resource types that the last scan listed.",
    "tfguard_open_operations": "Operations of the stack that are not settled.",
    "tfguard_blueprint_state": "1 for the state that the blueprint's request is in.",
    "tfguard_blueprint_state_age_seconds": "Since the request came into its state.",
    "tfguard_blueprint_stuck": "1 when the request is under way, and no tfguard is at work on it.",
    "tfguard_blueprint_stuck_age_seconds": "Since the last sign of life of a request that is stuck.",
    "tfguard_blueprint_duplicate_ids": "Ids of two steps or addresses, and addresses or identities with several ids.",
    "tfguard_blueprint_partial_failure_overdue": "1 when a partial failure was not repaired within its window.",
    "tfguard_blueprint_retained_overdue": "Steps that are kept beyond their date.",
    "tfguard_blueprint_overdue_age_seconds": "Since the window of the partial failure, or the first date, passed.",
    "tfguard_blueprint_ready_probes_failing": "Probes of a Ready request whose last look failed.",
    "tfguard_blueprint_ready_not_now": "1 when a request is Ready, and its last look says otherwise.",
    "tfguard_blueprint_unreadable": "1 when the blueprint, or the record of its request, cannot be read.",
    "tfguard_blueprint_steps": "Steps of the request, by status.",
}
# The others were decided about (`retained`), or left out by a rule.
_WAITING = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED, Verdict.UNKNOWN, Verdict.MISSING)


def scan_samples(kept: KeptScan, now: datetime) -> list[Sample]:
    """What the last scan says, for a scheduler. `now` dates the age of the oldest finding."""
    waiting = [finding for finding in kept.findings if finding.verdict in _WAITING]
    seen = [finding.first_seen for finding in waiting if finding.first_seen]
    return [
        *_findings(waiting),
        *(Sample("tfguard_objects", count, {"verdict": verdict}) for verdict, count in sorted(kept.summary.items())),
        Sample("tfguard_gaps", len(kept.coverage.gaps), {}),
        Sample("tfguard_complete", int(kept.coverage.complete), {}),
        Sample("tfguard_oldest_finding_age_seconds", (now - min(seen)).total_seconds() if seen else 0, {}),
        Sample("tfguard_scan_duration_seconds", (kept.scan.ended_at - kept.scan.started_at).total_seconds(), {}),
        Sample("tfguard_scan_end_timestamp_seconds", kept.scan.ended_at.timestamp(), {}),
        Sample("tfguard_states_read", kept.coverage.states_read, {}),
        Sample("tfguard_types_listed", kept.coverage.types_listed, {}),
    ]


def stack_samples(
    findings: Sequence[Finding], gaps: int, open_operations: Sequence[datetime], now: datetime
) -> list[Sample]:
    """What a stack's record says: its findings without a decision, and its open operations by when they began."""
    waiting = [finding for finding in findings if finding.disposition is None]
    return [
        *_findings(waiting),
        Sample("tfguard_gaps", gaps, {}),
        Sample("tfguard_complete", int(gaps == 0), {}),
        Sample("tfguard_open_operations", len(open_operations), {}),
        Sample(
            "tfguard_oldest_finding_age_seconds",
            (now - min(open_operations)).total_seconds() if waiting and open_operations else 0,
            {},
        ),
    ]


def blueprint_samples(counts: Sequence[BlueprintCounts], unreadable: Iterable[str] = ()) -> list[Sample]:
    """What an alert asks of each blueprint; one without a request has no state, and zeros. Of the files that are
    `unreadable`, or whose record is, that alone is told."""
    readable = {**dict.fromkeys((one.file for one in counts), 0), **dict.fromkeys(unreadable, 1)}
    told = [Sample("tfguard_blueprint_unreadable", value, {"file": file}) for file, value in readable.items()]
    return [*(sample for one in counts for sample in _of_blueprint(one)), *told]


def _of_blueprint(one: BlueprintCounts) -> list[Sample]:
    which = {"blueprint": one.blueprint, "file": one.file}
    values: Mapping[str, float] = {
        "state_age_seconds": one.state_age,
        "stuck": one.stuck,
        "stuck_age_seconds": one.stuck_age,
        "duplicate_ids": one.duplicates,
        "partial_failure_overdue": one.partial_failure_overdue,
        "retained_overdue": one.retained_overdue,
        "overdue_age_seconds": one.overdue_age,
        "ready_probes_failing": one.ready_probes_failing,
        "ready_not_now": one.ready_not_now,
    }
    return [
        *(
            Sample("tfguard_blueprint_state", int(one.state is state), {**which, "state": state.value})
            for state in RequestState
        ),
        *(Sample(f"tfguard_blueprint_{name}", float(value), which) for name, value in values.items()),
        *(
            Sample("tfguard_blueprint_steps", one.steps.get(status, 0), {**which, "status": status.value})
            for status in StepStatus
        ),
    ]


def prometheus_text(samples: Iterable[Sample]) -> str:
    """The samples as Prometheus reads them from a file or a page."""
    lines: list[str] = []
    told: set[str] = set()
    for sample in sorted(samples, key=lambda one: one.name):
        if sample.name not in told:
            told.add(sample.name)
            lines += [f"# HELP {sample.name} {_HELP[sample.name]}", f"# TYPE {sample.name} gauge"]
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
        lines.append(f"{sample.name}{f'{{{labels}}}' if labels else ''} {sample.value:.15g}")
    return "\n".join(lines) + "\n"


def _findings(findings: Iterable[Finding | KeptFinding]) -> list[Sample]:
    counts = Counter(
        (finding.verdict.value, found.type if found else "", (found.account if found else "") or "")
        for finding in findings
        for found in [finding.object]
    )
    return [
        Sample("tfguard_findings", count, {"verdict": verdict, "type": kind, "account": account})
        for (verdict, kind, account), count in sorted(counts.items())
    ]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
