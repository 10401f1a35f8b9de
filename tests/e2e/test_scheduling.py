"""The examples of docs/scheduling, run as their schedulers run them: first with something to find, then without."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

EXAMPLES = Path(__file__).parents[2] / "docs/scheduling"
CRON = (EXAMPLES / "crontab").read_text().splitlines()
GITHUB = yaml.safe_load((EXAMPLES / "github-scan.yml").read_text())
CRONJOB = yaml.safe_load((EXAMPLES / "cronjob.yaml").read_text())

Command = Callable[[Path], list[str]]


def cron(folder: Path) -> list[str]:
    """The crontab's command, as cron hands it to sh, with its paths in `folder`."""
    settings = dict(line.split("=", 1) for line in CRON if "=" in line.split(" ")[0])
    (line,) = [line for line in CRON if line[:1].isdigit()]
    script = line.split(" ", 5)[5]
    assert "%" not in script  # cron would make a line's end of it
    names = {name: value for name, value in settings.items() if name.startswith("TFGUARD_")}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in names.items())
    return ["sh", "-c", _placed(exports + script, folder)]


def github(folder: Path) -> list[str]:  # noqa: ARG001 (each scheduler is told its folder)
    """The workflow's scan step."""
    (step,) = [step for step in GITHUB["jobs"]["scan"]["steps"] if step.get("name") == "Scan"]
    return ["bash", "-e", "-c", step["run"].replace("docs/scheduling", str(EXAMPLES))]


def kubernetes(folder: Path) -> list[str]:
    """The container's command."""
    pod = CRONJOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    return [*container["command"], *(_placed(word, folder) for word in container["args"])]


def _placed(script: str, folder: Path) -> str:
    places = {
        "/var/lib/prometheus/node-exporter": folder,
        "/usr/local/lib/tfguard": EXAMPLES,
        "/var/lib/tfguard": folder,
        "/srv/infrastructure": folder,
    }
    for place, here in places.items():
        script = script.replace(place, str(here))
    return script


def test_the_workflow_keeps_the_findings_of_a_scan_that_fails_its_job() -> None:
    steps = GITHUB["jobs"]["scan"]["steps"]
    uses = [str(step.get("uses", step.get("name"))).partition("@")[0] for step in steps]
    restore, scan, save = (uses.index(name) for name in ("actions/cache/restore", "Scan", "actions/cache/save"))
    assert restore < scan < save
    assert steps[save]["if"].startswith("always()")
    assert steps[restore]["with"].items() >= steps[save]["with"].items()
    assert "actions/cache" not in uses  # which saves only after a job that succeeded


@pytest.mark.parametrize("code", [0, 1, 2, 3, 10, 130])
@pytest.mark.parametrize("command", [cron, github, kubernetes])
def test_only_a_scan_that_came_to_its_end_replaces_the_numbers_and_at_once(
    command: Command, code: int, run_env: dict[str, str], tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    # A stand-in: a scan that ends as it is told, and metrics that look at what a reader would see meanwhile.
    numbers = tmp_path / ("metrics.prom" if command is kubernetes else "tfguard.prom")
    numbers.write_text("old\n")
    (tools / "tfguard").write_text(
        f'#!/bin/sh\n[ "$1" = scan ] && exit {code}\necho new\ncat {shlex.quote(str(numbers))} >&2\n'
    )
    (tools / "tfguard").chmod(0o755)
    environ = {**run_env, "PATH": f"{tools}{os.pathsep}{run_env['PATH']}", "TFGUARD_METRICS": str(numbers)}
    done = subprocess.run(
        command(tmp_path), cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    ended = code in (0, 2, 3)
    assert numbers.read_text() == ("new\n" if ended else "old\n"), done.stderr
    told = done.stdout + done.stderr + ((tmp_path / "scan.txt").read_text() if command is cron else "")
    assert told.splitlines().count("old") >= ended


@pytest.mark.parametrize("command", [cron, github, kubernetes])
def test_the_example_tells_what_is_new_and_keeps_the_numbers(
    command: Command, moto: MotoServer, proxy: FaultProxy, run_env: dict[str, str], workdir: Path
) -> None:
    (workdir / "tfguard.yaml").write_text(
        "scan: {stacks: ['*.tfstate'], aws: {regions: [eu-west-1], types: [aws_sqs_queue, aws_iam_role]}}\n"
    )
    state = '{"version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": []}'
    (workdir / "terraform.tfstate").write_text(state)
    tools = workdir / "tools"
    tools.mkdir()
    (tools / "tfguard").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tfguard "$@"\n')
    (tools / "tfguard").chmod(0o755)
    environ = {**run_env, "PATH": f"{tools}{os.pathsep}{run_env['PATH']}", "AWS_ENDPOINT_URL": proxy.url}
    environ |= {"AWS_REGION": "eu-west-1", "TFGUARD_METRICS": str(workdir / "tfguard.prom")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(workdir), cwd=workdir, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    moto.client("iam").create_role(RoleName="stray", AssumeRolePolicyDocument="{}")
    first = run()
    again = run()
    moto.client("iam").delete_role(RoleName="stray")
    clean = run()
    if command is cron:  # whose exit code nobody reads: what it prints is mailed
        assert "aws_iam_role stray" in first.stdout
        assert clean.stdout == ""
    else:
        assert (first.returncode, again.returncode, clean.returncode) == (2, 2, 0), first.stderr + clean.stderr
        assert "0 new, 0 gone, 1 still there" in again.stdout
        assert "0 new, 1 gone, 0 still there" in clean.stdout
    (numbers,) = [path for path in workdir.iterdir() if path.suffix == ".prom"]
    assert "tfguard_complete 1\n" in numbers.read_text()
    assert "tfguard_findings{" not in numbers.read_text()
