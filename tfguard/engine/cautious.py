"""What an import leaves in a state that would let a delete do more than delete (docs/design.md, rule 17).

An import fills in no defaults of the configuration, and some providers set attributes of their own accord then. The
AWS provider would delete an imported database without a last snapshot, and an imported secret without its recovery
window; of a role it would detach the policies first. All of it was tried with version 5.100.0.
"""

from __future__ import annotations

from collections.abc import Mapping

HARSH = frozenset(
    {
        "delete_automated_backups",
        "force_delete",
        "force_destroy",
        "force_detach_policies",
        "skip_final_snapshot",
    }
)
"""Flags with which more goes than the object; of an imported one the provider sets some of its own accord."""

# Where nothing at all means "at once": the default of the configuration.
_WINDOWS: Mapping[str, int] = {"recovery_window_in_days": 30}
# What the provider undoes before it deletes, since the state tells of it. The service refuses the delete instead.
_ATTACHED: Mapping[str, Mapping[str, object]] = {
    "aws_eip": {"association_id": ""},
    "aws_iam_role": {"inline_policy": [], "managed_policy_arns": []},
    "aws_network_interface": {"attachment": []},
}


# What names the last snapshot of a database, by the types that can have one.
_SNAPSHOTS = frozenset({"final_snapshot_identifier", "final_snapshot_name"})


def with_final_snapshot(attributes: Mapping[str, object], name: str) -> Mapping[str, object]:
    """The attributes to change in the state of an imported object, so that its deletion takes a snapshot first; none
    where the type has no such thing."""
    return {attribute: name for attribute in _SNAPSHOTS if attribute in attributes}


def more_cautious(resource_type: str, attributes: Mapping[str, object]) -> Mapping[str, object]:
    """The attributes to change in the state of an imported object, so that a delete deletes it and forces nothing."""
    flags = {name: False for name in HARSH if attributes.get(name) is True}
    windows = {name: days for name, days in _WINDOWS.items() if name in attributes and not attributes[name]}
    attached = {name: none for name, none in _ATTACHED.get(resource_type, {}).items() if attributes.get(name)}
    return {**flags, **windows, **attached}
