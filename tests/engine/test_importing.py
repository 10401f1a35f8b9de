"""Import blocks mean exactly one object, stay no longer than they must, and are read back without guessing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.engine.configuration import written_imports
from tfguard.engine.events import parse_line
from tfguard.engine.importing import (
    FILE,
    block_lines,
    discard_leftover,
    errors_in,
    import_blocks,
    read_probe,
    troubles,
    unwritten,
)
from tfguard.errors import InputError
from tfguard.model.address import import_block
from tfguard.model.event import EngineEvent
from tfguard.model.importing import ImportTarget, ImportTrouble

ADDRESS = 'aws_iam_role.app["a"]'
TARGETS = [ImportTarget(ADDRESS, "app"), ImportTarget("aws_vpc.main", "vpc-1")]


def read_hcl(literal: str) -> str:
    """What HCL reads in a quoted template that holds no expression; fails where one would begin."""
    assert literal[0] == literal[-1] == '"'
    body, out, at = literal[1:-1], [], 0
    while at < len(body):
        if body.startswith(("$${", "%%{"), at):
            out.append(body[at + 1 : at + 3])
            at += 3
            continue
        assert not body.startswith(("${", "%{"), at), "an expression begins"
        assert body[at] not in '"\n\r', "the literal ends"
        if body[at] == "\\":
            out.append({"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}[body[at + 1]])
            at += 2
            continue
        out.append(body[at])
        at += 1
    return "".join(out)


def id_in(text: str) -> str:
    """The id of the one import block in `text`, as HCL reads it."""
    (line,) = [line for line in text.split("\n") if line.startswith("  id = ")]
    return read_hcl(line.removeprefix("  id = "))


@pytest.mark.parametrize(
    "import_id",
    [
        "app",
        'a"b',
        "${var.x}",
        "%{ if true }",
        "a\\b",
        "two\nlines",
        "tab\there",
        "$${x}",
        "$",
        "%",
        "é",
        '"}\nresource',
    ],
)
def test_an_import_block_means_exactly_the_id(import_id: str) -> None:
    text = import_block(ADDRESS, import_id)
    assert f"  to = {ADDRESS}\n" in text
    assert id_in(text) == import_id


@given(st.text(st.sampled_from('ab"\\$%{}\n\r\t'), max_size=12))
def test_any_id_survives_the_block_and_never_leaves_its_quotes(import_id: str) -> None:
    text = import_block("aws_vpc.main", import_id)
    assert text.count("\n") == 4
    assert id_in(text) == import_id


def test_the_blocks_are_there_while_open_and_readable_by_the_owner_alone(tmp_path: Path) -> None:
    with import_blocks(tmp_path, TARGETS) as path:
        assert path == tmp_path / FILE
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        text = path.read_text()
        assert all(import_block(one.address, one.import_id) in text for one in TARGETS)
    assert list(tmp_path.iterdir()) == []


def test_the_blocks_go_away_when_what_they_were_for_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), import_blocks(tmp_path, TARGETS):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_blocks_that_a_killed_import_left_are_replaced(tmp_path: Path) -> None:
    with import_blocks(tmp_path, TARGETS) as path:
        left = path.read_bytes()
    path.write_bytes(left.replace(f"process {os.getpid()}".encode(), b"process 4194305"))
    with import_blocks(tmp_path, [ImportTarget("aws_vpc.other", "vpc-9")]) as again:
        assert "aws_iam_role" not in again.read_text()
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_an_import_that_still_runs_are_not_taken_away(tmp_path: Path) -> None:
    with import_blocks(tmp_path, TARGETS) as path:
        discard_leftover(tmp_path)
        assert path.exists()
        with pytest.raises(InputError, match="File exists"), import_blocks(tmp_path, TARGETS):
            pytest.fail("it was opened")


@pytest.mark.parametrize("content", ["# mine\n", "", "\xff\xfe"])
def test_a_file_of_that_name_that_is_not_tfguards_is_never_touched(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match="File exists"), import_blocks(tmp_path, TARGETS):
        pytest.fail("it was opened")
    assert (tmp_path / FILE).read_bytes() == content.encode("latin-1")


def test_a_link_of_that_name_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to(tmp_path / "target.tf")
    with pytest.raises(InputError, match="cannot be written"), import_blocks(tmp_path, TARGETS):
        pytest.fail("it was opened")
    assert not (tmp_path / "target.tf").exists()


def planned(address: str, **change: object) -> EngineEvent:
    """A planned change as the stream has it."""
    resource = {"addr": address, "resource_type": "aws_iam_role"}
    return parse_line(json.dumps({"type": "planned_change", "change": {"resource": resource, **change}}).encode())


def error(summary: str, address: str | None = ADDRESS) -> EngineEvent:
    """An error diagnostic."""
    diagnostic = {"severity": "error", "summary": summary, "address": address}
    return parse_line(json.dumps({"type": "diagnostic", "diagnostic": diagnostic}).encode())


MISSING = error("Cannot import non-existent remote object")


@pytest.mark.parametrize(
    ("events", "exists"),
    [
        ([planned(ADDRESS, action="import", importing={"id": "app"})], True),
        ([planned(ADDRESS, action="update", importing={"id": "app"})], True),
        ([planned(ADDRESS, action="import", importing={})], True),
        ([MISSING], False),
        ([planned(ADDRESS, action="create")], None),
        ([planned("aws_iam_role.other", action="import", importing={"id": "app"})], None),
        ([error("AccessDenied")], None),
        ([error("Error: Cannot import non-existent remote object, perhaps")], None),
        ([error("Invalid provider configuration"), error("No value for required variable", None)], None),
        ([], None),
        ([parse_line(b"plain"), parse_line(b'{"type": "planned_change", "change": 3}')], None),
    ],
)
def test_only_an_import_or_the_one_message_tells_whether_an_object_exists(
    events: list[EngineEvent], exists: bool | None
) -> None:
    probe = read_probe(events, ADDRESS, "app")
    assert (probe.exists, probe.import_id) == (exists, "app")
    assert "app" in probe.detail


def test_each_line_of_the_file_is_about_its_target(tmp_path: Path) -> None:
    targets = [*TARGETS, ImportTarget("aws_vpc.eu", "vpc-2", drafted=True, provider="aws.eu")]
    with import_blocks(tmp_path, targets, 'resource "aws_vpc" "eu" {}\n') as path:
        lines = path.read_text().splitlines()
    about = block_lines(targets)
    assert {about[at] for at, line in enumerate(lines) if line.startswith("  to = aws_vpc.eu")} == {"aws_vpc.eu"}
    assert lines[len(about)] == 'resource "aws_vpc" "eu" {}'
    assert "  provider = aws.eu" in lines


def diagnostic(summary: str, **more: object) -> EngineEvent:
    """An error diagnostic with whatever else it has."""
    told = {"severity": "error", "summary": summary, **more}
    return parse_line(json.dumps({"type": "diagnostic", "diagnostic": told}).encode())


@pytest.mark.parametrize(
    ("event", "address"),
    [
        (diagnostic("AccessDenied", address=ADDRESS), ADDRESS),
        (diagnostic("AccessDenied", address="data.aws_vpc.other"), None),
        (diagnostic("no such", detail=f"import to {json.dumps(ADDRESS)}, the provider"), ADDRESS),
        (diagnostic("no such", detail='import to "aws_vpc.main2", the provider'), None),
        (diagnostic("bad block", range={"filename": FILE, "start": {"line": 7, "column": 1}}), "aws_vpc.main"),
        (diagnostic("bad block", range={"filename": "main.tf", "start": {"line": 7, "column": 1}}), None),
        (diagnostic("bad block", range={"filename": FILE, "start": {"line": 99, "column": 1}}), None),
    ],
)
def test_an_error_is_about_the_target_that_it_names_or_stands_in(event: EngineEvent, address: str | None) -> None:
    addresses = [target.address for target in TARGETS]
    (trouble,) = troubles(errors_in([event]), addresses, block_lines(TARGETS))
    assert (trouble.address, trouble.what) == (address, event.summary)


def test_only_an_error_without_any_object_is_about_all_of_them() -> None:
    told = [diagnostic("no value"), diagnostic("AccessDenied", address="data.aws_vpc.other")]
    assert troubles(errors_in(told), [ADDRESS], ()) == (
        ImportTrouble(None, "no value", general=True),
        ImportTrouble(None, "AccessDenied"),
    )


def test_a_warning_is_no_trouble() -> None:
    assert errors_in([diagnostic("x", severity="warning")]) == []


def test_a_block_that_the_configuration_has_is_not_written_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "imported.tf").write_text(f"# ours\n{import_block(ADDRESS, 'app')}")
    (tmp_path / FILE).write_text(import_block("aws_vpc.main", "vpc-1"))
    assert unwritten(tmp_path, TARGETS) == TARGETS[1:]
    other = [ImportTarget(ADDRESS, "another")]
    assert unwritten(tmp_path, other) == other


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("a.tf", 'import {\n  id   = "a#b//c"  # why\n  to   = aws_vpc.a[ "x" ]\n}', ('aws_vpc.a["x"]', "a#b//c")),
        ("a.tf", 'import\n{\n\tto=aws_vpc.a // there\n\tid="$${x}"\n}', ("aws_vpc.a", "${x}")),
        ("a.tf", 'import {\n  to = aws_vpc.a\n  id = "vpc-${var.x}"\n}', ("aws_vpc.a", None)),
        ("a.tf", "import {\n  to = aws_vpc.a\n  id = var.x\n}", ("aws_vpc.a", None)),
        (
            "a.tf",
            'import {\n  for_each = {\n    a = "vpc-1"\n  }\n  to = aws_vpc.a[each.key]\n  id = each.value\n}',
            ("aws_vpc.a[each.key]", None),
        ),
        ("a.tf.json", '{"import": [{"to": "aws_vpc.a", "id": "vpc-1"}]}', ("aws_vpc.a", "vpc-1")),
        ("a.tf.json", '{"import": {"to": "aws_vpc.a", "id": "${var.x}"}}', ("aws_vpc.a", None)),
        ("a.tf", '# import {\n/*\nimport {\n  to = aws_vpc.a\n  id = "vpc-1"\n}\n*/', None),
        (FILE, 'import {\n  to = aws_vpc.a\n  id = "vpc-1"\n}', None),
    ],
)
def test_the_import_blocks_that_a_person_wrote_are_read(
    tmp_path: Path, name: str, text: str, read: tuple[str, str | None] | None
) -> None:
    (tmp_path / name).write_text(text)
    found = written_imports(tmp_path, without=FILE)
    assert [(one.address, one.import_id) for one in found] == ([read] if read else [])


def test_a_block_of_a_for_each_tells_the_ids_in_it(tmp_path: Path) -> None:
    text = 'import {\n  for_each = { a = "vpc-1" }\n  to = aws_vpc.a[each.key]\n  id = each.value\n}'
    (tmp_path / "a.tf").write_text(text)
    assert [one.texts for one in written_imports(tmp_path)] == [frozenset(["vpc-1"])]


def test_a_block_in_a_persons_own_style_is_not_written_twice(tmp_path: Path) -> None:
    (tmp_path / "a.tf").write_text('import {\n    id = "vpc-1"\n    to = aws_vpc.main\n}\n')
    assert unwritten(tmp_path, TARGETS) == TARGETS[:1]
