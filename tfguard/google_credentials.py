"""Google's credentials as the engine and its provider work them out, for records in a bucket and for what exists alike.

Google's library is imported when the first credentials are asked for.
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Google's libraries talk of Python's versions and of kinds of credentials, to who writes programs and not to who runs
# this one. Whatever imports one of them imports this module first.
warnings.filterwarnings("ignore", module=r"google\.")

EVERYTHING = ("https://www.googleapis.com/auth/cloud-platform",)
"""The scope with which an account may become another; what it may do is said by its roles alone."""

GOOGLE = "googleapis.com"
"""The universe of everybody who names no other."""


@dataclass(frozen=True, slots=True)
class WantedCredentials:
    """Who is to ask: a token, else an account's key or the path of one, else what the machine has.

    `impersonate` is the account that takes their place, by way of `delegates`. `quota_project` pays for the calls where
    that is not the credentials' own project. With `anonymous`, nobody in particular asks where nothing was given. It
    holds credentials: in memory only.
    """

    access_token: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    impersonate: str | None = None
    delegates: Sequence[str] = ()
    scopes: Sequence[str] = EVERYTHING
    universe_domain: str = GOOGLE
    quota_project: str | None = None
    anonymous: bool = False


def credentials_for(wanted: WantedCredentials) -> Any:
    """The credentials, of which none is asked for a token yet.

    Raises `GoogleAuthError`, `OSError` or `ValueError` where there are none, or a key is none; and `ImportError`.
    """
    found = _as_account(wanted)
    return found.with_quota_project(wanted.quota_project) if wanted.quota_project else found


def first_set(
    settings: Mapping[str, str], name: str, variables: Sequence[str], environ: Mapping[str, str]
) -> str | None:
    """A setting, or the first variable that is set in its place; None where neither is."""
    return settings.get(name) or next((environ[one] for one in variables if environ.get(one)), None)


def listed(settings: Mapping[str, str], name: str) -> list[str]:
    """The items of a setting that is a list (`NAME.0`, `NAME.1`), in their order."""
    return list(itertools.takewhile(bool, (settings.get(f"{name}.{number}", "") for number in itertools.count())))


def content(value: str) -> str:
    """The content of the file that the value names, or the value itself."""
    try:
        return Path(value).expanduser().read_text().strip()
    except (OSError, ValueError, RuntimeError):  # no such file, no text, no such path, nobody of that name (`~ada/key`)
        return value.strip()


def _as_account(wanted: WantedCredentials) -> Any:
    from google.auth.impersonated_credentials import Credentials as Impersonated

    if not wanted.impersonate:
        return _own(wanted, wanted.scopes)
    return Impersonated(_own(wanted, EVERYTHING), wanted.impersonate, list(wanted.scopes), list(wanted.delegates))


def _own(wanted: WantedCredentials, scopes: Sequence[str]) -> Any:
    """The credentials before any account takes another's place."""
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.oauth2.credentials import Credentials as Token

    if wanted.access_token:
        if not re.fullmatch(r"[!-~]+", wanted.access_token):
            raise ValueError("its access token has characters that no token has")
        return Token(wanted.access_token, universe_domain=wanted.universe_domain)
    if wanted.key:
        return google.auth.load_credentials_from_dict(_account_key(wanted.key), scopes=scopes)[0]
    if wanted.anonymous:
        return AnonymousCredentials()
    return google.auth.default(scopes=scopes)[0]


def _account_key(value: str) -> dict[str, Any]:
    try:
        document = json.loads(content(value))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        # The value itself may be a key that was cut, so it is not shown.
        raise ValueError("its credentials are neither JSON nor a file with JSON that can be read")
    return document
