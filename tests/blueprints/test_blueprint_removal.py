"""What is told before a destroy: what goes, how much of it, what stays and why."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from blueprint_scene import BLUEPRINT, FAILED, READY, S, St, event, made, request

from tfguard.model.blueprint_request import Activity
from tfguard.reconcile.blueprint_removal import removals
from tfguard.schemas.blueprint_file import parse_blueprint

OBJECTS = (made("aws_ssm_parameter.a", "a"), made("aws_ssm_parameter.b", "b"))
DONE = [
    *READY,
    event(80, step="smoke", status=St.RUNNING, activity=Activity.PROBE),
    event(79, step="smoke", status=St.OK),
    event(70, step="binding", status=St.OK, objects=OBJECTS),
]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {},
            {
                "binding": "to be destroyed: 2 objects",
                "database": "stays: it holds data; --stateful takes it away, too",
                "migrate": "stays: database is not gone",
                "identity": "stays: database is not gone",
            },
        ),
        (
            {"stateful": True},
            {
                "binding": "to be destroyed: 2 objects",
                "database": "to be destroyed: no object is on record; its state is looked at",
                "migrate": "goes with database, which owns it",
                "identity": "to be destroyed: no object is on record; its state is looked at",
            },
        ),
        ({"steps": ["binding"]}, {"binding": "to be destroyed: 2 objects"}),
        (
            {"steps": ["migrate"], "gone": ["migrate"]},
            {"migrate": "is called gone, by your word"},
        ),
        (
            {"steps": ["migrate"]},
            {
                "migrate": "stays: nothing is declared that undoes it; where nothing of it is there, "
                "--gone migrate says so"
            },
        ),
    ],
)
def test_each_step_is_told_but_probes(said: Mapping[str, object], told: Mapping[str, str]) -> None:
    found = removals(BLUEPRINT, request(DONE), **said)  # type: ignore[arg-type]
    assert dict(found) == told


def test_what_is_needed_through_a_probe_stays_for_what_stands_behind_that() -> None:
    steps = "a: {stack: a}, p: {probe: {tcp: 'x:1'}, needs: [a]}, c: {stack: c, needs: [p], stateful: true}"
    text = f"apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nsteps: {{{steps}}}\n"
    events = [event(9, step=name, status=St.OK) for name in "apc"]
    assert removals(parse_blueprint(text).value, request(events)) == {
        "c": "stays: it holds data; --stateful takes it away, too",
        "a": "stays: c is not gone",
    }


def test_what_is_retained_stays_until_its_date_and_what_has_gone_is_not_told() -> None:
    events = [*FAILED, event(10, step="migrate", status=St.DESTROYED), event(9, state=S.CANCEL_PENDING)]
    found = removals(BLUEPRINT, request(events), stateful=True)
    assert dict(found) == {
        "database": "stays: it is retained until 2026-03-14; --dispose takes it away, too",
        "identity": "stays: database is not gone",
    }
    assert removals(BLUEPRINT, request(events), stateful=True, dispose=True) == {
        "database": "to be destroyed: 1 object",
        "identity": "to be destroyed: 1 object",
    }
