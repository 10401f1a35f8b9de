"""What an import leaves in a state that would let a delete do more than delete (docs/design.md, rule 17).

An import fills in no defaults of the configuration, and some providers set attributes of their own accord then. The
AWS provider would delete an imported database without a last snapshot, and an imported secret without its recovery
window; of a role it would detach the policies first, and an internet gateway from its VPC. What of this can be seen
with a simulated AWS was tried with version 5.100.0; the rest stands in its source. What a provider looks up by itself,
no state holds back: the catalogue names such types (`by_call`, `detaches`), and `why_spared` some more.
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
# What the provider undoes before it deletes, or deletes as well, since the state tells of it. The service refuses the
# delete instead, or lets the others be.
_ATTACHED: Mapping[str, Mapping[str, object]] = {
    "aws_api_gateway_usage_plan": {"api_stages": []},
    "aws_cloudfront_distribution": {"continuous_deployment_policy_id": ""},
    "aws_docdb_cluster": {"global_cluster_identifier": ""},
    "aws_dynamodb_table": {"replica": []},
    "aws_eip": {"association_id": ""},
    "aws_elasticache_replication_group": {"global_replication_group_id": ""},
    "aws_iam_instance_profile": {"role": ""},
    "aws_iam_role": {"inline_policy": [], "managed_policy_arns": []},
    "aws_internet_gateway": {"vpc_id": ""},
    "aws_neptune_cluster": {"global_cluster_identifier": ""},
    "aws_network_interface": {"attachment": []},
    "aws_rds_cluster": {"global_cluster_identifier": ""},
    "aws_secretsmanager_secret": {"replica": []},
    "aws_spot_fleet_request": {"terminate_instances_with_expiration": False},
    "aws_ssm_document": {"permissions": {}},
    "aws_vpn_gateway": {"vpc_id": ""},
}
_ATTACHED_DISK = ("users", "it is attached to an instance", "detach it from every instance first")
# What the provider undoes before it deletes, whatever the state says: an attribute that tells of it, what it means, and
# what to do.
_SPARED: Mapping[str, tuple[str, str, str]] = {
    "aws_instance": (
        "disable_api_termination",
        "it is protected from being terminated",
        "take its protection from termination away at the provider first",
    ),
    "google_compute_disk": _ATTACHED_DISK,
    "google_compute_region_disk": _ATTACHED_DISK,
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


def why_spared(resource_type: str, attributes: Mapping[str, object]) -> tuple[str, str] | None:
    """What keeps an imported object from being deleted, and no state keeps the provider from undoing, with what to do
    about it; None for nothing."""
    attribute, why, advice = _SPARED.get(resource_type, ("", "", ""))
    return (why, advice) if attributes.get(attribute) else None
