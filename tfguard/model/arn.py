"""What the unique name of an object tells of where it is: an ARN, or a path below a project of Google Cloud."""

from __future__ import annotations

import re

_PARTS = 6
_ARN = "arn:"
# As `//pubsub.googleapis.com/projects/app/topics/t` too, and with the version of an API before it.
_PATH = re.compile(
    r"(?:(?:https:)?//[\w.-]+/(?:[\w-]+/)*?)?(?P<kind>projects|folders|organizations)/(?P<name>[^/]+)(?:/|$)"
)
_PROJECT = re.compile(r"(?<![^/])projects/([^/]+)")
_SOME_PROJECT = "projects/*"


def arn_part(arn: str | None, number: int) -> str | None:
    """A part of an ARN: 1 the partition, 3 the region, 4 the account; None where it lacks it, or is none."""
    parts = (arn or "").split(":", _PARTS - 1)
    return (parts[number] or None) if len(parts) == _PARTS and parts[0] == "arn" else None


def place_in(name: str) -> tuple[str, str]:
    """The account and the region that a unique name tells, each empty where it tells none; both for any other text.

    The number of a Google project is no account: whatever else names it has the project's id. Nor is a folder: what
    lies in one counts to the organization above it, which the name does not tell.
    """
    if name.startswith(_ARN):
        parts = name.split(":", _PARTS - 1)
        return (parts[4], parts[3]) if len(parts) == _PARTS else ("", "")
    path = _PATH.match(name)
    if path is None:
        return "", ""
    if path["kind"] == "folders":
        return "", ""
    if path["kind"] == "organizations":
        return f"{path['kind']}/{path['name']}", ""
    return ("" if path["name"].isdecimal() else path["name"]), ""


def account_in(name: str) -> str:
    """The account of a customer that a unique name tells, empty where it tells none (`arn:aws:iam::aws:policy/...`)."""
    account, _ = place_in(name)
    return "" if name.startswith(_ARN) and not account.isdecimal() else account


def names_elsewhere(arn: str, account: str | None, region: str) -> bool:
    """Whether a unique name tells another account or region than these; what either leaves out is no difference."""
    named_account, named_region = place_in(arn)
    other_region = bool(named_region) and region not in ("", "global", named_region)
    return other_region or (bool(named_account) and account not in (None, named_account))


def in_some_project(name: str) -> str:
    """A unique name without the project of Google Cloud in it."""
    return _PROJECT.sub(_SOME_PROJECT, name, count=1)


def has_number(name: str) -> bool:
    """Whether a unique name has the number of a project of Google Cloud in it, in the place of its id."""
    project = _PROJECT.search(name)
    return project is not None and project[1].isdecimal()


def differ_by_number(one: str, other: str) -> bool:
    """Whether two unique names, or two projects, are equal but for the project, of which one has the number alone: that
    may be one object, and nothing tells."""
    if "/" not in one and "/" not in other:
        return one.isdecimal() != other.isdecimal()
    return has_number(one) != has_number(other) and in_some_project(one) == in_some_project(other)
