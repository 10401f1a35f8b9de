"""Findings in every format: nothing is left out, nothing breaks the format, no colour where none was asked for."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.printable import printable
from tfguard.report.findings import (
    PLAIN_FORMATS,
    coverage_line,
    findings_csv,
    findings_markdown,
    findings_text,
    import_blocks,
    json_lines,
)
from tfguard.report.paint import Paint
from tfguard.report.retained import retained_count

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PLAIN, COLOUR = Paint(), Paint(on=True)
ADDRESS = 'aws_iam_role.app["a|b"]'
EVIL = 'x"${y}|%{z}\\\n,\r\n<b>`*'


def finding(import_id: str = "app", address: str | None = ADDRESS, **fields: object) -> Finding:
    """A finding of one role."""
    found = CloudObject(
        "aws", "123456789012", "global", "aws_iam_role", "app", import_id, arn="arn:app", name="app", created_at=NOW
    )
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, "name = app"), Evidence(EvidenceKind.OPERATION, "by 01A"))
    base = Finding(
        "o-3fa9c1d2", Verdict.ORPHANED, Confidence.CERTAIN, address, "01A", found, evidence, addresses=(address or "",)
    )
    return replace(base, **fields)  # type: ignore[arg-type]


SETTLED = finding(disposition=Disposition("o-3fa9c1d2", DispositionKind.RETAIN, NOW, "me@host", "needed", "01A"))
GAPS = Coverage(gaps=(Gap("aws 1 eu-west-1 aws_vpc", "AccessDenied"), Gap("aws_vpc.main", "not looked up")))


@pytest.mark.parametrize(
    ("stateful", "said"),
    [(True, "; it HOLDS DATA"), (False, ", unless it is kept\n"), (None, "; whether it holds data is not known")],
)
def test_a_tainted_object_is_told_with_what_the_next_apply_does_and_how_to_keep_it(
    stateful: bool | None, said: str
) -> None:
    one = finding(verdict=Verdict.TAINTED)
    assert one.object is not None
    found = None if stateful is None else replace(one.object, stateful=stateful)
    text = findings_text([replace(one, object=found)], Coverage(), PLAIN)
    assert "the next apply will destroy it and create it anew, unless it is kept" in text
    assert said in text
    assert "`tfguard orphans retain o-3fa9c1d2 --reason TEXT`; to replace it: apply" in text
    kept = Disposition("o-3fa9c1d2", DispositionKind.UNTAINT, NOW, "me@host", "it is fine", "01B")
    settled = findings_text([replace(one, disposition=kept)], Coverage(), PLAIN)
    assert ("settled: untaint by me@host: it is fine" in settled, "next apply" in settled) == (True, False)


def test_the_text_names_object_address_evidence_and_certainty() -> None:
    text = findings_text([finding()], Coverage(), PLAIN)
    for part in ("o-3fa9c1d2", "orphaned", "certain", "aws_iam_role app", "123456789012", "2026-03-01T12:00:00Z"):
        assert part in text
    assert f"for {ADDRESS}" in text
    assert "desired-identity: name = app" in text


def test_the_text_names_every_address_where_a_person_has_to_choose() -> None:
    text = findings_text([finding(address=None, addresses=("a.b[0]", "a.b[1]"))], Coverage(), PLAIN)
    assert "one of a.b[0], a.b[1]" in text
    assert "  for " not in findings_text([finding(address=None, addresses=())], Coverage(), PLAIN)


def test_the_text_says_who_settled_a_finding() -> None:
    assert "settled: retain by me@host" in findings_text([SETTLED], Coverage(), PLAIN)


def test_no_findings_after_an_incomplete_look_is_not_said_without_the_gaps() -> None:
    text = findings_text([], GAPS, PLAIN)
    assert text.startswith("no findings\n")
    assert text.endswith("coverage: incomplete: aws 1 eu-west-1 aws_vpc: AccessDenied; aws_vpc.main: not looked up\n")
    assert coverage_line(Coverage()) == "coverage: complete"


@pytest.mark.parametrize("findings", [[], [finding()], [SETTLED]])
def test_colour_is_there_only_where_it_was_asked_for(findings: list[Finding]) -> None:
    plain, colour = (findings_text(findings, GAPS, paint) for paint in (PLAIN, COLOUR))
    assert "\x1b" not in plain
    assert bool(findings) is ("\x1b" in colour)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colour) == plain


def test_paint_knows_its_styles() -> None:
    assert COLOUR("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    assert COLOUR("x") == PLAIN("x", "red") == "x"


@pytest.mark.parametrize("value", [EVIL, 'a"b', "a,b", "a|b", "two\nlines", "${x}"])
def test_a_spreadsheet_reads_back_what_was_found(value: str) -> None:
    (row,) = csv.DictReader(io.StringIO(findings_csv([finding(value, f'a.b["{value}"]')]), newline=""))
    assert (row["import_id"], row["address"]) == (printable(value), f'a.b["{printable(value)}"]')
    assert (row["id"], row["created_at"], row["disposition"]) == ("o-3fa9c1d2", "2026-03-01T12:00:00Z", "")


def test_a_spreadsheet_names_the_decision() -> None:
    assert next(csv.DictReader(io.StringIO(findings_csv([SETTLED]))))["disposition"] == "retain"


@settings(max_examples=60)
@given(st.text(st.sampled_from('ab|\\\n\r"<>&`*$%{}'), max_size=10), st.text(st.sampled_from('ab|\\"'), max_size=5))
def test_no_value_breaks_a_table_row_and_a_reader_sees_the_value(import_id: str, key: str) -> None:
    text = findings_markdown([finding(import_id, f"a.b[{key}]")])
    head, rule, row, end = text.split("\n")
    assert end == ""
    cells = row[2:-2].split(" | ")
    assert len(cells) == len(head[2:-2].split(" | ")) == len(rule[2:-2].split(" | ")) == 11
    assert (unescape(cells[7]), unescape(cells[3])) == (printable(import_id), f"a.b[{key}]")
    assert not re.search(r"[<>`*\\|]", "".join(cells))


@pytest.mark.parametrize(
    ("import_id", "literal"),
    [
        ("app", '"app"'),
        ('a"b', '"a\\"b"'),
        ("${x}", '"$${x}"'),
        ("%{x}", '"%%{x}"'),
        ("a\\b\n", '"a\\\\b\\n"'),
    ],
)
def test_an_import_block_is_written_so_that_hcl_reads_the_id(import_id: str, literal: str) -> None:
    assert import_blocks([finding(import_id)]) == f"import {{\n  to = {ADDRESS}\n  id = {literal}\n}}\n"


@pytest.mark.parametrize(
    "left_out",
    [
        SETTLED,
        finding(address=None, addresses=("a", "b")),
        finding(object=None),
        finding(verdict=Verdict.DUPLICATED),
        finding(verdict=Verdict.UNKNOWN),
    ],
)
def test_there_is_no_import_block_for_what_may_not_be_imported_as_it_is(left_out: Finding) -> None:
    assert import_blocks([left_out]) == ""
    assert import_blocks([left_out, finding("other", "a.other")]).count("import {") == 1


def test_two_objects_for_one_address_get_no_import_block_at_all() -> None:
    assert import_blocks([finding("one"), finding("two"), finding("three", "a.b")]) == import_blocks(
        [finding("three", "a.b")]
    )


def test_every_plain_format_takes_no_findings_and_many() -> None:
    for render in PLAIN_FORMATS.values():
        assert isinstance(render([]), str)
        assert render([finding(), finding("b", "a.b")]).endswith("\n")


def test_json_lines_are_one_document_a_line() -> None:
    bodies = [{"a": "x\ny"}, {"b": None}]
    assert [json.loads(line) for line in json_lines(bodies).splitlines()] == bodies


def test_what_is_kept_is_counted_and_what_is_overdue_or_released_is_not() -> None:
    def kept(name: str, kind: DispositionKind, days: int) -> Disposition:
        return Disposition(name, kind, NOW, "me", "why", "01A", until=NOW + timedelta(days=days))

    ledger = [kept("o-1", DispositionKind.RETAIN, 1), kept("o-2", DispositionKind.RETAIN, -1)]
    assert retained_count(ledger, NOW) == "1 retained (`tfguard orphans list --retained`)\n"
    assert retained_count([*ledger, kept("o-1", DispositionKind.RELEASE, 1)], NOW) == ""
