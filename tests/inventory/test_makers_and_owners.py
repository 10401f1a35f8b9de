"""What comes with something else in EC2 and beside it: whose it is, who made it, and why it is nobody's."""

from __future__ import annotations

from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.items import to_object
from tfguard.model.inventory import CloudObject, Scope

HERE = Scope("aws", "123456789012", "eu-west-1")


def listed(name: str, item: dict[str, Any]) -> CloudObject:
    """The object that an item of a type's list describes."""
    entry = load_catalog().get(name)
    assert entry is not None
    found = to_object(entry, item, HERE, "aws")
    assert found is not None
    return found


DEFAULT_OPTIONS = [{"Key": "domain-name", "Values": [{"Value": "eu-west-1.compute.internal"}]}]


@pytest.mark.parametrize(
    ("name", "item", "reason"),
    [
        ("aws_network_interface", {"NetworkInterfaceId": "e", "RequesterManaged": True}, "made by an AWS service"),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "InterfaceType": "lambda"}, "made by an AWS service"),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "InterfaceType": "natGateway"}, "made by an AWS service"),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "InterfaceType": "efa"}, None),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "Description": "EFS mount target for fs-1"}, "EFS"),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "Description": "aws-K8S-i-1"}, "VPC CNI"),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "Description": "ours", "RequesterManaged": False}, None),
        ("aws_network_acl", {"NetworkAclId": "a", "IsDefault": True}, "default network ACL"),
        ("aws_route_table", {"RouteTableId": "r", "Associations": [{"Main": False}, {"Main": True}]}, "main route"),
        ("aws_route_table", {"RouteTableId": "r", "Associations": [{"Main": False}]}, None),
        ("aws_vpc_dhcp_options", {"DhcpOptionsId": "d", "DhcpConfigurations": DEFAULT_OPTIONS}, "default DHCP"),
        ("aws_vpc_dhcp_options", {"DhcpOptionsId": "d", "DhcpConfigurations": DEFAULT_OPTIONS, "Tags": [{"Key": "a"}]},
         None),
        ("aws_vpc_dhcp_options",
         {"DhcpOptionsId": "d", "DhcpConfigurations": [{"Key": "domain-name", "Values": [{"Value": "x.org"}]}]}, None),
        ("aws_eip", {"AllocationId": "e", "ServiceManaged": "alb"}, "managed by an AWS service"),
        ("aws_ec2_managed_prefix_list", {"PrefixListId": "p", "OwnerId": "AWS"}, "managed by AWS"),
        ("aws_launch_template",
         {"LaunchTemplateId": "l", "CreatedBy": "arn:aws:sts::1:assumed-role/AWSServiceRoleForAmazonEKSNodegroup/EKS"},
         "made by an AWS service"),
        ("aws_launch_template", {"LaunchTemplateId": "l", "CreatedBy": "arn:aws:iam::1:user/me"}, None),
        ("aws_security_group", {"GroupId": "g", "GroupName": "eks-cluster-sg-one-1"}, "made by EKS"),
        ("aws_autoscaling_group", {"AutoScalingGroupName": "g", "Tags": [{"Key": "eks:nodegroup-name", "Value": "n"}]},
         "made by an EKS node group"),
        ("aws_ebs_volume", {"VolumeId": "v", "Tags": [{"Key": "ebs.csi.aws.com/cluster", "Value": "true"}]},
         "made by the EBS driver of a cluster"),
        ("aws_autoscaling_policy",
         {"PolicyARN": "p", "AutoScalingGroupName": "g", "PolicyName": "ECSManagedAutoScalingPolicy-1"}, "made by ECS"),
    ],
)  # fmt: skip
def test_what_aws_makes_by_itself_is_ignored(name: str, item: dict[str, Any], reason: str | None) -> None:
    ignored = listed(name, item).ignored_because
    assert ignored == reason if reason is None else reason in (ignored or "")


@pytest.mark.parametrize(
    ("name", "item", "owner"),
    [
        ("aws_subnet", {"SubnetId": "s", "OwnerId": "999999999999"}, "999999999999"),
        ("aws_ec2_transit_gateway", {"TransitGatewayId": "t", "OwnerId": "999999999999"}, "999999999999"),
        ("aws_vpc_peering_connection", {"VpcPeeringConnectionId": "p", "RequesterVpcInfo": {"OwnerId": "9"}}, "9"),
        ("aws_vpc_security_group_ingress_rule", {"SecurityGroupRuleId": "r", "GroupOwnerId": "9"}, "9"),
    ],
)
def test_owner_of_what_is_shared_is_told(name: str, item: dict[str, Any], owner: str) -> None:
    assert listed(name, item).owner == owner


def makers(found: CloudObject) -> list[tuple[str, str, str, bool]]:
    """Type, key and value of what may have made an object, and whether nobody else can have."""
    return [(made.type, made.key, made.value, made.certain) for made in found.made_by]


def test_volume_that_goes_with_its_instance_was_made_with_it() -> None:
    attached = {"InstanceId": "i-1", "DeleteOnTermination": True}
    assert ("aws_instance", "id", "i-1", True) in makers(
        listed("aws_ebs_volume", {"VolumeId": "v", "Attachments": [attached]})
    )


def test_volume_that_outlives_its_instance_may_be_somebodys() -> None:
    attached = {"InstanceId": "i-1", "DeleteOnTermination": False}
    found = listed("aws_ebs_volume", {"VolumeId": "v", "Attachments": [attached]})
    assert makers(found) == [("aws_instance", "id", "i-1", False)]
    assert makers(listed("aws_ebs_volume", {"VolumeId": "v", "Attachments": []})) == []


def test_first_interface_of_an_instance_was_made_with_it() -> None:
    attachment = {"InstanceId": "i-1", "DeleteOnTermination": True, "DeviceIndex": 0}
    found = listed("aws_network_interface", {"NetworkInterfaceId": "e", "Attachment": attachment})
    assert ("aws_instance", "id", "i-1", True) in makers(found)
    second = {"InstanceId": "i-1", "DeleteOnTermination": False, "DeviceIndex": 1}
    assert makers(listed("aws_network_interface", {"NetworkInterfaceId": "e", "Attachment": second})) == []


@pytest.mark.parametrize(
    "description",
    [
        "Created by CreateImage(i-1) for ami-1",
        "Created by CreateImage(i-1) for ami-1 from vol-1",
        "Copied for DestinationAmi ami-1 from SourceAmi ami-2 for SourceSnapshot snap-2. Task created on 1.",
    ],
)
def test_snapshot_of_an_image_was_made_with_it(description: str) -> None:
    found = listed("aws_ebs_snapshot", {"SnapshotId": "s", "Description": description})
    assert makers(found) == [("aws_ami", "id", "ami-1", True)]


def test_rule_may_be_one_of_its_groups_own() -> None:
    found = listed("aws_vpc_security_group_egress_rule", {"SecurityGroupRuleId": "r", "GroupId": "g", "IsEgress": True})
    assert makers(found) == [("aws_security_group", "id", "g", False)]
    assert found.ignored_because is None


def test_gateway_counts_as_its_vpcs_only_where_that_is_ignored() -> None:
    found = listed("aws_internet_gateway", {"InternetGatewayId": "i", "Attachments": [{"VpcId": "vpc-1"}]})
    assert [(made.value, made.when_ignored) for made in found.made_by] == [("vpc-1", True)]


def test_route_has_the_id_that_the_provider_gives_it() -> None:
    found = listed("aws_route", {"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "Origin": "CreateRoute"})
    assert (found.id, found.import_id) == ("r-rtb-11080289494", "rtb-1_0.0.0.0/0")
