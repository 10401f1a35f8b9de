"""What an exported listing says exists: JSON lines, CSV, or a snapshot of AWS Config. Asks nobody.

An export says nothing about what is not in it: a type without a line may have no objects, or was not exported. That is
a gap, unless the user asked for the types that are there. Nor is its list of a type ever complete: what a state has and
the export has not is not missing.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.patterns import listable_types
from tfguard.catalog.types import PLACEHOLDER, ResourceType
from tfguard.errors import InputError, UsageError
from tfguard.inventory.expiry import parse_time
from tfguard.inventory.items import fill, holds, to_object, with_tags
from tfguard.model.arn import arn_part, place_in
from tfguard.model.cloud import AWS
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import ScanResult, Shard

_ADVICE = (
    "give JSON lines or CSV with `type` and `id` (and account, region, import_id, arn, name, created_at, tags), "
    "or a snapshot of AWS Config"
)
_CONFIG_ITEMS = "configurationItems"
_CONFIGURATION = "configuration"
_NAMES = ("id", "import_id", "arn")
# What Config calls one type and Terraform two: the setting that a member of a cluster has.
_MEMBERS = {"AWS::RDS::DBInstance": ("dBClusterIdentifier", "aws_rds_cluster_instance")}
_MISSING = "missing"  # the verdict on what is in a state alone: nothing exists
_GONE = ("ResourceDeleted", "ResourceDeletedNotRecorded")
_GLOBAL = "global"
_DEPTH = 2  # rules look no deeper into an answer
_NO_ABSENCE = "an exported listing proves no absence: what it does not have is neither missing nor gone"
_NO_RULES = "by rules about what an export may leave out, somebody else's: a default, or made by a service"

Row = Mapping[str, object]
Place = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class Export:
    """The objects of an export by place and type; `types` are those that were asked for, `unknown` counts objects by
    types that nobody knows. `gaps` says of which places and types something may be left out, and why; `damage` what is
    wrong with the export as a whole. It is `exhaustive` when a list of it that has no gap has all there is."""

    name: str
    listings: Mapping[tuple[Place, str], tuple[CloudObject, ...]]
    types: tuple[str, ...]
    unknown: Mapping[str, int]
    gaps: Mapping[tuple[Place, str], str] = field(default_factory=dict)
    damage: tuple[str, ...] = ()
    exhaustive: bool = False


class ExportedLister:
    """Lists what exports hold. Implements `ports.ShardLister`.

    With `regions` or `accounts`, only what is there counts, and what has no place or is in no region. Types of a cloud
    of which no export has anything are missing where the cloud is among `clouds` alone. Raises `UsageError` for a
    region or account in which no export has anything.
    """

    def __init__(
        self,
        exports: Sequence[Export],
        catalog: Catalog,
        regions: Sequence[str] = (),
        accounts: Sequence[str] = (),
        clouds: Collection[str] = (AWS.name,),
    ) -> None:
        places = {place for export in exports for place, _ in export.listings}
        _check_places("--region", regions, {region for *_, region in places}, UNKNOWN_REGION)
        _check_places("--account", accounts, {account for _, account, _ in places}, None)
        self._exports = [_narrowed(export, regions, accounts) for export in exports]
        self._clouds = {*clouds, *(cloud for cloud, *_ in places)}
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
        nowhere = (
            _shard((cloud, None, UNKNOWN_REGION), self._service(kind), (kind,))
            for kind in absent
            if (cloud := self._cloud(kind)) in self._clouds
        )
        return (*found, *nowhere)

    def list(self, shards: Sequence[Shard], done: Callable[[Shard], None]) -> Iterator[Listing]:
        """The objects of each place and type; a gap for a type that no export has a line of, and for what an export
        itself tells to be incomplete."""
        for shard in shards:
            scope = Scope(shard.cloud, shard.provider.settings.get("account"), shard.region or _GLOBAL)
            place = (scope.cloud, scope.account, scope.region)
            for kind in shard.types:
                holders = [export for export in self._exports if (place, kind) in export.listings]
                held = (found for export in holders for found in export.listings[place, kind])
                objects = tuple({found.key: found for found in held}.values())
                told = next((export.gaps[place, kind] for export in holders if (place, kind) in export.gaps), None)
                reason = told if holders else "not in the export: none exist, or they were left out"
                gap = Gap(f"{scope} {kind}", reason) if reason else None
                yield Listing(kind, scope, objects, gap, exhaustive=any(export.exhaustive for export in holders))
            done(shard)
        for export in self._exports:
            reasons = list(export.damage)
            if export.unknown:
                names = ", ".join(sorted(export.unknown))
                count = sum(export.unknown.values())
                reasons.append(f"{count} objects of types that the catalogue does not have: {names}")
            for reason in reasons:
                yield Listing("", Scope("", None, UNKNOWN_REGION), gap=Gap(f"export {export.name}", reason))

    def weighed(self, result: ScanResult) -> ScanResult:
        """The result of a scan of these exports, no surer than they allow, with a note of what they cannot prove."""
        notes = () if all(export.exhaustive for export in self._exports) else (_NO_ABSENCE,)
        findings = tuple(self._weighed(finding) for finding in result.findings)
        return replace(result, findings=findings, notes=(*result.notes, *notes))

    def _weighed(self, finding: Finding) -> Finding:
        entry = self._catalog.get(finding.object.type) if finding.object else None
        ruled = entry is not None and (entry.ignore or entry.made_by)
        if not ruled or finding.verdict is not Verdict.UNMANAGED or finding.confidence is not Confidence.CERTAIN:
            return finding
        evidence = (*finding.evidence, Evidence(EvidenceKind.GAP, f"it may be, {_NO_RULES}"))
        return replace(finding, confidence=Confidence.LIKELY, evidence=evidence)

    def _service(self, kind: str) -> str:
        entry = self._catalog.get(kind)
        return entry.service if entry else "unknown"

    def _cloud(self, kind: str) -> str:
        entry = self._catalog.get(kind)
        return entry.cloud if entry else ""


def _narrowed(export: Export, regions: Sequence[str], accounts: Sequence[str]) -> Export:
    def counts(place: Place) -> bool:
        _, account, region = place
        return (not regions or region in (*regions, _GLOBAL, UNKNOWN_REGION)) and (
            not accounts or account is None or account in accounts
        )

    return replace(export, listings={key: found for key, found in export.listings.items() if counts(key[0])})


def _check_places(option: str, named: Sequence[str], there: Set[str | None], unknown: str | None) -> None:
    for name in named:
        if name not in there and unknown not in there:
            raise UsageError(f"no export has anything in {name}", f"correct {option}, or leave it out")


def _shard(place: Place, service: str, types: tuple[str, ...]) -> Shard:
    cloud, account, region = place
    settings = {"account": account} if account else {}
    provider = ProviderConfig(cloud, f"registry.terraform.io/hashicorp/{cloud}", settings)
    return Shard(cloud, provider, None if region == _GLOBAL else region, service, types)


def read_export(path: Path, catalog: Catalog, patterns: Sequence[str], text: str | None = None) -> Export:
    """The export in a file (also gzipped), reduced to the types that match `patterns`; `text` is what the file holds,
    where that was read before.

    Raises `InputError` for a file that is none, and for a line that does not say what it is about: it could be the
    object that somebody looks for. Raises `UsageError` for a pattern that no type of the catalogue matches.
    """
    wanted = {entry.type for entry in listable_types(catalog, patterns)}
    found: dict[tuple[Place, str], list[CloudObject]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    by_cfn = {entry.cfn: entry for entry in catalog if entry.cfn}
    for number, row in enumerate(_rows(path, read_text(path) if text is None else text), 1):
        kind = row.get("type")
        if not isinstance(kind, str) or not kind or not any(plain(row.get(name)) for name in _NAMES):
            raise InputError(f"{path}: entry {number} has no type, or neither id, import_id nor arn", _ADVICE)
        entry = by_cfn.get(kind) or catalog.get(catalog.canonical(kind))
        if entry is None:
            unknown[kind] += any(fnmatchcase(kind, pattern) for pattern in patterns)
        elif entry.type in wanted:
            one = _object(entry, row)
            found[(one.cloud, one.account, one.region), entry.type].append(one)
    asked = {kind: count for kind, count in unknown.items() if count}
    types = tuple(entry.type for entry in catalog if entry.type in wanted)
    return Export(str(path), {key: tuple(objects) for key, objects in found.items()}, types, asked)


def _rows(path: Path, text: str) -> Iterator[Row]:
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
            if None in row or None in row.values():  # cut, or a separator is lost: the cells stand below other names
                raise InputError(f"{path}:{reader.line_num}: has not as many cells as the first line", _ADVICE)
            yield {name: value for name, value in row.items() if value}
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
    items = whole.get(_CONFIG_ITEMS)
    if items is None:
        yield from _unwrapped(whole)
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InputError(f"{path}: {_CONFIG_ITEMS} is no list of items", _ADVICE)
    yield from (_of_config(item) for item in items if item.get("configurationItemStatus") not in _GONE)


def _lines(path: Path, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):  # a text may hold what else counts as a line's end
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: is cut or not JSON", _ADVICE) from error
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: is no JSON object", _ADVICE)
        yield from _unwrapped(row)


def _unwrapped(row: Row) -> Iterator[Row]:
    """A line itself, or the object in a line of `scan --format jsonl`; nothing where that tells of none."""
    inner = row.get("object")
    if inner is not None or row.get("verdict") != _MISSING:
        yield inner if isinstance(inner, dict) else row


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
        _CONFIGURATION: "configuration",
    }
    row = {name: item[theirs] for name, theirs in names.items() if item.get(theirs)}
    setting, member = _MEMBERS.get(str(row.get("type")), ("", ""))
    configuration = row.get(_CONFIGURATION)
    is_member = isinstance(configuration, dict) and configuration.get(setting)
    return {**row, "type": member} if is_member else row


def read_text(path: Path) -> str:
    """What the file holds, unpacked where it is gzipped. Raises `InputError` for what cannot be read, or is no text."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "it is cut or damaged"
        raise InputError(f"{path} cannot be read: {why}", "check the path, and that it was exported whole") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text", _ADVICE) from error


def _object(entry: ResourceType, row: Row) -> CloudObject:
    said = {name: value for name in ("id", "import_id", "arn", "name") if (value := plain(row.get(name)))}
    named = {"arn": said.get("arn"), "id": said.get("id"), "name": said.get("name") or said.get("id")}
    identity = {key: value for key in entry.keys if (value := named.get(key))}
    # What a person calls it is one of the keys under another name: `bucket`, `identifier`, `function_name`.
    for key, expression in entry.keys.items():
        if key not in identity and expression == entry.name and named["name"]:
            identity[key] = named["name"]
    named_in = said.get("arn") or (identity.get(entry.arn_key, "") if entry.arn_key else "")
    account = plain(row.get("account")) or place_in(named_in)[0] or None
    region = _GLOBAL if entry.is_global else plain(row.get("region")) or arn_part(said.get("arn"), 3)
    object_id = said.get("id") or said.get("import_id") or said.get("arn", "")
    found = CloudObject(
        cloud=entry.cloud,
        account=account,
        region=region or UNKNOWN_REGION,
        type=entry.type,
        id=object_id,
        import_id=said.get("import_id") or filled(entry.import_id, {**identity, "id": object_id}) or object_id,
        identity=identity,
        arn=said.get("arn"),
        name=said.get("name"),
        created_at=parse_time(plain(row.get("created_at")) or ""),
        stateful=entry.stateful,
    )
    configuration = row.get(_CONFIGURATION)
    found = with_origin(entry, found, configuration if isinstance(configuration, dict) else {})
    return with_tags(entry, found, _tags(row.get("tags")))


def with_origin(entry: ResourceType, found: CloudObject, configuration: Mapping[str, object]) -> CloudObject:
    """The object with what the catalogue's rules say of who made it and whose it is.

    They are about the answer to a list call: names, ARN, path and what Config holds of the object stand for it.
    """
    item = _as_answered(entry, found, configuration)
    scope = Scope(found.cloud, found.account, found.region)
    told = to_object(entry, item, scope, arn_part(found.arn, 1) or "aws")
    return replace(
        found,
        ignored_because=next((rule.reason for rule in entry.ignore if holds(rule.when, item)), None),
        owner=told.owner if told else None,
        made_by=told.made_by if told else (),
    )


def _as_answered(entry: ResourceType, found: CloudObject, configuration: Mapping[str, object]) -> object:
    told = [(entry.name, found.name), (entry.arn, found.arn)]
    told += [(expression, found.identity.get(key)) for key, expression in entry.keys.items()]
    known = {expression: value for expression, value in told if expression and value}
    if bare := known.get("@"):
        return bare  # its list answers with texts
    item = {**configuration, **_capitalised(configuration, _DEPTH)}
    item |= {expression: value for expression, value in known.items() if expression.isidentifier()}
    if entry.service == "iam" and found.arn and "/" in found.arn:
        item["Path"] = f"/{found.arn.partition('/')[2].rpartition('/')[0]}/".replace("//", "/")
    return item


def _capitalised(settings: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Settings as the SDK spells them (`IsDefault`); Config begins most names small (`isDefault`)."""
    return {
        f"{name[:1].upper()}{name[1:]}": _capitalised(value, depth - 1) if depth and isinstance(value, dict) else value
        for name, value in settings.items()
    }


def filled(template: str, known: Mapping[str, str]) -> str | None:
    """What a template of the catalogue gives, where the export says all that it names; None also for a JMESPath."""
    if not all(name in known for name in PLACEHOLDER.findall(template)) or "{" not in template:
        return None
    return str(fill(template, known))


def _tags(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def plain(value: object) -> str | None:
    """A text or a number as text; None for everything else, and for an empty text."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "" else None
