"""What the commands of a blueprint print without a request, and by the blueprint that a request keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest

from tfguard.cli.blueprint import command
from tfguard.cli.blueprint_wiring import blueprint_context
from tfguard.cli.console import StderrConsole
from tfguard.cli.invocation import Invocation
from tfguard.cli.metrics import command as metrics
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ConfigError, OperationAliveError, UsageError
from tfguard.flows.blueprints.provide import ProvideOptions, draft, pack_over
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint_request import BlueprintObject, RequestEvent, RequestState
from tfguard.model.operation import StepStatus


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A blueprint that was never applied."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "main.tf").write_text("")
    path = tmp_path / "b.yaml"
    path.write_text("apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nsteps: {a: {stack: a}}\n")
    return path


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it has printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.stdout)


Run = Callable[..., Done]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `blueprint` with these words, or another command; an error of tfguard's is raised as it is."""

    def call(*words: str | Path, of: click.Command = command) -> Done:
        code = of.main([str(word) for word in words], "tfguard", standalone_mode=False, obj=Invocation())
        return Done(code, *capfd.readouterr())

    return call


@pytest.mark.parametrize(("words", "code"), [(("status",), 11), (("destroy", "--yes"), 0)])
def test_without_a_request_a_program_gets_its_document(file: Path, run: Run, words: tuple[str, ...], code: int) -> None:
    done = run(*words, file, "--format", "json")
    assert done.code == code, "what nobody has provided is not Ready, and needs no destroy"
    told = done.document
    assert (told["schema"], told["request_id"], told["state"]) == ("tfguard.blueprint/v1", None, None)
    assert [step["status"] for step in told["steps"]] == ["pending"]


def test_without_a_request_there_is_a_picture(file: Path, run: Run) -> None:
    done = run("status", file, "--format", "svg")
    assert done.stdout.lstrip().startswith("<svg") or "<svg" in done.stdout[:200]


def test_without_a_request_a_person_is_told_so(file: Path, run: Run) -> None:
    assert run("status", file).stdout.startswith("no request is recorded at ")


def test_a_file_that_does_not_parse_hides_no_request(file: Path, run: Run) -> None:
    request = recorded(file)
    file.write_text("steps: {a: {stakc: a}}\n")
    done = run("status", file, "--format", "json")
    assert (done.code, done.document["request_id"]) == (11, request)
    where = rf"^tfguard: warning: {file}:1: .*; the blueprint that request {request} keeps, of 20[^;]* is used$"
    assert re.search(where, done.stderr, re.M), done.stderr
    assert "Settled" in run("cancel", file).stdout
    file.unlink()
    destroyed = run("destroy", file, "--yes")
    assert (destroyed.code, f"{file}: cannot be read" in destroyed.stderr) == (0, True)
    assert "tfguard_blueprint" in run("--blueprint", file, of=metrics).stdout


def test_a_cancel_works_by_what_was_made_where_the_file_has_it_no_more(file: Path, run: Run) -> None:
    recorded(file, ok("a", (BlueprintObject("x.a", "x"),)))
    (file.parent / "a").rename(file.parent / "z")
    file.write_text(file.read_text().replace("a: {stack: a}", "z: {stack: z}"))
    done = run("cancel", file, "--retain", "--owner", "team", "--format", "json")
    assert re.search(r"a: it is no longer in the blueprint, .* keeps, of .* is used", done.stderr), done.stderr
    assert [(step["id"], step["kind"], step["status"]) for step in done.document["steps"]] == [
        ("a", "stack", "retained")
    ]


@pytest.mark.parametrize("word", ["validate", "plan", "apply", "resume"])
def test_nothing_is_made_by_a_file_that_does_not_parse(file: Path, run: Run, word: str) -> None:
    recorded(file)
    file.write_text("steps: {a: {stakc: a}}\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:1: "):
        run(word, file)


def test_without_a_request_the_file_itself_is_refused(file: Path, run: Run) -> None:
    file.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        run("status", file)


def test_the_requests_are_listed_newest_first(file: Path, run: Run) -> None:
    assert run("list", file).stdout.startswith("no request is recorded at ")
    first = recorded(file)
    assert run("destroy", file, "--yes").code == 0
    with SignalGate() as gate:
        pack_over(blueprint_context(Invocation(), gate, file)[0])
    second = recorded(file)
    told = run("list", file, "--format", "json").document
    assert [(one["request_id"], one["state"], one["archived"]) for one in told["requests"]] == [
        (second, "Requested", False),
        (first, "Cleaned", True),
    ]
    assert [one["ended_at"] is None for one in told["requests"]] == [True, False]
    assert re.findall(r"^\w+  \w+", run("list", file).stdout, re.M) == [f"{second}  Requested", f"{first}  Cleaned"]
    earlier = run("status", file, "--request", first, "--format", "json")
    assert (earlier.code, earlier.document["state"]) == (0, "Cleaned")
    (file.parent / "b.tfguard" / "archive" / f"{first}.json").write_text("{}")
    damaged = run("list", file)
    assert damaged.code == 11
    assert f"{first}  cannot be read, archived" in damaged.stdout


def test_a_request_that_was_ready_and_is_not_now_is_listed_so(file: Path, run: Run) -> None:
    def become(state: RequestState) -> Callable[[datetime, str], RequestEvent]:
        return lambda at, by: RequestEvent(at, by, "so", state=state)

    states = (RequestState.VALIDATED, RequestState.PROVISIONING, RequestState.READY)
    recorded(file, ok("a", ()), *(become(state) for state in states))
    (listed,) = run("list", file, "--format", "json").document["requests"]
    assert (listed["state"], listed["ready_now"]) == ("Ready", True)
    with SignalGate() as gate:
        requests = blueprint_context(Invocation(), gate, file)[0].requests
        request = requests.current()
        assert request is not None
        gone = StepStatus.DESTROYED
        Journal(requests, request).write(lambda at, by: RequestEvent(at, by, "gone", step="a", status=gone))
    assert "Ready, but not now" in run("list", file).stdout


def test_a_destroy_says_what_goes_and_what_stays_and_no_probes(
    file: Path, run: Run, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StderrConsole, "ask", lambda *_: None)
    more = "steps: {p: {probe: {tcp: 'x:1'}}, d: {stack: a, stateful: true}, "
    file.write_text(file.read_text().replace("steps: {", more))
    objects = (BlueprintObject("x.a", "x"), BlueprintObject("x.b", "x"))
    recorded(file, *(ok(name, objects) for name in ("a", "d", "p")))
    with pytest.raises(UsageError, match="not approved"):
        run("destroy", file)
    told = capfd.readouterr().err
    assert "a: to be destroyed: 2 objects" in told
    assert "d: stays: it holds data; --stateful" in told
    assert "p:" not in told


def test_what_stays_is_told_once(file: Path, run: Run) -> None:
    file.write_text(file.read_text().replace("steps: {", "steps: {b: {run: [b], needs: [a]}, "))
    recorded(file, ok("a", (BlueprintObject("x.a", "x"),)), ok("b", ()))
    run("cancel", file, "--retain", "--owner", "team")
    told = run("destroy", file, "--yes").stderr.splitlines()
    for name in ("a", "b"):
        (line,) = [line for line in told if line.startswith(f"tfguard: {name}: ")]
        assert "stays: it is retained until " in line


def test_what_is_at_work_can_be_cancelled_and_the_advice_says_how(file: Path, run: Run) -> None:
    recorded(file)
    with SignalGate() as gate:
        holder = blueprint_context(Invocation(), gate, file)[0].requests
        with holder.holding(), pytest.raises(OperationAliveError) as told:
            run("destroy", file, "--yes")
    assert f"`tfguard blueprint cancel {file}`" in told.value.advice


def recorded(file: Path, *events: Callable[[datetime, str], RequestEvent]) -> str:
    """Record a request of the blueprint in a file, as it was before the first step, and these events; its id."""
    with SignalGate() as gate:
        context, _ = blueprint_context(Invocation(), gate, file)
        with context.requests.holding():
            intent = draft(context, context.requests.new_id(), ProvideOptions()).intent
            journal = Journal(context.requests, context.requests.create(intent, context.text))
            for event in events:
                journal.write(event)
    return intent.request_id


def ok(step: str, objects: tuple[BlueprintObject, ...]) -> Callable[[datetime, str], RequestEvent]:
    """A step that came to its end."""
    return lambda at, by: RequestEvent(at, by, "applied", step=step, status=StepStatus.OK, objects=objects)


def test_what_is_written_wrong_is_told_as_it_has_to_be_written(file: Path, run: Run) -> None:
    assert run("validate", file).stdout.endswith("b is sound: 1 step, 0 inputs\n")
    with pytest.raises(UsageError, match="--skip-check engine has no reason") as caught:
        run("apply", file, "--yes", "--skip-check", "engine")
    assert caught.value.advice == "write --skip-check engine=REASON"
    (file.parent / "a" / "main.tf").unlink()
    (file.parent / "a").rmdir()
    with pytest.raises(ConfigError, match="there is no folder") as lost:
        run("validate", file)
    assert "correct `stack:`" in lost.value.advice
