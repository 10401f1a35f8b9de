"""When the keys of an AWS profile end. AWS itself keeps no such date in its files; the tools that write the keys do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfguard.inventory.aws_settings import values
from tfguard.inventory.expiry import parse_time
from tfguard.model.credentials import Expiry

# The entries that saml2aws, aws-mfa and their like write beside the keys.
_ENTRIES = ("x_security_token_expires", "aws_session_expiration", "aws_expiration", "expiration")
# Credentials that do not lie in the environment or in a profile.
_ELSEWHERE = ("access_key", "assume_role.role_arn", "assume_role_with_web_identity.role_arn")
# A profile with one of these signs in by itself, again and again.
_RENEWED = ("role_arn", "source_profile", "credential_process", "sso_session", "sso_start_url")
_LARGEST = 1 << 20


def profile_expiry(settings: Mapping[str, str], environ: Mapping[str, str]) -> Expiry | None:
    """When the static keys of the profile end that a provider block (or an S3 backend) with these settings uses.

    None where it uses other credentials: its own, a role that it assumes, keys in the environment; and where nobody
    wrote an end down. A file that cannot be read is the engine's to complain about.
    """
    if any(settings.get(name) for name in _ELSEWHERE):
        return None
    profile = settings.get("profile")
    if not profile and environ.get("AWS_ACCESS_KEY_ID"):
        return None
    profile = profile or environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    own = (*values(settings, "shared_credentials_files"), *values(settings, "shared_credentials_file"))
    path = _file(own, environ.get("AWS_SHARED_CREDENTIALS_FILE"), "credentials", environ)
    keys = _section(path, profile)
    config = _file(values(settings, "shared_config_files"), environ.get("AWS_CONFIG_FILE"), "config", environ)
    more = _section(config, profile if profile == "default" else f"profile {profile}")
    if not keys.get("aws_access_key_id") or any(keys.get(name) or more.get(name) for name in _RENEWED):
        return None
    for entry in _ENTRIES:
        if ends := parse_time(keys.get(entry, "")):
            return Expiry(f"{entry} of the profile {profile} in {path}", ends)
    return None


def _file(own: tuple[str, ...], named: str | None, name: str, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or "~"
    chosen = own[0] if own else named or f"~/.aws/{name}"
    return Path(chosen.replace("~", home, 1) if chosen.startswith("~/") else chosen)


def _section(path: Path, name: str) -> Mapping[str, str]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return {}
        text = path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return {}
    return _entries(text, name)


def _entries(text: str, name: str) -> Mapping[str, str]:
    """The entries of a section; none when a line is no entry, as for the engine. A key that stands twice counts last.

    Python's own reader of such files takes minutes over one that is made of blanks, or of lines that are none.
    """
    found: dict[str, str] = {}
    section, indent = "", None
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        margin = len(line) - len(line.lstrip())
        if indent is not None and margin > indent:
            continue  # more of the value before it
        if bare[0] == "[" and "]" in bare:
            section, indent = bare[1 : bare.rindex("]")], None
            continue
        key, separator, value = _parts(bare)
        if not section or not separator or not key:
            return {}
        indent = margin
        if section == name:
            found[key.strip().lower()] = value.strip()
    return found


def _parts(entry: str) -> tuple[str, str, str]:
    """Key, separator and value; whichever of `=` and `:` comes first separates them."""
    return min((entry.partition(separator) for separator in "=:"), key=lambda parts: len(parts[0]))
