"""Runs one command line on twin stacks, through the engine and through tfguard, and tells what each showed.

Its stacks need the builtin provider alone. Each is prepared once by the engine and copied for every run.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from helpers import wait_until

from fixtures.leftovers import end_processes_in
from fixtures.terminal import Terminal

WIDTH = 111
_QUESTION = "Enter a value:"

CHAIN = """
variable "who" { default = "you" }
resource "terraform_data" "a" { input = var.who }
resource "terraform_data" "b" { input = terraform_data.a.output }
output "who" { value = terraform_data.b.output }
output "hidden" {
  value     = "secret"
  sensitive = true
}
"""
CHANGED = CHAIN.replace('"you"', '"they\\nand we"') + 'resource "terraform_data" "c" { input = terraform_data.b.id }\n'
BROKEN = CHAIN + 'resource "terraform_data" "x" { input = terraform_data.nobody.id }\n'
UNPLANNABLE = """
resource "terraform_data" "fine" {}
resource "terraform_data" "quoted" { depends_on = ["terraform_data.fine"] }
resource "terraform_data" "asks" {
  lifecycle {
    precondition {
      condition     = var.who == "me"
      error_message = "It is not me but somebody else, and this line is long enough to be wrapped at eighty columns."
    }
  }
}
variable "who" { default = "you" }
"""
NOTHING_PLANNED = UNPLANNABLE.partition('resource "terraform_data" "asks"')[2]
NOTHING_PLANNED = f'resource "terraform_data" "asks"{NOTHING_PLANNED}'
FAILING = """
resource "terraform_data" "a" { input = "v" }
resource "terraform_data" "bad" {
  depends_on = ["terraform_data.a"]
  provisioner "local-exec" { command = "printf 'one\\n  two\\n'; exit 3" }
}
resource "terraform_data" "never" { depends_on = [terraform_data.bad] }
"""
WARNED = """
resource "terraform_data" "a" { input = "v" }
resource "terraform_data" "b" { depends_on = ["terraform_data.a"] }
resource "terraform_data" "c" { depends_on = ["terraform_data.a", "terraform_data.b"] }
check "health" {
  assert {
    condition     = terraform_data.a.output == "w"
    error_message = "The output is ${terraform_data.a.output}, and that is not what was wanted by anybody here."
  }
}
"""
SLOW = """
resource "terraform_data" "a" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" { command = "touch started; exec sleep 60" }
}
resource "terraform_data" "never" { depends_on = ["terraform_data.slow"] }
"""
SLOW_TO_GO = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    when    = destroy
    command = "touch started; exec sleep 60"
  }
}
"""
ASKING = """
variable "who" { description = "Who it is, told in a line that is long enough to be wrapped on a terminal, or not." }
resource "terraform_data" "a" { input = var.who }
"""
OUTPUTS = r"""
output "line" { value = "one" }
output "lines" { value = "one\n two\n\nfour\n" }
output "unicode" { value = "ü 日本 \u0000 \u00a0 \U0001F600" }
output "number" { value = 1.50 }
output "list" { value = ["a", "b"] }
"""
MOVED = """
resource "terraform_data" "new" { input = 2 }
moved {
  from = terraform_data.old
  to   = terraform_data.new
}
"""
FORGOTTEN = "removed {\n  from = terraform_data.old\n  lifecycle { destroy = false }\n}\n"
OLD = 'resource "terraform_data" "old" { input = 1 }\n'
IMPORTED = """
import {
  to = terraform_data.first
  id = "first"
}
resource "terraform_data" "first" {}
resource "terraform_data" "second" { depends_on = [terraform_data.first] }
"""
REPLACED = """
variable "v" { default = 1 }
resource "terraform_data" "a" {
  triggers_replace = var.v
  lifecycle { create_before_destroy = true }
}
"""
OVERRIDES = 'provider_installation {\n  dev_overrides {\n    "example/none" = "."\n  }\n  direct {}\n}\n'
APPLY = ("apply", "-auto-approve", "-no-color")


@dataclass(frozen=True)
class Recipe:
    """How a stack comes about: its files, then command lines of the engine, then files again, then command lines."""

    files: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...] = ()
    then: Mapping[str, str] = field(default_factory=dict)
    at_last: tuple[tuple[str, ...], ...] = ()


def _recipe(text: str, *commands: tuple[str, ...], then: str | None = None) -> Recipe:
    return Recipe({"main.tf": text}, commands, {} if then is None else {"main.tf": then})


RECIPES: Mapping[str, Recipe] = {
    "new": _recipe(CHAIN),
    "unchanged": _recipe(CHAIN, APPLY),
    "changed": _recipe(CHAIN, APPLY, then=CHANGED),
    "broken": _recipe(CHAIN, APPLY, then=BROKEN),
    "unplannable": _recipe(UNPLANNABLE),
    "nothing planned": _recipe(NOTHING_PLANNED),
    "failing": _recipe(FAILING),
    "warned": _recipe(WARNED),
    "warned before": _recipe(WARNED, APPLY),
    "undeclared": Recipe({"main.tf": CHAIN, "terraform.tfvars": 'nobody = "x"\n'}),
    "slow": _recipe(SLOW),
    "slow to go": _recipe(SLOW_TO_GO, APPLY),
    "asking": _recipe(ASKING),
    "outputs": _recipe(OUTPUTS, APPLY),
    "moved": _recipe(OLD, APPLY, then=MOVED),
    "forgotten": _recipe(OLD, APPLY, then=FORGOTTEN),
    "no configuration": Recipe({"readme.txt": ""}),
    "empty": _recipe(""),
    "modules": Recipe(
        {"main.tf": 'module "m" {\n  source = "./m"\n}\n', "m/main.tf": OLD + 'output "o" { value = 1 }\n'},
        (("init",),),
    ),
    "module missing": _recipe('module "m" {\n  source = "./m"\n}\n'),
    "badly formatted": _recipe('output   "a" {\nvalue=1\n}\n'),
    "planned": Recipe({"main.tf": CHAIN}, (("plan", "-out=p"),)),
    "stale": Recipe({"main.tf": CHAIN}, (("plan", "-out=p"), APPLY)),
    "no plan": Recipe({"main.tf": CHAIN, "p": "this is no plan\n"}),
    "replaced": _recipe(REPLACED, APPLY),
    "imported": _recipe(IMPORTED),
    "printing": _recipe(
        'resource "terraform_data" "a" {\n  provisioner "local-exec" { command = "echo a; echo; echo b" }\n}\n'
    ),
    "overridden": Recipe({"main.tf": CHAIN, "overrides.tfrc": OVERRIDES}),
    "state unreadable": Recipe({"main.tf": CHAIN, "terraform.tfstate": '{"version": 5}\n'}),
}


@dataclass(frozen=True)
class Shown:
    """What a run showed, without what differs between any two runs."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Case:
    """One command line on one stack. `code` is the exit code that makes the case what it is meant to be.

    `typed` is piped in, or typed at the questions when it runs on a `terminal`. `interrupt` names a file or a text on
    the screen upon which the run is interrupted. With `any_order` the engine itself prints its lines in any order.
    """

    stack: str
    arguments: tuple[str, ...]
    code: int = 0
    terminal: bool = False
    typed: tuple[str, ...] = ()
    interrupt: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    any_order: bool = False

    def __str__(self) -> str:
        how = " on a terminal" if self.terminal else ""
        typed = "".join(f" {line!r}" for line in self.typed)
        cut = f" interrupted at {self.interrupt!r}" if self.interrupt else ""
        environ = "".join(f"{name}={value} " for name, value in self.environ.items())
        return f"{self.stack}: {environ}{' '.join(self.arguments)}{typed}{how}{cut}"


class Stacks:
    """The prepared stacks, and runs on copies of them; `programs` are the engine and tfguard."""

    def __init__(self, root: Path, engine: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._engine = str(engine)
        self.environ = dict(environ)
        self.programs = {"one": (self._engine,), "two": (sys.executable, "-m", "tfguard")}
        self._prepared: dict[str, Path] = {}

    def prepared(self, name: str) -> Path:
        """The folder of a stack, made when it is first asked for."""
        if name not in self._prepared:
            folder = self._root / f"prepared-{len(self._prepared)}"
            recipe = RECIPES[name]
            for files, commands in ((recipe.files, recipe.commands), (recipe.then, recipe.at_last)):
                _write(folder, files)
                for command in commands:
                    argv = [self._engine, *command]
                    subprocess.run(argv, cwd=folder, env=self.environ, check=True, capture_output=True, timeout=120)
            self._prepared[name] = folder
        return self._prepared[name]

    def both(self, case: Case) -> tuple[Shown, Shown]:
        """What the engine shows, and what tfguard does."""
        self.prepared(case.stack)
        with ThreadPoolExecutor(2) as pool:
            real, ours = pool.map(lambda name: self._run(name, self.programs[name], case), self.programs)
        return real, ours

    def _run(self, name: str, program: tuple[str, ...], case: Case) -> Shown:
        folder = self._root / "runs" / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.prepared(case.stack), folder)
        argv, environ = [*program, *case.arguments], {**self.environ, **case.environ}
        try:
            run = _on_terminal if case.terminal else _with_files
            code, stdout, stderr = run(argv, folder, environ, case)
        finally:
            end_processes_in(folder)
        shown = [_masked(text) for text in (stdout, stderr)]
        # A terminal shows both; elsewhere tfguard's own words are on stderr alone.
        own = shown[:1] if case.terminal else shown[1:]
        for text in own:
            shown[shown.index(text)] = _without_own_words(text)
        if case.any_order:
            shown = ["\n".join(sorted(text.split("\n"))) for text in shown]
        return Shown(code, *shown)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _with_files(argv: list[str], folder: Path, environ: Mapping[str, str], case: Case) -> tuple[int, str, str]:
    out, err = folder.with_suffix(".out"), folder.with_suffix(".err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            argv, cwd=folder, env=dict(environ), stdin=subprocess.PIPE, stdout=stdout, stderr=stderr
        )
    assert process.stdin is not None
    if case.interrupt is None:
        process.communicate("".join(case.typed).encode(), timeout=120)
    else:
        _interrupt(process, lambda: out.read_text(), folder, case.interrupt)
        process.stdin.close()
    return process.returncode, out.read_text(), err.read_text()


def _on_terminal(argv: list[str], folder: Path, environ: Mapping[str, str], case: Case) -> tuple[int, str, str]:
    with Terminal(argv, folder, environ, columns=WIDTH) as terminal:
        asked = 0
        for line in case.typed:
            terminal.wait_for(_QUESTION, after=asked)
            asked = terminal.shown.rindex(_QUESTION) + len(_QUESTION)
            terminal.type(line)
        if case.interrupt is not None:
            _interrupt(terminal.process, lambda: terminal.shown, folder, case.interrupt)
        code = terminal.process.wait(timeout=120)
    return code, terminal.shown, ""


def _interrupt(process: subprocess.Popen[bytes], shown: object, folder: Path, upon: str) -> None:
    assert callable(shown)
    wait_until(lambda: process.poll() is not None or (folder / upon).exists() or upon in shown())
    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)


_MASKS = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
    (r'"@timestamp":"[^"]*"', '"@timestamp":"<time>"'),
    (r'(?<="timestamp":)"[^"]*"', '"<time>"'),
    (r'(?<= after )\d+s|\b\d+s(?= elapsed)|(?<="elapsed_seconds":)\d+', "<elapsed>"),
    (r"/runs/(one|two)\b", "/runs/<stack>"),
    # terraform races its own answer to an interrupt at the question: about one in a hundred says the second.
    (r"(?<=error asking for approval: )(interrupted|context canceled)", "<stopped>"),
    # Whether it is there in time depends on how fast the object goes away (KNOWN_DIFFERENCES).
    (r" \(deposed object [0-9a-f]{8}\)", ""),
)


def _masked(text: str) -> str:
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text)
    return text


def _without_own_words(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not re.sub(r"\x1b\[[0-9;]*m", "", line).startswith("tfguard:"))
