"""A blueprint file: what it may say, and that every mistake names file, line and key."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tfguard.errors import ConfigError
from tfguard.model.blueprint import Blueprint, OnFailure, StepKind
from tfguard.schemas.blueprint_file import parse_blueprint

WHOLE = """\
apiVersion: tfguard/v1
kind: Blueprint
name: audit-service
owner: audit-team
cost_owner: cc-1042
inputs:
  environment: {type: string, required: true}
  password: {sensitive: true}
steps:
  identity: {stack: stacks/identity, vars: {environment: "${inputs.environment}"}}
  database: {stack: stacks/database, needs: [identity], stateful: true, on_failure: retain, retain_for: 14d}
  migrate:
    run: [./migrate.sh]
    needs: [database]
    owned_by: database
    timeout: 5m
    environment: {PASSWORD: "${inputs.password}"}
  binding:
    stack: stacks/binding
    needs: [migrate]
    vars: {endpoint: "${steps.database.outputs.endpoint}", size: 3}
    compensate: {run: [./unbind.sh]}
  check: {probe: {tcp: "db:5432", within: 1m}, needs: [binding]}
ready:
  inventory: true
  probes:
    - {name: app-connection, sql: "${steps.database.outputs.url}", query: "select 1", within: 2m}
    - {name: health, http: "https://localhost", expect: 200}
"""


def test_all_of_it_is_read() -> None:
    blueprint = parse_blueprint(WHOLE).value
    assert blueprint.order() == ("identity", "database", "migrate", "binding", "check")
    assert [blueprint.steps[name].kind for name in blueprint.order()] == [
        StepKind.STACK, StepKind.STACK, StepKind.RUN, StepKind.STACK, StepKind.PROBE
    ]  # fmt: skip
    assert blueprint.steps["database"].failing is OnFailure.RETAIN
    assert blueprint.steps["binding"].failing is OnFailure.COMPENSATE
    assert blueprint.steps["identity"].failing is OnFailure.STOP
    assert blueprint.steps["migrate"].timeout == timedelta(minutes=5)
    assert blueprint.steps["binding"].vars["size"] == 3
    assert blueprint.ready.probes[1].expect == 200
    assert blueprint.behind("binding") == {"identity", "database", "migrate"}


@pytest.mark.parametrize(
    ("before", "after", "line", "key", "reason"),
    [
        ("needs: [migrate]", "needs: [migrat]", 20, "steps.binding.needs[0]", "no step migrat"),
        ("{stack: stacks/identity,", "{needs: [binding], stack: i,", 10, "steps.identity.needs", "circle"),
        ("${inputs.environment}", "${inputs.enviroment}", 10, "steps.identity.vars", "no input enviroment"),
        ("http: ", "htp: ", 28, "ready.probes[1].htp", "did you mean http"),
        ("stateful: true", "statefull: true", 11, "steps.database.statefull", "did you mean stateful"),
        ("outputs.endpoint", "output.endpoint", 21, "steps.binding.vars", "no reference"),
        ("steps.database.outputs.endpoint", "steps.migrate.outputs.x", 21, "steps.binding.vars", "no stack"),
        ("owned_by: database", "owned_by: binding", 15, "steps.migrate.owned_by", "one of the step's needs"),
        ("[identity], stateful", "[identity, identity], stateful", 11, "steps.database.needs[1]", "twice"),
        ("retain_for: 14d", "retain_for: soon", 11, "steps.database.retain_for", "duration"),
        ("on_failure: retain,", "on_failure: stop,", 11, "steps.database", "retain_for belongs"),
        ("compensate: {run: [./unbind.sh]}", "compensate: {}", 22, "steps.binding.compensate", "either run or destroy"),
        ("stateful: true,", "stateful: true, run: [x],", 11, "steps.database", "exactly one of stack, run, probe"),
        ("timeout: 5m", "vars: {a: 1}", 12, "steps.migrate", "vars does not belong"),
        ("run: [./migrate.sh]", 'run: [./m, "${inputs.password}"]', 13, "steps.migrate.run", "list of processes"),
        ('tcp: "db:5432"', 'tcp: "${inputs.password}:5"', 23, "steps.check.probe.tcp", "where it was asked"),
        ("name: health", "name: app-connection", 28, "ready.probes[1].name", "another probe"),
        ("expect: 200", "expect: ok", 28, "ready.probes[1]", "HTTP status"),
        ("sensitive: true", "sensitive: true, default: x", 8, "inputs.password", "sensitive"),
        ("apiVersion: tfguard/v1", "apiVersion: tfguard/v2", 1, "", "apiVersion is not"),
        ("kind: Blueprint", "kind: Blueprints", 1, "", "kind is not"),
        ("name: audit-service", "name: audit service", 1, "", "name is not made of"),
        ("timeout: 5m", "timeout: 0s", 12, "steps.migrate", "timeout must be longer than nothing"),
        ("retain_for: 14d", "retain_for: 0d", 11, "steps.database", "retain_for must be longer than nothing"),
        ("[./unbind.sh]}", "[./u], timeout: 0s}", 22, "steps.binding.compensate", "timeout must be longer"),
        ("[./unbind.sh]", '[./u, "${inputs.password}"]', 22, "steps.binding.compensate.run", "list of processes"),
        (
            "[./unbind.sh]", '[./u], check: ["${inputs.password}"]',
            22, "steps.binding.compensate.check", "list of processes",
        ),
        (
            "stack: stacks/binding", 'workspace: "${inputs.password}"\n    stack: b',
            19, "steps.binding.workspace", "states",
        ),
        ("needs: [binding]}", "needs: [binding], idempotent: true}", 23, "steps.check", "idempotent does not belong"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_line_and_key(before: str, after: str, line: int, key: str, reason: str) -> None:
    assert before in WHOLE
    with pytest.raises(ConfigError) as told:
        parse_blueprint(WHOLE.replace(before, after), "b.yaml")
    where = f"b.yaml:{line}: {key}" if key else f"b.yaml:{line}:"
    assert told.value.what.startswith(where), told.value.what
    assert reason in told.value.what


def test_steps_of_which_none_could_be_taken_away_first_are_refused() -> None:
    text = WHOLE.replace("needs: [database]\n    owned_by", "needs: [database, late]\n    owned_by")
    text = text.replace("  binding:\n", "  late: {stack: stacks/late, needs: [database]}\n  binding:\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:15: steps\.migrate\.owned_by: nothing of this could ever") as told:
        parse_blueprint(text, "b.yaml")
    assert "migrate goes after database" in told.value.what


def test_all_that_comes_before_a_step_is_listed_only_where_it_takes_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    behind, asked = Blueprint.behind, list[str]()
    monkeypatch.setattr(Blueprint, "behind", lambda self, name: asked.append(name) or behind(self, name))
    parse_blueprint(WHOLE)
    assert asked == ["binding"], "of a long chain it would be a lot"


def test_a_step_may_use_only_what_comes_before_it() -> None:
    text = WHOLE.replace("needs: [migrate]", "needs: [identity]")
    with pytest.raises(ConfigError, match=r"b\.yaml:21: steps\.binding\.vars: .*not among the needs of binding"):
        parse_blueprint(text, "b.yaml")


def test_a_stateful_step_has_no_destroy_for_a_compensation() -> None:
    text = WHOLE.replace("on_failure: retain, retain_for: 14d", "compensate: {destroy: true}")
    with pytest.raises(ConfigError, match="stateful step is never deleted as a compensation"):
        parse_blueprint(text)


@pytest.mark.parametrize("text", ["", "[]", "steps: {}", "a: *x", "{", "steps: {a: {}}", "x" * 300_000, "\x00"])
def test_what_is_no_blueprint_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_blueprint(text, "b.yaml")
    assert told.value.what.startswith("b.yaml:")
    assert "\n" not in told.value.what
