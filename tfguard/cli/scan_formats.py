"""The formats of `tfguard scan --format`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfguard.cli.options import document_text
from tfguard.model.finding import Finding
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes
from tfguard.report.findings import findings_csv, json_lines
from tfguard.report.paint import Paint
from tfguard.report.scan import scan_import_blocks, scan_markdown, scan_text
from tfguard.schemas.findings import finding_body
from tfguard.schemas.scan import scan_document


@dataclass(frozen=True, slots=True)
class ScanFormat:
    """How findings are printed: `write` gives all of stdout. A format that has no room for the coverage does not
    `tell_coverage`; then stderr does."""

    write: Callable[[ScanResult, Sequence[Finding], Changes | None, Paint], str]
    tells_coverage: bool = True


SCAN_FORMATS: Mapping[str, ScanFormat] = {
    "text": ScanFormat(scan_text),
    "json": ScanFormat(lambda result, shown, changes, _: document_text(scan_document(result, shown, changes))),
    "jsonl": ScanFormat(lambda _, shown, *__: json_lines([finding_body(one) for one in shown]), tells_coverage=False),
    "csv": ScanFormat(lambda _, shown, *__: findings_csv(shown), tells_coverage=False),
    "markdown": ScanFormat(lambda result, shown, *_: scan_markdown(result, shown)),
    "import-blocks": ScanFormat(lambda result, shown, *_: scan_import_blocks(result, shown)),
}
