"""`tfguard.catalog/v1`: resource types, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.permissions import actions_of
from tfguard.catalog.types import ResourceType
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.catalog/v1"
SHAPE: Shape = {
    "types": [
        {
            "type": str,
            "also_called": [str],
            "cloud": str,
            "service": str,
            "scope": str,
            "list": bool,
            "import": bool,
            "delete": bool,
            "stateful": bool,
            "never_destroyed": str,
            "keys": [str],
            "import_id": str,
            "ignored": [str],
            "actions": [str],
        }
    ]
}


def catalog_document(catalog: Catalog, entries: Sequence[ResourceType]) -> Mapping[str, object]:
    """The document about these types."""
    return with_schema(SCHEMA, {"types": [type_body(catalog, entry) for entry in entries]})


def type_body(catalog: Catalog, entry: ResourceType) -> Mapping[str, object]:
    """What the document tells of one type. `actions` are those of IAM that listing and describing it needs. `delete` is
    whether tfguard may delete such an object, by the engine or a call; `never_destroyed` is why not."""
    return {
        "type": entry.type,
        "also_called": sorted(catalog.other_names(entry.type)),
        "cloud": entry.cloud,
        "service": entry.service,
        "scope": entry.scope,
        "list": entry.list is not None,
        "import": entry.importable,
        "delete": entry.can_be_destroyed,
        "stateful": entry.stateful,
        "never_destroyed": entry.never_destroyed or "",
        "keys": list(entry.keys),
        "import_id": entry.import_id,
        "ignored": list(dict.fromkeys([*(r.reason for r in entry.ignore), *(r.reason for r in entry.made_by)])),
        "actions": sorted(actions_of(catalog, entry)),
    }
