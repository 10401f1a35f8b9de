"""tfguard beside the engine on the same stacks: the same exit codes, the same output but for tfguard's own lines."""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

import pytest
from helpers import Run, StackFactory
from matrix import APPLY, WARNED, Case, Shown, Stacks

from fixtures import stand_in_tofu
from fixtures.terraform_env import terraform_environment
from tfguard.engine.render import KNOWN_DIFFERENCES

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parent.parent.parent

# The same command line in each of the forms that its output can have.
PLAIN, COLOUR, JSON, SCREEN = "-no-color", "colour", "-json", "terminal"
FORMS = (PLAIN, COLOUR, JSON, SCREEN)
IN_TURN = ("-parallelism=1",)


def in_forms(stack: str, arguments: tuple[str, ...], forms: tuple[str, ...], code: int = 0) -> Iterator[Case]:
    """One case for each form."""
    for form in forms:
        flags = (form,) if form.startswith("-") else ()
        command, *rest = arguments
        yield Case(stack, (command, *flags, *rest), code, terminal=form == SCREEN)


def handed_on() -> Iterator[Case]:
    """Commands that the process becomes: what stands before that may not show."""
    forms = {
        ("init", "-input=false"): (PLAIN, COLOUR, JSON),
        ("validate",): (PLAIN, JSON, SCREEN),
        ("output",): (PLAIN, JSON, SCREEN),
        ("show",): (PLAIN, JSON),
        ("state", "list"): (COLOUR, SCREEN),
        ("state", "show", "terraform_data.a"): (COLOUR,),
        ("state", "pull"): (COLOUR,),
    }
    for stack, (arguments, of_command) in product(("unchanged", "changed", "broken"), forms.items()):
        fails = stack == "broken" and arguments[0] in ("validate",)
        yield from in_forms(stack, arguments, of_command, code=int(fails))
    yield from in_forms("new", ("show",), (PLAIN,))
    yield from in_forms("new", ("state", "list"), (COLOUR,), code=1)
    yield from in_forms("module missing", ("init",), (PLAIN, JSON), code=1)
    yield from in_forms("unchanged", ("output", "nobody"), (PLAIN,), code=1)
    yield Case("unchanged", ("console",), typed=("terraform_data.a.input\n",))
    yield Case("broken", ("console",), typed=("terraform_data.nobody\n",), code=1)
    yield Case("badly formatted", ("fmt", "-check", "-diff"), code=3)
    yield Case("badly formatted", ("fmt",), terminal=True)
    yield Case("unchanged", ("fmt", "-check"))
    yield Case("unchanged", ("nonsense",), code=1)


def plans() -> Iterator[Case]:
    """`plan`, of which only a warning on stderr may come first."""
    codes = {"new": 0, "unchanged": 0, "changed": 0, "broken": 1, "unplannable": 1, "warned": 0}
    for stack, code in codes.items():
        yield from in_forms(stack, ("plan", *IN_TURN), (PLAIN, JSON, SCREEN), code)
    for stack, code in {"unchanged": 0, "changed": 2, "broken": 1}.items():
        yield from in_forms(stack, ("plan", "-detailed-exitcode", *IN_TURN), (PLAIN, COLOUR), code)
    yield Case("changed", ("plan", "-no-color", "-out=p", *IN_TURN))
    yield Case("changed", ("plan", "-no-color", *IN_TURN), environ={"TF_IN_AUTOMATION": "1"})
    yield Case("asking", ("plan", "-no-color"), code=1)
    yield Case("asking", ("plan",), terminal=True, typed=("me\n",))


def applies() -> Iterator[Case]:
    """`apply` and `destroy` without a question, in every form."""
    approved = ("apply", "-auto-approve", *IN_TURN)
    codes = {
        "new": 0,
        "unchanged": 0,
        "changed": 0,
        "broken": 1,
        "unplannable": 1,
        "nothing planned": 1,
        "failing": 1,
        "warned": 0,
        "warned before": 0,
        "undeclared": 0,
    }
    for stack, code in codes.items():
        yield from in_forms(stack, approved, FORMS, code)
    for stack, code in {"new": 0, "changed": 0, "broken": 1, "warned before": 0}.items():
        yield from in_forms(stack, ("destroy", "-auto-approve", *IN_TURN), FORMS, code)
    for stack in ("moved", "forgotten", "empty", "modules"):
        yield from in_forms(stack, approved, (PLAIN, JSON))
    for stack, code in {"warned": 0, "warned before": 0, "failing": 1, "unplannable": 1, "undeclared": 0}.items():
        yield from in_forms(stack, (*approved, "-compact-warnings"), (PLAIN, COLOUR), code)
    yield from in_forms("warned", (*approved, "-target=terraform_data.b"), FORMS)
    yield from in_forms("warned before", ("destroy", "-auto-approve", "-target=terraform_data.c"), (PLAIN, COLOUR))
    yield from in_forms("replaced", (*approved, "-replace=terraform_data.a"), FORMS)
    yield from in_forms("replaced", (*approved, "-var=v=2"), (PLAIN, SCREEN))


def options() -> Iterator[Case]:
    """What else changes an apply's output, or its exit code."""
    approved = ("apply", "-auto-approve", "-no-color", *IN_TURN)
    yield Case("new", (*approved, "-state=other.tfstate"))
    yield Case("unchanged", (*approved, "-state=other.tfstate"))
    yield Case("new", (*approved, "-state-out=other.tfstate"))
    yield Case("new", ("apply", "-auto-approve", *IN_TURN, "-state-out=other.tfstate"), terminal=True)
    yield Case("unchanged", (*approved, "-state-out=other.tfstate"))
    yield Case("unchanged", ("destroy", "-auto-approve", "-no-color", "-state-out=other.tfstate", *IN_TURN))
    yield Case("changed", (*approved, "-refresh-only"))
    yield Case("unchanged", (*approved, "-refresh=false"))
    yield Case("unchanged", (*approved, "-input=false"))
    for refused in (
        "-detailed-exitcode",
        "-out=x",
        "-bogus",
        "-concise",
        "-target=nowhere",
        "-destroy=maybe",
        "-parallelism=x",
        "-var-file=none",
        "-var=nobody=x",
        "-state",
    ):
        yield Case("unchanged", ("apply", "-auto-approve", "-no-color", refused), code=1)
    yield Case("unchanged", ("apply", "-auto-approve", "-refresh-only", "-destroy"), code=1, terminal=True)
    yield Case("unchanged", ("destroy", "-auto-approve", "-no-color", "-refresh-only"), code=1)
    yield from in_forms("no configuration", ("apply", "-auto-approve"), FORMS, code=1)
    yield from in_forms("no configuration", ("destroy", "-auto-approve"), (PLAIN, JSON))
    yield from in_forms("module missing", ("apply", "-auto-approve"), (PLAIN, JSON), code=1)
    yield Case("new", ("apply", "-json"), code=1)
    for environ in ({"TF_INPUT": "0"}, {"TF_INPUT": "false"}, {"TF_IN_AUTOMATION": "1"}):
        yield Case("new", ("apply", "-no-color", *IN_TURN), typed=("yes\n",), environ=environ)
    yield Case("new", ("apply",), code=0, environ={"TF_CLI_ARGS_apply": "-auto-approve -no-color -parallelism=1"})
    yield Case("new", approved, environ={"NO_COLOR": "1"})


def plan_files() -> Iterator[Case]:
    """`apply PLANFILE`."""
    yield from in_forms("planned", ("apply", *IN_TURN, "p"), FORMS)
    yield from in_forms("stale", ("apply", "p"), (PLAIN, JSON), code=1)
    yield from in_forms("no plan", ("apply", "p"), (PLAIN, SCREEN), code=1)
    yield from in_forms("new", ("apply", "p"), (PLAIN,), code=1)
    yield from in_forms("planned", ("apply", *IN_TURN, "-state=other.tfstate", "p"), (PLAIN,))
    yield from in_forms("planned", ("apply", "-var=who=me", "p"), (PLAIN,), code=1)
    yield from in_forms("planned", ("destroy", "p"), (PLAIN,), code=1)
    yield from in_forms("planned", ("apply", "p", "p"), (PLAIN,), code=1)


def questions() -> Iterator[Case]:
    """The question, answered and not."""
    answers = {"yes\n": 0, "no\n": 1, "\n": 1, "": 1, "yes": 1}
    for (answer, code), form in product(answers.items(), (PLAIN, COLOUR)):
        flags = (form,) if form == PLAIN else ()
        yield Case("new", ("apply", *flags, *IN_TURN), code, typed=(answer,))
    for command, stack in (("apply", "warned"), ("apply", "changed"), ("destroy", "unchanged")):
        for (answer, code), terminal in product((("yes\n", 0), ("no\n", 1)), (True, False)):
            flags = () if terminal else ("-no-color",)
            yield Case(stack, (command, *flags, *IN_TURN), code, terminal, (answer,))
    yield Case("warned", ("apply", "-compact-warnings", *IN_TURN), terminal=True, typed=("yes\n",))
    yield Case("undeclared", ("apply", "-no-color", *IN_TURN), typed=("yes\n",))
    yield Case("unchanged", ("apply",), terminal=True)
    yield Case("unchanged", ("apply", "-refresh-only"), terminal=True)
    yield Case("failing", ("apply", *IN_TURN), 1, terminal=True, typed=("yes\n",))
    yield Case("new", ("apply", "-no-color", "-input=false"), code=1)
    yield Case("new", ("apply", "-no-color", "-input=false"), typed=("yes\n",))
    yield Case("asking", ("apply",), terminal=True, typed=("me\n", "yes\n"))
    yield Case("asking", ("apply", "-auto-approve"), terminal=True, typed=("me\n",))
    yield Case("asking", ("destroy",), 0, terminal=True, typed=("me\n",))
    yield Case("asking", ("apply", "-auto-approve", "-no-color"), typed=("me\n",))
    yield Case("asking", ("apply", "-auto-approve", "-no-color"), code=1)
    yield Case("asking", ("apply", "-auto-approve", "-no-color", "-input=false"), typed=("me\n",), code=1)
    yield Case("asking", ("apply", "-auto-approve", "-json"), code=1)


def interruptions() -> Iterator[Case]:
    """One interrupt while a provisioner runs; the engine's own two messages about it come in any order."""
    for stack, command in (("slow", "apply"), ("slow to go", "destroy")):
        for case in in_forms(stack, (command, "-auto-approve", *IN_TURN), FORMS, code=1):
            yield Case(case.stack, case.arguments, 1, case.terminal, interrupt="started", any_order=True)


MATRIX = [*chain(handed_on(), plans(), applies(), options(), plan_files(), questions(), interruptions())]


@pytest.fixture(scope="module")
def stacks(engine: Path, cli_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Stacks:
    """Prepared stacks, and the environment to run them in."""
    root = tmp_path_factory.mktemp("matrix")
    (root / "home").mkdir()
    search_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = terraform_environment(cli_config) | {"PYTHONPATH": search_path, "HOME": str(root / "home")}
    return Stacks(root, engine, environ)


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_tfguard_shows_what_the_engine_shows(stacks: Stacks, case: Case) -> None:
    real, ours = stacks.both(case)
    assert real.code == case.code, real
    assert ours == real


@dataclass(frozen=True)
class Golden:
    """A case that shows a known difference.

    `engine` are lines that the engine alone shows, or shows there; `tfguard` are all that tfguard alone does. `code` is
    tfguard's exit code.
    """

    case: Case
    engine: tuple[str, ...]
    tfguard: tuple[str, ...] = ()
    code: int = 0


# The object that depends on the imported one comes after it for the engine, and before it for tfguard.
AFTER_IMPORT = (
    "terraform_data.second: Creating...",
    "terraform_data.second: Creation complete after <elapsed> [id=<id>]",
)
GOLDEN: Mapping[str, Golden] = {
    "blank provisioner lines": Golden(Case("printing", APPLY), engine=("",)),
    "early warnings": Golden(
        Case("overridden", (*APPLY, "-compact-warnings"), environ={"TF_CLI_CONFIG_FILE": "overrides.tfrc"}),
        engine=(
            "Warnings:",
            "- Provider development overrides are in effect",
            "To see the full warning notes, run Terraform without -compact-warnings.",
        ),
        tfguard=(
            "Warning: Provider development overrides are in effect",
            "The following provider development overrides are set in the CLI",
            "configuration:",
            " - example/none in .",
            "The behavior may therefore not match any released version of the provider and",
            "applying changes may cause the state to become incompatible with published",
            "releases.",
        ),
    ),
    "imports": Golden(Case("imported", (*APPLY, *IN_TURN)), engine=AFTER_IMPORT, tfguard=AFTER_IMPORT),
    "interrupt at the question": Golden(
        Case("new", ("apply", "-no-color", *IN_TURN), 1, interrupt="Enter a value:"),
        engine=("Error: error asking for approval: <stopped>",),
        code=130,
    ),
    "unreadable input": Golden(
        Case("state unreadable", APPLY, 1), engine=("Error: Error acquiring the state lock",), code=1
    ),
}

# Those that take more than a stack of the builtin provider, each with the test that shows it.
SHOWN_ELSEWHERE: Mapping[str, str] = {
    "deposed": "tests/engine/test_deposed.py::test_a_key_that_only_another_state_has_is_not_known",
    "own form": "tests/e2e/test_matrix.py::test_an_engine_that_prints_the_apply_itself_repeats_the_plans_warnings",
    "newer types": "tests/engine/test_render.py::test_event_of_a_newer_engine_shows_its_message",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_known_difference_is_still_there_and_no_greater(stacks: Stacks, name: str) -> None:
    golden = GOLDEN[name]
    real, ours = stacks.both(golden.case)
    assert (real.code, ours.code) == (golden.case.code, golden.code)
    engine, tfguard = differing_lines(real, ours)
    assert set(golden.engine) <= set(engine)
    assert [line for line in tfguard if line] == [line for line in golden.tfguard if line]


def differing_lines(real: Shown, ours: Shown) -> tuple[list[str], list[str]]:
    """The lines that only the first shows, or shows there, and those that only the second does."""
    texts = (f"{real.stdout}{real.stderr}".split("\n"), f"{ours.stdout}{ours.stderr}".split("\n"))
    told = list(difflib.ndiff(*texts))
    return tuple([line[2:] for line in told if line.startswith(sign)] for sign in ("- ", "+ "))  # type: ignore[return-value]


def test_every_known_difference_is_shown_by_a_test() -> None:
    assert GOLDEN.keys() | SHOWN_ELSEWHERE.keys() == KNOWN_DIFFERENCES.keys()
    for place in SHOWN_ELSEWHERE.values():
        path, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text()


def test_an_engine_that_prints_the_apply_itself_repeats_the_plans_warnings(
    engine: Path, plain_stack: StackFactory, tfguard: Run, tmp_path: Path
) -> None:
    """With the stand-in for OpenTofu; no real one."""
    (tmp_path / "tofu").symlink_to(stand_in_tofu.__file__)
    environ = {"TFGUARD_ENGINE": str(tmp_path / "tofu"), "STAND_IN_TERRAFORM": str(engine)}
    done = tfguard(*APPLY, cwd=plain_stack(WARNED), env=environ)
    assert done.returncode == 0, done.stderr
    plan, _, apply = done.stdout.partition("terraform_data.a: Creating...")
    assert "Quoted references are deprecated" in plan
    assert "Quoted references are deprecated" in apply


@pytest.mark.parametrize("name", ["line", "lines", "unicode", "number"])
def test_a_raw_output_is_the_engines_to_the_byte(stacks: Stacks, name: str) -> None:
    folder, environ = stacks.prepared("outputs"), stacks.environ
    script = f'value="$("$@" output -raw {name})"; printf "%s|%s" "$value" "$?"; "$@" output -raw {name}'
    real, ours = (
        subprocess.run(["sh", "-c", script, "sh", *program], cwd=folder, env=environ, capture_output=True, check=True)
        for program in stacks.programs.values()
    )
    assert (ours.stdout, ours.stderr) == (real.stdout, real.stderr)
    assert len(ours.stdout) > 4
