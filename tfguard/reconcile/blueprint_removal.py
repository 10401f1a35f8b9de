"""What a destroy takes away of a request, and what stays and why, as far as the record tells. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind, stands_behind
from tfguard.model.blueprint_request import Request, StepRecord
from tfguard.reconcile.blueprint_objects import holds_data


def removals(
    blueprint: Blueprint,
    request: Request,
    *,
    stateful: bool = False,
    dispose: bool = False,
    gone: Collection[str] = (),
    steps: Collection[str] = (),
) -> Mapping[str, str]:
    """What becomes of each step of which something stands, the first to go first; a probe makes nothing.

    `stateful`: also what holds data goes; `dispose`: also what is retained. Of `gone` somebody says that nothing is
    there. `steps` are those that are meant (none: all).
    """
    behind = stands_behind(blueprint)
    standing = [
        name
        for name in reversed(blueprint.order())
        if blueprint.steps[name].kind is not StepKind.PROBE and request.step(name).made and (not steps or name in steps)
    ]
    stays: dict[str, str] = {}
    for name in standing:
        record, step = request.step(name), blueprint.steps[name]
        if record.retained and not (dispose or name in gone):
            until = f" until {record.until:%Y-%m-%d}" if record.until else ""
            stays[name] = f"stays: it is retained{until}; --dispose takes it away, too"
        elif step.kind is StepKind.STACK and not (stateful or name in gone) and holds_data(step, record.standing):
            stays[name] = "stays: it holds data; --stateful takes it away, too"
    # What stays keeps what it needs, however far, also over steps of which nothing stands.
    reached, waiting = {name: name for name in stays}, list(stays)
    while waiting:
        other = waiting.pop()
        for name in blueprint.steps:
            if name not in reached and other in behind[name]:
                reached[name] = other if other in standing else reached[other]
                waiting.append(name)
    stays.update(
        {name: f"stays: {reached[name]} is not gone" for name in standing if name in reached and name not in stays}
    )
    return {name: stays.get(name) or _goes(name, blueprint.steps[name], request, standing, gone) for name in standing}


def _goes(name: str, step: BlueprintStep, request: Request, standing: Collection[str], gone: Collection[str]) -> str:
    """What is done about a step that goes with all the others of `standing`."""
    if name in gone:
        empty = ", if its state is empty; else it is left as it is" if step.kind is StepKind.STACK else ""
        return f"is called gone, by your word{empty}"
    before = "; it stood before this request" if request.step(name).found else ""
    if step.kind is StepKind.STACK:
        return f"to be destroyed: {_objects(request.step(name))}{before}"
    if step.owned_by is not None and step.owned_by in standing:
        return f"goes with {step.owned_by}, which owns it"
    if step.compensate is not None:
        return f"to be undone by its compensation{before}"
    if step.check:
        return "its check is asked whether it is gone"
    return f"stays: nothing is declared that undoes it; where nothing of it is there, --gone {name} says so"


def _objects(record: StepRecord) -> str:
    many = len(record.standing)
    return f"{many} object{'' if many == 1 else 's'}" if many else "no object is on record; its state is looked at"
