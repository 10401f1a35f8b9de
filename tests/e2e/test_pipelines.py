"""The examples in docs/pipelines, run as their platform runs them: from the files themselves, with its shell, its
variables, its signals. What only the platform has (artifacts, `gh`, a package registry, a venv) is a stand-in here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html import unescape
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers import StackFactory, engine_pid, in_flight, operations, outcome, role, runs, settings, step, wait_until
from pipelines import (
    ATLANTIS,
    EXAMPLES,
    GITHUB,
    GITLAB,
    GITLAB_SHELL,
    JENKINS,
    JENKINS_SHELL,
    SCRIPT,
    GitHub,
    NewProject,
    Project,
    Registry,
    atlantis_run,
    every_script,
    finished,
    github_runs,
    gitlab_after,
    gitlab_environ,
    gitlab_script,
    in_atlantis,
    in_jenkins,
    jenkins_blocks,
    jenkins_environ,
    jenkins_run,
    kill_as_jenkins_does,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "one" {\n  input = "first"\n}\n'
FAILS = """
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "exit 7"
  }
}
"""
SLEEPS = """
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "touch started; sleep 300"
  }
}
"""


@pytest.fixture
def make_project(
    workdir: Path, tmp_path: Path, run_env: dict[str, str], attach: Callable[[dict[str, str], Path], dict[str, str]]
) -> NewProject:
    """Make a checkout around a stack: `make_project(body, factory)`, where the factory makes `repo/live`.

    With `kept_provider` its engines use the provider that is up: for jobs that nobody disturbs.
    """

    def make(body: str, factory: StackFactory, *, kept_provider: bool = False) -> Project:
        root, tools = workdir / "repo", tmp_path / "tools"
        root.mkdir()
        tools.mkdir()
        settings(factory(body, name="repo/live"))
        me = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | {
            f"GIT_{who}_{what}": "x@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environ = run_env | me | {"PATH": f"{tools}:{run_env['PATH']}"}
        project = Project(root, attach(environ, root) if kept_provider else environ, tools)
        project.tool("tfguard", f'#!/bin/sh\nexec "{sys.executable}" -m tfguard "$@"\n')
        project.tool("pip", f'#!/bin/sh\necho "$@" >>"{tools}/installed"\n')
        (root / ".gitignore").write_text("live/*\n!live/*.tf\n!live/tfguard.yaml\n")
        project.git("init", "-q", "-b", "main")
        project.commit("first")
        return project

    return make


# --- the files themselves


@pytest.mark.parametrize(("shell", "text"), [pytest.param(s, t, id=where) for s, where, t in every_script()])
def test_every_piece_of_shell_parses_and_names_no_expression_of_the_platform(shell: str, text: str) -> None:
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "${{" not in text, "an expression inside a script lets a branch name become a command"


INSTALL = "pip install 'tfguard[aws] @ git+https://YOUR-HOST/tfguard@TAG'"


def test_no_example_installs_whatever_has_the_name_on_an_index() -> None:
    for path in [path for path in EXAMPLES.parent.rglob("*") if path.is_file()]:
        lines = path.read_text(errors="replace").splitlines()
        assert [line for line in lines if "pip install" in line and "tfguard" in line and INSTALL not in line] == []


def test_each_example_has_what_it_is_an_example_of() -> None:
    apply = GITHUB["jobs"]["apply"]
    assert apply["concurrency"] == {"group": "apply-live", "cancel-in-progress": False}
    assert github_runs("apply")["recover"]["if"] == "always()"
    wrappers = [item["with"]["terraform_wrapper"] for job in GITHUB["jobs"].values() for item in job["steps"]
                if item.get("uses", "").startswith("hashicorp/setup-terraform")]  # fmt: skip
    assert wrappers == [False, False]
    assert github_runs("apply")["apply"]["run"].startswith("exec tfguard apply")
    assert (GITLAB["apply"]["resource_group"], GITLAB["apply"]["interruptible"]) == ("live", False)
    assert "disableConcurrentBuilds(abortPrevious: false)" in JENKINS
    assert "undiverged" in ATLANTIS["repos"][0]["apply_requirements"]
    for text in (json.dumps(GITHUB), json.dumps(GITLAB), JENKINS):
        assert INSTALL in text
    for name in ("apart.sh", "pipeline.sh"):
        assert os.access(next(EXAMPLES.rglob(name)), os.X_OK)


def test_the_readme_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    for path in (p for p in EXAMPLES.rglob("*") if p.is_file() and p.name != "README.md"):
        assert f"({path.relative_to(EXAMPLES)})" in text


# --- GitHub Actions


@pytest.fixture
def github(tmp_path: Path) -> Callable[[Project], GitHub]:
    """Make a workflow run of a project's checked-out commit."""

    def make(project: Project) -> GitHub:
        folder = tmp_path / "github"
        folder.mkdir()
        return GitHub(project, folder, project.git("rev-parse", "HEAD"))

    return make


def test_github_applies_the_reviewed_plan_and_its_recovery_step_has_nothing_to_say(
    plain_stack: StackFactory, make_project: NewProject, github: Callable[[Project], GitHub]
) -> None:
    project = make_project(ONE, plain_stack)
    run = github(project)
    digest = run.planned_and_fetched()
    applied = run.run("apply", "apply")
    assert applied.returncode == 0, applied.stderr
    assert "Apply complete! Resources: 1 added" in applied.stdout
    assert run.summaries == ""
    assert "::" not in applied.stderr
    recovered = run.run("apply", "recover")
    assert (recovered.returncode, run.summaries) == (0, "")
    recorded = project.only_intent()
    assert recorded["plan_digest"] == digest
    assert (
        recorded["actor"].items()
        >= {
            "ci_system": "github",
            "ci_job": "acme/infra/77/apply/1",
            "ci_url": "https://github.com/acme/infra/actions/runs/77/attempts/1",
            "ci_commit": run.head_sha,
            "ci_actor": "ada",
        }.items()
    )
    assert (project.tools / "installed").read_text() == f"{INSTALL.removeprefix('pip ')}\n".replace("'", "")


def test_github_names_an_orphan_in_log_annotation_and_summary_with_the_command_to_run(
    moto: MotoServer,
    proxy: FaultProxy,
    stack_factory: StackFactory,
    make_project: NewProject,
    github: Callable[[Project], GitHub],
) -> None:
    project = make_project(role(), stack_factory, kept_provider=True)
    run = github(project)
    run.planned_and_fetched()
    proxy.add_rule("drop", action="CreateRole")
    applied = run.run("apply", "apply")
    assert applied.returncode == 1
    (operation,) = operations(project.stack)
    found = step(outcome(project.stack, operation) or {}, "aws_iam_role.app")["observed"][0]["finding_id"]
    next_command = f"tfguard import --orphan {found}"

    (annotation,) = [line for line in applied.stderr.splitlines() if line.startswith("::")]
    assert annotation.startswith(
        f"::error title=tfguard%3A orphaned%3A aws_iam_role.app::{found}: app (aws 123456789012"
    )
    assert "::" not in applied.stdout
    seen = unescape(run.summaries)
    assert "### tfguard: apply, error, open" in seen
    assert f"```sh\n{next_command}\n```" in seen
    assert "| aws_iam_role.app | create | error: " in seen
    assert f"{found}: app (aws 123456789012 global, created " in seen
    assert "desired-identity: name = app" in seen

    recovered = run.run("apply", "recover")
    assert recovered.returncode == 11
    assert found in recovered.stdout
    assert recovered.stderr.count("::error") == 1, "recover and orphans list are one step, and tell of it once"
    assert unescape(run.summaries).count(next_command) == 2
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]


@pytest.mark.parametrize(
    ("why", "run_facts"),
    [
        ("another commit", {"head_sha": "0" * 40}),
        ("a fork of the same commit", {"head_repository_id": 666}),
    ],
)
def test_github_applies_no_plan_but_that_of_the_reviewed_commit(
    plain_stack: StackFactory,
    make_project: NewProject,
    github: Callable[[Project], GitHub],
    why: str,
    run_facts: dict[str, object],
) -> None:
    run = github(make_project(ONE, plain_stack))
    assert run.run("plan", "plan").returncode == 0
    run.upload(**run_facts)
    fetched = run.run("apply", "fetch the reviewed plan")
    assert fetched.returncode == 1, why
    assert "::error::there is no plan of what was merged" in fetched.stdout
    assert not (run.project.stack / "plan.bin").exists()
    run.artifacts[0]["workflow_run"] |= {"head_sha": run.head_sha, "head_repository_id": 5}
    run.artifacts[0]["expired"] = True
    run.show_artifacts()
    assert run.run("apply", "fetch the reviewed plan").returncode == 1


@pytest.mark.parametrize("signals", [["SIGINT"], ["SIGINT", "SIGTERM", "SIGKILL"]], ids="-".join)
def test_a_cancelled_github_job_interrupts_the_engine_once_and_its_recovery_step_names_what_was_made(
    proxy: FaultProxy,
    stack_factory: StackFactory,
    make_project: NewProject,
    github: Callable[[Project], GitHub],
    signals: list[str],
) -> None:
    project = make_project(role() + role("later", more="depends_on = [aws_iam_role.app]"), stack_factory)
    run = github(project)
    run.planned_and_fetched()
    proxy.add_rule("delay:300", action="CreateRole")
    running = run.start("apply", "apply")
    in_flight(proxy, "CreateRole")
    engine = engine_pid(project.stack)
    (stream,) = (project.stack / ".terraform/tfguard").glob("*/*/apply.stdout")
    # The runner signals the process that it started, and none of its children: to ask, to insist, and to end it.
    for name in signals:
        running.send_signal(signal.Signals[name])
        wait_until(lambda: "nterrupt received" in stream.read_text() if stream.exists() else True)
    proxy.release()
    said, err = running.communicate(timeout=120)
    if signals[-1] == "SIGKILL":
        assert running.returncode == -signal.SIGKILL
    else:
        assert running.returncode == 1, said + err
        assert said.count("Interrupt received") == 1
    recovered = run.run("apply", "recover")
    assert recovered.returncode == 11, recovered.stdout + recovered.stderr
    assert not runs(engine), "the recovery step waits for the engine"
    (operation,) = operations(project.stack)
    document = outcome(project.stack, operation) or {}
    assert step(document, "aws_iam_role.app")["outcome"] == "orphaned"
    assert step(document, "aws_iam_role.later")["outcome"] == "absent"
    assert "::error title=tfguard%3A orphaned%3A aws_iam_role.app::" in recovered.stderr
    assert "aws_iam_role.app" in unescape(run.summaries)


# --- GitLab CI


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A package registry: the API's address, and what is kept there."""
    kept: dict[str, bytes] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneRegistry", (Registry,), {"kept": kept}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v4", kept
    server.shutdown()
    server.server_close()
    thread.join()


def test_gitlab_applies_the_reviewed_plan_of_the_same_tree_and_of_no_other(
    plain_stack: StackFactory, make_project: NewProject, registry: tuple[str, dict[str, bytes]]
) -> None:
    project = make_project(ONE, plain_stack)
    api, kept = registry
    planned = project.run(GITLAB_SHELL, gitlab_script("plan"), gitlab_environ(project, api, "plan"))
    assert planned.returncode == 0, planned.stderr
    ((path, plan),) = kept.items()
    assert path == f"/api/v4/projects/5/packages/generic/tfguard-plan/{project.tree}/plan.bin"
    digest = hashlib.sha256(plan).hexdigest()
    assert digest in planned.stdout
    (project.stack / "plan.bin").unlink()

    (project.root / "README").write_text("the main branch moves on\n")
    project.commit("moves on")
    refused = project.run(GITLAB_SHELL, gitlab_script("apply"), gitlab_environ(project, api, "apply"))
    assert refused.returncode == 22
    assert operations(project.stack) == []

    project.git("revert", "--no-edit", "HEAD")
    applied = project.run(GITLAB_SHELL, gitlab_script("apply"), gitlab_environ(project, api, "apply"))
    assert applied.returncode == 0, applied.stderr
    recorded = project.only_intent()
    assert recorded["plan_digest"] == digest
    assert (
        recorded["actor"].items()
        >= {
            "ci_system": "gitlab",
            "ci_job": "acme/infra/4711",
            "ci_url": "https://gitlab.example/acme/infra/-/jobs/4711",
            "ci_commit": project.git("rev-parse", "HEAD"),
            "ci_actor": "ada",
        }.items()
    )
    after = project.run(GITLAB_SHELL, gitlab_after("apply"), gitlab_environ(project, api, "apply"))
    assert after.returncode == 0, after.stderr
    assert "no findings" in after.stdout


def test_a_cancelled_gitlab_job_of_the_shell_executor_interrupts_the_engine_once_and_settles_afterwards(
    plain_stack: StackFactory, make_project: NewProject, registry: tuple[str, dict[str, bytes]]
) -> None:
    project = make_project(SLEEPS, plain_stack)
    api, _ = registry
    assert project.run(GITLAB_SHELL, gitlab_script("plan"), gitlab_environ(project, api, "plan")).returncode == 0
    running = project.start(GITLAB_SHELL, gitlab_script("apply"), gitlab_environ(project, api, "apply"))
    wait_until(lambda: (project.stack / "started").exists(), 120)
    # The runner's signal goes to the process group of its shell: to the shell and to tfguard, not to the engine.
    os.killpg(running.pid, signal.SIGTERM)
    out, err = running.communicate(timeout=120)
    assert out.count("Interrupt received") == 1, out + err
    after = project.run(GITLAB_SHELL, gitlab_after("apply"), gitlab_environ(project, api, "apply"))
    assert after.returncode == 0, after.stdout + after.stderr
    (operation,) = operations(project.stack)
    document = outcome(project.stack, operation) or {}
    assert (document["status"], step(document, "terraform_data.one")["outcome"]) == ("cancelled", "tainted")


# --- Jenkins


def test_jenkins_applies_the_reviewed_plan_and_keeps_plans_to_itself(
    plain_stack: StackFactory, make_project: NewProject
) -> None:
    project = in_jenkins(make_project(ONE, plain_stack))
    for stage in ("init", "plan"):
        done = jenkins_run(project, stage)
        assert done.returncode == 0, done.stderr
    plans = project.tools / "plans"
    assert (plans.stat().st_mode & 0o077, (plans / project.tree).stat().st_mode & 0o077) == (0, 0)
    digest = hashlib.sha256((plans / project.tree).read_bytes()).hexdigest()
    (project.stack / "plan.bin").unlink()
    applied = jenkins_run(project, "apply")
    assert applied.returncode == 0, applied.stderr
    assert "Apply complete! Resources: 1 added" in applied.stdout
    recorded = project.only_intent()
    assert recorded["plan_digest"] == digest
    assert (
        recorded["actor"].items()
        >= {
            "ci_system": "jenkins",
            "ci_job": "infra/main/12",
            "ci_url": "https://ci.example/job/infra/job/main/12",
            "ci_commit": project.git("rev-parse", "HEAD"),
            "ci_actor": "ada",
        }.items()
    )
    recovered = jenkins_run(project, "apply", 1)
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr


def test_apart_hands_on_exit_code_and_output_of_its_command(
    plain_stack: StackFactory, make_project: NewProject
) -> None:
    project = in_jenkins(make_project(FAILS, plain_stack))
    script = "ci/apart.sh sh -c 'echo said; echo told >&2; exit 7'"
    done = project.run(JENKINS_SHELL, script, jenkins_environ(project))
    assert (done.returncode, sorted(done.stdout.split())) == (7, ["said", "told"])


def test_an_aborted_jenkins_build_kills_neither_provider_nor_engine_and_names_what_was_made(
    proxy: FaultProxy, stack_factory: StackFactory, make_project: NewProject
) -> None:
    project = in_jenkins(make_project(role(), stack_factory))
    for stage in ("init", "plan"):
        assert jenkins_run(project, stage).returncode == 0
    proxy.add_rule("delay:300", action="CreateRole")
    running = project.start(JENKINS_SHELL, jenkins_blocks()["apply"][0], jenkins_environ(project))
    in_flight(proxy, "CreateRole")
    engine = engine_pid(project.stack)
    kill_as_jenkins_does()
    out, _ = running.communicate(timeout=60)
    log = Path(re.search(r"its output: (\S+)", out)[1])  # type: ignore[index]
    wait_until(lambda: "Interrupt received" in log.read_text())
    proxy.release()
    recovered = jenkins_run(project, "apply", 1)
    assert recovered.returncode == 11, recovered.stdout + recovered.stderr
    assert not Path(f"/proc/{engine}").exists()
    said = log.read_text()
    assert said.count("Interrupt received") == 1
    assert "Two interrupts received" not in said
    assert "Plugin did not respond" not in said
    (operation,) = operations(project.stack)
    document = outcome(project.stack, operation) or {}
    assert (document["status"], step(document, "aws_iam_role.app")["outcome"]) == ("cancelled", "orphaned")
    assert "aws_iam_role app (123456789012 global" in recovered.stdout
    shutil.rmtree(log.parent)


# --- Atlantis


def test_atlantis_plans_and_applies_with_the_engine_that_it_chose(
    plain_stack: StackFactory, make_project: NewProject
) -> None:
    project = in_atlantis(make_project(ONE, plain_stack))
    planned = atlantis_run(project, "plan")
    assert [done.returncode for done in planned] == [0, 0, 0], planned[-1].stderr
    assert "1 to add" in planned[-1].stdout
    (applied,) = atlantis_run(project, "apply")
    assert applied.returncode == 0, applied.stderr
    recorded = project.only_intent()
    assert recorded["plan_digest"] == hashlib.sha256((project.stack / "default.tfplan").read_bytes()).hexdigest()
    assert (
        recorded["actor"].items()
        >= {
            "ci_system": "atlantis",
            "ci_job": "acme/infra/pull/9/live/default",
            "ci_url": "https://github.com/acme/infra/pull/9",
            "ci_commit": project.git("rev-parse", "HEAD"),
            "ci_actor": "ada",
        }.items()
    )


def test_a_failed_apply_in_atlantis_is_looked_at_in_the_same_step_and_keeps_its_exit_code(
    proxy: FaultProxy, stack_factory: StackFactory, make_project: NewProject
) -> None:
    project = in_atlantis(make_project(role(), stack_factory, kept_provider=True))
    atlantis_run(project, "plan")
    proxy.add_rule("drop", action="CreateRole")
    (applied,) = atlantis_run(project, "apply")
    assert applied.returncode == 1
    assert "aws_iam_role app (123456789012 global" in applied.stdout
    assert "next: tfguard import --orphan o-" in applied.stdout


# --- a plain shell


def started(project: Project, command: str) -> subprocess.Popen[str]:
    """Start the script as a scheduler would."""
    return project.popen([str(SCRIPT), command], {"PLANS": str(project.tools / "plans")})


def script(project: Project, command: str) -> subprocess.CompletedProcess[str]:
    """Run the script to its end."""
    return finished(started(project, command))


def test_the_script_applies_the_reviewed_plan_and_refuses_any_other_commit(
    plain_stack: StackFactory, make_project: NewProject
) -> None:
    project = make_project(ONE, plain_stack)
    planned = script(project, "plan")
    assert planned.returncode == 0, planned.stderr
    plans = project.tools / "plans"
    assert (plans.stat().st_mode & 0o077, (plans / project.tree).stat().st_mode & 0o077) == (0, 0)
    (project.stack / "main.tf").write_text(ONE.replace("first", "second"))
    project.commit("another")
    refused = script(project, "apply")
    assert (refused.returncode, operations(project.stack)) == (1, [])
    assert "there is no plan of this tree" in refused.stderr
    project.git("checkout", "-q", "HEAD~1")
    applied = script(project, "apply")
    assert applied.returncode == 0, applied.stderr
    recorded = project.only_intent()
    assert recorded["plan_digest"] == hashlib.sha256((plans / project.tree).read_bytes()).hexdigest()
    assert recorded["actor"].keys() == {"user", "host"}
    assert script(project, "").returncode == 64


def test_the_script_names_an_orphan_and_keeps_the_engines_exit_code(
    proxy: FaultProxy, stack_factory: StackFactory, make_project: NewProject
) -> None:
    project = make_project(role(), stack_factory, kept_provider=True)
    assert script(project, "plan").returncode == 0
    proxy.add_rule("drop", action="CreateRole")
    applied = script(project, "apply")
    assert applied.returncode == 1
    assert "aws_iam_role app (123456789012 global" in applied.stdout
    assert script(project, "recover").returncode == 11
    again = script(project, "apply")
    assert again.returncode == 11
    assert "aws_iam_role.app is orphaned" in again.stderr


def test_a_signal_to_the_script_reaches_the_engine_as_one_interrupt_and_the_recovery_follows(
    plain_stack: StackFactory, make_project: NewProject
) -> None:
    project = make_project(SLEEPS, plain_stack)
    assert script(project, "plan").returncode == 0
    running = started(project, "apply")
    wait_until(lambda: (project.stack / "started").exists(), 120)
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGHUP)
    done = finished(running)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("Interrupt received") == 1
    assert "tainted" in done.stdout and "orphaned" not in done.stdout, "nothing is stray"
    assert project.only_intent()["command"] == "apply"
