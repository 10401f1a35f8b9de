"""What an import leaves in a state that would let a delete do more than delete (docs/design.md, rule 17).

An import fills in no defaults of the configuration, and some providers set attributes of their own accord then. The
AWS provider would delete an imported database without a last snapshot, and an imported secret without its recovery
window; of a role it would detach the policies first. All of it was tried with version 5.100.0.
"""

from __future__ import annotations

from collections.abc import Mapping

# As a configuration that says nothing about them: whatever sets one of these wants more gone than the object.
_FLAGS = frozenset(
    {
        "delete_automated_backups",
        "force_delete",
        "force_destroy",
        "force_detach_policies",
        "skip_final_snapshot",
    }
)
# Where nothing at all means "at once": the default of the configuration.
_WINDOWS: Mapping[str, int] = {"recovery_window_in_days": 30}
# What the provider undoes before it deletes, since the state tells of it. The service refuses the delete instead.
_ATTACHED: Mapping[str, Mapping[str, object]] = {
    "aws_eip": {"association_id": ""},
    "aws_iam_role": {"inline_policy": [], "managed_policy_arns": []},
    "aws_network_interface": {"attachment": []},
}


def more_cautious(resource_type: str, attributes: Mapping[str, object]) -> Mapping[str, object]:
    """The attributes to change in the state of an imported object, so that a delete deletes it and forces nothing."""
    flags = {name: False for name in _FLAGS if attributes.get(name) is True}
    windows = {name: days for name, days in _WINDOWS.items() if name in attributes and not attributes[name]}
    attached = {name: none for name, none in _ATTACHED.get(resource_type, {}).items() if attributes.get(name)}
    return {**flags, **windows, **attached}
