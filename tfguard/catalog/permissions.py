"""Which permissions the catalogue's calls need: a policy of AWS, or a role of Google Cloud, that allows a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType

_WHO_AM_I = "sts:GetCallerIdentity"
_EVENTS = "cloudtrail:LookupEvents"
_SEARCH = "cloudasset.assets.searchAllResources"
_LOG = "logging.logEntries.list"
_HIERARCHY = tuple(f"resourcemanager.{name}.{verb}" for name in ("projects", "folders") for verb in ("get", "list"))

# Words that are not written with one capital in the names of operations: `describe_db_instances`.
_WORDS = {
    "db": "DB",
    "acls": "ACLs",
    "hsm": "HSM",
    "id": "ID",
    "ip": "IP",
    "mfa": "MFA",
    "oidc": "OIDC",
    "saml": "SAML",
    "ssl": "SSL",
    "ssh": "SSH",
}


def api_name(operation: str) -> str:
    """What the service calls a method of the SDK: `describe_db_instances` is `DescribeDBInstances`."""
    return "".join(_WORDS.get(word, word[:1].upper() + word[1:]) for word in operation.split("_"))


def calls_of(entry: ResourceType) -> tuple[str, ...]:
    """The operations that listing and describing objects of the type calls, without those of a parent's list."""
    listing = [entry.list.operation] if entry.list else []
    each = [entry.list.each.operation] if entry.list and entry.list.each else []
    return tuple(dict.fromkeys([*listing, *each, *(call.operation for call in entry.details)]))


def actions_of(catalog: Catalog, entry: ResourceType) -> frozenset[str]:
    """The IAM actions that listing and describing objects of the type needs, those of its parent's list included.

    Of Google Cloud: the permissions.
    """
    if entry.asset:
        return frozenset({_SEARCH, *entry.permissions})
    prefix = catalog.action_prefix.get(entry.service, entry.service)
    own = entry.permissions or tuple(f"{prefix}:{api_name(call)}" for call in calls_of(entry))
    parent = catalog.get(entry.list.per.type) if entry.list and entry.list.per else None
    return frozenset(own) | (actions_of(catalog, parent) if parent else frozenset())


def policy(catalog: Catalog, entries: Iterable[ResourceType], *, cloudtrail: bool = False) -> Mapping[str, object]:
    """The IAM policy document that lets a scan list and describe objects of these types, and learn whose account it is.

    With `cloudtrail` it may also ask who made what it found.
    """
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "TfguardScan",
                "Effect": "Allow",
                "Action": sorted({_WHO_AM_I, *_asked(catalog, entries), *([_EVENTS] if cloudtrail else [])}),
                "Resource": "*",
            }
        ],
    }


def role(catalog: Catalog, entries: Iterable[ResourceType], *, audit_log: bool = False) -> Mapping[str, object]:
    """The custom role of Google Cloud that lets a scan list objects of these types and ask their services about them.

    With `audit_log` it may also ask who made what it found.
    """
    needed = {*_HIERARCHY, *_asked(catalog, entries), *([_LOG] if audit_log else [])}
    return {
        "title": "tfguard scan",
        "description": "Lets tfguard look for what no state knows, and changes nothing",
        "stage": "GA",
        "includedPermissions": sorted(needed),
    }


def _asked(catalog: Catalog, entries: Iterable[ResourceType]) -> Iterator[str]:
    for entry in entries:
        yield from actions_of(catalog, entry)
