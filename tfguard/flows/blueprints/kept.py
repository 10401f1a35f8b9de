"""The blueprint as a request keeps it: what was made by it stays known, whatever has become of the file."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import replace

from tfguard.errors import ConfigError, TfguardError, UsageError
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.requests import Requests
from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import Activity, Request
from tfguard.model.reference import Reference, resolve
from tfguard.schemas.blueprint_file import parse_blueprint

_WORKSPACE = "TF_WORKSPACE"
_KINDS: Mapping[StepKind, str] = {StepKind.STACK: "a stack", StepKind.RUN: "a command", StepKind.PROBE: "a probe"}


def kept_blueprint(requests: Requests, request: Request) -> tuple[Blueprint, str]:
    """The blueprint that a request was last worked on by, and its text.

    Raises `ConfigError` where it is not kept as it was any more, or does not parse; `RecordError` as `Requests` does.
    """
    text = requests.kept_text(request)
    if text is None:
        raise ConfigError(
            f"the blueprint of request {request.id} is not kept at {requests.location} as it was applied",
            "restore the record, or the blueprint's file",
        )
    return parse_blueprint(text, f"the blueprint that request {request.id} keeps").value, text


def by_kept(context: BlueprintContext, request: Request) -> BlueprintContext:
    """The surroundings with the blueprint that a request was last worked on by. Raises as `kept_blueprint` does."""
    blueprint, text = kept_blueprint(context.requests, request)
    return replace(context, blueprint=blueprint, text=text)


def left_behind(
    context: BlueprintContext, request: Request, inputs: Mapping[str, object] | None = None
) -> Mapping[str, str]:
    """The steps that a request has made and that the blueprint with these inputs (None: the request's own) does not
    have any more, or has elsewhere; each with what became of it. Nobody would tell of that, or take it away.

    Raises `RecordError`.
    """
    inputs = request.inputs if inputs is None else inputs
    same_text = context.requests.digest(context.text) == request.blueprint_digest
    made = [name for name, record in request.steps.items() if record.made]
    if not made or (same_text and inputs == request.inputs):
        return {}
    before = context
    if not same_text:
        try:
            before = by_kept(context, request)
        except ConfigError:  # then the record alone tells what was made, and not where
            lost = [name for name in made if name not in context.blueprint.steps]
            return {name: _lost(request) for name in lost if request.step(name).activity is not Activity.PROBE}
    was, becomes = Values(before, request.inputs), Values(context, inputs)
    found: dict[str, str] = {}
    for name in made:
        old, new = before.blueprint.steps.get(name), context.blueprint.steps.get(name)
        if old is not None and old.kind is StepKind.PROBE:
            continue  # it makes nothing
        if new is None:
            found[name] = _lost(request)
        elif old is not None and (change := _change(old, new, was, becomes)) and not _same_state(name, was, becomes):
            found[name] = f"{change}, and request {request.id} has made what was there"
    return found


def refuse_left_behind(context: BlueprintContext, request: Request, inputs: Mapping[str, object] | None = None) -> None:
    """Raise `UsageError` where `left_behind` tells of a step: the request cannot go on with this blueprint."""
    if found := left_behind(context, request, inputs):
        told = "; ".join(f"{name}: {why}" for name, why in found.items())
        kept = f"{context.requests.location}/requests/{request.id}/blueprint-{request.blueprint_digest}.yaml"
        raise UsageError(told, f"{_way_out(context, found)}; or put it back as it was, which is kept in {kept}")


def decided_left_behind(
    context: BlueprintContext, request: Request, inputs: Mapping[str, object] | None = None
) -> Mapping[str, Decision]:
    """What has to be done about each step that `left_behind` tells of, before the request can go on."""
    return {
        name: Decision(DecisionKind.DESTROY, why, asks=f"{_way_out(context, [name])}, or put it back as it was")
        for name, why in left_behind(context, request, inputs).items()
    }


def _way_out(context: BlueprintContext, names: Mapping[str, str] | list[str]) -> str:
    chosen = "".join(f" --step {name}" for name in names)
    return f"take it away: `tfguard blueprint destroy {context.file_word}{chosen}`"


def _lost(request: Request) -> str:
    return f"it is no longer in the blueprint, and request {request.id} has made it"


def _change(old: BlueprintStep, new: BlueprintStep, was: Values, becomes: Values) -> str:
    """What has changed about where a step's work is; empty where nothing has."""
    if old.kind is not new.kind:
        return f"it was {_KINDS[old.kind]}, and is {_KINDS[new.kind]} now"
    if os.path.normpath(old.stack or "") != os.path.normpath(new.stack or ""):
        return f"its stack was {old.stack}, and is {new.stack} now"
    before, after = _workspace(old, was), _workspace(new, becomes)
    return f"its workspace was {before or 'not named'}, and is {after or 'not named'} now" if before != after else ""


def _workspace(step: BlueprintStep, values: Values) -> str:
    """The workspace of a step as the blueprint and the inputs say it; what comes from an output stays as written."""

    def value_of(reference: Reference) -> object:
        return values.inputs.get(reference.name) if reference.step is None else f"${{{reference}}}"

    return str(resolve(step.workspace or step.environment.get(_WORKSPACE, ""), value_of) or "")


def _same_state(name: str, was: Values, becomes: Values) -> bool:
    """Whether what is written otherwise means the same state, as far as that can be told."""
    if any(values.context.blueprint.steps[name].kind is not StepKind.STACK for values in (was, becomes)):
        return False
    try:
        stacks = was.context.stacks
        return stacks.facts(was.place(name)).location == stacks.facts(becomes.place(name)).location
    except TfguardError:
        return False
