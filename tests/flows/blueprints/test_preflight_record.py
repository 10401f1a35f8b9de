"""What a request keeps of its preflight: nothing of one that failed, and which checks were left out of one that did
not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from request_stand_ins import Desk

from tfguard.errors import ConfigError, PreflightError
from tfguard.flows.blueprints.provide import ProvideOptions, provide
from tfguard.model.blueprint import Preflight
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus
from tfguard.schemas.blueprint_file import parse_blueprint

ONE = """\
apiVersion: tfguard/v1
kind: Blueprint
name: service
inputs: {size: {type: number, default: 1}}
steps: {network: {stack: network, vars: {size: "${inputs.size}"}}}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A blueprint of one stack."""
    return Desk(tmp_path, ONE)


def provided(desk: Desk, skipped: Mapping[str, str], seen: list[Request] | None = None, **inputs: object) -> Request:
    """The request after an apply whose preflight left these checks out."""

    def look(request: Request) -> Sequence[CheckResult]:
        if seen is not None:
            seen.append(request)
        return [CheckResult(CheckName(name), CheckStatus.SKIPPED, reason) for name, reason in skipped.items()]

    return provide(desk.context, ProvideOptions(inputs), look, lambda _: None)


def test_a_preflight_that_fails_leaves_no_request(desk: Desk) -> None:
    def fails(_: Request) -> Sequence[CheckResult]:
        raise PreflightError("the preflight failed: quotas", "have it raised")

    with pytest.raises(PreflightError):
        provide(desk.context, ProvideOptions(), fails, lambda _: None)
    assert desk.context.requests.current() is None
    assert desk.world.calls == []


def test_a_preflight_that_fails_leaves_an_earlier_request_as_it_was(desk: Desk) -> None:
    desk.provide()
    path = next((desk.folder / "b.tfguard").glob("requests/*/events.jsonl"))
    before = path.read_bytes()

    def fails(_: Request) -> Sequence[CheckResult]:
        raise PreflightError("the preflight failed: quotas", "have it raised")

    with pytest.raises(PreflightError):
        provide(desk.context, ProvideOptions({"size": 2}), fails, lambda _: None)
    assert path.read_bytes() == before


def test_what_was_skipped_is_on_record_with_its_reason_before_the_first_step(desk: Desk) -> None:
    request = provided(desk, {"quotas": "raised yesterday"})
    assert request.state is RequestState.READY
    assert desk.request.skipped == {"quotas": "raised yesterday"}
    validated = next(change for change in desk.request.transitions if change.after is RequestState.VALIDATED)
    assert validated.why == "the preflight found nothing in the way; skipped: quotas"
    lines = next((desk.folder / "b.tfguard").glob("requests/*/events.jsonl")).read_text().splitlines()
    assert "skipped of the preflight: quotas: raised yesterday" in lines[0]


def test_only_the_last_preflight_counts(desk: Desk) -> None:
    provided(desk, {"quotas": "raised yesterday"})
    assert provided(desk, {}).skipped == {}
    assert desk.request.skipped == {}


def test_the_preflight_sees_the_request_with_its_new_inputs(desk: Desk) -> None:
    seen: list[Request] = []
    provided(desk, {}, seen)
    provided(desk, {}, seen, size=2)
    assert [request.inputs["size"] for request in seen] == [1, 2]
    assert seen[0].changed_at is None
    assert seen[1].changed_at is not None


@pytest.mark.parametrize(
    ("reserve", "limit", "kept"),
    [("10%", 5, 1), ("10%", 2500, 250), ("10%", 101, 11), ("0%", 100, 0), (0, 100, 0), (7, 5, 7)],
)
def test_what_stays_free_of_a_limit(reserve: object, limit: int, kept: int) -> None:
    assert Preflight(reserve).kept_free(limit) == kept


@pytest.mark.parametrize("reserve", ["much", "100%", "-1", "1.5", "true", "10 %"])
def test_a_reserve_that_is_none_is_refused_with_its_place(reserve: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_blueprint(f"{ONE}preflight: {{reserve: {reserve}}}\n")
    assert caught.value.what == (
        "blueprint.yaml:6: preflight: reserve is neither a part below all, such as 10%, nor a number of objects"
    )
