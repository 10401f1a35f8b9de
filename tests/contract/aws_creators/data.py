"""Makers of the types in `aws_data.yaml`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError
from moto.backends import get_backend

from tests.contract.aws_creators.cloud import REGION, TAGS, TRUST, Cloud, Creator, Limits

_LOGIN = {"MasterUsername": "someone", "MasterUserPassword": "something-long"}


def _arn(rest: str) -> str:
    service, _, resource = rest.partition(" ")
    return f"arn:aws:{service}:{REGION}:123456789012:{resource}"


def _subnets(cloud: Cloud) -> list[str]:
    """Two subnets of different zones."""
    ec2 = cloud.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.8.{n}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]
        for n, zone in enumerate("ab")
    ]
    return [str(subnet["SubnetId"]) for subnet in made]


def _role(cloud: Cloud) -> str:
    iam = cloud.client("iam")
    with suppress(ClientError):  # made for another type before
        iam.create_role(RoleName="data-holder", AssumeRolePolicyDocument=TRUST)
    return "arn:aws:iam::123456789012:role/data-holder"


def _cluster(cloud: Cloud, name: str, engine: str) -> Any:
    # The simulation makes no DocumentDB, but answers for one like for any other.
    made_as = "aurora-postgresql" if engine == "docdb" else engine
    login = {} if engine == "neptune" else _LOGIN
    rds = cloud.client("rds")
    made = rds.create_db_cluster(DBClusterIdentifier=name, Engine=made_as, Tags=TAGS, **login)["DBCluster"]
    _rds().clusters[name].engine = engine
    return made


def _rds() -> Any:
    """The simulation's own objects: its server runs in this process."""
    return get_backend("rds")["123456789012"][REGION]


def _member(cloud: Cloud, name: str, engine: str) -> tuple[str, str]:
    _cluster(cloud, f"{name}-holder", "aurora-postgresql")
    made = cloud.client("rds").create_db_instance(
        DBInstanceIdentifier=name,
        DBInstanceClass="db.r5.large",
        Engine="aurora-postgresql",
        DBClusterIdentifier=f"{name}-holder",
        Tags=TAGS,
    )
    _rds().databases[name].engine = engine
    return name, made["DBInstance"]["DBInstanceArn"]


def _rds_cluster(cloud: Cloud) -> tuple[str, str]:
    return "one-aurora", _cluster(cloud, "one-aurora", "aurora-postgresql")["DBClusterArn"]


def _docdb_cluster(cloud: Cloud) -> tuple[str, str]:
    return "one-docdb", _cluster(cloud, "one-docdb", "docdb")["DBClusterArn"]


def _neptune_cluster(cloud: Cloud) -> tuple[str, str]:
    return "one-neptune", _cluster(cloud, "one-neptune", "neptune")["DBClusterArn"]


def _rds_cluster_instance(cloud: Cloud) -> tuple[str, str]:
    return _member(cloud, "one-aurora-member", "aurora-postgresql")


def _docdb_cluster_instance(cloud: Cloud) -> tuple[str, str]:
    return _member(cloud, "one-docdb-member", "docdb")


def _neptune_cluster_instance(cloud: Cloud) -> tuple[str, str]:
    return _member(cloud, "one-neptune-member", "neptune")


def _global_cluster(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_global_cluster(
        GlobalClusterIdentifier="one", Engine="aurora-postgresql", Tags=TAGS
    )
    return "one", made["GlobalCluster"]["GlobalClusterArn"]


def _db_subnet_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_db_subnet_group(
        DBSubnetGroupName="one", DBSubnetGroupDescription="x", SubnetIds=_subnets(cloud), Tags=TAGS
    )
    return "one", made["DBSubnetGroup"]["DBSubnetGroupArn"]


def _db_parameter_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_db_parameter_group(
        DBParameterGroupName="one", DBParameterGroupFamily="postgres16", Description="x", Tags=TAGS
    )
    return "one", made["DBParameterGroup"]["DBParameterGroupArn"]


def _cluster_parameter_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_db_cluster_parameter_group(
        DBClusterParameterGroupName="one", DBParameterGroupFamily="aurora-postgresql16", Description="x", Tags=TAGS
    )
    return "one", made["DBClusterParameterGroup"]["DBClusterParameterGroupArn"]


def _db_snapshot(cloud: Cloud) -> tuple[str, str]:
    rds = cloud.client("rds")
    rds.create_db_instance(
        DBInstanceIdentifier="snapped", DBInstanceClass="db.t3.micro", Engine="postgres", AllocatedStorage=20, **_LOGIN
    )
    made = rds.create_db_snapshot(DBInstanceIdentifier="snapped", DBSnapshotIdentifier="one", Tags=TAGS)
    return "one", made["DBSnapshot"]["DBSnapshotArn"]


def _db_cluster_snapshot(cloud: Cloud) -> tuple[str, str]:
    _cluster(cloud, "snapped-cluster", "aurora-postgresql")
    made = cloud.client("rds").create_db_cluster_snapshot(
        DBClusterIdentifier="snapped-cluster", DBClusterSnapshotIdentifier="one", Tags=TAGS
    )
    return "one", made["DBClusterSnapshot"]["DBClusterSnapshotArn"]


def _db_proxy(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_db_proxy(
        DBProxyName="one",
        EngineFamily="POSTGRESQL",
        Auth=[{"IAMAuth": "DISABLED"}],
        RoleArn=_role(cloud),
        VpcSubnetIds=_subnets(cloud),
        Tags=TAGS,
    )
    return "one", made["DBProxy"]["DBProxyArn"]


def _cache_cluster(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("elasticache").create_cache_cluster(
        CacheClusterId="one", Engine="memcached", CacheNodeType="cache.t3.micro", NumCacheNodes=1, Tags=TAGS
    )
    return "one", made["CacheCluster"]["ARN"]


def _replication_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("elasticache").create_replication_group(
        ReplicationGroupId="one",
        ReplicationGroupDescription="x",
        Engine="redis",
        CacheNodeType="cache.t3.micro",
        Tags=TAGS,
    )
    return "one", made["ReplicationGroup"]["ARN"]


def _cache_subnet_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("elasticache").create_cache_subnet_group(
        CacheSubnetGroupName="one", CacheSubnetGroupDescription="x", SubnetIds=_subnets(cloud), Tags=TAGS
    )
    return "one", made["CacheSubnetGroup"]["ARN"]


def _memorydb_cluster(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("memorydb").create_cluster(
        ClusterName="one", NodeType="db.t4g.small", ACLName="open-access", Tags=TAGS
    )
    return "one", made["Cluster"]["ARN"]


def _memorydb_subnet_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("memorydb").create_subnet_group(SubnetGroupName="one", SubnetIds=_subnets(cloud), Tags=TAGS)
    return "one", made["SubnetGroup"]["ARN"]


def _domain(cloud: Cloud) -> tuple[str, str]:
    return "one", cloud.client("opensearch").create_domain(DomainName="one", TagList=TAGS)["DomainStatus"]["ARN"]


def _redshift_cluster(cloud: Cloud) -> tuple[str, str]:
    cloud.client("redshift").create_cluster(ClusterIdentifier="one", NodeType="ra3.large", Tags=TAGS, **_LOGIN)
    return "one", _arn("redshift cluster:one")


def _redshift_subnet_group(cloud: Cloud) -> tuple[str, str]:
    cloud.client("redshift").create_cluster_subnet_group(
        ClusterSubnetGroupName="one", Description="x", SubnetIds=_subnets(cloud), Tags=TAGS
    )
    return "one", _arn("redshift subnetgroup:one")


def _redshift_parameter_group(cloud: Cloud) -> tuple[str, str]:
    cloud.client("redshift").create_cluster_parameter_group(
        ParameterGroupName="one", ParameterGroupFamily="redshift-1.0", Description="x", Tags=TAGS
    )
    return "one", _arn("redshift parametergroup:one")


def _file_system(cloud: Cloud, token: str = "one") -> tuple[str, str]:
    made = cloud.client("efs").create_file_system(CreationToken=token, Tags=[*TAGS, {"Key": "Name", "Value": "one"}])
    return made["FileSystemId"], made["FileSystemArn"]


def _access_point(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("efs").create_access_point(
        ClientToken="one",
        FileSystemId=_file_system(cloud, "of-an-access-point")[0],
        Tags=[*TAGS, {"Key": "Name", "Value": "one"}],
    )
    return made["AccessPointId"], made["AccessPointArn"]


def _mount_target(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("efs").create_mount_target(
        FileSystemId=_file_system(cloud, "of-a-mount-target")[0], SubnetId=_subnets(cloud)[0]
    )
    return made["MountTargetId"], ""


def _vault(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("backup").create_backup_vault(BackupVaultName="one", BackupVaultTags={"team": "blue"})
    return "one", made["BackupVaultArn"]


def _backup_plan(cloud: Cloud) -> tuple[str, str]:
    rule = {"RuleName": "x", "TargetBackupVaultName": "Default"}
    made = cloud.client("backup").create_backup_plan(
        BackupPlan={"BackupPlanName": "one", "Rules": [rule]}, BackupPlanTags={"team": "blue"}
    )
    return made["BackupPlanId"], made["BackupPlanArn"]


def _glue_database(cloud: Cloud) -> tuple[str, str]:
    cloud.client("glue").create_database(DatabaseInput={"Name": "one"}, Tags={"team": "blue"})
    return "123456789012:one", _arn("glue database/one")


def _glue_job(cloud: Cloud) -> tuple[str, str]:
    cloud.client("glue").create_job(
        Name="one", Role=_role(cloud), Command={"Name": "glueetl", "ScriptLocation": "s3://x/y"}, Tags={"team": "blue"}
    )
    return "one", _arn("glue job/one")


def _glue_crawler(cloud: Cloud) -> tuple[str, str]:
    cloud.client("glue").create_crawler(
        Name="one", Role=_role(cloud), Targets={"S3Targets": [{"Path": "s3://x/y"}]}, Tags={"team": "blue"}
    )
    return "one", _arn("glue crawler/one")


def _glue_trigger(cloud: Cloud) -> tuple[str, str]:
    cloud.client("glue").create_trigger(
        Name="one", Type="ON_DEMAND", Actions=[{"JobName": "anything"}], Tags={"team": "blue"}
    )
    return "one", _arn("glue trigger/one")


def _glue_registry(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("glue").create_registry(RegistryName="one", Tags={"team": "blue"})
    return made["RegistryArn"], made["RegistryArn"]


def _workgroup(cloud: Cloud) -> tuple[str, str]:
    cloud.client("athena").create_work_group(Name="one", Tags=TAGS)
    return "one", _arn("athena workgroup/one")


def _stream(cloud: Cloud) -> tuple[str, str]:
    kinesis = cloud.client("kinesis")
    kinesis.create_stream(StreamName="one", ShardCount=1)
    kinesis.add_tags_to_stream(StreamName="one", Tags={"team": "blue"})
    return "one", _arn("kinesis stream/one")


def _stream_consumer(cloud: Cloud) -> tuple[str, str]:
    kinesis = cloud.client("kinesis")
    kinesis.create_stream(StreamName="consumed", ShardCount=1)
    made = kinesis.register_stream_consumer(StreamARN=_arn("kinesis stream/consumed"), ConsumerName="one")
    return made["Consumer"]["ConsumerARN"], made["Consumer"]["ConsumerARN"]


def _delivery_stream(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("firehose").create_delivery_stream(
        DeliveryStreamName="one",
        ExtendedS3DestinationConfiguration={"RoleARN": _role(cloud), "BucketARN": "arn:aws:s3:::anything"},
        Tags=TAGS,
    )["DeliveryStreamARN"]
    return arn, arn


def _msk_cluster(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("kafka").create_cluster_v2(
        ClusterName="one",
        Tags={"team": "blue"},
        Provisioned={
            "BrokerNodeGroupInfo": {"ClientSubnets": _subnets(cloud), "InstanceType": "kafka.t3.small"},
            "KafkaVersion": "3.6.0",
            "NumberOfBrokerNodes": 2,
        },
    )["ClusterArn"]
    return arn, arn


def _replication_instance(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("dms").create_replication_instance(
        ReplicationInstanceIdentifier="one", ReplicationInstanceClass="dms.t3.micro", Tags=TAGS
    )
    return "one", made["ReplicationInstance"]["ReplicationInstanceArn"]


def _dms_endpoint(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("dms").create_endpoint(
        EndpointIdentifier="one", EndpointType="source", EngineName="postgres", Tags=TAGS
    )
    return "one", made["Endpoint"]["EndpointArn"]


def _dms_subnet_group(cloud: Cloud) -> tuple[str, str]:
    cloud.client("dms").create_replication_subnet_group(
        ReplicationSubnetGroupIdentifier="one",
        ReplicationSubnetGroupDescription="x",
        SubnetIds=_subnets(cloud),
        Tags=TAGS,
    )
    return "one", _arn("dms subgrp:one")


def _dax_cluster(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("dax").create_cluster(
        ClusterName="one", NodeType="dax.t3.small", ReplicationFactor=1, IamRoleArn=_role(cloud), Tags=TAGS
    )
    return "one", made["Cluster"]["ClusterArn"]


def _emr_cluster(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("emr").run_job_flow(
        Name="one",
        ReleaseLabel="emr-7.1.0",
        Instances={
            "MasterInstanceType": "m5.xlarge",
            "InstanceCount": 1,
            "KeepJobFlowAliveWhenNoSteps": True,
            "Ec2SubnetId": _subnets(cloud)[0],
        },
        JobFlowRole="x",
        ServiceRole=_role(cloud),
        Tags=TAGS,
    )
    return made["JobFlowId"], made["ClusterArn"]


def _broker(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("mq").create_broker(
        BrokerName="one",
        EngineType="RABBITMQ",
        EngineVersion="3.13",
        HostInstanceType="mq.m5.large",
        DeploymentMode="SINGLE_INSTANCE",
        PubliclyAccessible=False,
        AutoMinorVersionUpgrade=True,
        Users=[{"Username": "someone", "Password": "something-long"}],
        Tags={"team": "blue"},
    )
    return made["BrokerId"], made["BrokerArn"]


def _lustre(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=_subnets(cloud)[:1],
        Tags=[*TAGS, {"Key": "Name", "Value": "one"}],
    )["FileSystem"]
    return made["FileSystemId"], made["ResourceARN"]


CREATORS: dict[str, Creator] = {
    "aws_rds_cluster": _rds_cluster,
    "aws_docdb_cluster": _docdb_cluster,
    "aws_neptune_cluster": _neptune_cluster,
    "aws_rds_cluster_instance": _rds_cluster_instance,
    "aws_docdb_cluster_instance": _docdb_cluster_instance,
    "aws_neptune_cluster_instance": _neptune_cluster_instance,
    "aws_rds_global_cluster": _global_cluster,
    "aws_db_subnet_group": _db_subnet_group,
    "aws_db_parameter_group": _db_parameter_group,
    "aws_rds_cluster_parameter_group": _cluster_parameter_group,
    "aws_db_snapshot": _db_snapshot,
    "aws_db_cluster_snapshot": _db_cluster_snapshot,
    "aws_db_proxy": _db_proxy,
    "aws_elasticache_cluster": _cache_cluster,
    "aws_elasticache_replication_group": _replication_group,
    "aws_elasticache_subnet_group": _cache_subnet_group,
    "aws_memorydb_cluster": _memorydb_cluster,
    "aws_memorydb_subnet_group": _memorydb_subnet_group,
    "aws_opensearch_domain": _domain,
    "aws_redshift_cluster": _redshift_cluster,
    "aws_redshift_subnet_group": _redshift_subnet_group,
    "aws_redshift_parameter_group": _redshift_parameter_group,
    "aws_efs_file_system": _file_system,
    "aws_efs_access_point": _access_point,
    "aws_efs_mount_target": _mount_target,
    "aws_backup_vault": _vault,
    "aws_backup_plan": _backup_plan,
    "aws_glue_catalog_database": _glue_database,
    "aws_glue_job": _glue_job,
    "aws_glue_crawler": _glue_crawler,
    "aws_glue_trigger": _glue_trigger,
    "aws_glue_registry": _glue_registry,
    "aws_athena_workgroup": _workgroup,
    "aws_kinesis_stream": _stream,
    "aws_kinesis_stream_consumer": _stream_consumer,
    "aws_kinesis_firehose_delivery_stream": _delivery_stream,
    "aws_msk_cluster": _msk_cluster,
    "aws_dms_replication_instance": _replication_instance,
    "aws_dms_endpoint": _dms_endpoint,
    "aws_dms_replication_subnet_group": _dms_subnet_group,
    "aws_dax_cluster": _dax_cluster,
    "aws_emr_cluster": _emr_cluster,
    "aws_mq_broker": _broker,
    "aws_fsx_lustre_file_system": _lustre,
}

LIMITS: dict[str, Limits] = {
    "aws_rds_global_cluster": Limits(tags="DescribeGlobalClusters is answered without tags"),
    "aws_elasticache_cluster": Limits(attributes={"replication_group_id": "this one is no member of a group"}),
    "aws_elasticache_subnet_group": Limits(delete="DeleteCacheSubnetGroup is not there"),
    "aws_glue_registry": Limits(
        created="ListRegistries is answered without it", tags="GetTags knows none of a registry"
    ),
    "aws_dms_replication_subnet_group": Limits(tags="they are dropped"),
    "aws_fsx_lustre_file_system": Limits(owner="answered without OwnerId", created="answered without CreationTime"),
}
