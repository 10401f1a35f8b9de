"""tfguard's own options among the engine's words: neither is ever taken for the other."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tfguard.cli.command import EngineCommand, WithEngineWords, own_options
from tfguard.cli.invocation import Invocation

OWN = {"--reason": True, "--yes": False}
Seen = dict[str, object]


@pytest.mark.parametrize(
    ("words", "own", "others"),
    [
        (["--reason", "x", "-var", "a=b"], ["--reason=x"], ["-var", "a=b"]),
        (["-var", "--reason=x"], [], ["-var", "--reason=x"]),
        (["-var=a", "--reason=x"], ["--reason=x"], ["-var=a"]),
        (["--var", "--yes", "--yes"], ["--yes"], ["--var", "--yes"]),
        (["-lock", "--yes"], ["--yes"], ["-lock"]),
        (["--reason", "--yes"], ["--reason=--yes"], []),
        (["--", "--yes", "--reason", "x"], [], ["--", "--yes", "--reason", "x"]),
        (["my.plan", "--yes"], ["--yes"], ["my.plan"]),
        (["-reason", "x", "-yes"], [], ["-reason", "x", "-yes"]),
        (["--reaso=x", "--ye", "--reasons"], [], ["--reaso=x", "--ye", "--reasons"]),
        (["-var"], [], ["-var"]),
        (["", "-", "-abc"], [], ["", "-", "-abc"]),
    ],
)
def test_an_own_option_is_taken_by_its_whole_name_alone(words: list[str], own: list[str], others: list[str]) -> None:
    assert own_options(words, OWN) == (own, others)


@given(st.lists(st.one_of(st.text(max_size=5), st.sampled_from(["-var", "--", "-input=false", "-no-color"]))))
def test_other_words_keep_their_order(words: list[str]) -> None:
    assert own_options(words, OWN) == ([], words)


@pytest.fixture
def call() -> Callable[..., tuple[int, Seen]]:
    """Call a command with an own option of each kind; what it was given."""
    seen: Seen = {}

    def run(kind: type[click.Command], *words: str) -> tuple[int, Seen]:
        @click.command("plan", cls=kind)
        @click.option("--reason")
        @click.option("--on-gap", type=click.Choice(["block"]))
        @click.option("--yes", is_flag=True)
        @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
        def command(**given: object) -> None:
            seen.update(given)

        done = CliRunner().invoke(command, list(words), obj=Invocation(), standalone_mode=False)
        return done.exit_code, seen

    return run


@pytest.mark.parametrize("kind", [EngineCommand, WithEngineWords])
def test_the_engines_words_arrive_as_they_were_typed(
    call: Callable[..., tuple[int, Seen]], kind: type[click.Command]
) -> None:
    words = ("-input=false", "-no-color", "-abc", "--glow", "a\nb", "\udcff", "", "'q'", "-", "ä", "-var", "--yes")
    code, seen = call(kind, *words, "--reason", "-x", "--", "--yes", "--")
    assert code == 0
    assert seen == {"reason": "-x", "on_gap": None, "yes": False, "arguments": (*words, "--", "--yes", "--")}


@pytest.mark.parametrize("words", [("--on-gap=nothing",), ("--yes=1",), ("--reason",), ("--on-gap",)])
def test_an_own_option_with_a_wrong_value_is_refused(
    call: Callable[..., tuple[int, Seen]], words: tuple[str, ...]
) -> None:
    code, seen = call(EngineCommand, *words)
    assert (code, seen) == (1, {})
