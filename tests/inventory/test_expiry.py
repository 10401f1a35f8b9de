"""When credentials end: every form in which tools write it down, and garbage, which is never an error."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.inventory.credentials import RunCredentials
from tfguard.inventory.expiry import parse_time, token_expiry
from tfguard.model.credentials import Expiry
from tfguard.model.plan import ProviderConfig

ENDS = datetime(2026, 11, 29, 18, 22, 46, tzinfo=UTC)
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x"}
AWS = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws")


def token(claims: object) -> str:
    """A JSON web token with these claims."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    return ".".join([*parts, "c2ln"])


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29T18:22:46Z",
        "2026-11-29T18:22:46+00:00",
        "2026-11-29T19:22:46+01:00",
        "2026-11-29T13:22:46-0500",
        "2026-11-29 18:22:46 UTC",
        "2026-11-29 18:22:46 +0000 UTC",
        "2026-11-29 10:22:46 -0800 PST",
        "2026-11-29 18:22:46.689 +0000 UTC",
        "2026-11-29 18:22:46",
        "20261129T182246Z",
        "1795976566",
        "  2026-11-29T18:22:46Z\n",
    ],
)
def test_a_time_is_read_in_every_form_that_tools_write(text: str) -> None:
    assert parse_time(text) == ENDS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-11-29",
        "2026-W48",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9" * 40,
        "1",
        "T",
        "²³",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_a_tokens_end_is_its_exp() -> None:
    assert token_expiry(token({"exp": ENDS.timestamp()})) == ENDS


@pytest.mark.parametrize(
    "claims",
    [{}, {"exp": "soon"}, {"exp": True}, {"exp": None}, {"exp": 1e30}, {"exp": float("nan")}, [], 7, {"exp": -5}],
)
def test_a_token_without_a_sound_exp_has_no_end(claims: object) -> None:
    assert token_expiry(token(claims)) is None


@given(st.text(max_size=200))
def test_no_text_whatever_is_an_error(text: str) -> None:
    for read in (parse_time, token_expiry):
        found = read(text)
        assert found is None or found.tzinfo is UTC
    assert token_expiry(f"a.{text}.b") is None


def test_the_newer_variable_is_believed_before_the_older_one() -> None:
    environ = KEYS | {
        "AWS_CREDENTIAL_EXPIRATION": "2026-11-29T18:22:46Z",
        "AWS_SESSION_EXPIRATION": "2020-01-01T00:00:00Z",
    }
    assert RunCredentials(environ).expiries(()) == (Expiry("AWS_CREDENTIAL_EXPIRATION", ENDS),)
    environ["AWS_CREDENTIAL_EXPIRATION"] = "garbage"
    (older,) = RunCredentials(environ).expiries(())
    assert older.source == "AWS_SESSION_EXPIRATION"


def test_a_variable_that_is_left_over_without_its_credentials_says_nothing() -> None:
    environ = {
        "AWS_CREDENTIAL_EXPIRATION": "2026-11-29T18:22:46Z",
        "ARM_OIDC_TOKEN": token({"exp": 1}),
        "HOME": "/nope",
    }
    assert RunCredentials(environ).expiries([AWS]) == ()


def test_an_azure_token_is_for_the_sign_in_alone_and_counts_where_it_is_used() -> None:
    environ = {"ARM_OIDC_TOKEN": token({"exp": ENDS.timestamp()}), "ARM_USE_OIDC": "true"}
    assert RunCredentials(environ).expiries(()) == (Expiry("ARM_OIDC_TOKEN", ENDS, for_sign_in=True),)
    assert RunCredentials(environ | {"ARM_USE_OIDC": "false"}).expiries(()) == ()


def profiles(folder: Path, credentials: str, config: str = "") -> dict[str, str]:
    """An environment whose home has these AWS files."""
    (folder / ".aws").mkdir()
    (folder / ".aws/credentials").write_text(credentials)
    (folder / ".aws/config").write_text(config)
    return {"HOME": str(folder)}


SAML = """[default]
aws_access_key_id = A
aws_secret_access_key = b%c
x_security_token_expires = 2026-11-29T19:22:46+01:00
"""
DEV = """[dev]
aws_access_key_id = A
expiration = 2026-11-29 18:22:46
"""


def source_of(environ: Mapping[str, str], settings: Mapping[str, str] | None = None) -> str | None:
    """Where the end of the credentials of an AWS provider with these settings is written, if it is."""
    found = RunCredentials(environ).expiries([ProviderConfig("aws", AWS.source, settings or {})])
    assert all(item.at == ENDS for item in found)
    return found[0].source if found else None


def test_the_keys_of_the_chosen_profile_end_when_its_entry_says(tmp_path: Path) -> None:
    environ = profiles(tmp_path, SAML + DEV)
    where = f"{tmp_path}/.aws/credentials"
    assert source_of(environ) == f"x_security_token_expires of the profile default in {where}"
    assert source_of(environ | {"AWS_PROFILE": "dev"}) == f"expiration of the profile dev in {where}"
    assert source_of(environ, {"profile": "dev"}) == f"expiration of the profile dev in {where}"
    assert source_of(environ | {"AWS_PROFILE": "nobody"}) is None


def test_another_credentials_file_is_honoured_from_the_environment_and_from_the_provider(tmp_path: Path) -> None:
    environ = profiles(tmp_path, "")
    other = tmp_path / "other"
    other.write_text(SAML)
    expected = f"x_security_token_expires of the profile default in {other}"
    assert source_of(environ | {"AWS_SHARED_CREDENTIALS_FILE": str(other)}) == expected
    assert source_of(environ, {"shared_credentials_files.0": "~/other"}) == expected


def test_a_profile_says_nothing_where_its_static_keys_are_not_used(tmp_path: Path) -> None:
    environ = profiles(tmp_path, SAML + DEV)
    assert source_of(environ | KEYS) is None
    assert source_of(environ, {"access_key": "A"}) is None
    assert source_of(environ, {"assume_role.role_arn": "arn:aws:iam::1:role/x"}) is None
    assert source_of(environ | KEYS, {"profile": "dev"}) is not None
    assert RunCredentials(environ).expiries([ProviderConfig("null", "registry.terraform.io/hashicorp/null")]) == ()
    (tmp_path / ".aws/config").write_text(
        "[default]\nrole_arn = arn:aws:iam::1:role/x\n[profile dev]\nsso_session = s\n"
    )
    assert source_of(environ) is None
    assert source_of(environ, {"profile": "dev"}) is None


def test_the_profile_of_an_s3_state_counts_without_any_provider(tmp_path: Path) -> None:
    environ = profiles(tmp_path, DEV)
    (found,) = RunCredentials(environ, "s3", {"profile": "dev"}).expiries(())
    assert found.at == ENDS
    assert RunCredentials(environ, "local", {"profile": "dev"}).expiries(()) == ()


@pytest.mark.parametrize("content", ["no section", "[default", "[default]\n= x", "\x00\xff", "[default]\nexpiration\n"])
def test_a_damaged_credentials_file_is_the_engines_to_complain_about(tmp_path: Path, content: str) -> None:
    assert source_of(profiles(tmp_path, content)) is None


def test_a_credentials_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    assert source_of({"HOME": str(tmp_path), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path)}) is None


def test_several_ends_come_earliest_first_and_each_once(tmp_path: Path) -> None:
    environ = profiles(tmp_path, SAML + DEV.replace("2026", "2025"))
    given_providers = [AWS, ProviderConfig("aws.eu", AWS.source, {"profile": "dev"}), AWS]
    found = RunCredentials(environ).expiries(given_providers)
    assert [item.at.year for item in found] == [2025, 2026]
