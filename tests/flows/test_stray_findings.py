"""Findings by their ids, as a person names them."""

from __future__ import annotations

import pytest

from tfguard.errors import UsageError
from tfguard.flows.stray_findings import findings_with, refuse_tainted
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict

KNOWN = [
    Finding(name, Verdict.ORPHANED, Confidence.CERTAIN, None, None, None)
    for name in ("o-3fa9c1d2", "o-3fb00000", "o-77000000")
]


def test_each_is_taken_once_and_in_the_order_of_the_ids() -> None:
    found = findings_with(["o-77000000", "o-3fa9c1d2", "o-77000000"], KNOWN)
    assert [one.id for one in found] == ["o-77000000", "o-3fa9c1d2"]


def test_all_that_are_not_there_are_named() -> None:
    with pytest.raises(UsageError) as raised:
        findings_with(["o-00000000", "o-3fa9c1d2", "o-11111111"], KNOWN)
    assert raised.value.what == "there is no finding o-00000000 or o-11111111 here"
    assert raised.value.advice.startswith("see `tfguard orphans list`")


@pytest.mark.parametrize("name", ["", " "])
def test_a_name_of_nothing_is_seen_in_the_message(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        findings_with(["o-11111111", name], KNOWN)
    assert raised.value.what == f"there is no finding o-11111111 or '{name}' here"


@pytest.mark.parametrize("name", ["o-3fa", "3fa9c1d2", "o-3fa9"])
def test_the_only_one_that_begins_so_is_suggested(name: str) -> None:
    with pytest.raises(UsageError, match="there is no finding") as raised:
        findings_with([name], KNOWN)
    assert raised.value.advice.startswith("is o-3fa9c1d2 meant? ")


@pytest.mark.parametrize("name", ["o-3f", "o-", "", "app"])
def test_nothing_is_suggested_where_several_begin_so_or_none(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        findings_with([name], KNOWN)
    assert "meant" not in raised.value.advice


def test_how_a_tainted_object_is_deleted_is_told_to_the_end() -> None:
    with pytest.raises(UsageError) as raised:
        refuse_tainted([Finding("o-1", Verdict.TAINTED, Confidence.CERTAIN, "a.b", None, None)])
    assert "`tfguard state rm`, which makes it a stray object" in raised.value.advice
    assert raised.value.advice.endswith("`tfguard orphans destroy` deletes that")
