"""Objects of the application and operation types: known by what a state holds of them, or made by something else."""

from __future__ import annotations

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.engine.identities import identity_of
from tfguard.inventory.items import as_parent, look_up, to_object
from tfguard.model.inventory import CloudObject, Scope
from tfguard.reconcile.matching import same_object

CATALOG = load_catalog()
ACCOUNT = "123456789012"
REGION = "eu-west-1"


def listed(resource_type: str, item: object, parent: CloudObject | None = None) -> CloudObject:
    """The object that an item of a list answer describes."""
    entry = CATALOG.types[resource_type]
    scope = Scope("aws", ACCOUNT, "global" if entry.is_global else REGION)
    found = to_object(entry, item, scope, "aws", as_parent(parent) if parent else {})
    assert found is not None
    return found


def is_in_state(found: CloudObject, attributes: dict[str, object], resource_type: str | None = None) -> bool:
    """Whether an instance with these attributes is that object."""
    identity = identity_of(CATALOG, resource_type or found.type, attributes, {}, frozenset())
    return same_object(CATALOG.types[found.type], identity, found)


ZONE = listed("aws_route53_zone", {"Id": "/hostedzone/Z1", "Name": "Example.com."})


def record(name: str, kind: str = "A", **more: object) -> CloudObject:
    return listed("aws_route53_record", {"Name": name, "Type": kind, **more}, ZONE)


@pytest.mark.parametrize(
    ("listed_as", "fqdn"),
    [
        ("www.example.com.", "www.example.com"),
        ("WWW.Example.COM.", "www.example.com"),
        ("\\052.example.com.", "*.example.com"),
        ("_dmarc.example.com.", "_dmarc.example.com"),
        ("example.com.", "example.com"),
    ],
)
def test_record_is_known_by_its_full_name_however_it_is_written(listed_as: str, fqdn: str) -> None:
    found = record(listed_as)
    held: dict[str, object] = {"zone_id": "Z1", "type": "A", "fqdn": fqdn, "set_identifier": ""}
    assert found.import_id == f"Z1_{fqdn}_A"
    assert is_in_state(found, {**held, "name": "www", "id": "Z1_www_A"})
    assert is_in_state(found, {**held, "set_identifier": None})
    assert not is_in_state(found, {**held, "type": "AAAA"})
    assert not is_in_state(found, {**held, "zone_id": "Z2"})


def test_records_of_one_name_are_told_apart_by_their_set() -> None:
    found = record("www.example.com.", SetIdentifier="blue")
    held: dict[str, object] = {"zone_id": "Z1", "type": "A", "fqdn": "www.example.com"}
    assert found.import_id == "Z1_www.example.com_A_blue"
    assert is_in_state(found, {**held, "set_identifier": "blue"})
    assert not is_in_state(found, {**held, "set_identifier": "green"})
    assert not is_in_state(found, held)


def test_name_servers_of_the_zone_itself_are_made_with_it_and_those_of_a_part_are_not() -> None:
    apex = ZONE.identity["zone_id+name"]
    for name, is_the_zones_own in (("example.com.", True), ("part.example.com.", False)):
        makers = {maker.type: maker for maker in record(name, "NS").made_by}
        assert makers["aws_route53_zone"].key == "zone_id+name"
        assert (makers["aws_route53_zone"].value == apex) == is_the_zones_own
    assert "aws_route53_zone" not in {maker.type for maker in record("example.com.", "MX").made_by}
    assert record("example.com.", "SOA").ignored_because == "made with its zone"


def test_record_that_external_dns_marks_is_ignored() -> None:
    mark = {"Value": '"heritage=external-dns,external-dns/owner=main"'}
    assert record("app.example.com.", "TXT", ResourceRecords=[mark]).ignored_because == "made by external-dns"
    assert record("app.example.com.", "TXT", ResourceRecords=[{"Value": '"v=spf1"'}]).ignored_because is None


def test_target_of_a_rule_is_known_by_bus_rule_and_id_and_not_by_the_arn_that_it_leads_to() -> None:
    rule = {"Name": "nightly", "EventBusName": "default", "Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/nightly"}
    parent = listed("aws_cloudwatch_event_rule", rule)
    assert parent.import_id == "nightly"
    found = listed("aws_cloudwatch_event_target", {"Id": "job", "Arn": "arn:aws:sqs:::any"}, parent)
    held: dict[str, object] = {"event_bus_name": "default", "rule": "nightly", "target_id": "job"}
    assert is_in_state(found, held)
    assert not is_in_state(found, {**held, "rule": "hourly", "arn": "arn:aws:sqs:::any"})
    assert found.import_id == "default/nightly/job"


def test_rule_of_another_bus_is_imported_with_the_name_of_the_bus() -> None:
    rule = {
        "Name": "nightly",
        "EventBusName": "orders",
        "Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/orders/nightly",
    }
    assert listed("aws_cloudwatch_event_rule", rule).import_id == "orders/nightly"


def test_any_revision_that_a_state_holds_claims_its_task_definition() -> None:
    family = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/app"
    item = {"Item": "app", "family": "app", "taskDefinitionArn": f"{family}:9", "revision": 9}
    found = listed("aws_ecs_task_definition", item)
    assert found.import_id == f"{family}:9"
    assert is_in_state(found, {"arn": f"{family}:7", "arn_without_revision": family, "family": "app", "id": "app"})
    assert not is_in_state(found, {"arn": f"{family}2:1", "arn_without_revision": f"{family}2", "family": "app2"})


def test_service_is_imported_by_its_clusters_name_also_with_the_old_kind_of_arn() -> None:
    cluster = listed("aws_ecs_cluster", {"Item": f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/main"})
    arn = f"arn:aws:ecs:{REGION}:{ACCOUNT}:service/web"
    found = listed("aws_ecs_service", {"Item": arn}, cluster)
    assert (found.import_id, found.arn) == ("main/web", arn)
    for named_as in (cluster.arn, "main"):
        assert is_in_state(found, {"id": arn, "name": "web", "cluster": named_as})


@pytest.mark.parametrize(
    ("name", "maker", "key", "value"),
    [
        ("/aws/lambda/send", "aws_lambda_function", "function_name", "send"),
        ("/aws/codebuild/app", "aws_codebuild_project", "name", "app"),
        ("/aws/eks/main/cluster", "aws_eks_cluster", "name", "main"),
        ("/aws/rds/instance/db/postgresql", "aws_db_instance", "identifier", "db"),
        ("API-Gateway-Execution-Logs_ab12/prod", "aws_api_gateway_rest_api", "id", "ab12"),
        ("sns/eu-west-1/123456789012/alerts", "aws_sns_topic", "name", "alerts"),
    ],
)
def test_log_group_names_the_object_for_which_its_service_made_it(name: str, maker: str, key: str, value: str) -> None:
    found = listed("aws_cloudwatch_log_group", {"logGroupName": name})
    assert found.ignored_because is None
    assert [(made.type, made.key, made.value, made.certain) for made in found.made_by] == [(maker, key, value, False)]


def test_log_group_that_no_service_makes_has_no_maker() -> None:
    assert listed("aws_cloudwatch_log_group", {"logGroupName": "/app/lambda/send"}).made_by == ()
    assert listed("aws_cloudwatch_log_group", {"logGroupName": "/aws/lambda/us-east-1.edge"}).ignored_because


def test_unconfirmed_subscriptions_are_not_taken_for_one_another() -> None:
    topic = f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts"
    found = listed(
        "aws_sns_topic_subscription",
        {"SubscriptionArn": "PendingConfirmation", "TopicArn": topic, "Protocol": "email", "Owner": ACCOUNT},
    )
    assert found.arn is None
    assert found.ignored_because == "waits to be confirmed, and else ends by itself"
    assert not is_in_state(found, {"arn": f"{topic}:1", "topic_arn": topic, "protocol": "email"})


def test_mail_identity_is_known_under_the_types_of_both_versions() -> None:
    found = listed("aws_sesv2_email_identity", {"IdentityName": "example.com"})
    arn = f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/example.com"
    assert is_in_state(found, {"domain": "example.com", "arn": arn}, "aws_ses_domain_identity")
    assert is_in_state(found, {"email_identity": "example.com", "arn": arn})
    assert not is_in_state(found, {"domain": "example.org", "arn": f"{arn}.org"}, "aws_ses_domain_identity")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("after(Name, '/box/')", "one"), ("after(Name, '/bo')", "x"), ("after(Name, '/other/')", None)],
)
def test_after_is_what_follows_a_start_up_to_the_next_slash(expression: str, expected: str | None) -> None:
    assert look_up(expression, {"Name": "/box/one/two"}) == expected
    assert look_up(f"{expression} || `null`", {"Name": "/box/one/two"}) == expected  # not by the short way
    assert look_up(expression, {"Name": 7}) is None
    assert look_up(expression, {}) is None


def test_zone_of_a_namespace_and_its_records_may_be_made_by_it() -> None:
    properties = {"DnsProperties": {"HostedZoneId": "Z1"}}
    item = {"Id": "ns-1", "Name": "app.local", "Type": "DNS_PRIVATE", "Properties": properties}
    namespace = listed("aws_service_discovery_private_dns_namespace", item)
    for found in (ZONE, record("web.example.com.")):
        (made,) = [maker for maker in found.made_by if maker.type == namespace.type]
        assert (made.value, made.certain) == (namespace.identity[made.key], False)
