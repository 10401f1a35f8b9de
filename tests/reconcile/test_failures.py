"""What an error text proves about a create, and that none of its own words leave it."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.model.failure import FailureKind
from tfguard.reconcile.failures import classify

K = FailureKind
CANARY = "hunter2-canary"


def typed(service: str, operation: str, status: int, code: str, said: str = "said", host: str = "") -> str:
    """An error that the SDK has a type for, as the AWS provider prints it."""
    return (
        f"creating a thing (x): operation error {service}: {operation}, https response error StatusCode: {status}, "
        f"RequestID: 5c1b1b1e-7a5c-4f6e-9a1e-0c1a6f1e2d3f,{host} {code}: {said}"
    )


def untyped(service: str, operation: str, status: int, code: str, said: str = "said") -> str:
    """An error that the SDK knows by its code alone."""
    return typed(service, operation, status, f"api error {code}", said)


def s3(operation: str, status: int, code: str) -> str:
    """S3 answers with two ids."""
    return typed("S3", operation, status, code, host=" HostID: Pxz0Tq+/8a=,")


ALREADY = [
    typed("IAM", "CreateRole", 409, "EntityAlreadyExists", "Role with name app already exists."),
    untyped("EC2", "ImportKeyPair", 400, "InvalidKeyPair.Duplicate", "The keypair already exists"),
    untyped("EC2", "CreateSecurityGroup", 400, "InvalidGroup.Duplicate", "The security group 'web' already exists"),
    typed("ECR", "CreateRepository", 400, "RepositoryAlreadyExistsException"),
    typed("Lambda", "CreateFunction", 409, "ResourceConflictException", "Function already exist: f"),
    s3("CreateBucket", 409, "BucketAlreadyOwnedByYou"),
    s3("CreateBucket", 409, "BucketAlreadyExists"),
    typed("DynamoDB", "CreateTable", 400, "ResourceInUseException", "Table already exists: t"),
    typed("SSM", "PutParameter", 400, "ParameterAlreadyExists"),
    typed("Secrets Manager", "CreateSecret", 400, "ResourceExistsException"),
    typed("SQS", "CreateQueue", 400, "QueueNameExists"),
    typed("SQS", "CreateQueue", 400, "QueueAlreadyExists"),
    typed("CloudWatch Logs", "CreateLogGroup", 400, "ResourceAlreadyExistsException"),
    typed("RDS", "CreateDBInstance", 400, "DBInstanceAlreadyExists"),
    typed("RDS", "CreateDBSubnetGroup", 400, "DBSubnetGroupAlreadyExists"),
    typed("CloudFront", "CreateDistribution", 409, "CNAMEAlreadyExists"),
    typed("Elastic Load Balancing v2", "CreateTargetGroup", 400, "DuplicateTargetGroupName"),
    'A resource with the ID "/subscriptions/0/resourceGroups/rg" already exists - to be managed via Terraform',
    "googleapi: Error 409: The resource 'projects/p/global/networks/n' already exists, alreadyExists",
]
REFUSALS = [
    untyped("IAM", "CreateRole", 403, "AccessDenied", "User: arn:aws:iam::1:user/u is not authorized"),
    untyped("EC2", "CreateVpc", 403, "UnauthorizedOperation"),
    untyped("EC2", "CreateVpc", 400, "VpcLimitExceeded"),
    typed("IAM", "CreateRole", 400, "MalformedPolicyDocument"),
    typed("IAM", "CreateRole", 409, "LimitExceeded"),
    typed("SQS", "CreateQueue", 400, "QueueDeletedRecently"),
    typed("Secrets Manager", "CreateSecret", 400, "InvalidRequestException", "scheduled for deletion"),
    s3("CreateBucket", 400, "InvalidBucketName"),
    untyped("DynamoDB", "CreateTable", 400, "ValidationException", "throttling is no word of the code"),
    "operation error IAM: CreateRole, exceeded maximum number of attempts, 1, https response error StatusCode: 403, "
    "RequestID: 1, api error AccessDenied: no",
]
UNSURE = [
    untyped("EC2", "CreateVpc", 503, "RequestLimitExceeded"),
    untyped("EC2", "CreateVpc", 400, "RequestLimitExceeded"),
    untyped("DynamoDB", "CreateTable", 400, "ThrottlingException"),
    untyped("SQS", "CreateQueue", 400, "RequestThrottled"),
    typed("DynamoDB", "CreateTable", 400, "ProvisionedThroughputExceededException"),
    typed("DynamoDB", "CreateTable", 400, "TransactionInProgressException"),
    typed("DynamoDB", "CreateTable", 400, "LimitExceededException"),
    typed("Lambda", "CreateFunction", 429, "TooManyRequestsException"),
    untyped("Route 53", "CreateHostedZone", 400, "PriorRequestNotComplete"),
    s3("CreateBucket", 503, "SlowDown"),
    s3("CreateBucket", 409, "OperationAborted"),
    typed("WAFV2", "CreateIPSet", 400, "WAFOptimisticLockException").replace("WAFOptimisticLock", "RequestTimeout"),
    typed("AppConfig", "CreateApplication", 409, "ConflictException"),
    typed("IAM", "CreateRole", 409, "ConcurrentModification"),
    typed("Lambda", "UpdateFunctionCode", 409, "ResourceConflictException", "an update is in progress"),
    typed("DynamoDB", "DeleteTable", 400, "ResourceInUseException"),
    untyped("EC2", "RunInstances", 400, "IdempotentParameterMismatch"),
    typed("IAM", "CreateRole", 500, "ServiceFailure"),
    untyped("IAM", "CreateRole", 400, "InternalFailure"),
    "operation error IAM: CreateRole, https response error StatusCode: 403, RequestID: , deserialization failed",
    "operation error IAM: CreateRole, exceeded maximum number of attempts, 3, https response error StatusCode: 400, "
    "RequestID: 1, api error ExpiredToken: the attempts before it had other answers",
    "operation error IAM: CreateRole, https response error StatusCode: 0, RequestID: , request send failed, "
    'Post "https://iam.amazonaws.com/": EOF',
]
OTHERS = [
    ("Plugin did not respond", "The plugin encountered an error ... ApplyResourceChange call.", K.PLUGIN_CRASH),
    ("Request cancelled", "The plugin.(*GRPCProvider).ApplyResourceChange request was cancelled.", K.PLUGIN_CRASH),
    ("creating SQS Queue (q-int): context canceled", "", K.CANCELLED),
    ("execution halted", "", K.CANCELLED),
    ("operation canceled", "", K.CANCELLED),
    ("The operation was canceled", "", K.CANCELLED),
    ("waiting for EC2 VPC (vpc-1) create: timeout while waiting for state to become 'available'", "", K.WAITING),
    ("Error waiting to create Firewall", "Error waiting for Creating Firewall: rateLimitExceeded", K.WAITING),
    ("reading EC2 VPC (vpc-1): couldn't find resource", "", K.WAITING),
    ("Provider produced inconsistent result", "Root object was present, but now absent.", K.VANISHED),
    ("local-exec provisioner error", "Error running command 'exit 3': exit status 3.", K.OTHER),
    ("", "", K.OTHER),
]


@pytest.mark.parametrize("text", ALREADY)
def test_every_spelling_of_already_exists_is_known(text: str) -> None:
    assert classify(text).kind is K.ALREADY_EXISTS


@pytest.mark.parametrize("text", REFUSALS)
def test_a_clear_refusal_is_one(text: str) -> None:
    assert classify(text).kind is K.REFUSED


@pytest.mark.parametrize("text", UNSURE)
def test_a_busy_throttled_retried_or_broken_answer_proves_nothing(text: str) -> None:
    assert classify(text).kind is K.NO_REPLY


@pytest.mark.parametrize(("summary", "detail", "kind"), OTHERS)
def test_the_engines_own_messages_are_known(summary: str, detail: str, kind: FailureKind) -> None:
    assert classify(summary, detail).kind is kind


def test_an_interrupt_leaves_the_fate_of_the_call_open_whatever_else_is_said() -> None:
    assert classify("context canceled", typed("IAM", "CreateRole", 403, "AccessDenied")).kind is K.CANCELLED


def test_the_safe_line_names_the_call_the_status_and_the_code() -> None:
    for text, line, operation, status in [
        (ALREADY[0], "IAM CreateRole: HTTP 409 EntityAlreadyExists", "CreateRole", 409),
        (ALREADY[5], "S3 CreateBucket: HTTP 409 BucketAlreadyOwnedByYou", "CreateBucket", 409),
        (REFUSALS[0], "IAM CreateRole: HTTP 403 AccessDenied", "CreateRole", 403),
        (UNSURE[-1], "IAM CreateRole: no usable reply", "CreateRole", None),
    ]:
        failure = classify("creating a thing", text)
        assert (failure.detail, failure.operation, failure.http_status) == (line, operation, status)


@pytest.mark.parametrize("text", [*ALREADY, *REFUSALS, *UNSURE, *(f"{a}\n{b}" for a, b, _ in OTHERS)])
def test_nothing_that_a_provider_quotes_reaches_the_safe_line(text: str) -> None:
    quoting = [f"{text} {CANARY}", f"creating {CANARY}: {text}", text.replace("said", CANARY).replace("app", CANARY)]
    assert all(CANARY not in repr(classify(one, one)) for one in quoting)


FREE = st.text(st.sampled_from(string.ascii_letters + string.digits + " :,.()'\"\n{}$/-"), max_size=60)
FRAMES = st.sampled_from([*ALREADY, *REFUSALS, *UNSURE, "", "waiting for", "already exists", "context canceled"])


@given(FREE, FRAMES, FREE)
def test_no_free_text_leaks_into_a_failure(before: str, frame: str, after: str) -> None:
    text = f"{before} {CANARY} {frame} {CANARY} {after}"
    assert CANARY not in repr(classify(text, text))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_classified_in_one_line(summary: str, detail: str) -> None:
    assert "\n" not in classify(summary, detail).detail


@pytest.mark.parametrize("text", ["operation error " * 5000, "operation error A: B," * 3000, "a" * 500_000])
def test_a_long_text_costs_no_more_than_its_length(text: str) -> None:
    assert classify(text).kind in (K.OTHER, K.NO_REPLY)
