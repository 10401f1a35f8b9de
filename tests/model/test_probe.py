"""What a probe may say, and that what it may not say is told without quoting it."""

from __future__ import annotations

from typing import Any

import pytest

from tfguard.errors import ConfigError
from tfguard.model.blueprint import Probe
from tfguard.model.service import Place, tcp_place, told_place, web_place
from tfguard.schemas.blueprint_file import parse_blueprint

_HEAD = """\
apiVersion: tfguard/v1
kind: Blueprint
name: b
inputs: {token: {sensitive: true}}
steps:
  a: {run: [x], idempotent: true}
"""


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"tcp": "db"}, "tcp is not HOST:PORT"),
        ({"tcp": "db:0"}, "tcp the port is not between 1 and 65535"),
        ({"tcp": "::1:5432"}, "tcp is not HOST:PORT"),
        ({"tcp": ":5432"}, "tcp names no host"),
        ({"http": "app.example"}, "http is not an http:// or https:// URL"),
        ({"http": "http://"}, "http names no host"),
        ({"http": "http://app:99999/"}, "http is not a URL"),
        ({"sql": "mysql://db/app"}, "sql is not a postgresql:// URL"),
        ({"dns": "a b"}, "dns is not a name"),
        ({"dns": "192.0.2.1"}, "dns is an address already, which always resolves"),
        ({"dns": "app.example", "expect": "other"}, "expect is not an IP address"),
        ({"http": "http://app", "expect": True}, "expect is not an HTTP status"),
        ({"http": "http://app", "expect": 42}, "expect is not an HTTP status"),
        ({"http": "http://app", "headers": {"a b": "c"}}, "headers: a name is made of letters, digits and -"),
        ({"http": "http://app", "headers": {"a": "b\nc: d"}}, "headers: the value of a has a character"),
        ({"tcp": "db:1", "headers": {"a": "b"}}, "headers belong to http"),
        ({"tcp": "db:1", "expect": 1}, "expect belongs to http, sql and dns"),
        ({"sql": "postgres://db", "expect": [1]}, "expect is a list or a mapping"),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_asked_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        Probe(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"tcp": "${inputs.host}:${inputs.port}"},
        {"tcp": "[::1]:5432"},
        {"http": "${inputs.url}", "headers": {"Authorization": "Bearer ${inputs.token}"}},
        {"sql": "postgresql:///app?host=/run/postgresql"},
        {"dns": "_sip.app.example.", "expect": "${inputs.address}"},
        {"dns": "app.example", "expect": "2001:db8::1"},
        {"sql": "postgres://db", "query": "select 1", "expect": True},
    ],
)
def test_a_reference_may_stand_where_its_value_will_be_judged(fields: dict[str, Any]) -> None:
    Probe(**fields)


def test_places_are_read_and_shown() -> None:
    assert tcp_place("[::1]:5432") == Place("::1", 5432)
    assert str(Place("::1", 5432)) == "[::1]:5432"
    assert web_place("https://me:word@app.example/x?y=z") == Place("app.example", 443)
    assert told_place("postgresql://me:word@a:1,b:2/app?password=x") == "a:1,b:2"
    assert told_place("postgresql:///app?host=/run") == ""
    assert told_place("postgresql://me:12/3@a:1/app") == ""


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ('  b: {probe: {command: [x, "${inputs.token}"]}}\n', "7: steps.b.probe.command"),
        ('ready: {probes: [{name: c, command: [x, "${inputs.token}"]}]}\n', r"7: ready.probes\[0\].command"),
    ],
)
def test_a_sensitive_input_is_no_word_of_a_command(part: str, where: str) -> None:
    with pytest.raises(ConfigError, match=f"^b.yaml:{where}: .*list of processes"):
        parse_blueprint(_HEAD + part, "b.yaml")
