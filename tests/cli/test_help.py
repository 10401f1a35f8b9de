"""Every command of tfguard's own is explained: in its help, in the list, and in the README."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tfguard.cli.invocation import Invocation
from tfguard.cli.main import COMMANDS, exit_code_of
from tfguard.cli.own import cli
from tfguard.model.config import OnGap

README = (Path(__file__).parents[2] / "README.md").read_text()


def own_commands() -> list[tuple[str, click.Command]]:
    """Every own command and its subcommands, by the words that call it."""
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", sub) for inner, sub in command.commands.items()]
    return found


OWN = pytest.mark.parametrize(("name", "command"), own_commands(), ids=[name for name, _ in own_commands()])


@OWN
def test_a_command_has_a_help_text_of_whole_sentences(name: str, command: click.Command) -> None:
    assert command.help, name
    assert command.help.strip().endswith("."), name


@OWN
def test_every_option_says_what_it_does(name: str, command: click.Command) -> None:
    options = [item for item in command.params if isinstance(item, click.Option)]
    assert [item.opts for item in options if not item.help] == [], name


@OWN
def test_a_command_prints_its_help(name: str, command: click.Command) -> None:
    done = CliRunner().invoke(cli, [*name.split(), "--help"], obj=Invocation())
    assert done.exit_code == 0
    assert (command.help or "").split(".")[0].split()[0] in done.output


@pytest.mark.parametrize("name", [name for name, _ in own_commands()])
def test_a_command_is_in_the_readme(name: str) -> None:
    first, *rest = name.split()
    pattern = rf"`(?:tfguard )?{re.escape(first)}\b"
    assert re.search(pattern, README) or re.search(rf"tfguard(?: -\S+)* {re.escape(first)}\b", README), name
    assert all(word in README for word in rest), name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_the_list_with_a_line_of_its_own(name: str) -> None:
    listed = cli.get_help(click.Context(cli))
    assert re.search(rf"^\s+{name}\s+\S", listed, re.MULTILINE)


@pytest.mark.parametrize("choice", [choice.value for choice in OnGap])
def test_the_choices_of_on_gap_are_in_the_readme(choice: str) -> None:
    assert choice in README


@pytest.mark.parametrize("code", [0, 1, 10, 11, 12, 13, 14, 130])
def test_every_exit_code_is_in_the_readme(code: int) -> None:
    assert re.search(rf"^\|?\s*`?{code}`?\b", README, re.MULTILINE), code


@pytest.mark.parametrize("name", [name for name, _ in own_commands() if " " in name])
def test_bad_usage_of_a_groups_command_points_to_the_help_of_that_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of([*name.split(), "--bogus"]) == 1
    shown = capsys.readouterr().err
    # `orphans import` is `import` under another name, and takes the words of the engine.
    if name != "orphans import":
        assert f"see `tfguard {name} -help`" in shown


def test_a_missing_argument_and_a_command_that_a_group_has_not_point_to_the_nearest_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, see in (
        (["orphans", "retain", "o-12345678"], "orphans retain"),
        (["orphans", "release", "--reason", "x"], "orphans release"),
        (["orphans", "x"], "orphans"),
        (["status", "--bogus"], "status"),
        (["orphans", "import", "o-12345678", "--findings"], "orphans import"),
        (["orphans", "import", "o-12345678", "--findings", "/"], "import"),
    ):
        assert exit_code_of(words) == 1
        assert f"see `tfguard {see} -help`" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["list", "show", "retain", "release", "destroy"])
def test_every_command_that_takes_a_finding_takes_a_scans_findings(name: str) -> None:
    orphans = dict(own_commands())[f"orphans {name}"]
    assert "--findings" in {word for option in orphans.params for word in option.opts}


@pytest.mark.parametrize(
    "arguments", [["status", "--format", "xml"], ["status", "--bogus"], ["history", "--limit", "0"], ["orphans", "x"]]
)
def test_bad_usage_is_an_error_in_two_lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(arguments) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
