"""The JSON Schema of every document that tfguard writes or reads, as `scripts/schemas` writes them to docs/schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tfguard.model.blueprint import API_VERSION, KIND, Blueprint
from tfguard.model.config import Config
from tfguard.schemas import blueprint, catalog, findings, history, metrics, operation, recovery, retained
from tfguard.schemas.blueprint_records import BLUEPRINT_DOCUMENTS
from tfguard.schemas.document import as_object
from tfguard.schemas.json_schema import Json, Shape, authored_schema, document_schema
from tfguard.schemas.records import DOCUMENTS

# Name and version, what it holds, what it is.
_PRINTED: tuple[tuple[str, Shape, str], ...] = (
    (operation.SCHEMA, operation.STATUS_SHAPE, "`status --format json`: one operation."),
    (
        findings.SCHEMA,
        findings.SHAPE,
        "`scan|orphans list|orphans show --format json`: findings, and how far the look reached. What `--state-file` "
        "keeps has a `sum` too: the first 16 hex digits of the SHA-256 of all else, as JSON with sorted keys and "
        "without spaces.",
    ),
    (retained.SCHEMA, retained.SHAPE, "`orphans list --retained --format json`: what is kept, and until when."),
    (
        blueprint.SCHEMA,
        blueprint.SHAPE,
        "`blueprint plan|apply|resume|status|cancel|destroy --format json`: a blueprint's request, its steps, what "
        "they made, and what can be done next.",
    ),
    (
        blueprint.LIST_SCHEMA,
        blueprint.LIST_SHAPE,
        "`blueprint list --format json`: the requests of a blueprint, newest first.",
    ),
    (metrics.SCHEMA, metrics.SHAPE, "`metrics --format json`: counters."),
    (catalog.SCHEMA, catalog.SHAPE, "`catalog list|show --format json`: resource types, and what is known of them."),
    (history.HISTORY, history.HISTORY_SHAPE, "`history --format json`: operations, newest first."),
    (history.ARCHIVED, history.ARCHIVED_SHAPE, "`archive --format json`: what was packed away, and what was left."),
    (
        history.ARCHIVE_CHECK,
        history.ARCHIVE_CHECK_SHAPE,
        "`archive --verify --format json`: whether the archive is as it was written.",
    ),
    (
        recovery.SCHEMA,
        recovery.SHAPE,
        "`recover --format json`: the operations that were open, as they stand now, and the deletions that had no end.",
    ),
    (
        "tfguard.doctor/v1",
        {"checks": [{"name": str, "ok": bool, "detail": str}]},
        "`doctor --format json`: what was checked, and what was seen.",
    ),
    (
        "tfguard.version/v1",
        {"tfguard": str, "engine": {"name": str, "version": str, "path": str}, "providers": Mapping[str, str]},
        "`version --format json`: tfguard, the engine and its providers.",
    ),
)
_CONFIG = "`tfguard.yaml`, as a YAML reader gives it. Every key is optional."
_BLUEPRINT = "The file of a blueprint, as a YAML reader gives it: what one request makes, step by step."


def schemas() -> Mapping[str, Json]:
    """Every schema by the name of its file. A document of a record is here as soon as it is in `DOCUMENTS` or
    `BLUEPRINT_DOCUMENTS`."""
    found: dict[str, Json] = {}
    for document in (*DOCUMENTS, *BLUEPRINT_DOCUMENTS):
        name = file_name(document.name, document.version)
        found[name] = document_schema(
            document.name, document.version, document.kind, short=document.short, summed=document.summed
        )
    for told, shape, about in _PRINTED:
        schema_name, _, version = told.partition("/v")
        found[file_name(schema_name, int(version))] = document_schema(schema_name, int(version), shape, about)
    found[file_name("tfguard.config", 1)] = authored_schema("tfguard.config", 1, Config, _CONFIG)
    found[file_name("tfguard.blueprint-file", 1)] = _blueprint_file()
    return found


def _blueprint_file() -> Json:
    """With the two words that every such file says, which an editor can then write."""
    schema = authored_schema("tfguard.blueprint-file", 1, Blueprint, _BLUEPRINT, typed=True)
    schema["properties"] = {
        **as_object(schema["properties"]),
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
    }
    return schema


def file_name(name: str, version: int) -> str:
    """Where the schema of a document is published, below docs/schemas."""
    return f"{name.removeprefix('tfguard.')}.v{version}.schema.json"


def text(schema: Json) -> str:
    """A schema as it is published."""
    return json.dumps(schema, indent=2) + "\n"
