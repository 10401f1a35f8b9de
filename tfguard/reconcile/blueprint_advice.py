"""The exact next commands for a blueprint's request. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from tfguard.model.blueprint import Blueprint, StepKind
from tfguard.model.blueprint_decision import DecisionKind
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.model.blueprint_view import NextAction, StepView
from tfguard.model.naming import first_of
from tfguard.model.reference import as_text

_S = RequestState
_MOST = 5
_MOST_NAMED = 3
"""So many steps that ask a person something have their commands listed; the others say it themselves."""


def blueprint_actions(
    blueprint: Blueprint,
    request: Request | None,
    steps: Sequence[StepView],
    broken: Sequence[str],
    file: str,
    folder: str,
    *,
    live: bool,
    command: str,
    changed: bool = False,
    inputs: Mapping[str, object] | None = None,
) -> Iterator[NextAction]:
    """What can be done next, the likeliest first; without a request nothing but the first apply.

    `command` and `file` are how tfguard was called, with a `-chdir`, and how the blueprint was named. `folder` is where
    the blueprint lies as seen from where the user stands, without a `-chdir`. `broken` are probes that fail, and steps
    that are not as they were when it became Ready. `changed`: it asks for more, or for
    something else, than what became Ready. `inputs` are the values that are meant (None: as the request has them).
    """
    call = _Calls(f"{command} blueprint", shlex.quote(file))
    state = request.state if request else None
    given = _given(blueprint, request, inputs)
    if request is None or state is _S.CLEANED:
        yield call("apply", "make a new request" if request else "make it", *given)
        return
    if live:
        if state in (_S.REQUESTED, _S.VALIDATED, _S.PROVISIONING, _S.REPAIRING):
            yield call("cancel", "begin no new step; what runs is waited for")
        elif state is _S.CANCEL_PENDING:
            yield call("cancel", "send what still runs one interrupt", "--interrupt")
        return
    behind = [step.id for step in steps if step.decision is DecisionKind.DESTROY]
    if behind:
        # Nothing else goes on before.
        yield call("destroy", f"take {first_of(behind, _MOST_NAMED)} away", *(f"--step {name}" for name in behind))
    if state is _S.READY:
        yield call("status", "ask the probes again", "--probe")
        if broken and not behind:
            yield from _unsettled(blueprint, steps, folder)
            yield from _going_on(steps, call, "look each object up, and repair what is gone", given)
        elif (changed or given) and not behind:
            yield call("apply", "bring it in line with the blueprint", *given)
    elif state is _S.CANCEL_PENDING:
        yield call("cancel", "take stock of what was made")
    elif state is not _S.SETTLED:
        yield from _unsettled(blueprint, steps, folder)
        yield from _told(steps, call)
        if not behind:
            otherwise = "; `apply --input NAME=VALUE` does so with another input" if blueprint.inputs else ""
            yield from _going_on(steps, call, f"go on: only what is not done is done{otherwise}", given)
    yield from _removals(blueprint, request, steps, call)
    if state in (_S.REQUESTED, _S.VALIDATED, _S.PROVISIONING, _S.REPAIRING):
        yield call("cancel", "give it up, and take stock of what was made")
    if state in (_S.PARTIAL_FAILURE, _S.SETTLED) and _standing(request, steps):
        more = "; then `resume` goes on with it" if state is _S.SETTLED else ""
        yield call("cancel", f"keep what was made, for a time, for a review{more}", "--retain")


class _Calls:
    """Makes commands about one blueprint."""

    def __init__(self, command: str, file: str) -> None:
        self._command = command
        self._file = file

    def __call__(self, word: str, why: str, *options: str) -> NextAction:
        return NextAction(" ".join((self._command, word, self._file, *options)), why)


def _given(blueprint: Blueprint, request: Request | None, inputs: Mapping[str, object] | None) -> Sequence[str]:
    """The options that hand an apply the inputs which it does not have: the values that are meant, and placeholders."""
    known = request.inputs if request is not None else {}
    meant, held = known if inputs is None else inputs, {} if request is None or request.terminal else known
    words = []
    for name, kind in blueprint.inputs.items():
        value, has = meant.get(name, kind.default), held.get(name, kind.default)
        if kind.sensitive and not str(value).startswith(("env:", "file:")):
            value = None  # a value in clear is shown to nobody
        if value is not None and value != has:
            words.append(f"--input {shlex.quote(f'{name}={as_text(value)}')}")
        elif value is None and kind.required:
            words.append(f"--input {name}={'env:NAME' if kind.sensitive else 'VALUE'}")
    return words


def _unsettled(blueprint: Blueprint, steps: Sequence[StepView], folder: str) -> Iterator[NextAction]:
    """Look at the stacks that a person has to settle."""
    asking = [step for step in steps if step.kind is StepKind.STACK and step.decision is DecisionKind.INSPECT]
    for step in asking[:_MOST]:
        own = blueprint.steps[step.id]
        # What comes from an input or an output is not known here.
        chosen = {**own.environment, **({"TF_WORKSPACE": own.workspace} if own.workspace else {})}
        told = "".join(f"{key}={shlex.quote(value)} " for key, value in chosen.items() if "${" not in value)
        stack = shlex.quote(f"-chdir={PurePath(folder) / (own.stack or '')}")
        yield NextAction(f"{told}tfguard {stack} status", f"see what {step.id} left open")


def _told(steps: Sequence[StepView], call: _Calls) -> Iterator[NextAction]:
    """Commands that may have done their work, which only a person can tell; the compensation of a step, too."""
    for step in [step for step in steps if _asks_for_a_word(step)][:_MOST]:
        what = f"the compensation of {step.id}" if step.decision is DecisionKind.UNDO else step.id
        yield call("resume", f"if {what} has done its work", "--done", step.id, "--reason", "TEXT")
        yield call("resume", f"if {what} is to run again", "--again", step.id, "--reason", "TEXT")


def _asks_for_a_word(step: StepView) -> bool:
    return bool(step.asks) and (step.kind is StepKind.RUN or step.decision is DecisionKind.UNDO)


def _going_on(steps: Sequence[StepView], call: _Calls, why: str, given: Sequence[str]) -> Iterator[NextAction]:
    """A plain `resume`, where something would come of it: not where each step that is not done waits for a person's
    word, which is a `resume` of its own. Where inputs have to be `given`, an apply does the same."""
    word = "apply" if given else "resume"
    decided = {step.id: step.decision for step in steps}
    done = (None, DecisionKind.SKIP)
    # A step behind others can do nothing before them.
    first = [step for step in steps if step.decision not in done and all(decided.get(n) in done for n in step.needs)]
    asking = [step for step in first if step.asks]
    if len(asking) < len(first) or not first:
        yield call(word, why, *given)
    elif elsewhere := [step.id for step in asking if not _asks_for_a_word(step)]:
        yield call(word, f"go on, when {first_of(elsewhere, _MOST_NAMED)} is settled", *given)


def _removals(blueprint: Blueprint, request: Request, steps: Sequence[StepView], call: _Calls) -> Iterator[NextAction]:
    """Destroy: what goes without a further word, and with what words all else goes."""
    made = _standing(request, steps)
    if made and all(_stays_without_a_word(blueprint, request, step.id) for step in made):
        named = first_of([step.id for step in made], _MOST_NAMED)
        told = [f"--gone {step.id}" for step in made]
        yield call("destroy", f"if nothing of {named} is there", *told, "--reason", "TEXT")
        return
    retained = [step for step in made if request.step(step.id).retained]
    with_data = [step for step in made if step.stateful]
    stays = {step.id for step in (*retained, *with_data)}
    if len(stays) < len(made) or not made:
        but = f", all but {first_of(sorted(stays), _MOST_NAMED)}" if stays else ""
        yield call("destroy", f"take away what was made{but}")
    if stays:
        words = [word for word, steps_ in (("--dispose", retained), ("--stateful", with_data)) if steps_]
        data = f", with the data of {first_of([step.id for step in with_data], _MOST_NAMED)}" if with_data else ""
        yield call("destroy", f"take everything away{data}", *words)


def _stays_without_a_word(blueprint: Blueprint, request: Request, name: str) -> bool:
    """Whether a destroy finds nothing that would take a step's work away, or tell that it is gone."""
    own, record = blueprint.steps.get(name), request.step(name)
    if own is None or own.kind is not StepKind.RUN or own.compensate is not None or own.check:
        return False
    if not record.made or record.retained:
        return False
    return own.owned_by is None or _stays_without_a_word(blueprint, request, own.owned_by)


def _standing(request: Request, steps: Sequence[StepView]) -> Sequence[StepView]:
    return [step for step in steps if request.step(step.id).made and step.kind is not StepKind.PROBE]
