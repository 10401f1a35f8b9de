"""What is kept on purpose, for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.durations import in_words
from tfguard.model.printable import all_printable
from tfguard.report.paint import Paint


def retained_text(entries: Sequence[Disposition], now: datetime, paint: Paint) -> str:
    """Each kept object with its date, its owners and the reason; what is overdue is loud."""
    lines: list[str] = []
    for entry in map(all_printable, entries):
        found = entry.object
        what = f"{found.type} {entry.import_id}" if found else entry.import_id or entry.address or "an object"
        where = f" ({found.account or 'unknown account'} {found.region})" if found else ""
        lines.append(f"{paint(entry.finding_id, 'bold')}  {what}{where}")
        lines.append(f"  {_until(entry, now, paint)}")
        lines.append(f"  owner {entry.owner or 'not known'}, cost owner {entry.cost_owner or 'not known'}")
        lines.append(f"  {entry.reason} ({entry.actor}, {entry.at:%Y-%m-%d %H:%M}Z)")
    return "\n".join(lines or ["nothing is retained"]) + "\n"


def retained_count(ledger: Sequence[Disposition], now: datetime) -> str:
    """A line that says how many objects are kept, and so are no findings; nothing where there are none."""
    kept = [entry for entry in latest(ledger).values() if entry.kind is DispositionKind.RETAIN and entry.holds(now)]
    return f"{len(kept)} retained (`tfguard orphans list --retained`)\n" if kept else ""


def _until(entry: Disposition, now: datetime, paint: Paint) -> str:
    if entry.until is None:
        return "kept without a date: it belongs elsewhere"
    date = f"{entry.until:%Y-%m-%d %H:%M}Z"
    if entry.overdue(now):
        return paint(f"overdue: was kept until {date}", "red", "bold")
    return f"kept until {date}, for another {in_words(entry.until - now)}"
