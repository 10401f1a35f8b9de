"""A request of the audit service: its blueprint, and the events of how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tfguard.model.blueprint import Blueprint
from tfguard.model.blueprint_decision import Decision
from tfguard.model.blueprint_request import (
    Activity,
    BlueprintObject,
    Request,
    RequestEvent,
    RequestIntent,
    RequestState,
    fold,
)
from tfguard.model.blueprint_view import BlueprintView, StepView
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_view import blueprint_view
from tfguard.schemas.blueprint_file import parse_blueprint

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
S, St = RequestState, StepStatus
TEXT = """
apiVersion: tfguard/v1
kind: Blueprint
name: audit-service
owner: audit-team
cost_owner: cc-1042
repair_within: 1d
steps:
  identity: {stack: stacks/identity}
  database: {stack: "stacks/the db", needs: [identity], stateful: true, on_failure: retain, cost_owner: cc-7}
  migrate:  {run: [./migrate.sh], needs: [database], owned_by: database}
  binding:  {stack: stacks/binding, needs: [migrate, identity]}
  smoke:    {probe: {tcp: "localhost:80"}, needs: [binding]}
ready: {probes: [{name: app-connection, tcp: "localhost:5432"}]}
"""
BLUEPRINT = parse_blueprint(TEXT).value
INTENT = RequestIntent(
    "01J", "audit-service", "/b.yaml", "d1", NOW - timedelta(minutes=200), "me@host", "audit-team", "cc-1042"
)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def event(minutes: float, why: str = "", **said: object) -> RequestEvent:
    return RequestEvent(ago(minutes), "ci@runner", why, **said)  # type: ignore[arg-type]


def made(address: str, observed: str | None, **more: object) -> BlueprintObject:
    kind = address.partition(".")[0]
    return BlueprintObject(address, kind, created_at=ago(150), observed_id=observed, **more)  # type: ignore[arg-type]


BEGUN = [event(199, state=S.VALIDATED), event(198, state=S.PROVISIONING)]
IDENTITY = [
    event(190, step="identity", status=St.RUNNING, activity=Activity.APPLY),
    event(180, "applied", step="identity", status=St.OK, operation_id="op1", objects=(made("aws_iam_role.a", "app"),)),
]
DATABASE = [
    event(170, step="database", status=St.RUNNING, activity=Activity.APPLY),
    event(160, "applied", step="database", status=St.OK, objects=(made("aws_db_instance.d", "audit", stateful=True),)),
]
MIGRATE_FAILS = [
    event(159, step="migrate", status=St.RUNNING, activity=Activity.RUN),
    event(150, "its command ended with 3", step="migrate", status=St.ERROR, activity=Activity.RUN),
]
FAILED = [
    *BEGUN,
    *IDENTITY,
    *DATABASE,
    *MIGRATE_FAILS,
    event(140, "not done: migrate", state=S.PARTIAL_FAILURE, step="migrate"),
    event(
        140,
        "kept",
        step="database",
        status=St.RETAINED,
        until=NOW + timedelta(days=13),
        owner="dba",
        activity=Activity.RETAIN,
    ),
]
READY = [
    *BEGUN,
    *(event(100, step=name, status=St.OK) for name in BLUEPRINT.steps),
    event(90, "1", probe="app-connection", status=St.OK),
    event(90, state=S.READY),
]


def request(events: Sequence[RequestEvent]) -> Request:
    return fold(INTENT, events)


def view(
    events: Sequence[RequestEvent] | None,
    now: datetime = NOW,
    decisions: Mapping[str, Decision] | None = None,
    blueprint: Blueprint = BLUEPRINT,
    **more: object,
) -> BlueprintView:
    asked = None if events is None else request(events)
    return blueprint_view(blueprint, asked, decisions or {}, now, file="audit.yaml", **more)  # type: ignore[arg-type]


def step(seen: BlueprintView, name: str) -> StepView:
    return next(one for one in seen.steps if one.id == name)


def commands(seen: BlueprintView) -> list[str]:
    return [action.command.removeprefix("tfguard blueprint ") for action in seen.next_actions]
