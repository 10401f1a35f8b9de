"""Makers of the types in `aws_applications.yaml`."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from moto.backends import get_backend

from tests.contract.aws_creators.cloud import REGION, TAGS, TRUST, Cloud, Creator, Limits

ACCOUNT = "123456789012"
TEAM = {"team": "blue"}
SMALL_TAGS = [{"key": "team", "value": "blue"}]


def _role(cloud: Cloud, name: str) -> str:
    """The ARN of a role that services may take on."""
    return str(cloud.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"])


def _code() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("main.py", "def handle(event, context):\n    return event\n")
    return packed.getvalue()


def _new_function(cloud: Cloud, name: str) -> Any:
    return cloud.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.12",
        Handler="main.handle",
        Role=_role(cloud, f"role-of-{name}"),
        Code={"ZipFile": _code()},
        Tags=TEAM,
    )


def _function(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_function(cloud, "one")["FunctionArn"]


def _event_source_mapping(cloud: Cloud) -> tuple[str, str]:
    sqs = cloud.client("sqs")
    url = sqs.create_queue(QueueName="of-a-mapping")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    _new_function(cloud, "one-mapped")
    made = cloud.client("lambda").create_event_source_mapping(
        EventSourceArn=queue, FunctionName="one-mapped", Tags=TEAM
    )["UUID"]
    return made, f"arn:aws:lambda:{REGION}:{ACCOUNT}:event-source-mapping:{made}"


def _layer(cloud: Cloud) -> tuple[str, str]:
    client = cloud.client("lambda")
    for _ in range(2):
        made = client.publish_layer_version(LayerName="one", Content={"ZipFile": _code()})["LayerVersionArn"]
    return made, made


def _alias(cloud: Cloud) -> tuple[str, str]:
    _new_function(cloud, "with-alias")
    made = cloud.client("lambda").create_alias(FunctionName="with-alias", Name="one", FunctionVersion="$LATEST")
    return "with-alias/one", made["AliasArn"]


def _ecs_cluster(cloud: Cloud) -> tuple[str, str]:
    return "one", cloud.client("ecs").create_cluster(clusterName="one", tags=SMALL_TAGS)["cluster"]["clusterArn"]


def _new_task_definition(cloud: Cloud, family: str) -> str:
    made = cloud.client("ecs").register_task_definition(
        family=family,
        containerDefinitions=[{"name": "app", "image": "app:1", "memory": 64}],
        tags=SMALL_TAGS,
    )
    return str(made["taskDefinition"]["taskDefinitionArn"])


def _ecs_service(cloud: Cloud) -> tuple[str, str]:
    ecs = cloud.client("ecs")
    ecs.create_cluster(clusterName="with-service")
    made = ecs.create_service(
        cluster="with-service",
        serviceName="one",
        taskDefinition=_new_task_definition(cloud, "of-a-service"),
        desiredCount=0,
        tags=SMALL_TAGS,
    )
    return "with-service/one", made["service"]["serviceArn"]


def _task_definition(cloud: Cloud) -> tuple[str, str]:
    cloud.client("ecs").deregister_task_definition(taskDefinition=_new_task_definition(cloud, "one"))
    made = _new_task_definition(cloud, "one")
    return made, made


def _new_eks_cluster(cloud: Cloud, name: str) -> Any:
    return cloud.client("eks").create_cluster(
        name=name,
        roleArn=_role(cloud, f"role-of-eks-{name}"),
        resourcesVpcConfig={"subnetIds": [_subnet(cloud)]},
        tags=TEAM,
    )["cluster"]


def _subnet(cloud: Cloud) -> str:
    return str(cloud.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"])


def _eks_cluster(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_eks_cluster(cloud, "one")["arn"]


def _node_group(cloud: Cloud) -> tuple[str, str]:
    _new_eks_cluster(cloud, "with-nodes")
    cloud.client("eks").create_nodegroup(
        clusterName="with-nodes",
        nodegroupName="one",
        nodeRole=_role(cloud, "role-of-nodes"),
        subnets=[_subnet(cloud)],
        tags=TEAM,
    )
    return "with-nodes:one", ""


def _fargate_profile(cloud: Cloud) -> tuple[str, str]:
    _new_eks_cluster(cloud, "with-fargate")
    cloud.client("eks").create_fargate_profile(
        clusterName="with-fargate",
        fargateProfileName="one",
        podExecutionRoleArn=_role(cloud, "role-of-pods"),
        selectors=[{"namespace": "app"}],
        tags=TEAM,
    )
    return "with-fargate:one", ""


def _api_gateway(kind: str, made: str) -> tuple[str, str]:
    return made, f"arn:aws:apigateway:{REGION}::/{kind}/{made}"


def _rest_api(cloud: Cloud) -> tuple[str, str]:
    return _api_gateway("restapis", cloud.client("apigateway").create_rest_api(name="one", tags=TEAM)["id"])


def _api_key(cloud: Cloud) -> tuple[str, str]:
    return _api_gateway("apikeys", cloud.client("apigateway").create_api_key(name="one", tags=TEAM)["id"])


def _usage_plan(cloud: Cloud) -> tuple[str, str]:
    return _api_gateway("usageplans", cloud.client("apigateway").create_usage_plan(name="one", tags=TEAM)["id"])


def _domain_name(cloud: Cloud) -> tuple[str, str]:
    cloud.client("apigateway").create_domain_name(domainName="one.example.com", tags=TEAM)
    return _api_gateway("domainnames", "one.example.com")


def _vpc_link(cloud: Cloud) -> tuple[str, str]:
    balancer = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:loadbalancer/net/one/1"
    made = cloud.client("apigateway").create_vpc_link(name="one", targetArns=[balancer], tags=TEAM)
    return _api_gateway("vpclinks", made["id"])


def _http_api(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("apigatewayv2").create_api(Name="one", ProtocolType="HTTP", Tags=TEAM)
    return _api_gateway("apis", made["ApiId"])


def _http_stage(cloud: Cloud) -> tuple[str, str]:
    client = cloud.client("apigatewayv2")
    api = client.create_api(Name="with-stage", ProtocolType="HTTP")["ApiId"]
    client.create_stage(ApiId=api, StageName="one", Tags=TEAM)
    return f"{api}/one", f"arn:aws:apigateway:{REGION}::/apis/{api}/stages/one"


def _http_vpc_link(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("apigatewayv2").create_vpc_link(Name="one", SubnetIds=[_subnet(cloud)], Tags=TEAM)
    return _api_gateway("vpclinks", made["VpcLinkId"])


def _graphql_api(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("appsync").create_graphql_api(name="one", authenticationType="API_KEY", tags=TEAM)["graphqlApi"]
    return made["apiId"], made["arn"]


def _state_machine(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("stepfunctions").create_state_machine(
        name="one",
        definition=json.dumps({"StartAt": "end", "States": {"end": {"Type": "Succeed"}}}),
        roleArn=_role(cloud, "role-of-a-state-machine"),
        tags=SMALL_TAGS,
    )["stateMachineArn"]
    return made, made


def _activity(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("stepfunctions").create_activity(name="one", tags=SMALL_TAGS)["activityArn"]
    return made, made


def _subscription(cloud: Cloud) -> tuple[str, str]:
    sns = cloud.client("sns")
    topic = sns.create_topic(Name="one-with-subscription")["TopicArn"]
    queue = f"arn:aws:sqs:{REGION}:{ACCOUNT}:any"
    made = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, ReturnSubscriptionArn=True)
    return made["SubscriptionArn"], made["SubscriptionArn"]


def _platform_application(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("sns").create_platform_application(
        Name="one", Platform="GCM", Attributes={"PlatformCredential": "something"}
    )["PlatformApplicationArn"]
    return made, made


def _distribution(cloud: Cloud) -> tuple[str, str]:
    configuration = {
        "CallerReference": "one",
        "Comment": "one",
        "Enabled": False,
        "Origins": {
            "Quantity": 1,
            "Items": [
                {
                    "Id": "app",
                    "DomainName": "app.example.com",
                    "CustomOriginConfig": {
                        "HTTPPort": 80,
                        "HTTPSPort": 443,
                        "OriginProtocolPolicy": "https-only",
                    },
                }
            ],
        },
        "DefaultCacheBehavior": {
            "TargetOriginId": "app",
            "ViewerProtocolPolicy": "redirect-to-https",
            "MinTTL": 0,
            "ForwardedValues": {"QueryString": False, "Cookies": {"Forward": "none"}},
        },
    }
    made = cloud.client("cloudfront").create_distribution_with_tags(
        DistributionConfigWithTags={"DistributionConfig": configuration, "Tags": {"Items": TAGS}}
    )["Distribution"]
    return made["Id"], made["ARN"]


def _origin_access_control(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cloudfront").create_origin_access_control(
        OriginAccessControlConfig={
            "Name": "one",
            "SigningProtocol": "sigv4",
            "SigningBehavior": "always",
            "OriginAccessControlOriginType": "s3",
        }
    )["OriginAccessControl"]["Id"]
    return made, f"arn:aws:cloudfront::{ACCOUNT}:origin-access-control/{made}"


def _cloudfront_function(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cloudfront").create_function(
        Name="one", FunctionConfig={"Comment": "", "Runtime": "cloudfront-js-2.0"}, FunctionCode=b"function handler(){}"
    )
    return "one", made["FunctionSummary"]["FunctionMetadata"]["FunctionARN"]


def _new_zone(cloud: Cloud, name: str) -> str:
    made = cloud.client("route53").create_hosted_zone(Name=name, CallerReference=name)["HostedZone"]["Id"]
    return str(made).rsplit("/", 1)[-1]


def _tagged_by_route53(cloud: Cloud, kind: str, made: str) -> tuple[str, str]:
    cloud.client("route53").change_tags_for_resource(ResourceType=kind, ResourceId=made, AddTags=TAGS)
    return made, f"arn:aws:route53:::{kind}/{made}"


def _zone(cloud: Cloud) -> tuple[str, str]:
    return _tagged_by_route53(cloud, "hostedzone", _new_zone(cloud, "one.example.com."))


def _record(cloud: Cloud) -> tuple[str, str]:
    zone = _new_zone(cloud, "with-record.example.com.")
    record = {
        "Name": "*.One.with-record.example.com.",
        "Type": "CNAME",
        "TTL": 60,
        "SetIdentifier": "blue",
        "Weight": 1,
        "ResourceRecords": [{"Value": "app.example.com"}],
    }
    cloud.client("route53").change_resource_record_sets(
        HostedZoneId=zone, ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    )
    return f"{zone}_*.one.with-record.example.com_CNAME_blue", ""


def _health_check(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("route53").create_health_check(
        CallerReference="one",
        HealthCheckConfig={"Type": "TCP", "FullyQualifiedDomainName": "one.example.com", "Port": 443},
    )["HealthCheck"]["Id"]
    return _tagged_by_route53(cloud, "healthcheck", made)


def _namespace(cloud: Cloud, kind: str) -> tuple[str, str]:
    discovery = cloud.client("servicediscovery")
    vpc = {"Vpc": cloud.client("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]} if kind == "private_dns" else {}
    started = getattr(discovery, f"create_{kind}_namespace")(Name=f"one-{kind}.example.com", Tags=TAGS, **vpc)
    made = discovery.get_operation(OperationId=started["OperationId"])["Operation"]["Targets"]["NAMESPACE"]
    return made, discovery.get_namespace(Id=made)["Namespace"]["Arn"]


def _private_namespace(cloud: Cloud) -> tuple[str, str]:
    return _namespace(cloud, "private_dns")


def _public_namespace(cloud: Cloud) -> tuple[str, str]:
    return _namespace(cloud, "public_dns")


def _http_namespace(cloud: Cloud) -> tuple[str, str]:
    return _namespace(cloud, "http")


def _discovery_service(cloud: Cloud) -> tuple[str, str]:
    discovery = cloud.client("servicediscovery")
    started = discovery.create_http_namespace(Name="with-service")["OperationId"]
    namespace = discovery.get_operation(OperationId=started)["Operation"]["Targets"]["NAMESPACE"]
    made = discovery.create_service(Name="one", NamespaceId=namespace, Tags=TAGS)["Service"]
    return made["Id"], made["Arn"]


def _beanstalk_application(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("elasticbeanstalk").create_application(ApplicationName="one", Tags=TAGS)["Application"]
    return "one", made["ApplicationArn"]


def _beanstalk_environment(cloud: Cloud) -> tuple[str, str]:
    beanstalk = cloud.client("elasticbeanstalk")
    beanstalk.create_application(ApplicationName="with-environment")
    made = beanstalk.create_environment(
        ApplicationName="with-environment", EnvironmentName="one-environment", Tags=TAGS
    )
    # The simulated one has no id.
    application = get_backend("elasticbeanstalk")[ACCOUNT][REGION].applications["with-environment"]
    application.environments["one-environment"].environment_id = "e-one"
    return "e-one", made["EnvironmentArn"]


def _new_compute_environment(cloud: Cloud, name: str) -> str:
    made = cloud.client("batch").create_compute_environment(
        computeEnvironmentName=name,
        type="UNMANAGED",
        state="DISABLED",
        serviceRole=_role(cloud, f"role-of-batch-{name}"),
        tags=TEAM,
    )
    return str(made["computeEnvironmentArn"])


def _compute_environment(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_compute_environment(cloud, "one")


def _job_queue(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("batch").create_job_queue(
        jobQueueName="one",
        state="DISABLED",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": _new_compute_environment(cloud, "of-a-queue")}],
        tags=TEAM,
    )["jobQueueArn"]
    return made, made


def _job_definition(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("batch").register_job_definition(
        jobDefinitionName="one",
        type="container",
        containerProperties={"image": "app:1", "vcpus": 1, "memory": 64},
        tags=TEAM,
    )["jobDefinitionArn"]
    return made, made


def _notebook(cloud: Cloud) -> tuple[str, str]:
    client = cloud.client("sagemaker")
    made = client.create_notebook_instance(
        NotebookInstanceName="one", InstanceType="ml.t3.medium", RoleArn=_role(cloud, "role-of-a-notebook"), Tags=TAGS
    )
    client.stop_notebook_instance(NotebookInstanceName="one")
    return "one", made["NotebookInstanceArn"]


def _new_model(cloud: Cloud, name: str) -> str:
    made = cloud.client("sagemaker").create_model(
        ModelName=name,
        ExecutionRoleArn=_role(cloud, f"role-of-model-{name}"),
        PrimaryContainer={"Image": "app:1"},
        Tags=TAGS,
    )
    return str(made["ModelArn"])


def _model(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_model(cloud, "one")


def _new_endpoint_configuration(cloud: Cloud, name: str) -> str:
    _new_model(cloud, f"of-{name}")
    variant = {
        "VariantName": "all",
        "ModelName": f"of-{name}",
        "InitialInstanceCount": 1,
        "InstanceType": "ml.t2.medium",
    }
    made = cloud.client("sagemaker").create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=[variant], Tags=TAGS
    )
    return str(made["EndpointConfigArn"])


def _endpoint_configuration(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_endpoint_configuration(cloud, "one")


def _endpoint(cloud: Cloud) -> tuple[str, str]:
    _new_endpoint_configuration(cloud, "of-an-endpoint")
    made = cloud.client("sagemaker").create_endpoint(EndpointName="one", EndpointConfigName="of-an-endpoint", Tags=TAGS)
    return "one", made["EndpointArn"]


def _studio(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("sagemaker").create_domain(
        DomainName="one",
        AuthMode="IAM",
        DefaultUserSettings={"ExecutionRole": _role(cloud, "role-of-a-domain")},
        SubnetIds=[_subnet(cloud)],
        VpcId=cloud.client("ec2").describe_vpcs()["Vpcs"][0]["VpcId"],
        Tags=TAGS,
    )["DomainArn"]
    return made.rsplit("/", 1)[-1], made


def _transfer_server(cloud: Cloud) -> tuple[str, str]:
    transfer = cloud.client("transfer")
    made = transfer.create_server(Tags=TAGS)["ServerId"]
    return made, transfer.describe_server(ServerId=made)["Server"]["Arn"]


def _pipe(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("pipes").create_pipe(
        Name="one",
        RoleArn=_role(cloud, "role-of-a-pipe"),
        Source=f"arn:aws:sqs:{REGION}:{ACCOUNT}:from",
        Target=f"arn:aws:sqs:{REGION}:{ACCOUNT}:to",
        Tags=TEAM,
    )
    return "one", made["Arn"]


CREATORS: dict[str, Creator] = {
    "aws_lambda_function": _function,
    "aws_lambda_event_source_mapping": _event_source_mapping,
    "aws_lambda_layer_version": _layer,
    "aws_lambda_alias": _alias,
    "aws_ecs_cluster": _ecs_cluster,
    "aws_ecs_service": _ecs_service,
    "aws_ecs_task_definition": _task_definition,
    "aws_eks_cluster": _eks_cluster,
    "aws_eks_node_group": _node_group,
    "aws_eks_fargate_profile": _fargate_profile,
    "aws_api_gateway_rest_api": _rest_api,
    "aws_api_gateway_api_key": _api_key,
    "aws_api_gateway_usage_plan": _usage_plan,
    "aws_api_gateway_domain_name": _domain_name,
    "aws_api_gateway_vpc_link": _vpc_link,
    "aws_apigatewayv2_api": _http_api,
    "aws_apigatewayv2_stage": _http_stage,
    "aws_apigatewayv2_vpc_link": _http_vpc_link,
    "aws_appsync_graphql_api": _graphql_api,
    "aws_sfn_state_machine": _state_machine,
    "aws_sfn_activity": _activity,
    "aws_sns_topic_subscription": _subscription,
    "aws_sns_platform_application": _platform_application,
    "aws_cloudfront_distribution": _distribution,
    "aws_cloudfront_origin_access_control": _origin_access_control,
    "aws_cloudfront_function": _cloudfront_function,
    "aws_route53_zone": _zone,
    "aws_route53_record": _record,
    "aws_route53_health_check": _health_check,
    "aws_service_discovery_private_dns_namespace": _private_namespace,
    "aws_service_discovery_public_dns_namespace": _public_namespace,
    "aws_service_discovery_http_namespace": _http_namespace,
    "aws_service_discovery_service": _discovery_service,
    "aws_elastic_beanstalk_application": _beanstalk_application,
    "aws_elastic_beanstalk_environment": _beanstalk_environment,
    "aws_batch_compute_environment": _compute_environment,
    "aws_batch_job_queue": _job_queue,
    "aws_batch_job_definition": _job_definition,
    "aws_sagemaker_notebook_instance": _notebook,
    "aws_sagemaker_model": _model,
    "aws_sagemaker_endpoint_configuration": _endpoint_configuration,
    "aws_sagemaker_endpoint": _endpoint,
    "aws_sagemaker_domain": _studio,
    "aws_transfer_server": _transfer_server,
    "aws_pipes_pipe": _pipe,
}

LIMITS: dict[str, Limits] = {
    "aws_ecs_service": Limits(created="DescribeServices is answered without createdAt"),
    "aws_ecs_task_definition": Limits(created="DescribeTaskDefinition is answered without registeredAt"),
    "aws_elastic_beanstalk_application_version": Limits(list="DescribeApplicationVersions is not simulated"),
    "aws_elastic_beanstalk_application": Limits(created="answered without dates", tags="kept for environments alone"),
    "aws_lambda_layer_version": Limits(delete="a version is deleted by its number, and templates make texts"),
    "aws_cloudfront_distribution": Limits(delete="it has to be disabled first, and wants its ETag"),
    "aws_cloudfront_origin_access_control": Limits(delete="wants its ETag"),
    "aws_cloudfront_function": Limits(delete="wants its ETag"),
    "aws_route53_record": Limits(delete="a record is deleted by repeating it whole"),
    "aws_elastic_beanstalk_environment": Limits(delete="TerminateEnvironment is not simulated"),
}
