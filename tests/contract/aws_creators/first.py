"""Makers of the types in `aws.yaml`."""

from __future__ import annotations

from tests.contract.aws_creators.cloud import REGION, RIGHTS, TAGS, TRUST, Cloud, Creator, Limits, ec2_tags


def _bucket(cloud: Cloud) -> tuple[str, str]:
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket="one-bucket", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_tagging(Bucket="one-bucket", Tagging={"TagSet": TAGS})
    return "one-bucket", "arn:aws:s3:::one-bucket"


def _queue(cloud: Cloud) -> tuple[str, str]:
    sqs = cloud.client("sqs")
    url = sqs.create_queue(QueueName="one.fifo", Attributes={"FifoQueue": "true"}, tags={"team": "blue"})["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def _topic(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("sns").create_topic(Name="one", Tags=TAGS)["TopicArn"]
    return arn, arn


def _table(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("dynamodb").create_table(
        TableName="one",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        Tags=TAGS,
    )
    return "one", made["TableDescription"]["TableArn"]


def _role(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").create_role(RoleName="one", Path="/app/", AssumeRolePolicyDocument=TRUST, Tags=TAGS)
    return "one", made["Role"]["Arn"]


def _policy(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("iam").create_policy(PolicyName="one", Path="/app/", PolicyDocument=RIGHTS, Tags=TAGS)
    return made["Policy"]["Arn"], made["Policy"]["Arn"]


def _vpc(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ec2").create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=ec2_tags("vpc"))["Vpc"]["VpcId"]
    return made, f"arn:aws:ec2:{REGION}:123456789012:vpc/{made}"


def _subnet(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ec2").create_subnet(
        VpcId=_vpc(cloud)[0], CidrBlock="10.9.1.0/24", TagSpecifications=ec2_tags("subnet")
    )["Subnet"]
    return made["SubnetId"], made["SubnetArn"]


def _security_group(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ec2").create_security_group(
        GroupName="one", Description="first", VpcId=_vpc(cloud)[0], TagSpecifications=ec2_tags("security-group")
    )["GroupId"]
    return made, f"arn:aws:ec2:{REGION}:123456789012:security-group/{made}"


def _instance(cloud: Cloud) -> tuple[str, str]:
    ec2 = cloud.client("ec2")
    made = ec2.run_instances(
        ImageId="ami-12c6146b",
        InstanceType="t3.micro",
        SubnetId=_subnet(cloud)[0],
        MinCount=1,
        MaxCount=1,
        TagSpecifications=ec2_tags("instance"),
    )["Instances"][0]["InstanceId"]
    return made, f"arn:aws:ec2:{REGION}:123456789012:instance/{made}"


def _db_instance(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("rds").create_db_instance(
        DBInstanceIdentifier="one",
        DBInstanceClass="db.t3.micro",
        Engine="postgres",
        AllocatedStorage=20,
        MasterUsername="someone",
        MasterUserPassword="something-long",
        Tags=TAGS,
    )
    return "one", made["DBInstance"]["DBInstanceArn"]


def _log_group(cloud: Cloud) -> tuple[str, str]:
    cloud.client("logs").create_log_group(logGroupName="/app/one", tags={"team": "blue"})
    return "/app/one", f"arn:aws:logs:{REGION}:123456789012:log-group:/app/one"


def _parameter(cloud: Cloud) -> tuple[str, str]:
    cloud.client("ssm").put_parameter(Name="/app/one", Value="x", Type="SecureString", Tags=TAGS)
    return "/app/one", f"arn:aws:ssm:{REGION}:123456789012:parameter/app/one"


def _secret(cloud: Cloud) -> tuple[str, str]:
    arn = cloud.client("secretsmanager").create_secret(Name="app/one", SecretString="x", Tags=TAGS)["ARN"]
    return arn, arn


def _repository(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ecr").create_repository(repositoryName="app/one", tags=TAGS)
    return "app/one", made["repository"]["repositoryArn"]


def _key(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("kms").create_key(Description="one", Tags=[{"TagKey": "team", "TagValue": "blue"}])
    return made["KeyMetadata"]["KeyId"], made["KeyMetadata"]["Arn"]


CREATORS: dict[str, Creator] = {
    "aws_s3_bucket": _bucket,
    "aws_sqs_queue": _queue,
    "aws_sns_topic": _topic,
    "aws_dynamodb_table": _table,
    "aws_iam_role": _role,
    "aws_iam_policy": _policy,
    "aws_vpc": _vpc,
    "aws_subnet": _subnet,
    "aws_security_group": _security_group,
    "aws_instance": _instance,
    "aws_db_instance": _db_instance,
    "aws_cloudwatch_log_group": _log_group,
    "aws_ssm_parameter": _parameter,
    "aws_secretsmanager_secret": _secret,
    "aws_ecr_repository": _repository,
    "aws_kms_key": _key,
}

LIMITS: dict[str, Limits] = {
    "aws_db_instance": Limits(attributes={"vpc_id": "it was made without a subnet group"}),
    "aws_ssm_parameter": Limits(arn="DescribeParameters is answered without ARN"),
}
