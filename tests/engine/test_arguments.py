"""The engine's command line, taken apart."""

from __future__ import annotations

import pytest

from tfguard.engine.arguments import (
    Flags,
    asks_for_help,
    asks_for_version,
    change_request,
    expand_environment,
    refused_line,
    state_flag,
    state_words,
    takes_a_value,
    tokens,
    unknown_flags,
    without_values,
)
from tfguard.errors import UsageError


def test_one_dash_or_two_and_both_forms_of_a_value_are_the_same_flag() -> None:
    for words in (["-var", "a=b"], ["--var", "a=b"], ["-var=a=b"], ["--var=a=b"]):
        (token,) = tokens(words)
        assert (token.name, token.value, token.words) == ("var", "a=b", tuple(words))


def test_a_value_may_look_like_a_flag_and_a_lone_dash_is_none() -> None:
    assert [token.name for token in tokens(["-var", "-x", "-", "--"])] == ["var", None, None]


def test_what_the_engine_takes_out_first_is_never_the_value_of_a_flag() -> None:
    found = list(tokens(["-var", "-no-color", "a=b", "-concise"]))
    assert [(token.name, token.value, token.view) for token in found] == [
        ("no-color", None, True),
        ("var", "a=b", False),
        ("concise", None, True),
    ]


@pytest.mark.parametrize(
    ("word", "truth"), [("-x", True), ("-x=true", True), ("-x=1", True), ("-x=false", False), ("-x=", False)]
)
def test_a_boolean_flag_is_read_as_go_reads_it(word: str, truth: bool) -> None:
    (token,) = tokens([word])
    assert token.truth is truth


def test_the_environments_arguments_stand_where_the_engine_puts_them() -> None:
    environ = {"TF_CLI_ARGS": "-no-color", "TF_CLI_ARGS_apply": "-var 'a=b c'", "TF_CLI_ARGS_plan": "-bogus"}
    assert expand_environment("apply", ["-input=false"], environ) == ("-var", "a=b c", "-no-color", "-input=false")


@pytest.mark.parametrize(
    ("command", "variable"),
    [("force-unlock", "TF_CLI_ARGS_force_unlock"), ("state rm", "TF_CLI_ARGS_state_rm")],
)
def test_the_variable_of_a_command_is_named_as_the_engine_names_it(command: str, variable: str) -> None:
    assert expand_environment(command, ["x"], {variable: "-lock=false"}) == ("-lock=false", "x")
    assert expand_environment(command, ["x"], {"TF_CLI_ARGS_state": "-lock=false"}) == ("x",)


def test_the_environments_arguments_with_an_open_quote_are_refused() -> None:
    with pytest.raises(UsageError, match="TF_CLI_ARGS"):
        expand_environment("apply", [], {"TF_CLI_ARGS_apply": "-var 'a"})


def test_each_flag_goes_to_the_inner_command_that_knows_it() -> None:
    words = [
        "-var",
        "a=b",
        "-target=x.y",
        "-lock-timeout=3s",
        "-auto-approve",
        "-backup=-",
        "-json",
        "-parallelism",
        "3",
    ]
    request = change_request("apply", words)
    assert request.planning == ("-var", "a=b", "-target=x.y", "-lock-timeout=3s", "-parallelism", "3")
    assert request.applying == ("-lock-timeout=3s", "-auto-approve", "-backup=-", "-parallelism", "3")
    assert (request.auto_approve, request.json, request.targets) == (True, True, ("x.y",))
    assert request.variables == ("-var", "a=b")


def test_a_flag_that_the_engine_at_hand_has_goes_where_its_help_says() -> None:
    words = ["-dim", "-glow", "blue", "-hue=3", "-auto-approve"]
    assert unknown_flags(words) == {"dim", "glow", "hue"}
    learned = Flags(planning={"dim", "hue"}, applying={"glow", "hue"}, taking={"glow", "hue"})
    request = change_request("apply", words, learned)
    assert request.planning == ("-dim", "-hue=3")
    assert request.applying == ("-glow", "blue", "-hue=3", "-auto-approve")
    assert request.plan_file is None


def test_flags_end_at_the_first_other_word_as_they_do_for_the_engine() -> None:
    assert change_request("apply", ["--", "my.plan"]).plan_file == "my.plan"
    assert change_request("apply", ["my.plan", "-no-color"]).color is False
    assert change_request("apply", [""]).plan_file is None
    with pytest.raises(UsageError):
        change_request("apply", ["my.plan", "-auto-approve"])


def test_a_plan_file_takes_every_option_along_so_that_the_engine_judges_them() -> None:
    request = change_request("apply", ["-target=x.y", "-var", "a=b", "-no-color", "-json", "my.plan"])
    assert request.plan_file == "my.plan"
    assert request.applying == ("-target=x.y", "-var", "a=b", "-no-color")


def test_destroy_is_a_destroying_plan_whichever_way_it_is_spelled() -> None:
    assert change_request("destroy", []).planning == ("-destroy",)
    assert change_request("apply", ["-destroy"]).destroy
    assert not change_request("apply", ["-destroy=false"]).destroy


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("apply", ["-out=x"]),
        ("apply", ["-detailed-exitcode"]),
        ("destroy", ["-destroy"]),
        ("destroy", ["-refresh-only"]),
        ("destroy", ["my.plan"]),
        ("apply", ["one", "two"]),
        ("apply", ["-no-color", "-var"]),
        ("apply", ["-state"]),
        ("apply", ["-some-day=x"]),
        ("apply", ["-auto-approve="]),
        ("apply", ["-auto-approve=yes"]),
        ("apply", ["-lock=maybe"]),
        ("apply", ["--no-color"]),
        ("apply", ["-no-color=true"]),
        ("apply", ["-compact-warnings=false"]),
        ("apply", ["---auto-approve"]),
        ("apply", ["-=x"]),
        ("apply", ["-parallelism=many"]),
        ("apply", ["-lock-timeout", "soon"]),
        ("apply", ["-help=false"]),
    ],
)
def test_what_the_engine_would_refuse_is_refused(command: str, words: list[str]) -> None:
    with pytest.raises(UsageError):
        change_request(command, words)


def test_values_of_variables_and_of_backend_settings_are_not_kept() -> None:
    words = ("apply", "-var", "pw=hunter2", "--var=pw=hunter2", "-backend-config=hunter2", "-var-file=x.tfvars", "-var")
    kept = without_values(words)
    assert kept == (
        "apply",
        "-var=pw=<removed>",
        "-var=pw=<removed>",
        "-backend-config=<removed>",
        "-var-file=x.tfvars",
        "-var",
    )


TWO_AND_PLAIN = ("NO", "NO", "-no-color")


@pytest.mark.parametrize(
    ("command", "words", "line"),
    [
        ("apply", ["-auto-approve", "-out=x"], ["-input=false", "-out=x", "NO"]),
        ("apply", ["-auto-approve", "-out", "x"], ["-input=false", "-out", "NO"]),
        ("apply", ["-out", "x", "-auto-approve"], ["-input=false", "-out", "NO", "NO"]),
        ("apply", ["-bogus", "-auto-approve=true", "my.plan", "-no-color"], ["-input=false", "-bogus", *TWO_AND_PLAIN]),
        ("apply", ["-auto-approve", "one", "two"], ["-input=false", "NO", "NO"]),
        ("apply", ["-auto-approve", "-input=true", "-state"], ["-input=false", "-state"]),
        ("apply", ["-auto-approve=maybe", "-input"], ["-input=false", "-auto-approve=maybe", "NO"]),
        ("apply", ["-auto-approve", "--", "my.plan", "other.plan"], ["-input=false", "--", "NO", "NO"]),
        ("apply", ["---x", "-auto-approve"], ["-input=false", "---x", "NO"]),
        ("apply", ["-auto-approve", "-json", "---x"], ["-input=false", "-json", "---x"]),
        ("destroy", ["-destroy", "-auto-approve"], ["-input=false", "-destroy", "NO"]),
        ("destroy", ["-auto-approve", "my.plan"], ["-input=false", "my.plan"]),
        # With a mistake before the command nothing is wrong with these.
        ("apply", ["-auto-approve", "-var", "x=y"], ["-input=false", "-var", "x=y", "NO"]),
        ("apply", ["-auto-approve", "my.plan"], ["-input=false", "NO"]),
    ],
)
def test_a_line_that_the_engine_is_to_refuse_could_not_change_anything(
    command: str, words: list[str], line: list[str]
) -> None:
    found = refused_line(command, words)
    assert ["NO" if word.startswith("/dev/null/") else word for word in found] == line


def test_help_and_version_are_asked_for_wherever_the_words_stand() -> None:
    assert asks_for_help(["-var", "-h"])
    assert asks_for_help(["x", "--help"])
    assert not asks_for_help(["--", "-help"])
    assert not asks_for_help(["-help=true", "help"])
    assert asks_for_version(["-var", "x", "--", "-v"])
    assert not asks_for_version(["version", "-var"])


def test_the_state_of_a_command_line_is_the_last_that_it_names() -> None:
    words = ["-state=a", "-var", "-state=b", "--state", "c"]
    assert (state_flag(words), state_words(words)) == ("c", ("-state=a", "--state", "c"))
    assert state_flag(["-state"]) is None
    assert change_request("apply", ["-state=a", "-var=x=y"]).variables == ("-state=a", "-var=x=y")


def test_what_a_flag_takes_for_its_value_is_known() -> None:
    assert [takes_a_value(word) for word in ("-var", "--var-file", "-var=x", "var", "-lock", "---var")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
