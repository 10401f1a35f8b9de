"""What a scan found that an earlier one had not, and the other way round. Pure."""

from __future__ import annotations

from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptFinding, KeptScan


def changes_since(last: KeptScan | None, result: ScanResult) -> Changes:
    """How the findings of `result` differ from those of `last`; without a last scan all of them are new.

    What is not found any more is `gone` only where its type was listed to the end in its account and region, and every
    state could be read: an incomplete look proves nothing (docs/design.md, rule 12).
    """
    now = result.ended_at
    if last is None:
        ids = tuple(finding.id for finding in result.findings)
        return Changes(None, new=ids, first_seen=dict.fromkeys(ids, now))
    before = {finding.id: finding for finding in last.findings}
    here = {finding.id for finding in result.findings}
    left = [finding for name, finding in before.items() if name not in here]
    return Changes(
        at=last.scan.ended_at,
        new=tuple(finding.id for finding in result.findings if finding.id not in before),
        still=tuple(finding.id for finding in result.findings if finding.id in before),
        gone=tuple(finding for finding in left if _looked_at(finding, result)),
        unseen=tuple(finding for finding in left if not _looked_at(finding, result)),
        first_seen={name: (before[name].first_seen if name in before else None) or now for name in here},
    )


def _looked_at(finding: KeptFinding, result: ScanResult) -> bool:
    found = finding.object
    if found is None:
        return result.coverage.complete
    return (found.cloud, found.account, found.region, found.type) in result.complete_listings
