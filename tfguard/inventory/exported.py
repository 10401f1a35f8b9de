"""What an exported listing says exists: JSON lines, CSV, or a snapshot of AWS Config. Asks nobody.

An export says nothing about what is not in it: a type without a line may have no objects, or was not exported. That is
a gap, unless the user asked for the types that are there.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.catalog.types import PLACEHOLDER, ResourceType
from tfguard.errors import InputError, UsageError
from tfguard.inventory.expiry import parse_time
from tfguard.inventory.items import fill, to_tags
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard

_ADVICE = (
    "give JSON lines or CSV with `type` and `id` (and account, region, import_id, arn, name, created_at, tags), "
    "or a snapshot of AWS Config"
)
_CONFIG_ITEMS = "configurationItems"
# What Config calls one type and Terraform two: the setting that a member of a cluster has.
_MEMBERS = {"AWS::RDS::DBInstance": ("dBClusterIdentifier", "aws_rds_cluster_instance")}
_GONE = ("ResourceDeleted", "ResourceDeletedNotRecorded", "ResourceNotRecorded")

Row = Mapping[str, object]
Place = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class Export:
    """The objects of an export by place and type; `types` are those that were asked for, `unknown` counts objects by
    types that nobody knows."""

    name: str
    listings: Mapping[tuple[Place, str], tuple[CloudObject, ...]]
    types: tuple[str, ...]
    unknown: Mapping[str, int]


class ExportedLister:
    """Lists what exports hold. Implements `ports.ShardLister`."""

    def __init__(self, exports: Sequence[Export], catalog: Catalog) -> None:
        self._exports = exports
        self._catalog = catalog

    def shards(self) -> tuple[Shard, ...]:
        """One for each place and service of the exports; a type that was asked for and is nowhere has one without a
        place."""
        services: dict[tuple[Place, str], dict[str, None]] = defaultdict(dict)
        for export in self._exports:
            for (place, kind), _ in export.listings.items():
                services[place, self._service(kind)][kind] = None
        found = [_shard(place, service, tuple(types)) for (place, service), types in services.items()]
        there = {kind for shard in found for kind in shard.types}
        absent = [kind for export in self._exports for kind in export.types if kind not in there]
        return (*found, *(_shard(("aws", None, UNKNOWN_REGION), self._service(kind), (kind,)) for kind in absent))

    def list(self, shards: Sequence[Shard], done: Callable[[Shard], None]) -> Iterator[Listing]:
        """The objects of each place and type; a gap for a type that no export has a line of."""
        for shard in shards:
            scope = Scope(shard.cloud, shard.provider.settings.get("account"), shard.region or "global")
            place = (scope.cloud, scope.account, scope.region)
            for kind in shard.types:
                held = [export.listings[place, kind] for export in self._exports if (place, kind) in export.listings]
                objects = tuple({found.key: found for objects in held for found in objects}.values())
                gap = None if held else Gap(f"{scope} {kind}", "not in the export: none exist, or they were left out")
                yield Listing(kind, scope, objects, gap)
            done(shard)
        for export in self._exports:
            if export.unknown:
                names = ", ".join(sorted(export.unknown))
                reason = f"{sum(export.unknown.values())} objects of types that the catalogue does not have: {names}"
                yield Listing("", Scope("aws", None, UNKNOWN_REGION), gap=Gap(f"export {export.name}", reason))

    def _service(self, kind: str) -> str:
        entry = self._catalog.get(kind)
        return entry.service if entry else "unknown"


def _shard(place: Place, service: str, types: tuple[str, ...]) -> Shard:
    cloud, account, region = place
    settings = {"account": account} if account else {}
    provider = ProviderConfig(cloud, f"registry.terraform.io/hashicorp/{cloud}", settings)
    return Shard(cloud, provider, None if region == "global" else region, service, types)


def read_export(path: Path, catalog: Catalog, patterns: Sequence[str]) -> Export:
    """The export in a file (also gzipped), reduced to the types that match `patterns`.

    Raises `InputError` for a file that is none, and for a line that does not say what it is about: it could be the
    object that somebody looks for. Raises `UsageError` when no type of the catalogue matches.
    """
    matching = (entry for pattern in patterns for entry in catalog.matching(pattern))
    wanted = {entry.type: None for entry in matching if entry.list is not None}
    if not wanted:
        raise UsageError(f"no resource type matches {', '.join(patterns)}", "see `tfguard catalog list`")
    found: dict[tuple[Place, str], list[CloudObject]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    by_cfn = {entry.cfn: entry for entry in catalog if entry.cfn}
    for number, row in enumerate(_rows(path), 1):
        kind = row.get("type")
        if not isinstance(kind, str) or not kind or not (row.get("id") or row.get("import_id") or row.get("arn")):
            raise InputError(f"{path}: entry {number} has no type, or neither id, import_id nor arn", _ADVICE)
        entry = by_cfn.get(kind) or catalog.get(catalog.canonical(kind))
        if entry is None:
            unknown[kind] += any(fnmatchcase(kind, pattern) for pattern in patterns)
        elif entry.type in wanted:
            one = _object(entry, row)
            found[(one.cloud, one.account, one.region), entry.type].append(one)
    asked = {kind: count for kind, count in unknown.items() if count}
    return Export(str(path), {key: tuple(objects) for key, objects in found.items()}, tuple(wanted), asked)


def _rows(path: Path) -> Iterator[Row]:
    text = _text(path)
    start = text.lstrip()[:1]
    if not start:
        raise InputError(f"{path} is empty", _ADVICE)
    if start == "{":
        yield from _json_rows(path, text)
        return
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        if "type" not in (reader.fieldnames or ()):
            raise InputError(f"{path} is no export: its first line names no column `type`", _ADVICE)
        for row in reader:
            yield {name: value for name, value in row.items() if name and isinstance(value, str) and value}
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}", _ADVICE) from error


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _lines(path, text)
        return
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply", _ADVICE) from error
    items = whole.get(_CONFIG_ITEMS) if isinstance(whole, dict) else None
    if items is None:
        yield whole
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InputError(f"{path}: {_CONFIG_ITEMS} is no list of items", _ADVICE)
    yield from (_of_config(item) for item in items if item.get("configurationItemStatus") not in _GONE)


def _lines(path: Path, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: is cut or not JSON", _ADVICE) from error
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: is no JSON object", _ADVICE)
        inner = row.get("object")
        yield inner if isinstance(inner, dict) else row  # a line of `scan --format jsonl`


def _of_config(item: Row) -> Row:
    """An item of AWS Config under the names of an exported line. Its `configuration` may hold anything."""
    names = {
        "type": "resourceType",
        "id": "resourceId",
        "name": "resourceName",
        "arn": "ARN",
        "account": "awsAccountId",
        "region": "awsRegion",
        "created_at": "resourceCreationTime",
        "tags": "tags",
    }
    row = {name: item[theirs] for name, theirs in names.items() if item.get(theirs)}
    setting, member = _MEMBERS.get(str(row.get("type")), ("", ""))
    configuration = item.get("configuration")
    is_member = isinstance(configuration, dict) and configuration.get(setting)
    return {**row, "type": member} if is_member else row


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or "it is cut"
        raise InputError(f"{path} cannot be read: {why}", "check the path, and that it was exported whole") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text", _ADVICE) from error


def _object(entry: ResourceType, row: Row) -> CloudObject:
    said = {name: value for name in ("id", "import_id", "arn", "name") if (value := _scalar(row.get(name)))}
    named = {"arn": said.get("arn"), "id": said.get("id"), "name": said.get("name") or said.get("id")}
    identity = {key: value for key in entry.keys if (value := named.get(key))}
    # What a person calls it is one of the keys under another name: `bucket`, `identifier`, `function_name`.
    for key, expression in entry.keys.items():
        if key not in identity and expression == entry.name and named["name"]:
            identity[key] = named["name"]
    account = _scalar(row.get("account")) or _arn_part(said.get("arn"), 4)
    region = "global" if entry.is_global else _scalar(row.get("region")) or _arn_part(said.get("arn"), 3)
    object_id = said.get("id") or said.get("import_id") or said.get("arn", "")
    return CloudObject(
        cloud=entry.cloud,
        account=account,
        region=region or UNKNOWN_REGION,
        type=entry.type,
        id=object_id,
        import_id=said.get("import_id") or _import_id(entry, {**identity, "id": object_id}) or object_id,
        identity=identity,
        arn=said.get("arn"),
        name=said.get("name"),
        created_at=parse_time(_scalar(row.get("created_at")) or ""),
        tags=_tags(row.get("tags")),
        stateful=entry.stateful,
    )


def _import_id(entry: ResourceType, known: Mapping[str, str]) -> str | None:
    """What the entry's template gives, where the export says all that it names."""
    if not all(name in known for name in PLACEHOLDER.findall(entry.import_id)) or "{" not in entry.import_id:
        return None
    return str(fill(entry.import_id, known))


def _tags(value: object) -> Mapping[str, str]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return to_tags(value)


def _arn_part(arn: str | None, number: int) -> str | None:
    parts = (arn or "").split(":")
    return (parts[number] or None) if len(parts) > number else None


def _scalar(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "" else None
