"""The command line of `terraform`, through tfguard: the same words, the same answers, the same exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    Run,
    StackFactory,
    Start,
    head,
    intent,
    operations,
    outcome,
    role,
    run_folders,
    settings,
    status,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

CHAIN = """
variable "who" {
  default = "you"
}
resource "terraform_data" "a" {
  input = var.who
}
resource "terraform_data" "b" {
  input = terraform_data.a.output
}
output "who" {
  value = terraform_data.b.output
}
"""
FAILING = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "echo to stdout; exit 3"
  }
}
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
}
"""
SLOW = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "touch started; sleep 3"
  }
}
"""
Both = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def both(plain_stack: StackFactory, tf: Run, tfguard: Run) -> Both:
    """Run a command on one stack through both, on twin folders; stdout and exit code must be the same.

    The folders are made by the first call, and kept for the calls after it.
    """
    made: list[Path] = []

    def run(
        *arguments: str,
        body: str = CHAIN,
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        if not made:
            made.extend(plain_stack(body, name=name) for name in ("one", "two"))
            for name, content in (files or {}).items():
                for folder in made:
                    (folder / name).write_text(content)
        real = tf(*arguments, cwd=made[0], env=env, stdin=stdin, check=False)
        ours = tfguard(*arguments, cwd=made[1], env=env, stdin=stdin)
        assert same(ours.stdout) == same(real.stdout)
        assert ours.returncode == real.returncode, ours.stderr
        if "-json" not in arguments:
            assert same(ours.stderr).startswith(same(real.stderr))
        return ours

    return run


def same(text: str) -> str:
    """The text without what differs between any two runs: ids, times, and the name of the folder."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r'"@timestamp":"[^"]*"', '"@timestamp":"<time>"', text)
    text = re.sub(r"(?<= after )\d+s|\b\d+s(?= elapsed)|(?<=\"elapsed_seconds\":)\d+", "<elapsed>", text)
    return re.sub(r"/work/(one|two)\b", "/work/<stack>", text)


@pytest.mark.parametrize("colour", [(), ("-no-color",)])
def test_apply_and_destroy_print_what_terraform_prints(both: Both, colour: tuple[str, ...]) -> None:
    assert both("apply", "-auto-approve", *colour).returncode == 0
    assert both("apply", "-auto-approve", *colour).returncode == 0
    assert both("apply", "-auto-approve", "-var", "who=me", *colour).returncode == 0
    assert both("destroy", "-auto-approve", *colour).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("-target=terraform_data.a", "-input=false"),
        ("-target", "terraform_data.a"),
        ("-replace=terraform_data.a",),
        ("-refresh-only",),
        ("-destroy",),
        ("-var", "who=x"),
        ("--var=who=x",),
        ("-var-file=some.tfvars",),
        ("-var-file", "some.tfvars", "-compact-warnings"),
        ("-parallelism=1", "-lock-timeout=3s", "-refresh=false"),
        ("-parallelism", "1", "-lock-timeout", "3s", "-lock=true"),
    ],
    ids=" ".join,
)
def test_options_mean_what_they_mean_to_terraform(both: Both, arguments: tuple[str, ...]) -> None:
    files = {"some.tfvars": 'who = "file"\n'}
    assert both("apply", "-no-color", "-auto-approve", files=files).returncode == 0
    # With an answer piped in: with -auto-approve warnings of the plan come later than they do here.
    assert both("apply", "-no-color", *arguments, stdin="yes\n").returncode == 0


REFUSED = [
    ("apply", "-no-color", "-var", "who"),
    ("apply", "-no-color", "-json"),
    ("nonsense",),
    ("apply", "-out=x", "-auto-approve"),
    ("apply", "-no-color", "-auto-approve", "-out", "x"),
    ("apply", "-detailed-exitcode", "-auto-approve"),
    ("apply", "-generate-config-out", "x", "-auto-approve"),
    ("apply", "-json", "-auto-approve", "-out=x"),
    ("destroy", "-destroy", "-auto-approve"),
    ("destroy", "-refresh-only", "-auto-approve"),
    ("destroy", "-auto-approve", "missing.plan"),
    ("apply", "-auto-approve", "-var"),
    ("apply", "-auto-approve", "-state"),
    ("apply", "-auto-approve", "one", "two"),
    ("apply", "-auto-approve", "-bogus"),
    ("apply", "-bogus", "-auto-approve", "-no-color"),
    ("apply", "-auto-approve", "-bogus", "one", "-no-color"),
    ("apply", "-auto-approve", "-bogus=1", "-no-color", "one"),
    ("apply", "-auto-approve", "--bogus", "--", "one"),
    ("apply", "-auto-approve="),
    ("apply", "-auto-approve=maybe"),
    ("apply", "-auto-approve", "--no-color"),
    ("apply", "-auto-approve", "-no-color=true"),
    ("apply", "-auto-approve", "---no-color"),
    ("apply", "-auto-approve", "-lock=perhaps"),
    ("apply", "-auto-approve", "-parallelism=many"),
    ("apply", "-auto-approve", "-lock-timeout=soon"),
    ("apply", "-auto-approve", "-target=no!"),
    ("apply", "-auto-approve", "-reason", "x"),
    ("apply", "-auto-approve", "-help=false"),
    ("-chdir=", "apply", "-auto-approve"),
    ("-chdir", ".", "apply", "-auto-approve"),
    ("-chdir=nowhere", "apply", "-auto-approve"),
    ("-chdir=.", "-chdir=.", "apply", "-auto-approve"),
    ("--chdir=.", "destroy", "-auto-approve"),
    ("-bogus", "apply", "-auto-approve"),
    ("-bogus",),
    ("--", "apply", "-auto-approve"),
    ("state rm", "terraform_data.a"),
]


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_terraform_refuses_is_refused_in_its_words_and_not_recorded(
    plain_stack: StackFactory, tf: Run, tfguard: Run, arguments: tuple[str, ...]
) -> None:
    stack = plain_stack(CHAIN)
    real, ours = tf(*arguments, cwd=stack, check=False), tfguard(*arguments, cwd=stack)
    assert (ours.returncode, ours.stderr) == (real.returncode, real.stderr)
    assert same(ours.stdout) == same(real.stdout)
    assert ours.returncode in (1, 127)
    assert operations(stack) == []
    assert not (stack / "terraform.tfstate").exists()


@pytest.mark.parametrize(
    "value", ["-bogus", "-out=x", "-var 'who", "-lock=maybe"], ids=["unknown", "plan's own", "quote", "no boolean"]
)
@pytest.mark.parametrize("name", ["TF_CLI_ARGS", "TF_CLI_ARGS_apply"])
def test_what_terraform_refuses_of_the_environment_is_refused_in_its_words(
    plain_stack: StackFactory, tf: Run, tfguard: Run, name: str, value: str
) -> None:
    stack = plain_stack(CHAIN)
    real, ours = (run("apply", "-auto-approve", cwd=stack, env={name: value}) for run in (unchecked(tf), tfguard))
    assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)
    assert ours.returncode == 1
    assert not (stack / "terraform.tfstate").exists()


def unchecked(tf: Run) -> Run:
    """The engine, whose exit code the caller looks at."""
    return lambda *arguments, **settings: tf(*arguments, **settings, check=False)


def test_an_engine_that_takes_what_should_be_refused_changes_nothing_either(
    plain_stack: StackFactory, engine: Path, tfguard: Run, tmp_path: Path
) -> None:
    stack = plain_stack(CHAIN)
    # An engine that overlooks what this one does not know: the rest of the line must not be an apply.
    script = """
    for word; do shift; case $word in -out*|-bogus*|--|-detailed*) ;; *) set -- "$@" "$word" ;; esac; done
    exec "$ENGINE" "$@"
    """
    around = wrapper(tmp_path, engine, script)
    for words in (("-out=x",), ("-bogus",), ("-detailed-exitcode",), ("-input=true", "-bogus", "--")):
        for command in ("apply", "destroy"):
            done = tfguard("--engine", str(around), command, "-auto-approve", *words, cwd=stack, stdin="yes\n")
            assert done.returncode == 1
            assert "tfguard does not know one of these options" in done.stderr
    assert not (stack / "terraform.tfstate").exists()
    assert operations(stack) == []


def test_flags_of_a_newer_engine_reach_the_command_that_has_them(
    plain_stack: StackFactory, engine: Path, tfguard: Run, tmp_path: Path
) -> None:
    stack = plain_stack(CHAIN)
    script = f"""
    echo "$@" >> {tmp_path}/calls
    case "$*" in
      "apply -help") "$ENGINE" apply -help; echo '  -glow=colour  Shine.'; echo '  -hue=n  Tint.'; exit ;;
      "plan -help") printf 'Usage:\n  -dim  Fade.\n\nOther Options:\n  -hue=n  Tint.\n  -sharp  No.\n'; exit ;;
    esac
    for word; do
      shift; case $word in -dim|-glow|blue|-hue=*) ;; *) set -- "$@" "$word" ;; esac
    done
    exec "$ENGINE" "$@"
    """
    around = wrapper(tmp_path, engine, script)
    done = tfguard("--engine", str(around), *APPLY, "-dim", "-glow", "blue", "-hue=7", cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    (plan,) = (words for words in calls if words[0] == "plan" and "-help" not in words)
    (apply,) = (words for words in calls if words[0] == "apply" and "-help" not in words)
    assert {"-dim", "-hue=7"} <= set(plan)
    assert not {"-glow", "blue"} & set(plan)
    assert {"-glow", "blue", "-hue=7"} <= set(apply)
    assert "-dim" not in apply
    assert apply.index("blue") == apply.index("-glow") + 1
    # A flag that is not known here may be a slip for `-var`: its value is not kept.
    assert intent(stack, operations(stack)[0])["argv"][-4:] == ["-dim", "-glow", "blue", "-hue=<removed>"]
    refused = tfguard("--engine", str(around), *APPLY, "-sharp", cwd=stack)
    assert refused.returncode == 1
    assert "flag provided but not defined: -sharp" in refused.stderr


def test_a_stack_that_was_not_initialised_is_refused_in_terraforms_words(workdir: Path, tf: Run, tfguard: Run) -> None:
    (workdir / "main.tf").write_text('terraform {\n  backend "local" {}\n}\n' + CHAIN)
    for words in (("apply", "-auto-approve"), ("destroy", "-no-color"), ("plan",), ("apply", "-var", "who=x")):
        real, ours = tf(*words, cwd=workdir, check=False), tfguard(*words, cwd=workdir)
        assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)
        assert ours.returncode == 1
    assert [path.name for path in workdir.iterdir()] == ["main.tf"]


def test_a_failing_apply_prints_the_engines_error_and_gives_its_exit_code(both: Both, workdir: Path) -> None:
    done = both("apply", "-auto-approve", "-no-color", "-parallelism=1", body=FAILING)
    assert done.returncode == 1
    assert "Error: local-exec provisioner error" in done.stderr
    assert "to stdout" in done.stdout
    stack = workdir / "two"
    found = outcome(stack, operations(stack)[0])
    assert found is not None
    assert {step["address"]: (step["status"], step["outcome"]) for step in found["steps"]} == {
        "terraform_data.a": ("error", "tainted"),
        "terraform_data.b": ("pending", "absent"),
    }


def test_json_is_one_stream_as_terraform_prints_it(both: Both) -> None:
    done = both("apply", "-auto-approve", "-json", "-parallelism=1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines].count("version") == 1
    assert both("destroy", "-auto-approve", "-json", "-parallelism=1").returncode == 0


def test_detailed_exit_codes_of_plan_are_kept(both: Both) -> None:
    assert both("plan", "-no-color", "-detailed-exitcode").returncode == 2
    assert both("apply", "-no-color", "-auto-approve").returncode == 0
    assert both("plan", "-no-color", "-detailed-exitcode").returncode == 0
    assert both("plan", "-no-color", "-detailed-exitcode", "-var").returncode == 1


@pytest.mark.parametrize(
    ("answer", "colour"),
    [("yes\n", ()), ("yes\n", ("-no-color",)), ("yes", ("-no-color",)), ("no\n", ()), ("\n", ("-no-color",)), ("", ())],
)
def test_an_answer_that_is_piped_in_is_taken_as_terraform_takes_it(
    both: Both, workdir: Path, answer: str, colour: tuple[str, ...]
) -> None:
    done = both("apply", *colour, stdin=answer)
    assert done.returncode == (0 if answer == "yes\n" else 1)
    assert len(operations(workdir / "two")) == (1 if answer == "yes\n" else 0)
    assert run_folders(workdir / "two") == []


@pytest.mark.parametrize("more", [(), ("-input=false",)])
def test_without_an_answer_nothing_is_applied(both: Both, workdir: Path, more: tuple[str, ...]) -> None:
    assert both("apply", "-no-color", *more).returncode == 1
    assert operations(workdir / "two") == []


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.parametrize("colour", [(), ("-no-color",)])
def test_the_question_on_a_terminal_is_terraforms(
    plain_stack: StackFactory, engine: Path, run_env: dict[str, str], answer: str, colour: tuple[str, ...]
) -> None:
    one, two = plain_stack(CHAIN, name="one"), plain_stack(CHAIN, name="two")
    env = run_env | {"TERM": "xterm"}
    real = on_terminal([str(engine), "apply", *colour], one, env, answer)
    ours = on_terminal([sys.executable, "-m", "tfguard", "apply", *colour], two, env, answer)
    assert same(ours[1]) == same(real[1])
    assert ours[0] == real[0] == (0 if answer == "yes" else 1)
    assert len(operations(two)) == (1 if answer == "yes" else 0)


def on_terminal(argv: list[str], cwd: Path, env: Mapping[str, str], answer: str) -> tuple[int, str]:
    """Run a command on a terminal, answer its question, and tell its exit code and all that it showed."""
    owner, terminal = pty.openpty()
    os.set_inheritable(terminal, True)
    subprocess.run(["stty", "cols", "101", "rows", "40"], stdin=terminal, check=True)
    process = subprocess.Popen(
        argv, cwd=cwd, env=dict(env), stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    shown, answered = b"", False
    while True:
        if select.select([owner], [], [], 60)[0]:
            try:
                chunk = os.read(owner, 65536)
            except OSError:  # the terminal's last user has gone
                break
            shown += chunk
        if not answered and b"Enter a value:" in shown:
            answered = True
            time.sleep(0.2)
            os.write(owner, answer.encode() + b"\n")
    os.close(owner)
    return process.wait(timeout=60), shown.decode()


def test_a_refresh_that_finds_drift_is_asked_about(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = stack_factory('resource "aws_cloudwatch_log_group" "logs" {\n  name = "logs"\n}\n')
    tf(*APPLY, cwd=stack)
    before = (stack / "terraform.tfstate").read_text()
    moto.client("logs").put_retention_policy(logGroupName="logs", retentionInDays=7)
    declined = tfguard("apply", "-refresh-only", "-no-color", cwd=stack, stdin="no\n")
    assert "Would you like to update the Terraform state" in declined.stdout
    assert declined.returncode == 1
    assert (stack / "terraform.tfstate").read_text() == before
    assert tfguard("apply", "-refresh-only", "-no-color", cwd=stack, stdin="yes\n").returncode == 0
    assert '"retention_in_days": 7' in (stack / "terraform.tfstate").read_text()
    assert proxy.log.entries("PutRetentionPolicy") == []


def test_a_plan_file_of_the_user_is_applied_without_a_question_and_stays(both: Both, workdir: Path) -> None:
    both("plan", "-no-color", "-out=my.plan")
    assert both("apply", "-no-color", "my.plan").returncode == 0
    assert (workdir / "two" / "my.plan").exists()
    kept = intent(workdir / "two", operations(workdir / "two")[0])
    assert kept["approval"]["how"] == "plan-file"
    assert [step["address"] for step in kept["steps"]] == ["terraform_data.a", "terraform_data.b"]


def test_a_plan_file_that_is_stale_is_refused_by_the_engine_and_leaves_nothing_open(both: Both, workdir: Path) -> None:
    both("plan", "-no-color", "-out=my.plan")
    both("apply", "-no-color", "-auto-approve")
    done = both("apply", "-no-color", "my.plan")
    assert done.returncode == 1
    assert "Saved plan is stale" in done.stderr
    assert head(workdir / "two")["open_operations"] == []


def test_options_next_to_a_plan_file_are_judged_by_the_engine(both: Both, workdir: Path) -> None:
    both("plan", "-no-color", "-out=my.plan", files={"other.tfvars": 'nobody = "x"\n'})
    done = both("apply", "-no-color", "-var", "who=other", "my.plan")
    assert done.returncode == 1
    assert not (workdir / "two" / "terraform.tfstate").exists()


def test_destroy_takes_no_plan_file(plain_stack: StackFactory, tf: Run, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    tf("plan", "-out=my.plan", cwd=stack)
    done = tfguard("destroy", "my.plan", cwd=stack)
    assert done.returncode == 1
    assert "Destroy can't be called with a plan file" in done.stderr
    assert not (stack / "terraform.tfstate").exists()


def test_chdir_works_from_elsewhere_and_is_named_in_the_advice(
    plain_stack: StackFactory, tfguard: Run, workdir: Path
) -> None:
    plain_stack(CHAIN)
    done = tfguard("-chdir=stack", "apply", "-auto-approve", "-no-color", cwd=workdir)
    assert done.returncode == 0, done.stderr
    assert len(operations(workdir / "stack")) == 1
    assert tfguard("-chdir=stack", "output", "-json", cwd=workdir).returncode == 0
    assert tfguard("-chdir=stack", "status", cwd=workdir).returncode == 0


def test_chdir_to_nowhere_is_refused_and_makes_no_folder(tfguard: Run, workdir: Path) -> None:
    for command in ("apply", "destroy", "status", "recover", "history", "plan", "refresh", "taint"):
        done = tfguard("-chdir=nowhere", command, cwd=workdir)
        assert done.returncode == 1
        assert "nowhere" in done.stderr
        assert list(workdir.iterdir()) == []


def test_arguments_from_the_environment_count_once(both: Both, workdir: Path) -> None:
    env = {"TF_CLI_ARGS": "-no-color", "TF_CLI_ARGS_apply": "-auto-approve -var 'who=some one'"}
    assert "some one" in both("apply", env=env).stdout
    kept = intent(workdir / "two", operations(workdir / "two")[0])
    assert kept["argv"] == ["apply", "-auto-approve", "-var=who=<removed>", "-no-color"]
    assert both("output", env={"TF_CLI_ARGS_output": "-json"}).returncode == 0
    # What is meant for the inner commands of tfguard must not change what they print.
    bent = env | {"TF_CLI_ARGS_plan": "-json", "TF_CLI_ARGS_show": "-no-color", "TF_CLI_ARGS_state": "-bogus"}
    assert both("apply", "-var", "who=other", env=bent).returncode == 0


def test_arguments_from_the_environment_are_split_as_the_engine_splits_them(both: Both) -> None:
    for value in ("-var 'who=a b'", '-var "who=a\\\\d"', "-var who=a\\ b;c", "-var=who='$x' 2>&1"):
        done = both("apply", "-auto-approve", "-no-color", env={"TF_CLI_ARGS_apply": value})
        assert done.returncode == 0


@pytest.mark.parametrize("folder", ["elsewhere", "../beside"])
def test_a_data_folder_is_meant_from_where_chdir_leads(
    plain_stack: StackFactory, tf: Run, tfguard: Run, workdir: Path, folder: str
) -> None:
    stack = plain_stack('terraform {\n  backend "local" {\n    path = "there.tfstate"\n  }\n}\n' + CHAIN)
    shutil.rmtree(stack / ".terraform")
    env = {"TF_DATA_DIR": folder}
    tf("-chdir=stack", "init", cwd=workdir, env=env)
    assert tfguard("-chdir=stack", *APPLY, cwd=workdir, env=env).returncode == 0
    assert (stack / "there.tfstate.tfguard" / "head.json").exists()
    (made,) = (stack / "there.tfstate.tfguard" / "operations").iterdir()
    ran_in = Path(json.loads((made / "intent.json").read_text())["run_directory"])
    assert ran_in.resolve().is_relative_to((stack / folder / "tfguard").resolve())
    assert not (stack / ".terraform").exists()
    assert tfguard("-chdir=stack", "status", cwd=workdir, env=env).returncode == 0


def test_the_record_lies_beside_the_state_that_init_was_told_of(
    plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = plain_stack(CHAIN)
    (stack / "backend.tf").write_text('terraform {\n  backend "local" {}\n}\n')
    tf("init", "-backend-config=path=one.tfstate", cwd=stack)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (stack / "two.hcl").write_text('path = "two.tfstate"\n')
    assert tfguard("init", "-reconfigure", "-backend-config=two.hcl", cwd=stack).returncode == 0
    assert tfguard("status", "--format", "json", cwd=stack).stdout.count('"operation_id": null') == 1
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    for name in ("one", "two"):
        kept = json.loads((stack / f"{name}.tfstate.tfguard" / "head.json").read_text())
        assert kept["open_operations"] == []
    assert not (stack / "terraform.tfstate.tfguard").exists()


def test_another_data_folder_is_used_for_everything_private(plain_stack: StackFactory, tf: Run, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    env = {"TF_DATA_DIR": "elsewhere"}
    tf("init", cwd=stack, env=env)
    assert tfguard(*APPLY, cwd=stack, env=env).returncode == 0
    assert not (stack / ".terraform").exists()
    ran_in = Path(intent(stack, operations(stack)[0])["run_directory"])
    assert ran_in.is_relative_to(stack / "elsewhere" / "tfguard")
    assert not (stack / "elsewhere" / "tfguard").exists(), "nothing private stays"


def test_a_workspace_has_its_own_record(plain_stack: StackFactory, tf: Run, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    tf("workspace", "new", "dev", cwd=stack)
    tf("workspace", "select", "default", cwd=stack)
    assert tfguard(*APPLY, cwd=stack, env={"TF_WORKSPACE": "dev"}).returncode == 0
    state = stack / "terraform.tfstate.d" / "dev" / "terraform.tfstate"
    assert state.exists()
    assert (state.with_name("terraform.tfstate.tfguard") / "head.json").exists()
    assert not (stack / "terraform.tfstate.tfguard").exists()
    tf("workspace", "select", "dev", cwd=stack)
    found = status(tfguard, stack, code=0)
    assert (found["stack"]["workspace"], found["stack"]["location"]) == ("dev", str(state))


def test_the_question_names_the_workspace(both: Both) -> None:
    both("workspace", "new", "dev", "-no-color")
    assert 'in workspace "dev"?' in both("apply", "-no-color", stdin="yes\n").stdout
    assert 'in workspace "dev"?' in both("destroy", "-no-color", stdin="no\n").stdout


def test_a_state_that_is_named_on_the_command_line_has_its_own_record(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    done = tfguard(*APPLY, "-state=other.tfstate", cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    kept = json.loads((stack / "other.tfstate.tfguard" / "head.json").read_text())
    assert kept["open_operations"] == []
    assert not (stack / "terraform.tfstate.tfguard").exists()
    assert tfguard("destroy", "-auto-approve", "-state", "other.tfstate", cwd=stack).returncode == 0


KILLED = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "kill -9 $PPID; sleep 1"
  }
}
"""


def test_the_record_of_a_state_that_was_named_is_found_by_naming_it(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(KILLED)
    assert tfguard(*APPLY, "--no-verify", "-state=it's.tfstate", cwd=stack).returncode == 137
    assert "no operation is recorded" in tfguard("status", cwd=stack).stdout
    for words in (["-state=it's.tfstate"], ["--state", "it's.tfstate"]):
        found = status(tfguard, stack, *words, code=11)
        assert found["next_actions"] == ["tfguard recover -state='it'\"'\"'s.tfstate'"]
        (line,) = tfguard("history", *words, cwd=stack).stdout.splitlines()
        assert line.startswith(found["operation_id"])
        assert tfguard("orphans", "list", *words, cwd=stack).returncode in (0, 3)
    warned = tfguard("plan", "-no-color", "-state=it's.tfstate", cwd=stack)
    assert warned.returncode == 0
    assert f"operation {found['operation_id']} is not settled: `tfguard status -state=" in warned.stderr
    assert tfguard("plan", "-no-color", cwd=stack).stderr == ""
    done = tfguard("recover", "-state=it's.tfstate", cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert status(tfguard, stack, "-state", "it's.tfstate", code=0)["open"] is False


def test_a_finding_of_a_state_that_was_named_is_adopted_into_that_state(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, "-state", "other.tfstate", cwd=stack).returncode == 1
    found = status(tfguard, stack, "-state=other.tfstate", code=11)["steps"][0]["finding"]
    (action,) = status(tfguard, stack, "-state=other.tfstate", code=11)["next_actions"]
    assert action == f"tfguard import -state=other.tfstate --orphan {found}"
    assert tfguard("orphans", "show", found, "-state=other.tfstate", cwd=stack).returncode == 0
    for line in ("tfguard import -state=other.tfstate --orphan ", "tfguard orphans show -state=other.tfstate o-"):
        asked = {"_TFGUARD_COMPLETE": "zsh_complete", "COMP_WORDS": line}
        assert tfguard(cwd=stack, env=asked).stdout == f"{found}\taws_iam_role.app\n"
    blocked = tfguard(*APPLY, "-state=other.tfstate", cwd=stack)
    assert (blocked.returncode, found in blocked.stderr) == (11, True)
    adopted = tfguard(*action.split()[1:], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    kept = json.loads((stack / "other.tfstate").read_text())
    assert [item["type"] for item in kept["resources"]] == ["aws_iam_role"]
    assert not (stack / "terraform.tfstate").exists()
    assert not (stack / "terraform.tfstate.tfguard").exists()
    assert status(tfguard, stack, "-state=other.tfstate", code=0)["open"] is False
    assert orphans_of(tfguard, stack, "-state=other.tfstate") == []
    assert tfguard("plan", "-detailed-exitcode", "-state=other.tfstate", cwd=stack).returncode == 0


def orphans_of(tfguard: Run, stack: Path, *words: str) -> list[object]:
    """The findings that nobody has decided about."""
    found = json.loads(tfguard("orphans", "list", "--format", "json", *words, cwd=stack).stdout)
    return [item for item in found["findings"] if item["disposition"] is None]


@pytest.mark.parametrize("words", [("--confirm-absnet", "x"), ("-target=x",), ("x",), ("-auto-approve",)], ids=" ".join)
def test_recover_takes_none_of_the_engines_options_that_it_has_no_use_for(
    plain_stack: StackFactory, tfguard: Run, words: tuple[str, ...]
) -> None:
    done = tfguard("recover", *words, cwd=plain_stack(CHAIN))
    assert (done.returncode, done.stdout) == (1, "")
    assert words[0] in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "-auto-approve"),
        ("destroy", "-auto-approve"),
        ("refresh",),
        ("taint", "terraform_data.a"),
        ("state", "rm", "terraform_data.a"),
    ],
    ids=" ".join,
)
def test_a_run_without_a_lock_is_warned_of_once(
    plain_stack: StackFactory, tfguard: Run, words: tuple[str, ...]
) -> None:
    stack = plain_stack(CHAIN)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    place = 2 if words[0] == "state" else 1
    done = tfguard(*words[:place], "-lock=false", *words[place:], cwd=stack)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("-lock=false") == 1


def test_a_state_that_is_written_elsewhere_is_read_there(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    done = tfguard(*APPLY, "-state-out=new.tfstate", cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    found = status(tfguard, stack, code=0)
    assert {step["outcome"] for step in found["steps"]} == {"recorded"}


@pytest.mark.parametrize("damage", ["config", "record", "folder", "place"])
def test_nothing_of_tfguards_fails_a_plan(both: Both, workdir: Path, damage: str) -> None:
    assert both("apply", "-auto-approve", "-no-color").returncode == 0
    stack = workdir / "two"
    if damage == "config":
        (stack / "tfguard.yaml").write_text("on_gap: [\n")
    elif damage == "record":
        (stack / "terraform.tfstate.tfguard/head.json").write_text("{")
    elif damage == "folder":
        shutil.rmtree(stack / "terraform.tfstate.tfguard")
        (stack / "terraform.tfstate.tfguard").write_text("")
    else:
        (stack / "tfguard.yaml").write_text("records: gs://bucket\n")
    done = both("plan", "-no-color", "-detailed-exitcode", "-var", "who=me")
    assert done.returncode == 2
    assert done.stderr.startswith("tfguard: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [("output", "-json"), ("fmt", "-check"), ("validate", "-no-color"), ("workspace", "list"), ("show", "-no-color")],
    ids=" ".join,
)
def test_other_commands_are_the_engines_own(both: Both, arguments: tuple[str, ...]) -> None:
    both(*arguments)


def test_exit_codes_of_other_commands_are_kept(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack('output "a" {\nvalue=1\n}\n')
    assert tfguard("fmt", "-check", cwd=stack).returncode == 3
    assert tfguard("show", "missing", cwd=stack).returncode == 1
    (stack / "broken.tf").write_text("resource {")
    assert tfguard("validate", cwd=stack).returncode == 1


LOADED = """
import sys
from tfguard.cli.main import exit_code_of
code = exit_code_of(sys.argv[1:])
heavy = sorted({name.partition(".")[0] for name in sys.modules} & {"boto3", "botocore", "google", "moto", "yaml"})
print("loaded", code, *heavy, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [("version",), APPLY, ("status",), ("history",), ("destroy", "-auto-approve")], ids=" ".join
)
def test_a_stack_without_aws_loads_no_cloud_sdk(
    plain_stack: StackFactory, run_env: dict[str, str], arguments: tuple[str, ...]
) -> None:
    stack = plain_stack(CHAIN)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], cwd=stack, env=run_env, capture_output=True, text=True, timeout=60
    )
    last = done.stderr.splitlines()[-1].split()
    assert last[:2] == ["loaded", "0"]
    assert not {"boto3", "botocore", "google", "moto"} & set(last)


def test_plan_loads_no_cloud_sdk_before_it_becomes_the_engine(
    plain_stack: StackFactory, run_env: dict[str, str]
) -> None:
    stack = plain_stack(CHAIN)
    argv = [sys.executable, "-X", "importtime", "-m", "tfguard", "plan"]
    done = subprocess.run(argv, cwd=stack, env=run_env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "botocore" not in done.stderr
    assert "tfguard.cli.record_place" in done.stderr
    # Nor what only a run needs: every plan would wait for it.
    assert "tfguard.cli.wiring" not in done.stderr
    assert "tfguard.catalog" not in done.stderr


def wrapper(folder: Path, engine: Path, script: str) -> Path:
    """A script around the real engine; `script` sees the engine's path as $ENGINE and its arguments as $@."""
    path = folder / "wrapped-engine"
    path.write_text(f"#!/bin/sh\nENGINE={engine}\n{script}\n")
    path.chmod(0o755)
    return path


def test_unknown_events_and_plain_lines_in_the_stream_are_survived(
    plain_stack: StackFactory, engine: Path, tfguard: Run, tmp_path: Path
) -> None:
    stack = plain_stack(CHAIN)
    script = """
    if [ "$1" = apply ]; then
      echo 'a plain line'
      echo '{"@level":"info","@message":"from the future","type":"teleport_start","hook":7}'
      echo '{"type":["no","text"],"hook":{"resource":"none"}}'
      echo '[1,2]'
      printf '\\377\\376 not utf-8\\n'
      "$ENGINE" "$@"; code=$?
      printf '{"@level":"info","@message":"cut'
      exit $code
    fi
    exec "$ENGINE" "$@"
    """
    around = wrapper(tmp_path, engine, script)
    done = tfguard("--engine", str(around), *APPLY, cwd=stack)
    assert done.returncode == 0
    assert "a plain line" in done.stdout
    assert "from the future" in done.stdout
    assert "Apply complete! Resources: 2 added" in done.stdout
    assert "cut lines" in done.stderr
    found = outcome(stack, operations(stack)[0])
    assert found is not None
    assert (found["stream"]["cut"], found["stream"]["whole"]) == (1, False)
    assert {step["outcome"] for step in found["steps"]} == {"recorded"}


def test_an_exit_code_of_a_dead_engine_behind_a_script_is_an_interruption(
    plain_stack: StackFactory, engine: Path, tfguard: Run, tmp_path: Path
) -> None:
    stack = plain_stack(CHAIN)
    around = wrapper(tmp_path, engine, '[ "$1" = apply ] && exit 137\nexec "$ENGINE" "$@"')
    done = tfguard("--engine", str(around), *APPLY, cwd=stack)
    assert done.returncode == 137
    found = outcome(stack, operations(stack)[0])
    assert found is not None
    assert (found["status"], found["signal"]) == ("interrupted", 9)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_one_interrupt_is_forwarded_once(
    plain_stack: StackFactory, tfguard_popen: Start, signum: signal.Signals
) -> None:
    stack = plain_stack(SLOW)
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "started").exists())
    os.kill(running.pid, signum)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1
    assert out.count("Interrupt received.") == 1
    assert "Two interrupts received" not in out
    assert err.count("the engine was interrupted once") == 1
    found = outcome(stack, operations(stack)[0])
    assert found is not None
    assert found["status"] == "cancelled"


def test_destroy_is_recorded_like_apply(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    tfguard(*APPLY, cwd=stack)
    assert tfguard("destroy", "-auto-approve", cwd=stack).returncode == 0
    made, gone = operations(stack)
    kept = intent(stack, gone)
    assert (kept["command"], {step["action"] for step in kept["steps"]}) == ("destroy", {"delete"})
    found = outcome(stack, gone)
    assert found is not None
    assert {(step["status"], step["outcome"]) for step in found["steps"]} == {("destroyed", "absent")}
    assert head(stack)["current"] == gone != made


def test_no_value_of_a_variable_is_kept(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(CHAIN)
    assert tfguard(*APPLY, "-var", "who=hunter2", "-var=who=hunter2", cwd=stack).returncode == 0
    record = stack / "terraform.tfstate.tfguard"
    kept = b"".join(path.read_bytes() for path in record.rglob("*") if path.is_file())
    assert b"hunter2" not in kept
    assert b"<removed>" in kept
    assert {oct(path.stat().st_mode & 0o777) for path in record.rglob("*.json*")} == {"0o600"}


def test_a_reader_that_goes_away_does_not_stop_the_apply(
    plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path
) -> None:
    stack = plain_stack(SLOW)
    python = shutil.which(sys.executable) or sys.executable
    command = f"'{python}' -m tfguard apply -auto-approve -no-color 2>'{tmp_path}/err' | head -n 1"
    subprocess.run(["sh", "-c", command], cwd=stack, env=run_env, check=True, timeout=60, capture_output=True)
    wait_until(lambda: bool(operations(stack)) and outcome(stack, operations(stack)[0]) is not None)
    found = outcome(stack, operations(stack)[0])
    assert found is not None
    assert (found["status"], found["exit_code"]) == ("ok", 0)
