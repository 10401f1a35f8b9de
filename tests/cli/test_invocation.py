"""What stands before the command, and where the command is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.cli.invocation import Invocation, read_command_line
from tfguard.errors import UsageError

WORDS = st.lists(st.one_of(st.text(max_size=6), st.sampled_from(["-chdir=a", "--", "-", "", "apply", "--chdir=a"])))


@pytest.mark.parametrize(
    ("words", "before", "command", "rest"),
    [
        ([], (), None, ()),
        (["apply", "-x", "--engine", "y"], (), "apply", ("-x", "--engine", "y")),
        (["-chdir=a", "-help", "apply"], ("-chdir=a", "-help"), "apply", ()),
        (["--engine", "tofu", "-chdir=a", "--config=c", "plan"], ("-chdir=a",), "plan", ()),
        (["", "apply"], ("",), "apply", ()),
        (["-chdir", "a", "apply"], ("-chdir",), "a", ("apply",)),
        (["-x", "--", "apply"], ("-x",), None, ("--", "apply")),
    ],
)
def test_the_command_is_the_first_word_that_is_no_option(
    words: list[str], before: tuple[str, ...], command: str | None, rest: tuple[str, ...]
) -> None:
    line = read_command_line(words)
    assert (line.invocation.engine_arguments, line.command, line.rest) == (before, command, rest)


@given(WORDS)
def test_no_word_of_the_engines_is_lost_or_moved(words: list[str]) -> None:
    line = read_command_line(words)
    assert [*line.invocation.engine_arguments, *line.words] == words


@pytest.mark.parametrize("words", [["--engine"], ["--config"], ["--engine=", "plan"], ["--config", "", "plan"]])
def test_an_own_option_without_a_value_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="needs a value"):
        read_command_line(words)


@pytest.mark.parametrize(
    ("before", "chdir"),
    [
        ((), None),
        (("-chdir=a",), "a"),
        (("-help", "-chdir=a"), "a"),
        (("-chdir=a", "-chdir=b"), "b"),
        (("--chdir=a",), None),
        (("", "-chdir=a"), None),
        (("-chdir=",), ""),
        (("-chdir",), None),
    ],
)
def test_chdir_is_spelled_as_the_engine_wants_it(before: tuple[str, ...], chdir: str | None) -> None:
    assert Invocation(engine_arguments=before).chdir == chdir


def test_a_working_directory_is_there_or_is_not(tmp_path: Path) -> None:
    assert Invocation(engine_arguments=(f"-chdir={tmp_path}",)).has_directory
    assert Invocation().has_directory
    for word in (f"-chdir={tmp_path}/none", "-chdir=", "-chdir"):
        assert not Invocation(engine_arguments=(word,)).has_directory


@pytest.mark.parametrize(
    "before", [("-chdir=",), ("-chdir",), ("--chdir=a",), ("-bogus",), ("-chdir=a", "-chdir=b"), ("",)]
)
def test_a_command_of_tfguards_own_takes_nothing_else_before_it(before: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        Invocation(engine_arguments=before).refuse_unknown()


def test_a_command_of_tfguards_own_takes_one_working_directory() -> None:
    Invocation(engine_arguments=("-chdir=a",)).refuse_unknown()
    Invocation().refuse_unknown()


def test_advice_names_everything_that_leads_to_the_same_stack() -> None:
    assert Invocation().command == "tfguard"
    assert Invocation(engine_arguments=("-chdir=a b",)).command == "tfguard '-chdir=a b'"
    assert Invocation("tofu", "c.yaml").command == "tfguard --engine tofu --config c.yaml"
