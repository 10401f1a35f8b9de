"""TF_CLI_ARGS, split into words as the engine splits it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tfguard.engine.shell_words import shell_words

SPLIT = [
    ("", ()),
    ("  \t\n ", ()),
    ("-var x=a\\ b", ("-var", "x=a b")),
    ("-var 'x=a\\d'", ("-var", "x=a\\d")),
    ('-var "x=a\\d"', ("-var", "x=ad")),
    ('-var "x=a\\"d"', ("-var", 'x=a"d')),
    ("-var x=\\\\d", ("-var", "x=\\d")),
    ("-var x=a\\nb", ("-var", "x=anb")),
    ("-var x=\"a b\"'c d'", ("-var", "x=a bc d")),
    ("-var 'x='", ("-var", "x=")),
    ("-var\tx=1\n-var\nx=2", ("-var", "x=1", "-var", "x=2")),
    ("-var x=$HOME", ("-var", "x=$HOME")),
    ("-var x=$(a b)", ("-var", "x=$(a b)")),
    ("-var x=`a b`", ("-var", "x=`a b`")),
    ("-var x=a#b", ("-var", "x=a#b")),
    ("-var x=a;b", ("-var", "x=a")),
    ("-var x=a&&b", ("-var", "x=a")),
    ("-var x=a 2>&1", ("-var", "x=a")),
    ("-var x=a>b", ("-var", "x=a")),
    ("-var x=\\;", ("-var", "x=;")),
    ('-var "x=a;b"', ("-var", "x=a;b")),
    ("-var x=\u00e4\u00a0b", ("-var", "x=\u00e4\u00a0b")),
]
OPEN = ["-var x=a\\", '-var "x=a', "-var 'x=a", "-var x=(a)", "-var x=a)b", "-var x=$(a", "-var x=`a"]


@pytest.mark.parametrize(("text", "words"), SPLIT)
def test_words_are_split_as_the_engine_splits_them(text: str, words: tuple[str, ...]) -> None:
    assert shell_words(text) == words


@pytest.mark.parametrize("text", OPEN)
def test_what_is_left_open_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="parenthesis"):
        shell_words(text)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stack with a variable, whose value a plan tells."""
    folder = tmp_path_factory.mktemp("stack")
    (folder / "main.tf").write_text('variable "x" {\n  default = "none"\n}\n')
    return folder


@pytest.mark.parametrize(("text", "words"), [item for item in SPLIT if item[1]])
def test_the_engine_at_hand_splits_them_so(
    engine: Path, mirror_env: dict[str, str], stack: Path, text: str, words: tuple[str, ...]
) -> None:
    env = mirror_env | {"TF_CLI_ARGS_plan": text}
    subprocess.run([engine, "plan", "-out=p"], cwd=stack, env=env, check=True, capture_output=True)
    shown = subprocess.run([engine, "show", "-json", "p"], cwd=stack, env=mirror_env, check=True, capture_output=True)
    assert json.loads(shown.stdout)["variables"]["x"]["value"] == words[-1].removeprefix("x=")


@pytest.mark.parametrize("text", OPEN)
def test_the_engine_at_hand_refuses_them_too(engine: Path, mirror_env: dict[str, str], stack: Path, text: str) -> None:
    env = mirror_env | {"TF_CLI_ARGS_plan": text}
    done = subprocess.run([engine, "plan"], cwd=stack, env=env, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "TF_CLI_ARGS_plan" in done.stderr
