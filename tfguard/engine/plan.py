"""A plan from `show -json`, reduced to what may be kept: `resource_changes` alone, identities alone (rule 10)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.documents import (
    Json,
    WrongShapeError,
    both_mark,
    is_managed,
    mapping,
    marked_values,
    objects,
    optional_object,
    optional_text,
    parse_json,
    sequence,
    text,
)
from tfguard.engine.identities import copies_in, identity_of, unseen_of, withheld_of
from tfguard.engine.providers import (
    Literal,
    configured_attributes,
    provider_configs,
    provider_keys,
    sensitive_variables,
    unkept_variables,
)
from tfguard.errors import InputError
from tfguard.model.address import module_path, without_instance_key
from tfguard.model.cloud import cloud_of_source
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
        document = parse_json(output)
    except (ValueError, RecursionError) as error:
        raise not_a_plan(where, "`show -json` did not print JSON") from error
    if not isinstance(document, Mapping):
        raise not_a_plan(where, "`show -json` printed no JSON object")
    if "resource_changes" not in document and "planned_values" not in document:
        raise not_a_plan(where, "it is a state, not a plan")
    try:
        return reduce_plan(document, catalog, literal)
    except WrongShapeError as error:
        raise not_a_plan(where, f"its {error.part} is not what a plan has there") from error
    except RecursionError as error:
        raise not_a_plan(where, "it is nested too deeply") from error


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
    """What tfguard works with, of the whole document; nothing else of it is kept.

    Raises `WrongShapeError`: a change that is passed over is one that no record tells of.
    """
    items = list(objects(document, "resource_changes", optional=True))
    secrets = sensitive_variables(document).union(marked_values(document))
    keys, configured = provider_keys(document), configured_attributes(document)
    applyable = document.get("applyable")
    return Plan(
        engine_version=text(document.get("terraform_version")),
        changes=tuple(
            _change(item, catalog, keys, configured, secrets)
            for item in items
            if "mode" not in item or is_managed(item)
        ),
        providers=provider_configs(document, literal),
        secrets=secrets,
        copies=frozenset(
            copy
            for item in items
            for side in ("before", "after")
            for copy in copies_in(catalog, text(item.get("type")), mapping(item.get("change")).get(side), secrets)
        ),
        changes_outputs=any(
            tuple(sequence(mapping(change).get("actions"))) != ("no-op",)
            for change in optional_object(document, "output_changes").values()
        ),
        errored=document.get("errored") is True,
        applyable=applyable if isinstance(applyable, bool) else None,
        drifted=any(True for _ in objects(document, "resource_drift", optional=True)),
        unkept=unkept_variables(document),
        reads=any("read" in sequence(mapping(item.get("change")).get("actions")) for item in items),
    )


def _change(
    item: Json,
    catalog: Catalog,
    keys: Mapping[str, str],
    configured: Mapping[str, frozenset[str]],
    secrets: frozenset[str],
) -> PlannedChange:
    change = optional_object(item, "change")
    resource_type = text(item.get("type"))
    address = text(item.get("address"))
    if not (address and resource_type):
        raise WrongShapeError("address or type of a change")
    actions = _actions(change)
    after, before = optional_object(change, "after"), optional_object(change, "before")
    cloud = cloud_of_source(text(item.get("provider_name")))
    place = (after or before).get(cloud.own_place if cloud else "region")
    place = place if isinstance(place, str) and place else None
    is_account = cloud is not None and cloud.place_is_account
    mask, unknown = change.get("after_sensitive"), change.get("after_unknown")
    unseen = unseen_of(catalog, resource_type, mask, unknown)
    differs = _differing(before, after, unknown, configured.get(_configuration_address(address), frozenset()))
    return PlannedChange(
        address=address,
        type=resource_type,
        provider=text(item.get("provider_name")),
        action=_ACTIONS.get(actions) or _nearest_action(actions),
        provider_key=keys.get(_configuration_address(address), ""),
        desired=identity_of(catalog, resource_type, after, mask, secrets),
        before=identity_of(catalog, resource_type, before, change.get("before_sensitive"), secrets),
        deposed=optional_text(item, "deposed") or None,
        create_first=actions == ("create", "delete"),
        importing=text(mapping(change.get("importing")).get("id")) or ("" if "importing" in change else None),
        previous_address=optional_text(item, "previous_address") or None,
        region=None if is_account else place,
        own_account=place if is_account else None,
        withheld=tuple(
            sorted(
                withheld_of(catalog, resource_type, after, mask, secrets)
                | withheld_of(catalog, resource_type, before, change.get("before_sensitive"), secrets)
                | unseen
            )
        ),
        silent=bool(unseen) or _may_echo(catalog, resource_type, mask, unknown, configured, address),
        differs=differs,
        filled=tuple(name for name in differs if before.get(name) is None),
        forced_by=tuple(dict.fromkeys(filter(None, map(_path_name, sequence(change.get("replace_paths")))))),
    )


# What the google provider calls all labels of an object, and what it only notes in the state: which of these are the
# configuration's. An import notes none, so that the plan of one updates each object with labels, also where they fit.
# Source: https://github.com/hashicorp/terraform-provider-google/issues/20063
_ALL_LABELS = "effective_labels"
_WHOSE_LABELS = frozenset({"labels", "resource_labels", "terraform_labels"})


def _differing(before: Json, after: Json, unknown: object, given: frozenset[str]) -> tuple[str, ...]:
    """The names of the arguments that change. What is computed, and not known before the apply, is none of them.

    A marked value is compared like any other: what differs has a name, and only that is told.
    """
    if not before or not after:
        return ()
    open_ended = {name for name, mask in mapping(unknown).items() if both_mark(mask, True)}
    changed = {name for name, value in after.items() if _bare(before.get(name)) != _bare(value)} - open_ended
    labels = after.get(_ALL_LABELS)
    if labels is not None and labels == before.get(_ALL_LABELS) and _ALL_LABELS not in open_ended:
        changed -= _WHOSE_LABELS
    return tuple(sorted(changed | (open_ended & given)))


def _bare(value: object) -> object:
    """A value without what is as good as not set: null, false, 0, and what is empty or holds nothing else."""
    if isinstance(value, Mapping):
        return {name: kept for name, inner in value.items() if (kept := _bare(inner))} or None
    if isinstance(value, list):
        return [_bare(inner) for inner in value] if any(map(_bare, value)) else None
    return value or None


def _path_name(path: object) -> str:
    """An attribute path without positions in lists."""
    return ".".join(step for step in sequence(path) if isinstance(step, str))


def _actions(change: Json) -> tuple[str, ...]:
    actions = change.get("actions")
    if not isinstance(actions, list) or not actions or not all(isinstance(action, str) for action in actions):
        raise WrongShapeError("actions of a change")
    return tuple(actions)


def _nearest_action(actions: tuple[str, ...]) -> Action:
    """What a combination that is not known here comes to: what it makes has to be looked for afterwards."""
    creates, deletes = "create" in actions, "delete" in actions
    if creates:
        return Action.REPLACE if deletes else Action.CREATE
    return Action.DELETE if deletes else Action.UPDATE


def _may_echo(
    catalog: Catalog,
    resource_type: str,
    mask: object,
    unknown: object,
    configured: Mapping[str, frozenset[str]],
    address: str,
) -> bool:
    """Whether the id of an object that no catalogue describes may repeat a marked value that is not known yet."""
    if catalog.get(resource_type) is not None:
        return False
    if mask is True or unknown is True:
        return both_mark(mask, unknown)
    given = configured.get(_configuration_address(address), frozenset())
    return any(both_mark(mapping(mask).get(name), mapping(unknown).get(name)) for name in given)


def _configuration_address(address: str) -> str:
    """The address without any instance key, as the configuration names the resource."""
    modules = module_path(address)
    bare = without_instance_key(address)
    resource = ".".join(_last_two(bare))
    return "".join(f"module.{name}." for name in modules) + resource


def _last_two(address: str) -> list[str]:
    return address.rsplit(".", 2)[-2:]
