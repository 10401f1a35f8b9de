"""Diagnostics: order, folding, frame and wrapping, beside those of the real engine."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_forms import TERRAFORM, Stack, environment, needs_terraform, rendered

from tfguard.engine.diagnostics import Diagnostic, batches, compact_text, diagnostic_of, diagnostic_text, wrapped
from tfguard.engine.events import parse_line
from tfguard.engine.render import Renderer

PLAN = ("plan", "-parallelism=1")

FAULTS = r"""
variable "small" {
  type    = number
  default = 3
  validation {
    condition     = var.small > 4
    error_message = "[red]too small"
  }
}
"""

EXPRESSIONS = r"""
locals {
  é    = "ü"
  list = [1, "a"]
}
resource "terraform_data" "x" { input = { "a[red]" = file("nope[red]") } }
resource "terraform_data" "y" {
  lifecycle {
    precondition {
      condition     = local.é == "ü[red]ß" && startswith("a", local.é) && 3 < 4
      error_message = join("\n", [
        "Post is wrong:",
        "  an indented line that is rather long and is not wrapped because it starts with a space",
        "and a second line that is rather long too and this one is to be wrapped since it starts with no space at all",
        "",
        "- bullet\r",
        "x",
      ])
    }
    precondition {
      condition = (
        local.é == "x" &&
        local.list[0] ==
        "blah"
      )
      error_message = "multi"
    }
  }
}
output "call" { value = element([], 3) }
output "variadic" { value = coalesce(null, null) }
output "template" { value = templatefile("t.tpl", { a = 1 }) }
output "sum" {
  value = sum([for x in ["1"] :
    "${x}x" +
    1
  ])
}
output "attribute" { value = local.list[0].zzz }
"""


def _module(name: str) -> str:
    """Two faulty resources, in a file that is sorted by its path."""
    return "".join(
        f"""
resource "terraform_data" "{name}{number}" {{
  for_each = toset(["k"])
  lifecycle {{
    precondition {{
      condition     = length(each.key) == 2
      error_message = "fault {name}{number}"
    }}
  }}
}}
"""
        for number in (1, 2)
    )


FILES = {
    "A.tf": _module("upper"),
    "zz.tf": _module("last"),
    "main.tf": _module("main")
    + "".join(f'module "{m}" {{ source = "./{d}" }}\n' for m, d in (("b", "b"), ("c", "b-a"))),
    "b/x.tf": _module("b") + 'module "c" { source = "./c" }\n',
    "b/c/x.tf": _module("bc"),
    "b-a/x.tf": _module("ba"),
}


@needs_terraform
@pytest.mark.parametrize("flags", [(), ("-no-color",)])
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"main.tf": FAULTS}, id="no context"),
        pytest.param({"main.tf": EXPRESSIONS, "t.tpl": "hello\n${b}\n"}, id="expressions"),
        pytest.param(FILES, id="order of files"),
    ],
)
def test_errors_look_like_the_engines(tmp_path: Path, files: dict[str, str], flags: tuple[str, ...]) -> None:
    forms = Stack(tmp_path, files).both(*flags, command=PLAN, target=())
    assert "Error: " in forms.rendered.stderr
    assert forms.rendered.stderr == forms.human.stderr


WORDS = ["a", "bb", "word", "longish-word", "é", "日本語", "😀", "e\u0301", "x" * 20, "y" * 75, "y" * 77, "q" * 200]
BLANKS = [*[" "] * 12, "  ", "\t", "\n", "\n\n", "\n  ", "\r\n", "\u2003", "\u0085", "\u200b", "\u00a0", "\x1f", " \n"]


def _texts() -> list[str]:
    chance = random.Random(20)
    return ["".join(chance.choice(WORDS) + chance.choice(BLANKS) for _ in range(40)) + "." for _ in range(30)]


@needs_terraform
@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 5, 40, 120])
@pytest.mark.parametrize("color", [True, False])
def test_text_is_wrapped_like_the_engines_for_any_terminal_width(tmp_path: Path, width: int, color: bool) -> None:
    texts = _texts()
    outputs = "".join(
        f'output "o{n}" {{\n  value = 1\n  precondition {{\n    condition = length(var.t) == 1\n'
        f"    error_message = var.t[{n}]\n  }}\n}}\n"
        for n in range(len(texts))
    )
    variables = json.dumps({"t": texts})
    files = {"main.tf": 'variable "t" { type = list(string) }\n' + outputs, "terraform.tfvars.json": variables}
    stack = Stack(tmp_path, files)
    stream = stack.run(stack.folder, "plan", "-json").stdout
    renderer = Renderer(color, width=9, error_width=width)
    flags = () if color else ("-no-color",)
    assert rendered(renderer, stream).stderr == _on_terminal(stack.folder, tmp_path, width, *flags)


def _on_terminal(folder: Path, root: Path, width: int, *flags: str) -> str:
    """What `plan` writes to a stderr that is a terminal of so many columns."""
    assert TERRAFORM is not None
    ours, its = pty.openpty()
    settings = termios.tcgetattr(its)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(its, termios.TCSANOW, settings)
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [TERRAFORM, "plan", *flags]
    with subprocess.Popen(command, cwd=folder, env=environment(root), stdout=subprocess.DEVNULL, stderr=its):
        os.close(its)
        written = _all_from(ours)
    os.close(ours)
    return written.decode()


def _all_from(terminal: int) -> bytes:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # EIO: the other side is closed
            return b"".join(parts)
        if not part:
            return b"".join(parts)
        parts.append(part)


@given(st.text(alphabet="ab \t\u00a0é", max_size=80), st.integers(min_value=2, max_value=30))
def test_wrapping_breaks_at_blanks_and_loses_nothing_else(line: str, limit: int) -> None:
    parts = wrapped(line, limit).split("\n")
    blanks = str.maketrans("", "", " \t\n")
    assert "".join(parts).translate(blanks) == line.translate(blanks)
    assert all(len(part) <= limit or " " not in part.strip(" \t") for part in parts)


def _diagnostic(**fields: object) -> dict[str, object]:
    return {"severity": "warning", "summary": "S", "detail": "d", **fields}


def _at(line: int, filename: str = "main.tf") -> dict[str, object]:
    return {"filename": filename, "start": {"line": line, "column": 1, "byte": line * 10}, "end": {}}


def _parsed(*raws: dict[str, object]) -> list[Diagnostic]:
    lines = (json.dumps({"type": "diagnostic", "diagnostic": raw}).encode() for raw in raws)
    return [diagnostic_of(parse_line(line)) for line in lines]


def test_warnings_with_the_same_summary_fold_but_not_those_of_check_blocks() -> None:
    check = _diagnostic(summary="Check block assertion failed", range=_at(9))
    placed = [_diagnostic(range=_at(line)) for line in (3, 1, 2)]
    (batch,) = batches(_parsed(check, check, _diagnostic(), _diagnostic(), *placed))
    assert [(item.summary, item.similar) for item in batch] == [
        ("S", 0),
        ("S", 0),
        ("S", 2),
        ("Check block assertion failed", 0),
        ("Check block assertion failed", 0),
    ]
    assert batch[2].source is not None
    assert batch[2].source.line == 1
    compact = compact_text(batch, color=False, product="OpenTofu")
    assert "- S\n  on main.tf line 1 (and 2 more)\n" in compact
    assert "run OpenTofu without" in compact


def test_failed_unlock_is_a_batch_of_its_own() -> None:
    unlock = _diagnostic(severity="error", summary="Error releasing the state lock")
    first, second = batches(_parsed(_diagnostic(severity="error", summary="E", range=_at(1)), unlock))
    assert [item.summary for item in first] == ["E"]
    assert [item.summary for item in second] == ["Error releasing the state lock"]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"severity": 3, "summary": None, "detail": [], "range": "x", "snippet": 1},
        _diagnostic(
            range={"filename": "f"}, snippet={"code": "a", "values": [1, {}], "function_call": {"signature": 1}}
        ),
        _diagnostic(
            range=_at(1),
            snippet={"code": "é", "highlight_start_offset": 1, "highlight_end_offset": -9, "start_line": "x"},
        ),
        _diagnostic(range=_at(1), snippet=None, address="a.b"),
        _diagnostic(
            range=_at(1),
            snippet={
                "code": "x",
                "values": None,
                "function_call": {"called_as": "f", "signature": {"params": [3], "variadic_param": {"name": "v"}}},
            },
        ),
    ],
)
@pytest.mark.parametrize("color", [True, False])
def test_damaged_diagnostic_is_shown_as_far_as_it_goes(raw: dict[str, object], color: bool) -> None:
    (diagnostic,) = _parsed(raw)
    assert diagnostic_text(diagnostic, color=color, width=78).endswith("\n")
