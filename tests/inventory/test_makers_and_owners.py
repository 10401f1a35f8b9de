"""What comes with something else in EC2 and beside it: whose it is, who made it, and why it is nobody's."""

from __future__ import annotations

from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.items import to_object, with_tags
from tfguard.model.inventory import ANY_VALUE, CloudObject, Scope

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


STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/s/1"
ENVIRONMENT = "aws_elastic_beanstalk_environment"
CLUSTER, FLEET, GROUP = "aws_eks_cluster", "aws_ec2_fleet", "aws_codedeploy_deployment_group"


@pytest.mark.parametrize(
    ("tags", "type_", "key", "value"),
    [
        ({"aws:cloudformation:stack-name": "s", "aws:cloudformation:stack-id": STACK},
         "aws_cloudformation_stack", "id", STACK),
        ({"aws:ec2:fleet-id": "fleet-1"}, FLEET, "id", "fleet-1"),
        ({"aws:ec2spot:fleet-request-id": "sfr-1"}, "aws_spot_fleet_request", "id", "sfr-1"),
        ({"aws:eks:cluster-name": "prod"}, CLUSTER, "name", "prod"),
        ({"eks:nodegroup-name": "n", "eks:cluster-name": "prod"}, CLUSTER, "name", "prod"),
        ({"aws:elasticmapreduce:job-flow-id": "j-1"}, "aws_emr_cluster", "id", "j-1"),
        ({"elasticbeanstalk:environment-id": "e-1"}, ENVIRONMENT, "id", "e-1"),
        ({"aws:ecs:clusterName": "prod", "aws:ecs:serviceName": "x"}, "aws_ecs_cluster", "name", "prod"),
        ({"karpenter.sh/nodepool": "p", "kubernetes.io/cluster/prod": "owned"}, CLUSTER, "name", "prod"),
        ({"karpenter.k8s.aws/cluster": "prod"}, CLUSTER, "name", "prod"),
        ({"elbv2.k8s.aws/cluster": "prod", "ingress.k8s.aws/stack": "x"}, CLUSTER, "name", "prod"),
        ({"kubernetes.io/service-name": "n/s", "kubernetes.io/cluster/prod": "owned"}, CLUSTER, "name", "prod"),
        ({"kubernetes.io/created-for/pvc/name": "c", "KubernetesCluster": "prod"}, CLUSTER, "name", "prod"),
        ({"ebs.csi.aws.com/cluster": "true", "kubernetes.io/cluster/prod": "owned"}, CLUSTER, "name", "prod"),
        ({"ebs.csi.aws.com/cluster": "true"}, CLUSTER, "name", ANY_VALUE),
        ({"node.k8s.amazonaws.com/instance_id": "i-1", "cluster.k8s.amazonaws.com/name": "prod"}, CLUSTER, "name",
         "prod"),
        ({"aws:dlm:lifecycle-policy-id": "policy-1"}, "aws_dlm_lifecycle_policy", "id", "policy-1"),
    ],
)  # fmt: skip
def test_a_tag_tells_the_maker_and_not_that_there_is_one(
    tags: dict[str, str], type_: str, key: str, value: str
) -> None:
    item = {"VolumeId": "v", "Tags": [{"Key": name, "Value": text} for name, text in tags.items()]}
    found = listed("aws_ebs_volume", item)
    assert (type_, key, value, True) in makers(found)
    assert found.ignored_because is None
    assert {kind for kind, *_ in makers(found)} == {type_}


@pytest.mark.parametrize("tag", ["aws:autoscaling:groupName", "aws:backup:source-resource"])
def test_what_ends_with_its_maker_needs_nobody_to_look_for_that(tag: str) -> None:
    found = listed("aws_ebs_volume", {"VolumeId": "v", "Tags": [{"Key": tag, "Value": "x"}]})
    assert (bool(found.ignored_because), found.made_by) == (True, ())


def test_every_tag_rule_says_why_nobody_looks_or_whom_to_look_for() -> None:
    rules = load_catalog().types["aws_vpc"].ignore_tags
    alone = {start for start, rule in rules.items() if rule.type is None}
    assert alone == {"aws:autoscaling:", "aws:backup:", "aws:secretsmanager:owningService"}
    assert [start for start, rule in rules.items() if rule.type and not rule.named_by] == []


def test_nothing_is_its_own_maker() -> None:
    """An environment carries the tag that it puts on what it makes."""
    entry = load_catalog().types[ENVIRONMENT]
    found = listed(ENVIRONMENT, {"EnvironmentId": "e-1", "EnvironmentName": "n", "ApplicationName": "a"})
    tagged = with_tags(entry, found, {"elasticbeanstalk:environment-id": "e-1"})
    assert (tagged.made_by, tagged.ignored_because) == ((), None)


@pytest.mark.parametrize(
    ("name", "item", "maker"),
    [
        ("aws_security_group", {"GroupId": "g", "GroupName": "eks-cluster-sg-my-prod-123"}, (CLUSTER, "my-prod")),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "Description": "aws-K8S-i-1"}, ("aws_instance", "i-1")),
        ("aws_network_interface", {"NetworkInterfaceId": "e", "Description": "Amazon EKS prod"}, (CLUSTER, "prod")),
        ("aws_sqs_queue", "https://sqs/1/awseb-e-abc-stack-AWSEBWorkerQueue-1", (ENVIRONMENT, "e-abc")),
        ("aws_sns_topic", {"TopicArn": "arn:aws:sns:eu-west-1:1:ElasticBeanstalkNotifications-Environment-my-app"},
         (ENVIRONMENT, "my-app")),
        ("aws_cloudwatch_metric_alarm", {"AlarmName": "awseb-e-abc-stack-AWSEBCloudwatchAlarmLow-1"},
         (ENVIRONMENT, "e-abc")),
        ("aws_launch_configuration", {"LaunchConfigurationName": "awseb-e-abc-stack-x"}, (ENVIRONMENT, "e-abc")),
        ("aws_cloudformation_stack", {"StackId": "s", "StackName": "awseb-e-abc-stack"}, (ENVIRONMENT, "e-abc")),
        ("aws_cloudformation_stack", {"StackId": "s", "StackName": "n", "ParentId": STACK},
         ("aws_cloudformation_stack", STACK)),
        ("aws_autoscaling_group", {"AutoScalingGroupName": "CodeDeploy_my_group_d-ABC"}, (GROUP, "my_group")),
        ("aws_launch_configuration", {"LaunchConfigurationName": "CodeDeploy_my_group_d-ABC"}, (GROUP, "my_group")),
        ("aws_autoscaling_policy",
         {"PolicyARN": "p", "PolicyName": "n", "AutoScalingGroupName": "CodeDeploy_my_group_d-ABC"},
         (GROUP, "my_group")),
        ("aws_lambda_function", {"FunctionName": "cwsyn-probe-0a-1b"}, ("aws_synthetics_canary", "probe")),
        ("aws_ecr_repository", {"repositoryName": "cdk-x-container-assets-1-eu-west-1"},
         ("aws_cloudformation_stack", "CDKToolkit")),
        ("aws_cloudwatch_log_group", {"logGroupName": "dms-tasks-one"}, ("aws_dms_replication_instance", "one")),
    ],
)  # fmt: skip
def test_a_name_tells_the_maker_and_not_that_there_is_one(name: str, item: Any, maker: tuple[str, str]) -> None:
    found = listed(name, item)
    assert maker in [(made.type, made.value) for made in found.made_by]
    assert found.ignored_because is None


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("aws_sqs_queue", "https://sqs/1/jobs"),
        ("aws_sns_topic", {"TopicArn": "arn:aws:sns:eu-west-1:1:jobs"}),
        ("aws_security_group", {"GroupId": "g", "GroupName": "web-tier-1"}),
        ("aws_cloudwatch_metric_alarm", {"AlarmName": "high-load"}),
        ("aws_autoscaling_group", {"AutoScalingGroupName": "web_tier"}),
        ("aws_lambda_function", {"FunctionName": "send-mail"}),
        ("aws_ecr_repository", {"repositoryName": "app"}),
        ("aws_cloudformation_stack", {"StackId": "s", "StackName": "n"}),
    ],
)
def test_a_plain_name_tells_of_no_maker(name: str, item: Any) -> None:
    assert listed(name, item).made_by == ()


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


def test_gateway_may_have_come_with_its_vpc_only_where_that_is_ignored_and_nobody_tagged_it() -> None:
    item = {"InternetGatewayId": "i", "Attachments": [{"VpcId": "vpc-1"}], "Tags": []}
    found = listed("aws_internet_gateway", item)
    assert [(made.value, made.certain, made.when_ignored) for made in found.made_by] == [("vpc-1", False, True)]
    assert makers(listed("aws_internet_gateway", item | {"Tags": [{"Key": "Name", "Value": "ours"}]})) == []


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("aws_route_table", {"RouteTableId": "r", "VpcId": "vpc-1", "Associations": []}),
        ("aws_route_table_association", {"RouteTableAssociationId": "a", "RouteTableId": "r", "SubnetId": "s"}),
        ("aws_egress_only_internet_gateway",
         {"EgressOnlyInternetGatewayId": "e", "Attachments": [{"VpcId": "vpc-1"}]}),
    ],
)  # fmt: skip
def test_what_no_vpc_comes_with_is_somebodys_in_a_default_one_too(name: str, item: dict[str, Any]) -> None:
    found = listed(name, item)
    assert (found.made_by, found.ignored_because) == ((), None)


def test_what_counts_only_beside_an_ignored_maker_can_have_been_made_by_hand() -> None:
    rules = [(kind.type, rule) for kind in load_catalog() for rule in kind.made_by if rule.when_ignored]
    assert [kind for kind, rule in rules if rule.certain] == []
    assert rules


def test_route_has_the_id_that_the_provider_gives_it() -> None:
    found = listed("aws_route", {"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "Origin": "CreateRoute"})
    assert (found.id, found.import_id) == ("r-rtb-11080289494", "rtb-1_0.0.0.0/0")
