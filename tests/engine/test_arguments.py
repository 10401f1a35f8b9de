"""The engine's command line, taken apart."""

from __future__ import annotations

import pytest

from tfguard.engine.arguments import change_request, expand_environment, tokens, without_values
from tfguard.errors import UsageError


def test_one_dash_or_two_and_both_forms_of_a_value_are_the_same_flag() -> None:
    for words in (["-var", "a=b"], ["--var", "a=b"], ["-var=a=b"], ["--var=a=b"]):
        (token,) = tokens(words)
        assert (token.name, token.value, token.words) == ("var", "a=b", tuple(words))


def test_a_value_may_look_like_a_flag_and_a_lone_dash_is_none() -> None:
    assert [token.name for token in tokens(["-var", "-x", "-", "--"])] == ["var", None, None]


@pytest.mark.parametrize(("word", "truth"), [("-x", True), ("-x=true", True), ("-x=1", True), ("-x=false", False)])
def test_a_boolean_flag_is_read_as_go_reads_it(word: str, truth: bool) -> None:
    (token,) = tokens([word])
    assert token.truth is truth


def test_the_environments_arguments_stand_where_the_engine_puts_them() -> None:
    environ = {"TF_CLI_ARGS": "-no-color", "TF_CLI_ARGS_apply": "-var 'a=b c'", "TF_CLI_ARGS_plan": "-bogus"}
    assert expand_environment("apply", ["-input=false"], environ) == ("-var", "a=b c", "-no-color", "-input=false")


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


def test_a_flag_that_is_not_known_goes_to_plan_which_refuses_it() -> None:
    assert change_request("apply", ["-some-day=x"]).planning == ("-some-day=x",)


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
