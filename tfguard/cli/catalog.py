"""`tfguard catalog list|show|policy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import click

from tfguard.catalog.loader import load_catalog
from tfguard.catalog.patterns import types_matching
from tfguard.catalog.permissions import policy, role
from tfguard.cli.options import format_option, print_document
from tfguard.errors import UsageError
from tfguard.schemas.catalog import catalog_document, type_body

_SEE = "see `tfguard catalog list`"


@click.group("catalog")
def command() -> None:
    """The resource types that are known, and the permissions that a scan of them needs."""


@command.command("list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN ...]")
@format_option()
def list_command(patterns: tuple[str, ...], form: str) -> None:
    """List the types that match a pattern such as aws_iam_*, or all, and what can be done with each."""
    catalog = load_catalog()
    found = sorted(types_matching(catalog, patterns or ("*",)), key=lambda entry: entry.type)
    if form == "json":
        print_document(catalog_document(catalog, found))
        return
    width = max(len(entry.type) for entry in found)
    for entry in found:
        click.echo(f"{entry.type:<{width}}  {entry.scope:<8}  {_abilities(type_body(catalog, entry))}".rstrip())


@command.command("show")
@click.argument("resource_type", metavar="TYPE")
@format_option()
def show_command(resource_type: str, form: str) -> None:
    """Show how one type is listed, what tells its objects apart, and which of them are ignored."""
    catalog = load_catalog()
    entry = catalog.get(catalog.canonical(resource_type))
    if entry is None:
        raise UsageError(f"the catalogue has no type {resource_type}", _SEE)
    if form == "json":
        print_document(catalog_document(catalog, [entry]))
        return
    for name, told in _told(type_body(catalog, entry)):
        click.echo(f"{name:<12}  {told}")


@command.command("policy")
@click.argument("patterns", nargs=-1, metavar="[TYPE ...]")
@click.option(
    "--explain-with-cloudtrail",
    "audit_log",
    is_flag=True,
    help="Let the scan ask CloudTrail, or Google Cloud's audit log, who made what it found.",
)
def policy_command(patterns: tuple[str, ...], audit_log: bool) -> None:
    """Print what a scan of these types may do, and no more: of all types of AWS, if none is named.

    An IAM policy for those of AWS, a custom role for those of Google Cloud (`gcloud iam roles create --file`). TYPE can
    be a pattern. All types of AWS together are too long for a managed policy (6,144 characters): put them into a policy
    of the role itself (10,240). Reading states takes more: see the backend's own documentation.
    """
    catalog = load_catalog()
    found = [entry for entry in types_matching(catalog, patterns or ("aws_*",)) if entry.list is not None]
    if not found:
        raise UsageError(f"{patterns[0]} cannot be listed", _SEE)
    match sorted({entry.cloud for entry in found}):
        case ["aws"]:
            print_document(policy(catalog, found, cloudtrail=audit_log))
        case ["google"]:
            print_document(role(catalog, found, audit_log=audit_log))
        case clouds:
            raise UsageError(f"the types are of several clouds: {', '.join(clouds)}", "ask for one cloud at a time")


def _abilities(body: Mapping[str, object]) -> str:
    able = [name for name in ("list", "import", "delete") if body[name]]
    return ", ".join([*able, *(["stateful"] if body["stateful"] else [])])


def _told(body: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    yield "type", str(body["type"])
    yield "scope", f"{body['cloud']} {body['service']}, {body['scope']}"
    yield "can", _abilities(body)
    yield "import id", str(body["import_id"])
    if body["never_destroyed"]:
        yield "not deleted", str(body["never_destroyed"])
    for name, key in (("also called", "also_called"), ("keys", "keys"), ("ignored", "ignored"), ("actions", "actions")):
        for number, line in enumerate(cast("list[str]", body[key])):
            yield "" if number else name, line
