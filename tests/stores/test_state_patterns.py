"""Which keys and files a pattern of states means, and what lies beside a state and is none."""

from __future__ import annotations

import pytest

from tfguard.stores.state_patterns import Glob, KeyPattern, is_companion, is_state_name


@pytest.mark.parametrize(
    ("pattern", "fits", "not_these"),
    [
        (
            "**/terraform.tfstate",
            ["terraform.tfstate", "a/terraform.tfstate", "a/b/terraform.tfstate"],
            ["a/xterraform.tfstate"],
        ),
        ("infra/**", ["infra/a", "infra/a/b", "infra/"], ["infra", "infrastructure/a"]),
        ("infra/*/x", ["infra/a/x"], ["infra/a/b/x", "infra/x"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("a[bc]d", ["abd", "acd"], ["aed"]),
        ("a[!b]d", ["acd"], ["abd", "a/d"]),
        ("a[0-9]", ["a7"], ["ab"]),
        ("a[/]b", [], ["a/b"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a.b+(c)", ["a.b+(c)"], ["axb+(c)"]),
        ("a**b", ["axxb"], ["a/b"]),
    ],
)
def test_a_pattern_fits_whole_names(pattern: str, fits: list[str], not_these: list[str]) -> None:
    glob = Glob(pattern)
    assert [name for name in fits if not glob.matches(name)] == []
    assert [name for name in not_these if glob.matches(name)] == []


def test_a_list_begins_where_the_pattern_stops_being_a_name() -> None:
    assert [KeyPattern(text).start for text in ("a/b*/c", "**", "a/b", "", "a/")] == ["a/b", "", "a/b", "", "a/"]


@pytest.mark.parametrize(
    ("key", "beside"),
    [
        ("a/terraform.tfstate", False),
        ("terraform.tfstateenv:dev", False),
        ("a/terraform.tfstate.tfguard/head.json", True),
        ("a/terraform.tfstate.tfguard/operations/1/rescued/errored.tfstate", True),
        ("a/terraform.tfstate.tflock", True),
        ("a/.terraform.tfstate.lock.info", True),
        ("a/terraform.tfstate.backup", True),
        ("a/terraform.tfstate.1700000000.backup", True),
        ("a/errored.tfstate", True),
        ("x.tfguard", False),
    ],
)
def test_records_locks_backups_and_errored_states_are_no_states(key: str, beside: bool) -> None:
    assert is_companion(key) is beside
    assert not (beside and is_state_name(key))


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("", ["a/x.tfstate", "b.tfstate"]),
        ("a", ["a", "a/x.tfstate"]),
        ("a/", ["a/net", "a/x.tfstate"]),
        ("**", ["a/x.tfstate", "b.tfstate"]),
        ("**/*.tfstate", ["a/x.tfstate", "b.tfstate"]),
        ("a/n*t", ["a/net"]),
        ("a/n*", []),
        ("ab", []),
    ],
)
def test_without_wildcards_a_pattern_is_a_name_a_prefix_or_everything(pattern: str, taken: list[str]) -> None:
    keys = ["a", "a/", "a/net", "a/x.tfstate", "a/x.tfstate.tfguard/head.json", "a/x.tflock", "b.tfstate", "ab.txt"]
    assert [key for key in keys if KeyPattern(pattern).takes(key)] == taken
