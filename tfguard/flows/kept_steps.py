"""Steps as a record may keep them: without what carries a marked value (rule 10)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.operation import ObservedObject, Step
from tfguard.model.plan import Plan, PlannedChange
from tfguard.model.secrets import WITHHELD_PLACE, Withholding
from tfguard.model.state import StateSnapshot

_UNTOLD = "it names something that is marked sensitive"


def planned_steps(plan: Plan, before: StateSnapshot, hidden: Withholding | None = None) -> tuple[Step, ...]:
    """The steps of a plan; an object that the configuration no longer has gets its provider from the state.

    Their addresses are those that `hidden` lets be written; states and events are brought in line with them.
    """
    named = (hidden or Withholding(plan.secrets)).address
    return tuple(replace(step, address=named(step.address)) for step in (_step(c, before) for c in plan.changing))


def _step(change: PlannedChange, before: StateSnapshot) -> Step:
    held = before.at(change.previous_address or change.address)
    key = change.provider_key or (held.provider_key if held else "") or change.provider.rpartition("/")[2]
    return Step(
        address=change.address,
        type=change.type,
        provider=change.provider,
        action=change.action,
        desired=change.desired,
        before=change.before,
        region=change.region,
        own_account=change.own_account,
        provider_key=key,
        withheld=change.withheld,
        deposed=change.deposed,
    )


def without_secrets(steps: Sequence[Step], hidden: Withholding, *, marks_gone: bool = False) -> tuple[Step, ...]:
    """The steps as they may be kept, without what carries a marked value.

    With `marks_gone` the plan's values are not known, and what may carry one is left out by the attribute that it
    would stand in; so it is for a step whose marked value nobody knows yet.
    """
    kept = [_without_marked(step, hidden) for step in steps]
    withheld: dict[str, set[str]] = {}
    for step in kept:
        if marks_gone or step.address in hidden.silent:
            withheld.setdefault(step.type, set()).update(step.withheld)
    return tuple(_without_doubtful(step, withheld[step.type]) if step.type in withheld else step for step in kept)


def _without_doubtful(step: Step, withheld: Collection[str]) -> Step:
    """The step without what may carry a marked value, where the plan and with it the values are gone.

    `withheld` are the attributes that the record left out of any step of the type: an object can be another step's.
    """
    if any(_in_the_id(name) for name in step.withheld):
        evidence = tuple(replace(item, detail=_UNTOLD) for item in step.evidence)
        return replace(step, observed=(), evidence=evidence)
    observed = step.observed
    if any(_in_the_id(name) for name in withheld):
        observed = tuple(seen for seen in observed if seen.confidence is not Confidence.POSSIBLE)
    if any(not _in_the_id(name) for name in withheld):
        observed = tuple(replace(seen, name=None, tags={}) for seen in observed)
    return replace(step, observed=observed)


def _in_the_id(attribute: str) -> bool:
    """Whether an object's id may repeat this attribute's value; a tag is in no id."""
    return not attribute.startswith("tags.")


def _without_marked(step: Step, hidden: Withholding) -> Step:
    """The step without objects and words that carry a marked value: an ARN repeats a name, and nobody marks it."""

    def told(item: Evidence) -> Evidence:
        return replace(item, detail=hidden.text(item.detail, _UNTOLD))

    def names_one(seen: ObservedObject) -> bool:
        told_by = (seen.id, seen.import_id, seen.arn, seen.account, seen.region)
        named = any(text and hidden.tells(text) for text in told_by)
        return named or any(hidden.tells(item.detail) for item in seen.evidence)

    def unnamed(seen: ObservedObject) -> ObservedObject:
        tags = {key: value for key, value in seen.tags.items() if not (hidden.tells(key) or hidden.tells(value))}
        return replace(seen, name=None if seen.name and hidden.tells(seen.name) else seen.name, tags=tags)

    def place(text: str | None) -> str | None:
        return WITHHELD_PLACE if text and hidden.tells(text) else text

    step = replace(
        step,
        desired=_told(step.desired, hidden),
        before=_told(step.before, hidden),
        withheld=tuple(sorted({*step.withheld, *_untold(step.desired, hidden), *_untold(step.before, hidden)})),
        reported_id=None if step.reported_id and hidden.tells(step.reported_id) else step.reported_id,
        error=hidden.text(step.error, "its words may not be kept") if step.error else step.error,
        region=place(step.region),
        account=place(step.account),
        own_account=place(step.own_account),
        provider_key=hidden.address(step.provider_key),
    )
    kept = tuple(unnamed(seen) for seen in step.observed if not names_one(seen))
    evidence = tuple(told(item) for item in step.evidence)
    if len(kept) < len(step.observed):
        note = Evidence(EvidenceKind.SEVERAL_CANDIDATES, "an object whose name is marked sensitive is not named here")
        evidence = (*evidence, note)
    return replace(step, observed=kept, evidence=evidence)


def _told(identity: Mapping[str, str], hidden: Withholding) -> Mapping[str, str]:
    return {name: value for name, value in identity.items() if not hidden.tells(value)}


def _untold(identity: Mapping[str, str], hidden: Withholding) -> set[str]:
    return {name for name, value in identity.items() if hidden.tells(value)}
