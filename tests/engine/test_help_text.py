"""The engine's help, read for its commands and flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfguard.engine.help_text import commands_in, flags_in, help_text, learn_flags, plan_options

TOP = """Usage: engine [global options] <subcommand> [args]

Main commands:
  init          Prepare
  apply         Create

All other commands:
  force-unlock  Release a lock

Global options (use these before the subcommand, if any):
  -chdir=DIR    Switch
"""
PLAN = """Usage: engine plan

  Makes a plan  of what would change.

Plan Customization Options:

  -dim                Fade
  -var 'foo=bar'      Set
Other Options:

  -hue=n              Tint
  -out=path           Write
"""
APPLY = """Usage: engine apply

  -auto-approve          Skip the
                         question.
  -lock=false            Do not lock
  -hue=n                 Tint
    -glow=colour         Shine
  -state, state-out, and -backup are legacy options
"""


def stand_in(folder: Path, script: str) -> Path:
    """A stand-in for an engine: a shell script."""
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_commands_are_what_stands_in_a_section_of_commands() -> None:
    assert commands_in(TOP) == {"init": "Prepare", "apply": "Create", "force-unlock": "Release a lock"}
    assert commands_in(PLAN) == {}


def test_flags_are_told_with_what_stands_for_their_value() -> None:
    found = flags_in(APPLY)
    assert {name: (flag.value, flag.boolean) for name, flag in found.items()} == {
        "auto-approve": ("", True),
        "lock": ("false", True),
        "hue": ("n", False),
        "glow": ("colour", False),
    }
    assert (flags_in(PLAN)["var"].value, flags_in(PLAN)["var"].boolean) == ("foo=bar", False)
    assert flags_in(TOP)["chdir"].text == "Switch"


def test_a_flag_that_shapes_the_plan_is_applys_too_and_one_of_plan_alone_is_not(tmp_path: Path) -> None:
    engine = stand_in(tmp_path, f"[ $1 = plan ] && cat <<'E'\n{PLAN}E\n[ $1 = apply ] && cat <<'E'\n{APPLY}E")
    learned = learn_flags(engine)
    assert set(learned.planning) == {"dim", "var", "hue"}
    assert set(learned.applying) == {"auto-approve", "lock", "hue", "glow"}
    assert set(learned.taking) == {"var", "hue", "glow", "out"}
    assert set(flags_in(plan_options(PLAN))) == {"dim", "var"}


def test_the_help_of_the_engine_at_hand_is_read(engine: Path) -> None:
    assert {"init", "plan", "apply", "force-unlock", "workspace"} <= commands_in(help_text(engine)).keys()
    assert {"rm", "mv", "push", "replace-provider"} <= commands_in(help_text(engine, "state")).keys()
    learned = learn_flags(engine)
    assert {"target", "replace", "destroy", "lock-timeout"} <= set(learned.planning)
    assert not {"out", "detailed-exitcode"} & {*learned.planning, *learned.applying}
    assert {"auto-approve", "backup"} <= set(learned.applying)
    assert not {"lock", "input", "refresh", "auto-approve", "no-color"} & set(learned.taking)


def test_an_engine_that_gives_no_help_has_none(tmp_path: Path) -> None:
    assert help_text(tmp_path / "missing") == ""
    assert flags_in(help_text(stand_in(tmp_path, "printf '\\377'; exit 1"))) == {}


def test_the_arguments_of_the_environment_do_not_reach_the_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = stand_in(tmp_path, 'echo "args: $TF_CLI_ARGS_apply$TF_CLI_ARGS checkpoint: $CHECKPOINT_DISABLE"')
    monkeypatch.setenv("TF_CLI_ARGS_apply", "-json")
    monkeypatch.setenv("TF_CLI_ARGS", "-json")
    assert help_text(engine, "apply") == "args:  checkpoint: 1\n"
