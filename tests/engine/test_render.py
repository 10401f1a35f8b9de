"""The renderer's text beside the engine's own, byte for byte but for ids and elapsed times.

`-parallelism=1` and a chain of `depends_on` fix the order of the engine's walk; where a test cannot have that, lines
are compared sorted.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from two_forms import TERRAFORM, Stack, environment, needs_terraform, normal, rendered

from tfguard.engine.diagnostics import Diagnostic, Severity, SourceRange
from tfguard.engine.events import StreamReader, parse_line
from tfguard.engine.render import KNOWN_DIFFERENCES, RENDERINGS, RenderedText, Renderer
from tfguard.model.event import EventKind

DATA = Path(__file__).parent / "data"
FORMS = pytest.mark.parametrize("flags", [(), ("-no-color",)])

CREATION = r"""
resource "terraform_data" "first" {
  input = "v"
  provisioner "local-exec" {
    command = "printf 'one\n  two\ttab  \n'; printf '\\033[31mred\\033[0m\n[red]three\n'"
  }
  provisioner "local-exec" {
    quiet   = true
    command = "echo quiet"
  }
}
resource "terraform_data" "odd" {
  for_each   = toset(["b c\"d [red] ü/%"])
  depends_on = [terraform_data.first]
}
resource "terraform_data" "counted" {
  count      = 1
  depends_on = [terraform_data.odd]
}
module "m" {
  source     = "./m"
  for_each   = toset(["k.1"])
  depends_on = [terraform_data.counted]
}
data "terraform_remote_state" "other" {
  backend    = "local"
  config     = { path = "${path.module}/other.tfstate" }
  depends_on = [module.m]
}
output "id" { value = terraform_data.first.id }
"""
OTHER_STATE = '{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"x","outputs":{},"resources":[]}'
CREATION_FILES = {
    "main.tf": CREATION,
    "m/main.tf": 'resource "terraform_data" "in" {}',
    "other.tfstate": OTHER_STATE,
}

FAILURE = r"""
resource "terraform_data" "bad" {
  provisioner "local-exec" { command = "printf 'about to fail\nnow\n'; exit 3" }
}
resource "terraform_data" "never" { depends_on = [terraform_data.bad] }
"""

POSTCONDITION = r"""
resource "terraform_data" "post" {
  input = "v"
  lifecycle {
    postcondition {
      condition     = self.output == "w" && length(self.id) == 3 && self.triggers_replace == null
      error_message = "Post is wrong for ${self.id}, and this is a line long enough to be wrapped by the engine."
    }
  }
}
resource "terraform_data" "quoted" { depends_on = ["terraform_data.post"] }
resource "terraform_data" "quoted_too" { depends_on = ["terraform_data.post"] }
"""

WARNINGS = r"""
resource "terraform_data" "t" {}
resource "terraform_data" "q1" { depends_on = ["terraform_data.t"] }
resource "terraform_data" "q2" { depends_on = ["terraform_data.t", "terraform_data.q1"] }
check "health" {
  assert {
    condition     = terraform_data.t.id == "zz"
    error_message = "The id is not zz but ${terraform_data.t.id}, which is rather bad since we need the id to be zz."
  }
  assert {
    condition     = terraform_data.t.id == "yy"
    error_message = "second"
  }
}
"""

CHANGES = r"""
variable "v" { default = "one" }
resource "terraform_data" "updated" { input = var.v }
resource "terraform_data" "replaced" {
  triggers_replace = var.v
  depends_on       = [terraform_data.updated]
  provisioner "local-exec" {
    when    = destroy
    command = "echo bye"
  }
}
"""

IMPORTS = r"""
import {
  to = terraform_data.pure
  id = "[red]pure"
}
import {
  to = terraform_data.changed
  id = "changed"
}
resource "terraform_data" "pure" {}
resource "terraform_data" "changed" { input = "x" }
"""


@needs_terraform
@FORMS
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(CREATION_FILES, id="creation"),
        pytest.param({"main.tf": FAILURE}, id="failing provisioner"),
        pytest.param({"main.tf": POSTCONDITION}, id="postcondition"),
        pytest.param({"main.tf": WARNINGS}, id="warnings"),
        pytest.param({"main.tf": ""}, id="nothing"),
    ],
)
def test_apply_of_a_plan_looks_like_the_engines(tmp_path: Path, files: dict[str, str], flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, files)
    stack.plan()
    forms = stack.both(*flags)
    assert forms.rendered == forms.human


@needs_terraform
@pytest.mark.parametrize("flags", [("-compact-warnings",), ("-compact-warnings", "-no-color")])
@pytest.mark.parametrize("text", [WARNINGS, POSTCONDITION], ids=["warnings alone", "with an error"])
def test_compact_warnings_look_like_the_engines(tmp_path: Path, text: str, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": text})
    stack.plan()
    forms = stack.both(*flags)
    assert forms.rendered == forms.human


@needs_terraform
@FORMS
def test_warning_without_a_place_looks_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": CHANGES})
    stack.plan("-target=terraform_data.updated")
    for more in ((), ("-compact-warnings",)):
        forms = stack.both(*flags, *more)
        assert "Applied changes may be incomplete" in forms.human.stdout
        assert forms.rendered == forms.human


@needs_terraform
@FORMS
def test_update_replacement_and_destruction_look_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": CHANGES})
    stack.plan()
    stack.apply()
    for options in (("-var=v=two",), ("-destroy",), ("-refresh-only",)):
        stack.plan(*options)
        forms = stack.both(*flags)
        assert sorted(forms.rendered.stdout.split("\n")) == sorted(forms.human.stdout.split("\n"))
        assert forms.rendered.stderr == forms.human.stderr


@needs_terraform
@FORMS
def test_imports_that_the_caller_names_look_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": IMPORTS})
    stack.plan()
    imports = [("terraform_data.pure", "[red]pure"), ("terraform_data.changed", "changed")]
    forms = stack.both(*flags, renderer=Renderer(color=not flags, imports=imports))
    assert forms.rendered.stdout.count("Import complete") == 2
    assert sorted(forms.rendered.stdout.split("\n")) == sorted(forms.human.stdout.split("\n"))


@needs_terraform
@FORMS
def test_destroy_command_ends_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """`destroy` prints its plan, and then what an apply of that plan is rendered as."""
    text = 'resource "terraform_data" "a" {}\noutput "o" { value = "kept" }\n'
    stack = Stack(tmp_path, {"main.tf": text})
    stack.plan()
    stack.apply()
    human = stack.both(*flags, command=("destroy", "-auto-approve"), target=()).human
    stack.plan("-destroy")
    ours = stack.both(*flags, renderer=Renderer(color=not flags, command="destroy")).rendered
    assert "Destroy complete! Resources: 1 destroyed." in ours.stdout
    assert human.stdout.endswith(ours.stdout)


@needs_terraform
@FORMS
def test_refresh_command_looks_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": 'resource "terraform_data" "a" {}\noutput "o" { value = 1 }\n'})
    stack.plan()
    stack.apply()
    renderer = Renderer(color=not flags, command="refresh")
    forms = stack.both(*flags, command=("refresh",), target=(), renderer=renderer)
    assert "Refreshing state..." in forms.human.stdout
    assert forms.rendered == forms.human


@needs_terraform
def test_long_steps_report_progress_like_the_engines(tmp_path: Path) -> None:
    """Ten seconds pass until the first report; an id of more than 80 characters is shortened in it."""
    digits = "".join(f"{number:03d}" for number in range(34))
    ids = {"short": "s", "long": digits, "limit": digits[:80], "above": digits[:81]}
    imported = "".join(
        f'import {{\n  to = terraform_data.{name}\n  id = "{id_}"\n}}\nresource "terraform_data" "{name}" {{\n'
        f'  provisioner "local-exec" {{\n    when    = destroy\n    command = "sleep 10.6"\n  }}\n}}\n'
        for name, id_ in ids.items()
    )
    stack = Stack(tmp_path, {"main.tf": imported})
    stack.plan()
    stack.apply()
    (stack.folder / "new.tf").write_text(
        'resource "terraform_data" "new" {\n  provisioner "local-exec" { command = "sleep 10.6" }\n}\n'
    )
    stack.plan(*(f"-replace=terraform_data.{name}" for name in ids))
    forms = stack.both("-no-color", command=("apply",))
    still = sorted(line for line in forms.human.stdout.split("\n") if "Still" in line)
    assert len(still) == 5
    assert sorted(line for line in forms.rendered.stdout.split("\n") if "Still" in line) == still


@needs_terraform
@FORMS
def test_interrupt_looks_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    text = 'resource "terraform_data" "slow" {\n  provisioner "local-exec" { command = "sleep 20" }\n}\n'
    stack = Stack(
        tmp_path, {"main.tf": text + 'resource "terraform_data" "next" { depends_on = [terraform_data.slow] }'}
    )
    stack.plan()
    human = normal(_interrupted(stack, tmp_path / "h", *flags))
    stream = _interrupted(stack, tmp_path / "j", "-json").stdout
    ours = normal(rendered(Renderer(color=not flags), stream.encode()))
    assert "Interrupt received." in human.stdout
    assert sorted(ours.stdout.split("\n")) == sorted(human.stdout.split("\n"))
    assert ours.stderr == human.stderr


def _interrupted(stack: Stack, copy: Path, *flags: str) -> RenderedText:
    """An apply in a copy of the folder that is interrupted once its provisioner runs."""
    assert TERRAFORM is not None
    shutil.copytree(stack.folder, copy)
    with (copy / "out").open("wb") as out, (copy / "err").open("wb") as err:
        command = [TERRAFORM, "apply", *flags, "p"]
        with subprocess.Popen(command, cwd=copy, env=environment(copy), stdout=out, stderr=err) as process:
            while b"Executing" not in (copy / "out").read_bytes() and process.poll() is None:
                time.sleep(0.05)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
    return RenderedText((copy / "out").read_text(), (copy / "err").read_text())


RECORDED = sorted((DATA / "recorded").glob("*/*.stdout"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded_run_looks_like_the_engines(path: Path) -> None:
    """Both forms of runs that take a cloud, a full disk or a slow lock; their steps may stand in another order."""
    stream = (path.parent / "stream.jsonl").read_bytes()
    ours = normal(rendered(Renderer(color=path.stem == "colour"), stream))
    human = normal(RenderedText(path.read_text(), path.with_suffix(".stderr").read_text()))
    assert sorted(ours.stdout.split("\n")) == sorted(human.stdout.split("\n"))
    assert ours.stderr == human.stderr


@pytest.mark.parametrize("path", sorted((DATA / "streams").glob("*.jsonl")), ids=lambda path: path.stem)
def test_recorded_stream_renders_every_step(path: Path) -> None:
    text = rendered(Renderer(color=False), path.read_bytes())
    assert "Creating..." in text.stdout or "Modifying..." in text.stdout or "plan-phase" in path.stem
    assert '"@level"' not in text.stdout + text.stderr
    assert ("Error: " in text.stderr) == (b'"severity":"error"' in path.read_bytes())


def _event(type_: str, message: str, **fields: object) -> bytes:
    return json.dumps({"type": type_, "@message": message, **fields}).encode()


def test_every_kind_of_event_has_its_rendering() -> None:
    assert set(RENDERINGS) | {EventKind.DIAGNOSTIC, EventKind.LOG} == set(EventKind)


def test_event_of_a_newer_engine_shows_its_message() -> None:
    text = Renderer(color=True).render(parse_line(_event("action_start", "Action started: action.x.y")))
    assert text == RenderedText(stdout="Action started: action.x.y\n")


def test_lines_that_are_no_events_pass_and_a_cut_event_does_not() -> None:
    renderer = Renderer(color=True)
    assert renderer.render(parse_line(b"a plugin's own words")).stdout == "a plugin's own words\n"
    reader = StreamReader()
    reader.feed(b'{"type":"log","@mess')
    assert [renderer.render(event) for event in reader.finish()] == [RenderedText()]


def test_diagnostics_wait_for_their_batch_and_come_before_the_next_event() -> None:
    renderer = Renderer(color=False)
    fault = _event("diagnostic", "Error: e", diagnostic={"severity": "error", "summary": "e", "detail": "d"})
    warning = _event("diagnostic", "Warning: w", diagnostic={"severity": "warning", "summary": "w", "detail": "d"})
    assert renderer.render(parse_line(fault)) == RenderedText()
    assert renderer.render(parse_line(warning)) == RenderedText()
    text = renderer.render(parse_line(_event("change_summary", "Apply complete!", changes={"operation": "apply"})))
    assert text == RenderedText("\nWarning: w\n\nd\n\nApply complete!\n", "\nError: e\n\nd\n")
    assert renderer.finish() == RenderedText()


def test_imports_are_not_told_as_done_where_the_engine_did_not_count_them() -> None:
    renderer = Renderer(color=False, imports=[("a.b", "1"), ("a.c", "2")])
    summary = _event("change_summary", "Apply complete!", changes={"operation": "apply", "import": 1})
    assert "Import" not in renderer.render(parse_line(summary)).stdout


def test_progress_of_a_newer_engine_that_names_the_id_itself_is_left_alone() -> None:
    renderer = Renderer(color=False)
    hook = {"resource": {"addr": "a.b"}, "action": "delete"}
    renderer.render(parse_line(_event("apply_start", "m", hook={**hook, "id_key": "id", "id_value": "x"})))
    message = "a.b: Still destroying... [id=x, 00m10s elapsed]"
    assert renderer.render(parse_line(_event("apply_progress", message, hook=hook))).stdout == message + "\n"


def test_outputs_can_be_left_out() -> None:
    outputs = parse_line(_event("outputs", "Outputs: 1", outputs={"a": {"type": "number", "value": 1}}))
    assert Renderer(color=False).render(outputs).stdout == "\nOutputs:\n\na = 1\n"
    assert Renderer(color=False, outputs_from_events=False).render(outputs) == RenderedText()


@needs_terraform
def test_blank_lines_of_a_provisioner_are_the_known_difference(tmp_path: Path) -> None:
    assert "blank provisioner lines" in KNOWN_DIFFERENCES
    command = r"printf 'a\n\nb\n'"
    text = f'resource "terraform_data" "t" {{\n  provisioner "local-exec" {{ command = "{command}" }}\n}}\n'
    stack = Stack(tmp_path, {"main.tf": text.replace("\\n", "\\\\n")})
    stack.plan()
    forms = stack.both("-no-color")
    assert forms.human.stdout.replace(": a\n\n", ": a\n") == forms.rendered.stdout
    assert forms.human != forms.rendered


CREATED_FIRST = """
variable "v" { default = 1 }
resource "terraform_data" "t" {
  triggers_replace = var.v
  lifecycle { create_before_destroy = true }
}
"""


@needs_terraform
@FORMS
def test_deposed_key_that_the_caller_finds_looks_like_the_engines(tmp_path: Path, flags: tuple[str, ...]) -> None:
    stack = Stack(tmp_path, {"main.tf": CREATED_FIRST})
    stack.plan()
    stack.apply()
    stack.plan("-var=v=2")
    forms = stack.both(*flags, renderer=Renderer(color=not flags, deposed=lambda address, _: f"of {address}"))
    key = re.search(r"\(deposed object ([0-9a-f]{8})\)", forms.human.stdout)
    assert key is not None
    assert forms.rendered.stdout.replace("of terraform_data.t", key[1]) == forms.human.stdout


def test_deposed_key_is_asked_for_once_and_told_while_it_takes() -> None:
    asked: list[tuple[str, str | None]] = []

    def key(address: str, id_value: str | None) -> str:
        asked.append((address, id_value))
        return "1a2b3c4d"

    renderer = Renderer(color=False, deposed=key)
    hook = {"resource": {"addr": "a.b"}, "action": "delete"}
    start = _event("apply_start", "a.b: Destroying... [id=x]", hook={**hook, "id_key": "id", "id_value": "x"})
    still = _event("apply_progress", "a.b: Still destroying... [10s elapsed]", hook=hook)
    shown = [renderer.render(parse_line(line)).stdout for line in (start, still, still)]
    assert shown[0] == "a.b (deposed object 1a2b3c4d): Destroying... [id=x]\n"
    assert shown[1] == shown[2] == "a.b (deposed object 1a2b3c4d): Still destroying... [id=x, 10s elapsed]\n"
    create = _event("apply_start", "a.b: Creating...", hook={**hook, "action": "create"})
    assert renderer.render(parse_line(create)).stdout == "a.b: Creating...\n"
    assert asked == [("a.b", "x")]


@needs_terraform
@FORMS
@pytest.mark.parametrize("text", [CREATED_FIRST, ""], ids=["with changes", "without"])
def test_hint_about_another_state_file_looks_like_the_engines(
    tmp_path: Path, text: str, flags: tuple[str, ...]
) -> None:
    stack = Stack(tmp_path, {"main.tf": text})
    stack.plan()
    renderer = Renderer(color=not flags, state_out="other.tfstate")
    forms = stack.both(*flags, command=("apply", "-state-out=other.tfstate"), renderer=renderer)
    assert ("State path: other.tfstate" in forms.human.stdout) is bool(text)
    assert forms.rendered == forms.human


def _diagnostic(summary: str, line: int | None = None, address: str | None = None) -> bytes:
    place = {"range": {"filename": "main.tf", "start": {"line": line, "byte": line}}} if line else {}
    about = {"address": address} if address else {}
    return _event("diagnostic", "w", diagnostic={"severity": "warning", "summary": summary, **place, **about})


APPLIED = _event("change_summary", "Apply complete!", changes={"operation": "apply"})


def _applied(*lines: bytes, **options: Any) -> str:
    """What an apply shows on stdout that has planned for itself."""
    renderer = Renderer(color=False, **options)
    texts = [renderer.render(parse_line(line)).stdout for line in lines]
    return "".join([*texts, renderer.finish().stdout])


def test_a_warning_of_the_plan_is_sorted_and_folded_into_those_of_the_apply() -> None:
    waiting = Diagnostic(Severity.WARNING, "Old", source=SourceRange("main.tf", 4, 0), drawn="  drawn\n\n", similar=1)
    shown = _applied(_diagnostic("Old", 2, "a.b"), _diagnostic("New", 3), APPLIED, said={"Old"}, waiting=[waiting])
    first, second = shown.partition("\nWarning: New")[::2]
    assert "on main.tf line 2" in first
    assert "(and 2 more similar warnings elsewhere)" in first
    assert second.endswith("\nApply complete!\n")


def test_what_the_plan_has_said_of_the_configuration_is_not_said_again() -> None:
    configured, of_an_object = _diagnostic("Old", 2), _diagnostic("Old", 2, "a.b")
    checked, unplaced = _diagnostic("Check block assertion failed", 2), _diagnostic("Plain")
    said = {"Old", "Plain", "Check block assertion failed"}
    assert "Warning" not in _applied(configured, unplaced, APPLIED, said=said)
    assert _applied(of_an_object, checked, APPLIED, said=said).count("Warning: ") == 2
    assert _applied(configured, unplaced, APPLIED).count("Warning: ") == 2
    assert _applied(_diagnostic("Applied changes may be incomplete"), APPLIED, said=said).count("Warning: ") == 1


def test_warnings_of_the_plan_come_once_and_also_where_the_apply_has_none() -> None:
    waiting = [Diagnostic(Severity.WARNING, "Old", "d")]
    assert _applied(APPLIED, said={"Old"}, waiting=waiting) == "\nWarning: Old\n\nd\n\nApply complete!\n"
    assert _applied(said={"Old"}, waiting=waiting) == "\nWarning: Old\n\nd\n"
