"""What an ARN tells of where an object is."""

from __future__ import annotations

_PARTS = 6


def arn_part(arn: str | None, number: int) -> str | None:
    """A part of an ARN: 1 the partition, 3 the region, 4 the account; None where it lacks it, or is none."""
    parts = (arn or "").split(":", _PARTS - 1)
    return (parts[number] or None) if len(parts) == _PARTS and parts[0] == "arn" else None


def place_in(arn: str) -> tuple[str, str]:
    """The account and the region that an ARN names, each empty where it names none; both for what is no ARN."""
    parts = arn.split(":", _PARTS - 1)
    return (parts[4], parts[3]) if len(parts) == _PARTS and parts[0] == "arn" else ("", "")


def names_elsewhere(arn: str, account: str | None, region: str) -> bool:
    """Whether an ARN names another account or region than these; what either side leaves out is no difference."""
    named_account, named_region = place_in(arn)
    other_region = bool(named_region) and region not in ("", "global", named_region)
    return other_region or (bool(named_account) and account not in (None, named_account))
