"""Makers of the types in `aws_compute.yaml`."""

from __future__ import annotations

from tests.contract.aws_creators.cloud import REGION, TAGS, Cloud, Creator, Limits, ec2_tags
from tests.contract.aws_creators.network import ec2_arn, new_subnet, new_vpc

Made = tuple[str, str]


def _volume(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_volume(
        AvailabilityZone=f"{REGION}a", Size=8, VolumeType="gp3", TagSpecifications=ec2_tags("volume")
    )["VolumeId"]
    return made, ec2_arn("volume", made)


def _snapshot(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_snapshot(
        VolumeId=_volume(cloud)[0], Description="one", TagSpecifications=ec2_tags("snapshot")
    )["SnapshotId"]
    return made, f"arn:aws:ec2:{REGION}::snapshot/{made}"


IMAGE = "ami-12c6146b"
"""One of those that the simulation has from the start."""


def _image(cloud: Cloud) -> Made:
    ec2 = cloud.client("ec2")
    running = ec2.run_instances(
        ImageId=IMAGE, InstanceType="t3.micro", SubnetId=new_subnet(cloud), MinCount=1, MaxCount=1
    )["Instances"][0]["InstanceId"]
    made = ec2.create_image(InstanceId=running, Name="one", TagSpecifications=ec2_tags("image"))["ImageId"]
    return made, f"arn:aws:ec2:{REGION}::image/{made}"


def _key_pair(cloud: Cloud) -> Made:
    cloud.client("ec2").create_key_pair(KeyName="one", TagSpecifications=ec2_tags("key-pair"))
    return "one", ec2_arn("key-pair", "one")


def _launch_template(cloud: Cloud, name: str = "one") -> Made:
    ec2 = cloud.client("ec2")
    made = ec2.create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"ImageId": IMAGE, "InstanceType": "t3.micro"},
        TagSpecifications=ec2_tags("launch-template"),
    )["LaunchTemplate"]["LaunchTemplateId"]
    return made, ec2_arn("launch-template", made)


def _group(cloud: Cloud, name: str = "one") -> Made:
    groups = cloud.client("autoscaling")
    groups.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchTemplate={"LaunchTemplateId": _launch_template(cloud, f"of-{name}")[0], "Version": "1"},
        MinSize=0,
        MaxSize=1,
        VPCZoneIdentifier=new_subnet(cloud),
        Tags=[{**tag, "PropagateAtLaunch": True} for tag in TAGS],
    )
    found = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return name, found[0]["AutoScalingGroupARN"]


def _policy(cloud: Cloud) -> Made:
    group, _ = _group(cloud, "with-policy")
    groups = cloud.client("autoscaling")
    groups.put_scaling_policy(
        AutoScalingGroupName=group,
        PolicyName="one",
        PolicyType="SimpleScaling",
        AdjustmentType="ChangeInCapacity",
        ScalingAdjustment=1,
    )
    return f"{group}/one", groups.describe_policies(AutoScalingGroupName=group)["ScalingPolicies"][0]["PolicyARN"]


def _launch_configuration(cloud: Cloud) -> Made:
    groups = cloud.client("autoscaling")
    groups.create_launch_configuration(LaunchConfigurationName="one", ImageId=IMAGE, InstanceType="t3.micro")
    made = groups.describe_launch_configurations(LaunchConfigurationNames=["one"])["LaunchConfigurations"][0]
    return "one", made["LaunchConfigurationARN"]


def _classic_balancer(cloud: Cloud) -> Made:
    cloud.client("elb").create_load_balancer(
        LoadBalancerName="one",
        Listeners=[{"Protocol": "HTTP", "LoadBalancerPort": 80, "InstancePort": 80}],
        Subnets=[new_subnet(cloud, new_vpc(cloud))],
        Tags=TAGS,
    )
    return "one", f"arn:aws:elasticloadbalancing:{REGION}:123456789012:loadbalancer/one"


def _spot_request(cloud: Cloud) -> Made:
    ec2 = cloud.client("ec2")
    made = ec2.request_spot_instances(
        SpotPrice="0.1",
        Type="one-time",
        LaunchSpecification={
            "ImageId": IMAGE,
            "InstanceType": "t3.micro",
            "SubnetId": new_subnet(cloud),
        },
        TagSpecifications=ec2_tags("spot-instances-request"),
    )["SpotInstanceRequests"][0]["SpotInstanceRequestId"]
    return made, ""


def _fleet(cloud: Cloud) -> Made:
    made = cloud.client("ec2").create_fleet(
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateId": _launch_template(cloud, "of-fleet")[0],
                    "Version": "1",
                }
            }
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
        Type="maintain",
        TagSpecifications=ec2_tags("fleet"),
    )["FleetId"]
    return made, ec2_arn("fleet", made)


def _spot_fleet(cloud: Cloud) -> Made:
    made = cloud.client("ec2").request_spot_fleet(
        SpotFleetRequestConfig={
            "IamFleetRole": "arn:aws:iam::123456789012:role/fleet",
            "TargetCapacity": 1,
            "AllocationStrategy": "lowestPrice",
            "SpotPrice": "0.12",
            "LaunchSpecifications": [
                {"ImageId": IMAGE, "InstanceType": "t3.micro", "SubnetId": new_subnet(cloud), "SpotPrice": "0.13"}
            ],
            "TagSpecifications": ec2_tags("spot-fleet-request"),
        }
    )["SpotFleetRequestId"]
    return made, ""


CREATORS: dict[str, Creator] = {
    "aws_ec2_fleet": _fleet,
    "aws_spot_fleet_request": _spot_fleet,
    "aws_ebs_volume": _volume,
    "aws_ebs_snapshot": _snapshot,
    "aws_ami": _image,
    "aws_key_pair": _key_pair,
    "aws_launch_template": _launch_template,
    "aws_autoscaling_group": _group,
    "aws_autoscaling_policy": _policy,
    "aws_launch_configuration": _launch_configuration,
    "aws_elb": _classic_balancer,
    "aws_spot_instance_request": _spot_request,
}

LIMITS: dict[str, Limits] = {
    "aws_dlm_lifecycle_policy": Limits(list="DLM is not simulated"),
    "aws_ec2_fleet": Limits(created="the simulation does not tell it"),
    "aws_spot_fleet_request": Limits(created="the simulation does not tell it"),
    "aws_ebs_snapshot": Limits(empty="the snapshots of the simulation's own images are listed as well"),
    "aws_ebs_volume": Limits(attributes={"snapshot_id": "it was made of no snapshot"}),
    "aws_placement_group": Limits(list="DescribePlacementGroups is not simulated"),
}
