"""Makers of the types in `aws_operations.yaml`."""

from __future__ import annotations

import json

from moto.backends import get_backend

from tests.contract.aws_creators.cloud import REGION, RIGHTS, TAGS, TRUST, Cloud, Creator, Limits

ACCOUNT = "123456789012"
TEAM = {"team": "blue"}
SMALL_TAGS = [{"key": "team", "value": "blue"}]


def _role(cloud: Cloud, name: str) -> str:
    """The ARN of a role that services may take on."""
    return str(cloud.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"])


def _arn(service: str, rest: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"


def _metric_alarm(cloud: Cloud) -> tuple[str, str]:
    cloud.client("cloudwatch").put_metric_alarm(
        AlarmName="one",
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
        MetricName="errors",
        Namespace="app",
        Period=60,
        Statistic="Sum",
        Threshold=1,
        Tags=TAGS,
    )
    return "one", _arn("cloudwatch", "alarm:one")


def _composite_alarm(_: Cloud) -> tuple[str, str]:
    """Past the API: PutCompositeAlarm is not simulated, and what it makes is listed all the same."""
    get_backend("cloudwatch")[ACCOUNT][REGION].put_metric_alarm(
        name="one-of-many",
        namespace="",
        metric_name="",
        comparison_operator="",
        evaluation_periods=1,
        period=60,
        threshold=1,
        statistic="",
        description="",
        dimensions=[],
        alarm_actions=[],
        rule='ALARM("some")',
        tags=TAGS,
    )
    return "one-of-many", _arn("cloudwatch", "alarm:one-of-many")


def _dashboard(cloud: Cloud) -> tuple[str, str]:
    cloud.client("cloudwatch").put_dashboard(DashboardName="one", DashboardBody=json.dumps({"widgets": []}))
    return "one", f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/one"


def _event_bus(cloud: Cloud) -> tuple[str, str]:
    return "one", cloud.client("events").create_event_bus(Name="one", Tags=TAGS)["EventBusArn"]


def _event_rule(cloud: Cloud) -> tuple[str, str]:
    events = cloud.client("events")
    events.create_event_bus(Name="with-rule")
    made = events.put_rule(Name="one", EventBusName="with-rule", EventPattern='{"source": ["app"]}', Tags=TAGS)
    return "with-rule/one", made["RuleArn"]


def _event_target(cloud: Cloud) -> tuple[str, str]:
    events = cloud.client("events")
    events.put_rule(Name="with-target", ScheduleExpression="rate(1 day)")
    events.put_targets(Rule="with-target", Targets=[{"Id": "one", "Arn": _arn("sqs", "any")}])
    return "default/with-target/one", ""


def _event_archive(cloud: Cloud) -> tuple[str, str]:
    events = cloud.client("events")
    bus = events.create_event_bus(Name="with-archive")["EventBusArn"]
    return "one", events.create_archive(ArchiveName="one", EventSourceArn=bus)["ArchiveArn"]


def _new_connection(cloud: Cloud, name: str) -> str:
    made = cloud.client("events").create_connection(
        Name=name,
        AuthorizationType="API_KEY",
        AuthParameters={"ApiKeyAuthParameters": {"ApiKeyName": "key", "ApiKeyValue": "something"}},
    )
    return str(made["ConnectionArn"])


def _event_connection(cloud: Cloud) -> tuple[str, str]:
    return "one", _new_connection(cloud, "one")


def _api_destination(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("events").create_api_destination(
        Name="one",
        ConnectionArn=_new_connection(cloud, "of-a-destination"),
        InvocationEndpoint="https://app.example.com",
        HttpMethod="POST",
    )
    return "one", made["ApiDestinationArn"]


def _schedule_group(cloud: Cloud) -> tuple[str, str]:
    return "one", cloud.client("scheduler").create_schedule_group(Name="one", Tags=TAGS)["ScheduleGroupArn"]


def _schedule(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("scheduler").create_schedule(
        Name="one",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": _arn("sqs", "any"), "RoleArn": _role(cloud, "role-of-a-schedule")},
    )
    return "default/one", made["ScheduleArn"]


def _metric_filter(cloud: Cloud) -> tuple[str, str]:
    logs = cloud.client("logs")
    logs.create_log_group(logGroupName="/app/with-filter")
    logs.put_metric_filter(
        logGroupName="/app/with-filter",
        filterName="one",
        filterPattern="error",
        metricTransformations=[{"metricName": "errors", "metricNamespace": "app", "metricValue": "1"}],
    )
    return "/app/with-filter:one", ""


def _log_destination(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("logs").put_destination(
        destinationName="one",
        targetArn=_arn("kinesis", "stream/any"),
        roleArn=_role(cloud, "role-of-a-log-destination"),
        tags=TEAM,
    )
    return "one", made["destination"]["arn"]


def _log_policy(cloud: Cloud) -> tuple[str, str]:
    cloud.client("logs").put_resource_policy(policyName="one", policyDocument=RIGHTS)
    return "one", ""


def _build_project(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("codebuild").create_project(
        name="one",
        source={"type": "S3", "location": "bucket/key"},
        artifacts={"type": "NO_ARTIFACTS"},
        environment={"type": "LINUX_CONTAINER", "image": "app:1", "computeType": "BUILD_GENERAL1_SMALL"},
        serviceRole=_role(cloud, "role-of-a-build"),
        tags=SMALL_TAGS,
    )
    return "one", made["project"]["arn"]


def _pipeline(cloud: Cloud) -> tuple[str, str]:
    trust = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "codepipeline.amazonaws.com"},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
    )
    role = cloud.client("iam").create_role(RoleName="role-of-a-pipeline", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    source = {
        "name": "Source",
        "actions": [
            {
                "name": "Source",
                "actionTypeId": {"category": "Source", "owner": "AWS", "provider": "S3", "version": "1"},
                "configuration": {"S3Bucket": "one", "S3ObjectKey": "two"},
                "outputArtifacts": [{"name": "artifact"}],
            }
        ],
    }
    approval = {
        "name": "Approve",
        "actions": [
            {
                "name": "Approval",
                "actionTypeId": {"category": "Approval", "owner": "AWS", "provider": "Manual", "version": "1"},
            }
        ],
    }
    cloud.client("codepipeline").create_pipeline(
        pipeline={
            "name": "one",
            "roleArn": role,
            "artifactStore": {"type": "S3", "location": "one-bucket"},
            "stages": [source, approval],
        },
        tags=SMALL_TAGS,
    )
    return "one", _arn("codepipeline", "one")


def _deploy_application(cloud: Cloud) -> tuple[str, str]:
    cloud.client("codedeploy").create_application(applicationName="one", computePlatform="Lambda", tags=TAGS)
    return "one", _arn("codedeploy", "application:one")


def _deployment_group(cloud: Cloud) -> tuple[str, str]:
    codedeploy = cloud.client("codedeploy")
    codedeploy.create_application(applicationName="with-group", computePlatform="Lambda")
    codedeploy.create_deployment_group(
        applicationName="with-group",
        deploymentGroupName="one",
        serviceRoleArn=_role(cloud, "role-of-a-deployment"),
        tags=TAGS,
    )
    return "with-group:one", _arn("codedeploy", "deploymentgroup:with-group/one")


def _recorder(cloud: Cloud) -> tuple[str, str]:
    config = cloud.client("config")
    config.put_configuration_recorder(
        ConfigurationRecorder={"name": "one", "roleARN": f"arn:aws:iam::{ACCOUNT}:role/config"}
    )
    return "one", ""


def _delivery_channel(cloud: Cloud) -> tuple[str, str]:
    _recorder(cloud)
    cloud.client("config").put_delivery_channel(DeliveryChannel={"name": "one", "s3BucketName": "one-bucket"})
    return "one", ""


def _config_rule(cloud: Cloud) -> tuple[str, str]:
    config = cloud.client("config")
    _recorder(cloud)
    config.put_config_rule(
        ConfigRule={
            "ConfigRuleName": "one",
            "Source": {"Owner": "AWS", "SourceIdentifier": "S3_BUCKET_VERSIONING_ENABLED"},
            "Scope": {"ComplianceResourceTypes": ["AWS::S3::Bucket"]},
        },
        Tags=TAGS,
    )
    return "one", config.describe_config_rules(ConfigRuleNames=["one"])["ConfigRules"][0]["ConfigRuleArn"]


def _aggregator(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("config").put_configuration_aggregator(
        ConfigurationAggregatorName="one",
        AccountAggregationSources=[{"AccountIds": [ACCOUNT], "AllAwsRegions": True}],
        Tags=TAGS,
    )
    return "one", made["ConfigurationAggregator"]["ConfigurationAggregatorArn"]


TEMPLATE = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "of-a-stack"}}}})


def _stack(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cloudformation").create_stack(StackName="one", TemplateBody=TEMPLATE, Tags=TAGS)
    return "one", made["StackId"]


def _stack_set(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("cloudformation").create_stack_set(StackSetName="one", TemplateBody=TEMPLATE, Tags=TAGS)
    return "one", _arn("cloudformation", f"stackset/{made['StackSetId']}")


def _document(cloud: Cloud) -> tuple[str, str]:
    content = {
        "schemaVersion": "2.2",
        "description": "one",
        "mainSteps": [{"action": "aws:runShellScript", "name": "run", "inputs": {"runCommand": ["true"]}}],
    }
    cloud.client("ssm").create_document(Name="one", Content=json.dumps(content), DocumentType="Command", Tags=TAGS)
    return "one", _arn("ssm", "document/one")


def _maintenance_window(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ssm").create_maintenance_window(
        Name="one", Schedule="rate(7 days)", Duration=2, Cutoff=1, AllowUnassociatedTargets=False, Tags=TAGS
    )
    return made["WindowId"], ""


def _patch_baseline(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("ssm").create_patch_baseline(Name="one", OperatingSystem="AMAZON_LINUX_2")
    return made["BaselineId"], _arn("ssm", f"patchbaseline/{made['BaselineId']}")


def _email_identity(cloud: Cloud) -> tuple[str, str]:
    cloud.client("sesv2").create_email_identity(EmailIdentity="one.example.com", Tags=TAGS)
    return "one.example.com", _arn("ses", "identity/one.example.com")


def _configuration_set(cloud: Cloud) -> tuple[str, str]:
    cloud.client("sesv2").create_configuration_set(ConfigurationSetName="one", Tags=TAGS)
    return "one", _arn("ses", "configuration-set/one")


def _mail_template(cloud: Cloud) -> tuple[str, str]:
    cloud.client("ses").create_template(
        Template={"TemplateName": "one", "SubjectPart": "Hello", "TextPart": "Hello", "HtmlPart": "Hello"}
    )
    return "one", _arn("ses", "template/one")


def _budget(cloud: Cloud) -> tuple[str, str]:
    cloud.client("budgets").create_budget(
        AccountId=ACCOUNT,
        Budget={
            "BudgetName": "one",
            "BudgetLimit": {"Amount": "1", "Unit": "USD"},
            "TimeUnit": "MONTHLY",
            "BudgetType": "COST",
        },
        ResourceTags=TAGS,
    )
    return f"{ACCOUNT}:one", f"arn:aws:budgets::{ACCOUNT}:budget/one"


def _canary(cloud: Cloud) -> tuple[str, str]:
    cloud.client("synthetics").create_canary(
        Name="one",
        Code={"Handler": "main.handle", "S3Bucket": "code", "S3Key": "canary.zip"},
        ArtifactS3Location="s3://artifacts",
        ExecutionRoleArn=_role(cloud, "role-of-a-canary"),
        Schedule={"Expression": "rate(1 hour)"},
        RuntimeVersion="syn-python-selenium-3.0",
        Tags=TEAM,
    )
    return "one", _arn("synthetics", "canary:one")


def _prometheus(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("amp").create_workspace(alias="one", tags=TEAM)
    return made["workspaceId"], made["arn"]


def _resource_group(cloud: Cloud) -> tuple[str, str]:
    query = json.dumps({"ResourceTypeFilters": ["AWS::AllSupported"], "TagFilters": [{"Key": "team", "Values": []}]})
    made = cloud.client("resource-groups").create_group(
        Name="one", ResourceQuery={"Type": "TAG_FILTERS_1_0", "Query": query}, Tags=TEAM
    )
    return "one", made["Group"]["GroupArn"]


def _portfolio(cloud: Cloud) -> tuple[str, str]:
    made = cloud.client("servicecatalog").create_portfolio(
        DisplayName="one", ProviderName="team", IdempotencyToken="one", Tags=TAGS
    )["PortfolioDetail"]
    return made["Id"], made["ARN"]


CREATORS: dict[str, Creator] = {
    "aws_cloudwatch_metric_alarm": _metric_alarm,
    "aws_cloudwatch_composite_alarm": _composite_alarm,
    "aws_cloudwatch_dashboard": _dashboard,
    "aws_cloudwatch_event_bus": _event_bus,
    "aws_cloudwatch_event_rule": _event_rule,
    "aws_cloudwatch_event_target": _event_target,
    "aws_cloudwatch_event_archive": _event_archive,
    "aws_cloudwatch_event_connection": _event_connection,
    "aws_cloudwatch_event_api_destination": _api_destination,
    "aws_scheduler_schedule_group": _schedule_group,
    "aws_scheduler_schedule": _schedule,
    "aws_cloudwatch_log_metric_filter": _metric_filter,
    "aws_cloudwatch_log_destination": _log_destination,
    "aws_cloudwatch_log_resource_policy": _log_policy,
    "aws_codebuild_project": _build_project,
    "aws_codepipeline": _pipeline,
    "aws_codedeploy_app": _deploy_application,
    "aws_codedeploy_deployment_group": _deployment_group,
    "aws_config_config_rule": _config_rule,
    "aws_config_configuration_recorder": _recorder,
    "aws_config_delivery_channel": _delivery_channel,
    "aws_config_configuration_aggregator": _aggregator,
    "aws_cloudformation_stack": _stack,
    "aws_cloudformation_stack_set": _stack_set,
    "aws_ssm_document": _document,
    "aws_ssm_maintenance_window": _maintenance_window,
    "aws_ssm_patch_baseline": _patch_baseline,
    "aws_sesv2_email_identity": _email_identity,
    "aws_sesv2_configuration_set": _configuration_set,
    "aws_ses_template": _mail_template,
    "aws_budgets_budget": _budget,
    "aws_synthetics_canary": _canary,
    "aws_prometheus_workspace": _prometheus,
    "aws_resourcegroups_group": _resource_group,
    "aws_servicecatalog_portfolio": _portfolio,
}

LIMITS: dict[str, Limits] = {
    "aws_cloudwatch_event_bus": Limits(created="ListEventBuses is answered without CreationTime"),
    "aws_cloudwatch_log_metric_filter": Limits(created="DescribeMetricFilters is answered without creationTime"),
    "aws_codedeploy_app": Limits(delete="DeleteApplication is not simulated"),
    "aws_codedeploy_deployment_group": Limits(delete="DeleteDeploymentGroup is not simulated"),
    "aws_ssm_document": Limits(created="ListDocuments is answered without CreatedDate"),
    "aws_ssm_maintenance_window": Limits(created="GetMaintenanceWindow is answered without CreatedDate"),
    "aws_ssm_patch_baseline": Limits(created="GetPatchBaseline is not simulated", tags="cannot be given at birth"),
    "aws_budgets_budget": Limits(tags="not kept"),
    "aws_synthetics_canary": Limits(delete="DeleteCanary is not simulated"),
}
