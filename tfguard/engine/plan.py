"""A plan from `show -json`, reduced to what may be kept: `resource_changes` alone, identities alone (rule 10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.engine.documents import Json, mapping, masked_values, sequence, text
from tfguard.engine.identities import identity_of, withheld_of
from tfguard.engine.providers import Literal, provider_configs, provider_keys, sensitive_variables, unkept_variables
from tfguard.errors import InputError
from tfguard.model.address import module_path, without_instance_key
from tfguard.model.plan import Action, Plan, PlannedChange

_ACTIONS: Mapping[tuple[str, ...], Action] = {
    ("create",): Action.CREATE,
    ("read",): Action.READ,
    ("update",): Action.UPDATE,
    ("delete",): Action.DELETE,
    ("forget",): Action.FORGET,
    ("no-op",): Action.NOOP,
    ("delete", "create"): Action.REPLACE,
    ("create", "delete"): Action.REPLACE,
    ("create", "forget"): Action.REPLACE,
    ("forget", "create"): Action.REPLACE,
}


def parse_plan(output: str, where: str, catalog: Catalog, literal: Literal = frozenset()) -> Plan:
    """The plan in the output of `show -json PLANFILE`. Raises `InputError` when it is not one.

    `literal` says which provider settings are a variable and nothing else (`literal_settings`).
    """
    try:
        document = mapping(json.loads(output))
    except (ValueError, RecursionError) as error:
        raise not_a_plan(where, "`show -json` did not print JSON") from error
    if "resource_changes" not in document and "planned_values" not in document:
        raise not_a_plan(where, "it is a state, not a plan")
    return reduce_plan(document, catalog, literal)


def can_be_plan(path: Path) -> bool:
    """False where nothing is, and for a file that no engine takes for a plan: it is a zip, or JSON where it is kept
    elsewhere or encrypted."""
    if not path.is_file():
        return path.exists()  # what is no regular file can be read once only
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith((b"PK", b"{"))
    except OSError:
        return True


def not_a_plan(where: str, why: str) -> InputError:
    """The error for a file that the engine cannot read as a plan."""
    return InputError(f"{where} is not a plan that can be applied: {why}", "make a new one with `plan -out=FILE`")


def reduce_plan(document: Json, catalog: Catalog, literal: Literal) -> Plan:
    """What tfguard works with, of the whole document; nothing else of it is kept."""
    items = [mapping(item) for item in sequence(document.get("resource_changes"))]
    secrets = _secrets(items) | sensitive_variables(document)
    keys, applyable = provider_keys(document), document.get("applyable")
    return Plan(
        engine_version=text(document.get("terraform_version")),
        changes=tuple(
            _change(item, catalog, keys, secrets) for item in items if item.get("mode", "managed") == "managed"
        ),
        providers=provider_configs(document, literal),
        secrets=secrets,
        changes_outputs=any(
            tuple(sequence(mapping(change).get("actions"))) != ("no-op",)
            for change in mapping(document.get("output_changes")).values()
        ),
        errored=document.get("errored") is True,
        applyable=applyable if isinstance(applyable, bool) else None,
        drifted=bool(sequence(document.get("resource_drift"))),
        unkept=unkept_variables(document),
        reads=any("read" in sequence(mapping(item.get("change")).get("actions")) for item in items),
    )


def _secrets(items: list[Json]) -> frozenset[str]:
    found: set[str] = set()
    for item in items:
        change = mapping(item.get("change"))
        for side in ("before", "after"):
            found.update(masked_values(change.get(side), change.get(f"{side}_sensitive")))
    return frozenset(found)


def _change(item: Json, catalog: Catalog, keys: Mapping[str, str], secrets: frozenset[str]) -> PlannedChange:
    change = mapping(item.get("change"))
    resource_type = text(item.get("type"))
    address = text(item.get("address"))
    after, before = change.get("after"), change.get("before")
    region = mapping(after or before).get("region")
    return PlannedChange(
        address=address,
        type=resource_type,
        provider=text(item.get("provider_name")),
        action=_ACTIONS.get(tuple(text(action) for action in sequence(change.get("actions"))), Action.UPDATE),
        provider_key=keys.get(_configuration_address(address), ""),
        desired=identity_of(catalog, resource_type, after, change.get("after_sensitive"), secrets),
        before=identity_of(catalog, resource_type, before, change.get("before_sensitive"), secrets),
        deposed=text(item.get("deposed")) or None,
        create_first=tuple(sequence(change.get("actions"))) == ("create", "delete"),
        importing=text(mapping(change.get("importing")).get("id")) or ("" if "importing" in change else None),
        previous_address=text(item.get("previous_address")) or None,
        region=region if isinstance(region, str) and region else None,
        withheld=tuple(
            sorted(
                withheld_of(catalog, resource_type, after, change.get("after_sensitive"), secrets)
                | withheld_of(catalog, resource_type, before, change.get("before_sensitive"), secrets)
            )
        ),
    )


def _configuration_address(address: str) -> str:
    """The address without any instance key, as the configuration names the resource."""
    modules = module_path(address)
    bare = without_instance_key(address)
    resource = ".".join(_last_two(bare))
    return "".join(f"module.{name}." for name in modules) + resource


def _last_two(address: str) -> list[str]:
    return address.rsplit(".", 2)[-2:]
