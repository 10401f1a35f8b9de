"""What may not be written: marked values, and instance keys that carry one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.model.address import hcl_string
from tfguard.model.secrets import Withholding, carries, is_secret, is_withheld, masks_in

SECRET = 'hunter2 "the" ${secret}\\'
KEYED = f"module.m[{hcl_string(SECRET)}].aws_vpc.a[{hcl_string(f'x-{SECRET}')}]"


def test_the_same_key_has_the_same_mask_in_every_address_and_says_nothing_without_the_key_of_the_masks() -> None:
    hidden = Withholding(frozenset([SECRET]))
    one, other = hidden.address(f"x.y[{hcl_string(SECRET)}]"), hidden.address(f"x.z[{hcl_string(SECRET)}]")
    assert masks_in(one) == masks_in(other)
    assert is_withheld(one)
    assert Withholding(frozenset([SECRET])).address(f"x.y[{hcl_string(SECRET)}]") != one
    assert "hunter2" not in hidden.address(KEYED)
    assert len(masks_in(hidden.address(KEYED))) == 2


def test_a_masked_address_stays_as_it_is_and_a_known_mask_needs_no_secret() -> None:
    hidden = Withholding(frozenset([SECRET]))
    masked = hidden.address(KEYED)
    assert hidden.address(masked) == masked
    assert Withholding(key=hidden.key, masks=masks_in(masked)).address(KEYED) == masked
    assert Withholding(key=hidden.key).address(KEYED) == KEYED


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("aws_ssm_parameter.password", ["password"]),  # a name in the configuration is no value
        ('aws_vpc.a["eu"]', ["eu"]),  # too short to be anybody's secret
        ('aws_vpc.a["true"]', ["true"]),
        ("aws_vpc.a[1234]", ["1234"]),
        ('aws_vpc.a["open"]', ["other"]),
    ],
)
def test_what_only_looks_like_a_marked_value_is_kept(address: str, secrets: list[str]) -> None:
    assert Withholding(frozenset(secrets)).address(address) == address


@pytest.mark.parametrize("text", ["hunter2", "hunter2-x", "no address: hunter2", 'x["hunter2'])
def test_what_is_no_address_is_left_out_as_a_whole(text: str) -> None:
    assert "hunter2" not in Withholding(frozenset(["hunter2"])).address(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("-auto-approve", "-auto-approve"),
        ("-state=hunter2.tfstate", "-state=<removed>"),
        ("hunter2.plan", "<removed>"),
        ("-hunter2", "<removed>"),
        ("-lock-timeout=5s", "-lock-timeout=5s"),
    ],
)
def test_a_word_of_a_command_line_keeps_its_flag(word: str, expected: str) -> None:
    assert Withholding(frozenset(["hunter2", "auto"])).word(word) == expected


def test_an_address_in_a_command_line_is_masked_and_no_more() -> None:
    hidden = Withholding(frozenset(["hunter2"]))
    address = 'aws_vpc.a["hunter2"]'
    assert hidden.word(f"-target={address}") == f"-target={hidden.address(address)}"
    assert hidden.word(address) == hidden.address(address)


TEXTS = st.text(st.sampled_from("abcdé"), max_size=12)


@given(TEXTS, st.frozensets(TEXTS, max_size=6))
def test_a_text_is_held_against_every_marked_value(text: str, secrets: frozenset[str]) -> None:
    inside = any(len(secret) >= 4 and secret in text for secret in secrets)
    assert carries(text, secrets) is inside
    assert is_secret(text, secrets) is (inside or (bool(text) and text in secrets))
