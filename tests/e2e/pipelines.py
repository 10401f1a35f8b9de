"""The platforms of docs/pipelines as far as the tests need them: they run the scripts of the example files themselves,
each with its platform's shell and variables, and stand in for what only the platform has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import yaml
from helpers import intent, operations

EXAMPLES = Path(__file__).parents[2] / "docs/pipelines"
GITHUB = yaml.safe_load((EXAMPLES / "github/terraform.yml").read_text())
GITLAB = yaml.safe_load((EXAMPLES / "gitlab/gitlab-ci.yml").read_text())
ATLANTIS = yaml.safe_load((EXAMPLES / "atlantis/repos.yaml").read_text())
JENKINS = (EXAMPLES / "jenkins/Jenkinsfile").read_text()
APART = EXAMPLES / "jenkins/apart.sh"
SCRIPT = EXAMPLES / "shell/pipeline.sh"

GITHUB_SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
GITLAB_SHELL = ("bash", "-eo", "pipefail")
JENKINS_SHELL = ("sh", "-xe")


@dataclass
class Project:
    """A checkout with a stack in `live`, as a CI job finds it, and the environment of its commands."""

    root: Path
    environ: dict[str, str]
    tools: Path

    @property
    def stack(self) -> Path:
        """The stack's folder."""
        return self.root / "live"

    def git(self, *arguments: str) -> str:
        """Run git in the checkout; what it says."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=self.environ, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        """Commit everything; the commit's id."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    @property
    def tree(self) -> str:
        """The id of the checked-out tree."""
        return self.git("rev-parse", "HEAD^{tree}")

    def tool(self, name: str, text: str) -> None:
        """Put a program on the path of the commands, before all others."""
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def start(
        self, shell: Sequence[str], script: str, environ: Mapping[str, str], folder: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start a script as a platform does: from a file, in a process group of its own."""
        path = self.tools / f"step-{len(list(self.tools.glob('step-*')))}"
        path.write_text(script)
        return self.popen([*shell, str(path)], environ, folder)

    def popen(
        self, command: Sequence[str], environ: Mapping[str, str], folder: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start a command in the checkout, or in this folder."""
        return subprocess.Popen(
            command,
            cwd=folder or self.root,
            env=self.environ | dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, shell: Sequence[str], script: str, environ: Mapping[str, str], folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return finished(self.start(shell, script, environ, folder))

    def only_intent(self) -> dict[str, Any]:
        """The intent of the stack's one operation."""
        (operation,) = operations(self.stack)
        return intent(self.stack, operation)


NewProject = Callable[..., Project]


def finished(running: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for the end of what was started; how it ended, and what it said."""
    out, err = running.communicate(timeout=300)
    return subprocess.CompletedProcess(running.args, running.returncode, out, err)


def jenkins_blocks() -> dict[str, list[str]]:
    """The `sh` blocks of the Jenkinsfile by stage, in order."""
    found: dict[str, list[str]] = {}
    stage = ""
    for match in re.finditer(r"stage\('(\w+)'\)|sh '''\n(.*?)'''", JENKINS, re.DOTALL):
        stage = match[1] or stage
        if match[2]:
            found.setdefault(stage, []).append(match[2])
    return found


def github_runs(job: str) -> dict[str, dict[str, Any]]:
    """The steps of a job that run commands, by name."""
    return {item["name"]: item for item in GITHUB["jobs"][job]["steps"] if "run" in item}


def atlantis_steps(stage: str) -> list[dict[str, Any]]:
    """The steps of a stage: `{"env": ...}` or `{"run": text}`."""
    steps = ATLANTIS["workflows"]["tfguard"][stage]["steps"]
    return [
        {"run": item["run"]["command"] if isinstance(item["run"], dict) else item["run"]} if "run" in item else item
        for item in steps
    ]


def every_script() -> Iterator[tuple[str, str, str]]:
    """Each piece of shell in the examples: which shell has to read it, where it stands, its text."""
    for job in GITHUB["jobs"]:
        for name, item in github_runs(job).items():
            yield "bash", f"github {job} {name}", item["run"]
    for job in (".terraform", "plan", "apply"):
        for key in ("before_script", "script", "after_script"):
            if lines := GITLAB[job].get(key):
                yield "bash", f"gitlab {job} {key}", "\n".join(lines)
    for stage, blocks in jenkins_blocks().items():
        for block in blocks:
            yield "sh", f"jenkins {stage}", block
    for stage in ("plan", "apply"):
        for item in atlantis_steps(stage):
            yield "sh", f"atlantis {stage}", item.get("run") or item["env"]["command"]
    yield "sh", "jenkins apart.sh", APART.read_text()
    yield "bash", "shell", SCRIPT.read_text()


@dataclass
class GitHub:
    """A workflow run: what the runner gives to each step, and what it keeps of them."""

    project: Project
    folder: Path
    head_sha: str
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    summaries: str = ""

    def __post_init__(self) -> None:
        listing, store = self.folder / "artifacts.json", self.folder / "artifacts"
        store.mkdir()
        self.project.tool(
            "gh",
            f'''#!/bin/sh
case "$1 $2" in
  "api repos/acme/infra/actions/artifacts?name="*) cat "{listing}" ;;
  "run download") cp "{store}/$3/$5/plan.bin" . ;;
  *) exit 9 ;;
esac
''',
        )

    def environ(self, job: str, item: Mapping[str, Any]) -> dict[str, str]:
        """The variables of a step: the runner's, the workflow's, the step's own."""
        known = {"github.token": "ghs_secret", "github.event.pull_request.head.sha": self.head_sha}
        own = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], value)
            for name, value in {**GITHUB["env"], **item.get("env", {})}.items()
        }
        for name in ("output", "summary"):
            (self.folder / name).write_text("")
        return own | {
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "acme/infra",
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_JOB": job,
            "GITHUB_SHA": self.head_sha,
            "GITHUB_TRIGGERING_ACTOR": "ada",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
        }

    def run(self, job: str, name: str) -> subprocess.CompletedProcess[str]:
        """Run a step to its end."""
        item = github_runs(job)[name]
        folder = self.project.root / GITHUB["defaults"]["run"]["working-directory"]
        done = self.project.run(GITHUB_SHELL, item["run"], self.environ(job, item), folder)
        self.outputs |= dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())
        self.summaries = (self.folder / "summary").read_text()
        return done

    def start(self, job: str, name: str) -> subprocess.Popen[str]:
        """Start a step, to be cancelled."""
        item = github_runs(job)[name]
        return self.project.start(GITHUB_SHELL, item["run"], self.environ(job, item), self.project.stack)

    def upload(self, run_id: int = 41, **run: object) -> None:
        """What `actions/upload-artifact` does with the plan, as the workflow tells it to."""
        (item,) = (
            i for i in GITHUB["jobs"]["plan"]["steps"] if i.get("uses", "").startswith("actions/upload-artifact")
        )
        name = item["with"]["name"].replace("${{ steps.plan.outputs.tree }}", self.outputs["tree"])
        kept = self.folder / f"artifacts/{run_id}" / name
        kept.mkdir(parents=True)
        shutil.move(self.project.root / item["with"]["path"], kept / "plan.bin")
        of = {"id": run_id, "head_sha": self.head_sha, "repository_id": 5, "head_repository_id": 5} | run
        self.artifacts.append({"name": name, "expired": False, "workflow_run": of})
        self.show_artifacts()

    def show_artifacts(self) -> None:
        """Let the API show the artifacts as they are now."""
        (self.folder / "artifacts.json").write_text(json.dumps({"artifacts": self.artifacts}))

    def planned_and_fetched(self) -> str:
        """Run the plan job and the apply job up to the apply; the digest of the plan that was reviewed."""
        assert self.run("plan", "install").returncode == 0
        assert self.run("plan", "init").returncode == 0
        planned = self.run("plan", "plan")
        assert planned.returncode == 0, planned.stderr
        assert self.outputs["tree"] == self.project.tree
        self.upload()
        fetched = self.run("apply", "fetch the reviewed plan")
        assert fetched.returncode == 0, fetched.stderr
        digest = re.search(r"([0-9a-f]{64})  plan.bin$", planned.stdout, re.MULTILINE)
        assert digest is not None, planned.stdout + planned.stderr
        assert digest[1] in fetched.stdout
        return digest[1]


class Registry(BaseHTTPRequestHandler):
    """A package registry for those who show the job's token."""

    kept: dict[str, bytes]

    def do_PUT(self) -> None:
        """Take a file."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._may():
            self.kept[self.path] = body
        self._answer(201 if self._may() else 401, b"")

    def do_GET(self) -> None:
        """Give a file, or 404."""
        body = self.kept.get(self.path) if self._may() else b""
        self._answer(404 if body is None else 200 if body else 401, body or b"")

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _may(self) -> bool:
        return self.headers.get("JOB-TOKEN") == "glcbt-secret"

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def gitlab_environ(project: Project, api: str, job: str) -> dict[str, str]:
    """The variables of a job: GitLab's own, then those of the file, which may name the former."""
    own = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "5",
        "CI_PROJECT_PATH": "acme/infra",
        "CI_JOB_ID": "4711",
        "CI_JOB_TOKEN": "glcbt-secret",
        "CI_JOB_URL": "https://gitlab.example/acme/infra/-/jobs/4711",
        "CI_COMMIT_SHA": project.git("rev-parse", "HEAD"),
        "GITLAB_USER_LOGIN": "ada",
    }
    more = {**GITLAB["variables"], **GITLAB[job].get("variables", {})}
    return own | {name: re.sub(r"\$(\w+)", lambda match: own[match[1]], value) for name, value in more.items()}


def gitlab_script(job: str) -> str:
    """What the runner makes of `before_script` and `script`: one script in one shell."""
    return "\n".join([*GITLAB[GITLAB[job]["extends"]]["before_script"], *GITLAB[job]["script"]])


def gitlab_after(job: str) -> str:
    """`after_script`: a shell of its own, without what `before_script` did."""
    return "\n".join(GITLAB[job]["after_script"])


COOKIE = {"JENKINS_NODE_COOKIE": "node-1", "JENKINS_SERVER_COOKIE": "durable-of-this-test"}


def jenkins_environ(project: Project) -> dict[str, str]:
    """The variables of an `sh` step, with a plan folder of the test's own."""
    return COOKIE | {
        "JOB_NAME": "infra/main",
        "BUILD_NUMBER": "12",
        "BUILD_URL": "https://ci.example/job/infra/job/main/12/",
        "GIT_COMMIT": project.git("rev-parse", "HEAD"),
        "BUILD_USER_ID": "ada",
        "PLANS": str(project.tools / "plans"),
        "TF_IN_AUTOMATION": "true",
    }


def in_jenkins(project: Project) -> Project:
    """The project with what the Jenkinsfile wants: `ci/apart.sh`, and a python3 that makes a venv in no time."""
    (project.root / "ci").mkdir()
    shutil.copy2(APART, project.root / "ci/apart.sh")
    project.tool(
        "python3",
        f'#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exit 9\nmkdir -p "$3/bin"\n'
        f'ln -sf "{project.tools}/pip" "{project.tools}/tfguard" "$3/bin"\n',
    )
    project.commit("ci")
    return project


def jenkins_run(project: Project, stage: str, number: int = 0) -> subprocess.CompletedProcess[str]:
    """Run one `sh` block of a stage to its end."""
    return project.run(JENKINS_SHELL, jenkins_blocks()[stage][number], jenkins_environ(project))


def kill_as_jenkins_does() -> None:
    """SIGTERM to each process with the step's cookie and to its children, children first, each waited for."""
    mark = f"JENKINS_SERVER_COOKIE={COOKIE['JENKINS_SERVER_COOKIE']}".encode()
    parents: dict[int, int] = {}
    marked = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                marked.append(int(entry.name))
        except OSError:
            continue
    for pid in sorted(marked):
        _terminate(pid, parents)


def _terminate(pid: int, parents: Mapping[int, int]) -> None:
    for child, parent in parents.items():
        if parent == pid:
            _terminate(child, parents)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


# --- Atlantis


def atlantis_run(project: Project, stage: str) -> list[subprocess.CompletedProcess[str]]:
    """Run a stage's steps with `sh -c` in the project's folder, until one fails, as Atlantis does."""
    environ = {
        "ATLANTIS_TERRAFORM_VERSION": "1.99.0",
        "ATLANTIS_TERRAFORM_DISTRIBUTION": "terraform",
        "BASE_REPO_OWNER": "acme",
        "BASE_REPO_NAME": "infra",
        "PULL_NUM": "9",
        "PULL_URL": "https://github.com/acme/infra/pull/9",
        "HEAD_COMMIT": project.git("rev-parse", "HEAD"),
        "USER_NAME": "ada",
        "REPO_REL_DIR": "live",
        "WORKSPACE": "default",
        "PLANFILE": str(project.stack / "default.tfplan"),
    }
    done: list[subprocess.CompletedProcess[str]] = []
    for item in atlantis_steps(stage):
        text = item.get("run") or item["env"]["command"]
        ran = subprocess.run(
            ["sh", "-c", text], cwd=project.stack, env=project.environ | environ, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip
        if "env" in item:
            assert ran.returncode == 0, ran.stderr
            environ[item["env"]["name"]] = ran.stdout.strip()
            continue
        done.append(ran)
        if ran.returncode != 0:
            break
    return done


def in_atlantis(project: Project) -> Project:
    """The project with the engine under the name that Atlantis gives it."""
    found = shutil.which("terraform", path=project.environ["PATH"])
    assert found is not None
    (project.tools / "terraform1.99.0").symlink_to(found)
    return project
