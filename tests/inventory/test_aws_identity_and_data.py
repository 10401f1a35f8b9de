"""What the catalogue's entries for identity and data at AWS tell apart, and what they leave out."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tfguard.catalog.loader import load_catalog, read_types
from tfguard.catalog.types import ResourceType
from tfguard.engine.identities import identity_of
from tfguard.engine.owned import owned_by
from tfguard.errors import ConfigError
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.items import holds, look_up, to_object, to_time
from tfguard.model.inventory import CloudObject, MadeBy, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.state import OwnedObject
from tfguard.reconcile.matching import same_object

CATALOG = load_catalog()
HERE = Scope("aws", "123456789012", "eu-west-1")
POLICY = "arn:aws:iam::123456789012:policy/p"
ATTACHMENT = "aws_iam_role_policy_attachment"

JOINED = """
cloud: aws
types:
  aws_thing:
    service: thing
    scope: regional
    keys: {zone+name+set?: "{zone}_{name}_{set}"}
    traits: {zone: Zone, name: Name, set: Set}
    id: "{zone}_{name}"
    import_id: "{zone}_{name}"
"""


def entry(name: str) -> ResourceType:
    found = CATALOG.get(name)
    assert found is not None
    return found


def made_of(name: str, item: object, parent: dict[str, str] | None = None) -> CloudObject:
    found = to_object(entry(name), item, HERE, "aws", parent or {})
    assert found is not None
    return found


# --- keys of several attributes ---


def test_attachment_is_known_by_its_role_and_policy_together_whatever_its_id_is() -> None:
    listed = made_of(ATTACHMENT, {"PolicyName": "p", "PolicyArn": POLICY}, {"parent_name": "app"})
    held = {"id": "app-20240102030405", "role": "app", "policy_arn": POLICY}
    same = identity_of(CATALOG, ATTACHMENT, held, {}, frozenset())
    assert same["role+policy_arn"] == listed.identity["role+policy_arn"] == f"app/{POLICY}"
    assert same_object(entry(ATTACHMENT), same, listed)
    for other in ({"role": "web"}, {"policy_arn": POLICY + "2"}):
        identity = identity_of(CATALOG, ATTACHMENT, {**held, **other}, {}, frozenset())
        assert not same_object(entry(ATTACHMENT), identity, listed)


def test_key_of_which_a_part_is_not_known_or_may_not_be_told_is_no_key() -> None:
    held = {"role": "app", "policy_arn": POLICY}
    for values, mask, secrets in (
        ({"role": "app"}, {}, frozenset()),
        (held, {"policy_arn": True}, frozenset()),
        (held, {}, frozenset({POLICY})),
    ):
        assert "role+policy_arn" not in identity_of(CATALOG, ATTACHMENT, values, mask, secrets)


def test_part_that_may_be_missing_counts_as_empty_unless_it_is_hidden() -> None:
    catalog = read_types("x.yaml", JOINED)
    kind = catalog.types["aws_thing"]
    assert kind.attributes == ("zone", "name", "set")
    assert kind.joined({"zone": "z", "name": "n"}) == {"zone+name+set?": "z_n_"}
    assert kind.joined({"zone": "z", "name": "n", "set": "s"}) == {"zone+name+set?": "z_n_s"}
    assert kind.joined({"zone": "z", "name": "n"}, hidden={"set"}) == {}
    assert kind.joined({"zone": "z"}) == {}
    listed = to_object(kind, {"Zone": "z", "Name": "n"}, HERE, "aws")
    assert listed is not None and listed.identity["zone+name+set?"] == "z_n_"
    masked = identity_of(catalog, "aws_thing", {"zone": "z", "name": "n", "set": "s"}, {"set": True}, frozenset())
    assert "zone+name+set?" not in masked


@pytest.mark.parametrize("template", ["{zone}_{name}", "{zone}_{name}_{set}_{other}", "Zone"])
def test_key_of_several_attributes_must_be_made_of_exactly_these(template: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_types("x.yaml", JOINED.replace('"{zone}_{name}_{set}"', f'"{template}"'))
    assert "aws_thing: keys.zone+name+set?" in str(refused.value)


def test_role_owns_the_policies_that_its_blocks_and_lists_name() -> None:
    values = {"name": "app", "inline_policy": [{"name": "a"}, {"name": ""}], "managed_policy_arns": [POLICY]}
    assert set(owned_by(CATALOG, "aws_iam_role", values, {}, frozenset())) == {
        OwnedObject("aws_iam_role_policy", "id", "app:a"),
        OwnedObject(ATTACHMENT, "role+policy_arn", f"app/{POLICY}"),
    }


# --- one list, several types ---


@pytest.mark.parametrize(
    ("item", "types"),
    [
        ({"Engine": "aurora-mysql"}, {"aws_rds_cluster"}),
        ({"Engine": "postgres"}, {"aws_rds_cluster"}),
        ({"Engine": "docdb"}, {"aws_docdb_cluster"}),
        ({"Engine": "neptune"}, {"aws_neptune_cluster"}),
    ],
)
def test_each_cluster_is_of_the_one_type_that_its_engine_tells(item: object, types: set[str]) -> None:
    assert claimed_by("describe_db_clusters", item) == types


@pytest.mark.parametrize(
    ("item", "types"),
    [
        ({"Engine": "postgres"}, {"aws_db_instance"}),
        ({"Engine": "aurora-mysql", "DBClusterIdentifier": "c"}, {"aws_rds_cluster_instance"}),
        ({"Engine": "docdb", "DBClusterIdentifier": "c"}, {"aws_docdb_cluster_instance"}),
        ({"Engine": "neptune", "DBClusterIdentifier": "c"}, {"aws_neptune_cluster_instance"}),
    ],
)
def test_each_database_is_of_the_one_type_that_its_cluster_and_engine_tell(item: object, types: set[str]) -> None:
    assert claimed_by("describe_db_instances", item) == types


def claimed_by(operation: str, item: object) -> set[str]:
    """The types whose list has the item."""
    listed = [kind for kind in CATALOG if kind.list and kind.list.operation == operation and kind.service == "rds"]
    return {kind.type for kind in listed if not kind.only or holds(kind.only, item)}


def test_delivery_streams_go_on_after_the_last_name_of_a_page_while_there_are_more() -> None:
    call = entry("aws_kinesis_firehose_delivery_stream").list
    assert call is not None and call.token is not None
    page = {"DeliveryStreamNames": ["a", "b"], "HasMoreDeliveryStreams": True}
    assert look_up(call.token.answer, page) == "b"
    assert not look_up(call.token.answer, {**page, "HasMoreDeliveryStreams": False})


# --- not made with Terraform ---


@pytest.mark.parametrize(
    ("name", "item", "reason"),
    [
        ("aws_kms_alias", {"AliasName": "alias/aws/s3"}, "alias of a key that AWS manages"),
        ("aws_kms_alias", {"AliasName": "alias/awsome"}, None),
        ("aws_iam_instance_profile", {"InstanceProfileName": f"eks-{'0' * 36}"}, "made by an EKS node group"),
        ("aws_iam_instance_profile", {"InstanceProfileName": "eks-nodes"}, None),
        ("aws_db_parameter_group", {"DBParameterGroupName": "default.postgres16"}, "default parameter group"),
        ("aws_db_parameter_group", {"DBParameterGroupName": "defaults"}, None),
        ("aws_db_snapshot", {"DBSnapshotIdentifier": "rds:a", "SnapshotType": "automated"}, "automated backups of RDS"),
        ("aws_db_snapshot", {"DBSnapshotIdentifier": "a", "SnapshotType": "manual"}, None),
        ("aws_backup_vault", {"BackupVaultName": "Default"}, "default vault"),
        ("aws_backup_vault", {"BackupVaultName": "aws/efs/automatic-backup-vault"}, "automatic backups of a service"),
        ("aws_athena_workgroup", {"Name": "primary"}, "made by AWS with the account"),
        (
            "aws_rds_cluster_instance",
            {"DBInstanceIdentifier": "a", "DBClusterIdentifier": "c", "Engine": "mysql"},
            "Multi-AZ DB cluster",
        ),
        (
            "aws_secretsmanager_secret",
            {"ARN": "arn:aws:secretsmanager:eu-west-1:1:secret:a", "PrimaryRegion": "us-east-1"},
            "replica of a secret of another region",
        ),
        (
            "aws_secretsmanager_secret",
            {"ARN": "arn:aws:secretsmanager:us-east-1:1:secret:a", "PrimaryRegion": "us-east-1"},
            None,
        ),
    ],
)
def test_what_a_service_makes_is_marked_and_what_only_looks_like_it_is_not(
    name: str, item: object, reason: str | None
) -> None:
    found = made_of(name, item).ignored_because
    assert found is None if reason is None else reason in (found or "")


def test_member_of_a_replication_group_names_it_as_its_maker() -> None:
    member = made_of("aws_elasticache_cluster", {"CacheClusterId": "g-001", "ReplicationGroupId": "g"})
    made_by = MadeBy(
        "aws_elasticache_replication_group", "replication_group_id", "g", "member of its replication group"
    )
    assert member.made_by == (made_by,)
    assert made_of("aws_elasticache_cluster", {"CacheClusterId": "alone"}).made_by == ()


def test_time_may_be_written_as_iso_8601() -> None:
    assert to_time("2024-01-02T03:04:05.678Z") == to_time("2024-01-02T05:04:05.678+02:00") == to_time(1704164645678)
    assert to_time("2024-01-02T03:04:05") == to_time(1704164645)


# --- on a simulated AWS ---


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A simulated AWS of this module's own."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def listed(url: str, name: str, region: str) -> tuple[CloudObject, ...]:
    settings = {"region": region, "endpoint_url": url, "access_key": "test", "secret_key": "test"}
    listing = AwsInventory(CATALOG).list(name, ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", settings))
    assert listing.complete, listing.gap
    return listing.objects


def test_what_guards_cloudfront_is_listed_in_one_region_and_with_its_scope(url: str) -> None:
    for scope, region in (("CLOUDFRONT", "us-east-1"), ("REGIONAL", "us-east-1"), ("REGIONAL", "eu-west-1")):
        waf = boto3.client("wafv2", region, endpoint_url=url, aws_access_key_id="test", aws_secret_access_key="test")
        waf.create_ip_set(Name="one", Scope=scope, IPAddressVersion="IPV4", Addresses=[])
    there, elsewhere = (listed(url, "aws_wafv2_ip_set", region) for region in ("us-east-1", "eu-west-1"))
    assert sorted(found.import_id.split("/", 1)[1] for found in there) == ["one/CLOUDFRONT", "one/REGIONAL"]
    assert [found.import_id.split("/", 1)[1] for found in elsewhere] == ["one/REGIONAL"]
