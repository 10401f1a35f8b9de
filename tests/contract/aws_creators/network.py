"""Makers of the types in `aws_network.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.aws_creators.cloud import REGION, TAGS, Cloud, Creator, Limits, ec2_tags

Made = tuple[str, str]


def ec2_arn(kind: str, made: str) -> str:
    """The ARN of an object of EC2."""
    return f"arn:aws:ec2:{REGION}:123456789012:{kind}/{made}"


def new_vpc(cloud: Cloud, cidr: str = "10.7.0.0/16") -> str:
    """The id of a new VPC."""
    return str(cloud.client("ec2").create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"])


def new_subnet(cloud: Cloud, vpc: str = "", number: int = 1) -> str:
    """The id of a new subnet, of a new VPC unless one is given."""
    ec2, zone = cloud.client("ec2"), f"{REGION}{'abc'[number - 1]}"
    cidr = f"10.7.{number}.0/24"
    made = ec2.create_subnet(VpcId=vpc or new_vpc(cloud), CidrBlock=cidr, AvailabilityZone=zone)
    return str(made["Subnet"]["SubnetId"])


def new_group(cloud: Cloud) -> str:
    """The id of a new security group in a new VPC."""
    made = cloud.client("ec2").create_security_group(GroupName="of-rules", Description="x", VpcId=new_vpc(cloud))
    return str(made["GroupId"])


def _rule(direction: str) -> Creator:
    def make(cloud: Cloud) -> Made:
        allow = getattr(cloud.client("ec2"), f"authorize_security_group_{direction}")
        ranges = [{"CidrIp": "10.1.0.0/16", "Description": "one"}]
        made = allow(
            GroupId=new_group(cloud),
            IpPermissions=[{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": ranges}],
            TagSpecifications=ec2_tags("security-group-rule"),
        )["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return made, ec2_arn("security-group-rule", made)

    return make


def _simple(kind: str, make: Callable[[Any, dict[str, Any]], str], with_arn: bool = True) -> Creator:
    """A maker for what one call makes: it is given the client and the argument with the tags."""

    def create(cloud: Cloud) -> Made:
        made = make(cloud.client("ec2"), {"TagSpecifications": ec2_tags(kind)})
        return made, ec2_arn(kind, made) if with_arn else ""

    return create


def _internet_gateway(cloud: Cloud) -> Made:
    ec2 = cloud.client("ec2")
    made = ec2.create_internet_gateway(TagSpecifications=ec2_tags("internet-gateway"))["InternetGateway"]
    return made["InternetGatewayId"], ec2_arn("internet-gateway", made["InternetGatewayId"])


def _egress_only_gateway(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_egress_only_internet_gateway(
        VpcId=new_vpc(cloud), TagSpecifications=ec2_tags("egress-only-internet-gateway")
    )
    return made["EgressOnlyInternetGateway"]["EgressOnlyInternetGatewayId"], ""


def _nat_gateway(cloud: Cloud) -> Made:
    ec2 = cloud.client("ec2")
    made = ec2.create_nat_gateway(
        SubnetId=new_subnet(cloud),
        AllocationId=ec2.allocate_address(Domain="vpc")["AllocationId"],
        TagSpecifications=ec2_tags("natgateway"),
    )
    return made["NatGateway"]["NatGatewayId"], ""


def _route_table(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_route_table(VpcId=new_vpc(cloud), TagSpecifications=ec2_tags("route-table"))
    return made["RouteTable"]["RouteTableId"], ec2_arn("route-table", made["RouteTable"]["RouteTableId"])


def _association(cloud: Cloud) -> Made:
    ec2, vpc = cloud.client("ec2"), new_vpc(cloud)
    table, subnet = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"], new_subnet(cloud, vpc)
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    return f"{subnet}/{table}", ""


def _route(cloud: Cloud) -> Made:
    ec2, vpc = cloud.client("ec2"), new_vpc(cloud)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    return f"{table}_0.0.0.0/0", ""


def _network_acl(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_network_acl(VpcId=new_vpc(cloud), TagSpecifications=ec2_tags("network-acl"))
    return made["NetworkAcl"]["NetworkAclId"], ec2_arn("network-acl", made["NetworkAcl"]["NetworkAclId"])


def _vpc_endpoint(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_vpc_endpoint(
        VpcId=new_vpc(cloud),
        ServiceName=f"com.amazonaws.{REGION}.s3",
        VpcEndpointType="Gateway",
        TagSpecifications=ec2_tags("vpc-endpoint"),
    )
    return made["VpcEndpoint"]["VpcEndpointId"], ec2_arn("vpc-endpoint", made["VpcEndpoint"]["VpcEndpointId"])


def _peering(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_vpc_peering_connection(
        VpcId=new_vpc(cloud),
        PeerVpcId=new_vpc(cloud, "10.8.0.0/16"),
        TagSpecifications=ec2_tags("vpc-peering-connection"),
    )
    return made["VpcPeeringConnection"]["VpcPeeringConnectionId"], ""


def _interface(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_network_interface(
        SubnetId=new_subnet(cloud), Description="one", TagSpecifications=ec2_tags("network-interface")
    )["NetworkInterface"]["NetworkInterfaceId"]
    return made, ec2_arn("network-interface", made)


def _vpn_connection(cloud: Cloud) -> Made:
    ec2 = cloud.client("ec2")
    made = ec2.create_vpn_connection(
        Type="ipsec.1",
        CustomerGatewayId=ec2.create_customer_gateway(Type="ipsec.1", PublicIp="192.0.2.9", BgpAsn=65001)[
            "CustomerGateway"
        ]["CustomerGatewayId"],
        VpnGatewayId=ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"],
        TagSpecifications=ec2_tags("vpn-connection"),
    )["VpnConnection"]["VpnConnectionId"]
    return made, ec2_arn("vpn-connection", made)


def _flow_log(cloud: Cloud) -> Made:
    cloud.client("s3").create_bucket(Bucket="flow-logs", CreateBucketConfiguration={"LocationConstraint": REGION})
    made = cloud.client("ec2").create_flow_logs(
        ResourceType="VPC",
        ResourceIds=[new_vpc(cloud)],
        TrafficType="ALL",
        LogDestinationType="s3",
        LogDestination="arn:aws:s3:::flow-logs",
        TagSpecifications=ec2_tags("vpc-flow-log"),
    )["FlowLogIds"][0]
    return made, ec2_arn("vpc-flow-log", made)


def _prefix_list(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_managed_prefix_list(
        PrefixListName="one", AddressFamily="IPv4", MaxEntries=5, TagSpecifications=ec2_tags("prefix-list")
    )["PrefixList"]
    return made["PrefixListId"], made["PrefixListArn"]


def _transit_gateway(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_transit_gateway(Description="one", TagSpecifications=ec2_tags("transit-gateway"))[
        "TransitGateway"
    ]
    return made["TransitGatewayId"], made["TransitGatewayArn"]


def _transit_attachment(cloud: Cloud) -> Made:
    ec2, vpc = cloud.client("ec2"), new_vpc(cloud)
    answer = ec2.create_transit_gateway_vpc_attachment(
        TransitGatewayId=ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"],
        VpcId=vpc,
        SubnetIds=[new_subnet(cloud, vpc)],
        TagSpecifications=ec2_tags("transit-gateway-attachment"),
    )
    made = answer["TransitGatewayVpcAttachment"]["TransitGatewayAttachmentId"]
    return made, ec2_arn("transit-gateway-attachment", made)


def _balancer(cloud: Cloud, name: str = "one") -> Made:
    vpc = new_vpc(cloud)
    made = cloud.client("elbv2").create_load_balancer(
        Name=name, Subnets=[new_subnet(cloud, vpc, 1), new_subnet(cloud, vpc, 2)], Tags=TAGS
    )["LoadBalancers"][0]["LoadBalancerArn"]
    return made, made


def _target_group(cloud: Cloud) -> Made:
    made = cloud.client("elbv2").create_target_group(
        Name="one", Protocol="HTTP", Port=80, VpcId=new_vpc(cloud), TargetType="ip", Tags=TAGS
    )["TargetGroups"][0]["TargetGroupArn"]
    return made, made


ANSWER = [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}]


def _listener(cloud: Cloud, balancer: str = "of-listener") -> Made:
    made = cloud.client("elbv2").create_listener(
        LoadBalancerArn=_balancer(cloud, balancer)[0], Protocol="HTTP", Port=80, DefaultActions=ANSWER, Tags=TAGS
    )["Listeners"][0]["ListenerArn"]
    return made, made


def _listener_rule(cloud: Cloud) -> Made:
    made = cloud.client("elbv2").create_rule(
        ListenerArn=_listener(cloud, "of-rule")[0],
        Priority=7,
        Conditions=[{"Field": "path-pattern", "Values": ["/one"]}],
        Actions=ANSWER,
        Tags=TAGS,
    )["Rules"][0]["RuleArn"]
    return made, made


CREATORS: dict[str, Creator] = {
    "aws_vpc_security_group_ingress_rule": _rule("ingress"),
    "aws_vpc_security_group_egress_rule": _rule("egress"),
    "aws_internet_gateway": _internet_gateway,
    "aws_egress_only_internet_gateway": _egress_only_gateway,
    "aws_nat_gateway": _nat_gateway,
    "aws_eip": _simple("elastic-ip", lambda ec2, tags: ec2.allocate_address(Domain="vpc", **tags)["AllocationId"]),
    "aws_route_table": _route_table,
    "aws_route_table_association": _association,
    "aws_route": _route,
    "aws_network_acl": _network_acl,
    "aws_vpc_endpoint": _vpc_endpoint,
    "aws_vpc_peering_connection": _peering,
    "aws_network_interface": _interface,
    "aws_vpc_dhcp_options": _simple(
        "dhcp-options",
        lambda ec2, tags: ec2.create_dhcp_options(
            DhcpConfigurations=[{"Key": "domain-name", "Values": ["one.internal"]}], **tags
        )["DhcpOptions"]["DhcpOptionsId"],
    ),
    "aws_customer_gateway": _simple(
        "customer-gateway",
        lambda ec2, tags: ec2.create_customer_gateway(Type="ipsec.1", PublicIp="192.0.2.1", BgpAsn=65000, **tags)[
            "CustomerGateway"
        ]["CustomerGatewayId"],
    ),
    "aws_vpn_gateway": _simple(
        "vpn-gateway",
        lambda ec2, tags: ec2.create_vpn_gateway(Type="ipsec.1", **tags)["VpnGateway"]["VpnGatewayId"],
    ),
    "aws_vpn_connection": _vpn_connection,
    "aws_flow_log": _flow_log,
    "aws_ec2_managed_prefix_list": _prefix_list,
    "aws_ec2_transit_gateway": _transit_gateway,
    "aws_ec2_transit_gateway_vpc_attachment": _transit_attachment,
    "aws_lb": _balancer,
    "aws_lb_target_group": _target_group,
    "aws_lb_listener": _listener,
    "aws_lb_listener_rule": _listener_rule,
}

_RULE = Limits(
    owner="rules are listed without GroupOwnerId",
    attributes=dict.fromkeys(
        ("cidr_ipv6", "prefix_list_id", "referenced_security_group_id"), "a rule has one source or destination"
    ),
)

LIMITS: dict[str, Limits] = {
    "aws_vpc_security_group_ingress_rule": _RULE,
    "aws_vpc_security_group_egress_rule": _RULE,
    "aws_internet_gateway": Limits(attributes={"vpc_id": "it is not attached, and could not be deleted else"}),
    "aws_nat_gateway": Limits(attributes={"connectivity_type": "it is listed without"}),
    "aws_route_table_association": Limits(attributes={"gateway_id": "it is a subnet that is associated"}),
    "aws_route": Limits(
        attributes=dict.fromkeys(
            ("destination_ipv6_cidr_block", "destination_prefix_list_id"), "a route has one destination"
        )
    ),
    "aws_vpc_dhcp_options": Limits(
        name="tags are not kept at its making",
        owner="DescribeDhcpOptions is answered without OwnerId",
        tags="tags are not kept at its making",
        attributes={"tags.Name": "the same"},
    ),
    "aws_vpn_connection": Limits(attributes={"transit_gateway_id": "it ends at a VPN gateway"}),
    "aws_ec2_transit_gateway_vpc_attachment": Limits(
        name="tags are not kept at its making",
        tags="tags are not kept at its making",
        attributes={"tags.Name": "the same"},
    ),
}
