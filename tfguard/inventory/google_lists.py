"""The lists of single services, for what no search knows: by the operation's name in the catalogue.

Each is asked for below something: an instance, a zone, an account, or a project, folder or organization.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google_access import GoogleAccess, UnreadableAnswerError, every_page
from tfguard.inventory.items import fill


@dataclass(frozen=True, slots=True)
class ServiceList:
    """A list over REST. `name` is what permissions and errors call it, `url` and `params` are templates over the
    arguments that the catalogue gives, `items` is where a page has its items, `services` what the provider calls it."""

    name: str
    services: tuple[str, ...]
    url: str
    items: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ManagerList:
    """A list of a client of Resource Manager, below `parent`."""

    name: str
    client: str
    method: str
    items: str


LISTS: Mapping[str, ServiceList | ManagerList] = {
    "sql_databases": ServiceList(
        "ListDatabases",
        ("sql",),
        "https://sqladmin.googleapis.com/sql/v1beta4/projects/{project}/instances/{instance}/databases",
        "items",
    ),
    "sql_users": ServiceList(
        "ListUsers",
        ("sql",),
        "https://sqladmin.googleapis.com/sql/v1beta4/projects/{project}/instances/{instance}/users",
        "items",
    ),
    "dns_record_sets": ServiceList(
        "ListResourceRecordSets",
        ("dns",),
        "https://dns.googleapis.com/dns/v1/projects/{project}/managedZones/{zone}/rrsets",
        "rrsets",
    ),
    "service_account_keys": ServiceList(
        "ListServiceAccountKeys",
        ("iam",),
        "https://iam.googleapis.com/v1/projects/{project}/serviceAccounts/{account}/keys",
        "keys",
    ),
    "liens": ServiceList(
        "ListLiens",
        settings_of.RESOURCE_MANAGER,
        "https://cloudresourcemanager.googleapis.com/v3/liens",
        "liens",
        {"parent": "{parent}"},
    ),
    "tag_keys": ManagerList("ListTagKeys", "TagKeys", "list_tag_keys", "tagKeys"),
    "tag_values": ManagerList("ListTagValues", "TagValues", "list_tag_values", "tagValues"),
    "tag_bindings": ManagerList("ListTagBindings", "TagBindings", "list_tag_bindings", "tagBindings"),
}
"""Every operation that a `list` of the catalogue may name for a type of this cloud."""


def items(access: GoogleAccess, operation: ServiceList | ManagerList, arguments: Mapping[str, str]) -> Iterator[Any]:
    """The items of all pages. Raises an error of `CALL_ERRORS`, and `KeyError` for an argument that is missing."""
    if isinstance(operation, ManagerList):
        method = getattr(access.manager(operation.client), operation.method)
        for page in access.pages(operation.name, method, {"parent": arguments["parent"]}):
            yield from page.get(operation.items, [])
        return
    quoted = {name: quote(value, safe=":@") for name, value in arguments.items()}
    url = access.address(str(fill(operation.url, quoted)), operation.services)
    params = {name: str(fill(text, arguments)) for name, text in operation.params.items()}

    def ask(token: str) -> dict[str, Any]:
        more = {"pageToken": token} if token else {}
        return access.json("GET", url, operation.name, params={**params, **more})

    for page in every_page(operation.name, ask):
        found = page.get(operation.items, [])
        if not isinstance(found, list):
            raise UnreadableAnswerError(operation.name)
        yield from found
