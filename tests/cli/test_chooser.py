"""The chooser's table, keys and command lines, without a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.cli.chooser import ChooserOptions, _Chooser, _Loaded
from tfguard.cli.chooser_screen import keys_in, screen_size, unfinished
from tfguard.cli.chooser_table import (
    PROMPT_HELP,
    Act,
    Table,
    View,
    fitted,
    numbered_lines,
    one_line,
    table_lines,
    whole,
    wrapped,
)
from tfguard.cli.invocation import Invocation
from tfguard.errors import UsageError
from tfguard.model.config import Config
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.report.paint import Paint

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def finding(number: int, name: str = "app", verdict: Verdict = Verdict.ORPHANED, **fields: object) -> Finding:
    """A finding of a bucket of this name, three days old."""
    found = CloudObject(
        "aws", "1", "eu-west-1", "aws_s3_bucket", name, name, created_at=NOW - timedelta(days=3), stateful=True
    )
    base = Finding(f"o-{number:08}", verdict, Confidence.CERTAIN, f"aws_s3_bucket.b{number}", "01A", found)
    return replace(base, **fields)  # type: ignore[arg-type]


TABLE = Table(tuple(finding(number, f"bucket-{number}") for number in range(1, 13)))


def pressed(table: Table, *keys: str, page: int = 5) -> tuple[Table, Act | None]:
    """What these keys do, one after the other; none before the last wants anything."""
    act = None
    for key in keys:
        assert act is None
        table, act = table.press(key, page)
    return table, act


def view(columns: int = 100, lines: int = 24, *, colour: bool = False) -> View:
    """A window."""
    return View(columns, lines, NOW, "coverage: complete", Paint(colour))


def plain(line: str) -> str:
    """A line without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (("down", "j", "up"), 1),
        (("up", "k"), 0),
        (("end", "down"), 11),
        (("G", "g"), 0),
        (("page-down", "page-down", "page-up"), 5),
        (("page-down", "page-down", "page-down"), 11),
        (("7",), 6),
        (("1", "2"), 11),
        (("1", "3"), 2),  # there is no 13, so a new number begins
        (("1", "down", "2"), 1),
        (("down", "0"), 1),
    ],
)
def test_keys_and_numbers_move_and_never_leave_the_table(keys: tuple[str, ...], row: int) -> None:
    table, act = pressed(TABLE, *keys)
    assert (table.cursor, act) == (row, None)


def test_a_number_that_nothing_has_is_told() -> None:
    table, _ = pressed(Table(TABLE.findings[:3]), "9")
    assert (table.cursor, table.said) == (0, "there is no finding with the number 9")


def test_a_decision_is_about_all_that_are_marked_else_about_the_one_at_the_cursor() -> None:
    table, act = pressed(TABLE, "down", "r")
    assert ([one.id for one in table.chosen], act) == (["o-00000002"], Act.RETAIN)
    table, act = pressed(TABLE, " ", "down", " ", "end", "d")
    assert ([one.id for one in table.chosen], act) == (["o-00000001", "o-00000003"], Act.DESTROY)
    table, act = pressed(TABLE, " ", "up", " ", "i")
    assert ([one.id for one in table.chosen], act) == (["o-00000002"], Act.IMPORT)
    table, _ = pressed(TABLE, "3", "a")
    assert len(table.chosen) == 12
    assert pressed(table, "a")[0].marked == frozenset()


@pytest.mark.parametrize(
    ("key", "act"),
    [("enter", Act.SHOW), ("?", Act.HELP), ("q", Act.LEAVE), ("escape", Act.LEAVE), ("\x04", Act.LEAVE), ("x", None)],
)
def test_the_other_keys(key: str, act: Act | None) -> None:
    assert TABLE.press(key)[1] is act


def test_what_a_finding_does_not_offer_is_not_done_with_any_of_those_that_are_marked() -> None:
    marked = finding(2, verdict=Verdict.TAINTED)
    table, act = pressed(Table((finding(1), marked, finding(3, verdict=Verdict.UNKNOWN))), " ", " ", "i")
    assert (act, table.said) == (None, "o-00000002 is tainted, which leaves retain")
    assert pressed(Table((marked,)), "r")[1] is Act.RETAIN
    table, act = pressed(Table((finding(1), finding(3, verdict=Verdict.UNKNOWN))), " ", " ", "d")
    assert (act, "o-00000003 is unknown, which leaves nothing" in table.said) == (None, True)


@pytest.mark.parametrize(
    ("line", "act", "chosen"),
    [
        ("1 3 d", Act.DESTROY, [1, 3]),
        ("i2,4", Act.IMPORT, [2, 4]),
        ("12r", Act.RETAIN, [12]),
        ("4", Act.SHOW, [4]),
        ("?", Act.HELP, None),
        (" q ", Act.LEAVE, None),
        ("", None, None),
        ("d", None, None),
        ("1 2", None, None),
        ("13 d", None, None),
        ("0 d", None, None),
        ("1 d r", None, None),
        ("1 destroy", None, None),
        ("yes", None, None),
        ("²d", None, None),
    ],
)
def test_a_typed_line_is_numbers_and_a_letter_and_anything_else_does_nothing(
    line: str, act: Act | None, chosen: list[int] | None
) -> None:
    table, wanted = TABLE.answer(line)
    assert wanted is act
    assert bool(table.said) is (act is None and line != "")
    if chosen is not None:
        assert [one.id for one in table.chosen] == [f"o-{number:08}" for number in chosen]


def test_what_was_marked_by_an_earlier_line_is_not_meant_by_a_later_one() -> None:
    table, _ = TABLE.answer("1 2 d")
    table, _ = table.answer("3 r")
    assert [one.id for one in table.chosen] == ["o-00000003"]


def test_tainted_and_stray_ones_are_not_kept_by_one_command() -> None:
    both = Table((finding(1), finding(2, verdict=Verdict.TAINTED)))
    table, act = pressed(both, "a", "r")
    assert (act, "one kind at a time" in table.said) == (None, True)
    assert both.answer("1 2 r")[1] is None
    assert [both.answer(f"{number} r")[1] for number in (1, 2)] == [Act.RETAIN, Act.RETAIN]


def test_after_a_decision_the_place_is_kept_and_what_is_gone_is_not_marked() -> None:
    table, _ = pressed(TABLE, "3", " ", " ")
    assert (table.cursor, len(table.marked)) == (4, 2)
    again = table.refreshed([one for one in TABLE.findings if one.id != "o-00000003"])
    assert (again.current.id, again.marked) == ("o-00000005", frozenset({"o-00000004"}))
    assert pressed(TABLE, "end")[0].refreshed(TABLE.findings[:2]).cursor == 1


def test_a_wide_window_shows_every_column_and_the_rest_of_the_current_row() -> None:
    table, _ = pressed(TABLE, "down", " ")
    lines = [plain(line) for line in table_lines(table, view())]
    assert lines[0].startswith("12 findings to decide about, 1 marked")
    assert lines[1].split() == ["id", "type", "name", "age", "verdict", "data", "region"]
    assert lines[3].split()[:4] == ["*", "2", "o-00000002", "aws_s3_bucket"]
    assert " ".join(lines[4].split()) == "> 3 o-00000003 aws_s3_bucket bucket-3 3 d orphaned yes eu-west-1"
    assert "aws_s3_bucket bucket-3, for aws_s3_bucket.b3" in lines[-3]
    assert lines[-2].startswith("coverage: complete")


def test_a_narrow_window_keeps_id_name_and_data_the_longest() -> None:
    titles = {columns: table_lines(TABLE, view(columns))[1].split() for columns in (40, 50, 60, 70, 80)}
    assert titles[40][:3] == ["id", "type", "name"]
    assert "data" in titles[50]
    assert titles[80] == ["id", "type", "name", "age", "verdict", "data", "region"]
    assert all(set(titles[narrow]) <= set(titles[80]) for narrow in titles)


@given(
    names=st.lists(st.text(max_size=60), min_size=1, max_size=30),
    columns=st.integers(40, 200),
    lines=st.integers(8, 60),
    cursor=st.integers(0, 29),
)
def test_whatever_names_there_are_the_screen_is_never_overrun_nor_steered(
    names: list[str], columns: int, lines: int, cursor: int
) -> None:
    shown = view(columns, lines, colour=True)
    assert shown.roomy
    table = Table(tuple(finding(number, name) for number, name in enumerate(names)), min(cursor, len(names) - 1))
    drawn = [plain(line) for line in table_lines(table, shown)]
    assert len(drawn) <= lines
    assert all(fitted(line, columns).startswith(line) for line in drawn), "nothing has to be cut any more"
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(drawn))
    assert any(line.startswith(">") for line in drawn), "the cursor is seen"
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join([*numbered_lines(table, NOW), whole(table.current)]))


def test_colour_is_there_only_where_it_is_allowed() -> None:
    assert not any("\x1b" in line for line in table_lines(TABLE, view()))
    assert any("\x1b[31" in line for line in table_lines(TABLE, view(colour=True)))


def test_wide_characters_count_as_wide() -> None:
    assert fitted("日本語", 5) == "日.. "
    assert fitted("日本", 5) == "日本 "
    assert wrapped("日本語\nab\x1b[2J", 4) == ["日本", "語", "ab\ufffd[", "2J"]


def test_an_object_that_is_not_known_and_one_without_a_place_can_be_shown() -> None:
    nothing = finding(1, address="aws_vpc.a", object=None)
    assert one_line(nothing, NOW) == "o-00000001  aws_vpc.a (orphaned)"
    assert whole(nothing) == "aws_vpc.a"
    assert whole(finding(2, address=None)) == "aws_s3_bucket app, which no configuration names"
    assert whole(finding(2, address=None, addresses=("a.b", "a.c"))) == "aws_s3_bucket app, for one of a.b, a.c"
    assert "HOLDS DATA" in one_line(finding(3), NOW)
    assert table_lines(Table((nothing,)), view())[2].startswith("> ")


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["page-up", "page-down", "home", "end"]),
        ("\r\n", ["enter", "enter"]),
        ("\x1b", ["escape"]),
        ("jj d", ["j", "j", " ", "d"]),
        ("\x1b[1;5A", ["\x1b[1;5A"]),  # of no meaning here, and not an escape
        ("\x03", ["\x03"]),
    ],
)
def test_what_a_terminal_sends_is_told_apart(typed: str, keys: list[str]) -> None:
    assert keys_in(typed) == keys


def test_the_beginning_of_an_arrow_key_is_waited_for() -> None:
    assert [unfinished(text) for text in ("\x1b", "\x1b[", "\x1b[5", "\x1b[5~", "j", "\x1b[Aj")] == [
        True, True, True, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["", "dumb"])
def test_a_dumb_terminal_has_no_screen(kind: str) -> None:
    assert screen_size({"TERM": kind}) == (0, 0)
    assert not View(0, 0, NOW, "", Paint()).roomy


def test_a_decision_becomes_the_words_of_its_command() -> None:
    given_along = ChooserOptions(Path("kept.json"), "other.tfstate", ("-var-file=prod.tfvars",))
    assert ChooserOptions().words(Act.DESTROY, ["o-1", "o-2"], ["--stateful"]) == (
        "destroy", "o-1", "o-2", "--stateful"
    )  # fmt: skip
    assert given_along.words(Act.IMPORT, ["o-1"]) == (
        "import", "o-1", "-var-file=prod.tfvars", "--findings=kept.json", "-state=other.tfstate"
    )  # fmt: skip


class Keys:
    """A screen that tells these keys, None where nothing was pressed, and keeps what is drawn."""

    def __init__(self, *keys: str | None) -> None:
        self.keys, self.drawn = list(keys), list[list[str]]()

    def draw(self, lines: list[str]) -> None:
        """Keep it."""
        self.drawn.append(lines)

    def key(self) -> str | None:
        """The next one."""
        return self.keys.pop(0)


LOADED = _Loaded(TABLE.findings, Coverage(), Config(), NOW)


def chooser(monkeypatch: pytest.MonkeyPatch, *sizes: tuple[int, int]) -> _Chooser:
    """A chooser whose window has these sizes, one after the other; the last one stays."""
    left = list(sizes)
    monkeypatch.setattr("tfguard.cli.chooser.screen_size", lambda _: left.pop(0) if len(left) > 1 else left[0])
    return _Chooser(Invocation(), ChooserOptions(), lambda _: None)


def test_the_screen_is_drawn_anew_after_a_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Keys(None, None, None, "down", None, None, "q")
    _, act = chooser(monkeypatch, (100, 24))._by_keys(screen, TABLE, LOADED)  # type: ignore[arg-type]
    assert (act, len(screen.drawn)) == (Act.LEAVE, 2)
    assert screen.drawn[0] != screen.drawn[1]


def test_the_screen_is_drawn_anew_in_a_window_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Keys(None, None, None, "q")
    chooser(monkeypatch, (100, 24), (100, 24), (90, 24), (90, 24))._by_keys(screen, TABLE, LOADED)  # type: ignore[arg-type]
    assert [len(plain(drawn[0])) for drawn in screen.drawn] == [99, 89]


def test_a_page_is_drawn_anew_after_a_key_or_in_another_window_alone_and_the_table_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Keys("?", None, None, "down", None, "x", None, "q")
    chooser(monkeypatch, (100, 10))._by_keys(screen, TABLE, LOADED)  # type: ignore[arg-type]
    table, page, moved, again = screen.drawn
    assert (table, page[1:3]) == (again, moved[0:2])
    resized = Keys(None, None, "q")
    chooser(monkeypatch, (100, 10), (100, 10), (80, 10))._page(resized, "a", LOADED)  # type: ignore[arg-type]
    assert len(resized.drawn) == 2


class Typed:
    """A console on which these answers are typed, and that keeps the rest."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.asked, self.said = list(answers), list[str](), list[str]()

    def ask(self, question: str) -> str | None:
        """The next answer."""
        self.asked.append(question)
        return self.answers.pop(0)

    def say(self, text: str) -> None:
        """Keep it."""
        self.said.append(text)


def test_a_time_that_cannot_be_kept_for_is_asked_for_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = Typed("long", "400d", "-1d", "2d", "audit", "why")
    words, until = chooser(monkeypatch, (100, 24))._keeping(typed, LOADED)  # type: ignore[arg-type]
    assert words == ("--for=2d", "--owner=audit", "--reason=why")
    assert until == "2026-03-03 12:00Z"
    assert [question.split(",")[0] for question in typed.asked[:4]] == ["for how long"] * 4
    assert ["--for long" in typed.said[0], "retention.max" in typed.said[1], len(typed.said)] == [True, True, 3]


def test_a_number_that_no_address_has_is_asked_for_again_and_nothing_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    two = finding(1, address=None, addresses=("a.b", "a.c"))
    one = chooser(monkeypatch, (100, 24))
    assert one._place(Typed("3", "x", "2"), [two]) == ("--address=a.c",)  # type: ignore[arg-type]
    for nothing in ("", None):
        with pytest.raises(UsageError, match="no address was chosen"):
            one._place(Typed("0", nothing), [two])  # type: ignore[arg-type]


def test_the_help_of_the_prompt_says_what_a_letter_alone_does() -> None:
    assert any("a letter alone" in line for line in PROMPT_HELP)
    assert Table(TABLE.findings[:1]).answer("d")[1] is Act.DESTROY
    assert TABLE.answer("d")[0].said == "say with which of them, such as `1 d`"
