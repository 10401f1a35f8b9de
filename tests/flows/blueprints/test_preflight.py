"""What is looked at before the first step of a blueprint, what fails it, and what is only said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tfguard.blueprint_ports import CallEnd, StackCall, StackFacts, StackLook, StackPlace
from tfguard.catalog.loader import load_catalog
from tfguard.errors import (
    InputError,
    InterruptedRunError,
    NoEngineError,
    NotInitialisedError,
    PreflightError,
    RecordError,
    TfguardError,
    UsageError,
)
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.preflight import Preflight, preflight, refuse_failures, skipped_checks
from tfguard.flows.blueprints.preflight_clouds import PreflightPorts
from tfguard.flows.blueprints.requests import Requests
from tfguard.flows.context import StackContext
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_quotas import AwsQuotas
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import Activity, BlueprintObject, Request, RequestEvent, RequestIntent, fold
from tfguard.model.blueprint_view import PlanOutline
from tfguard.model.config import Config
from tfguard.model.credentials import Expiry
from tfguard.model.engine import EngineInfo
from tfguard.model.inventory import CloudObject, Gap, Listing, Scope
from tfguard.model.operation import Actor, Stack, StepStatus
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus, Limit, Quota
from tfguard.schemas.blueprint_file import parse_blueprint
from tfguard.stores.local import LocalStore

CATALOG = load_catalog()
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AWS = "registry.terraform.io/hashicorp/aws"
BUILTIN = "terraform.io/builtin/terraform"
TEXT = """
apiVersion: tfguard/v1
kind: Blueprint
name: service
steps:
  network: {stack: network}
  service: {stack: service, needs: [network], vars: {vpc: "${steps.network.outputs.vpc}"}}
"""
ONE = "apiVersion: tfguard/v1\nkind: Blueprint\nname: service\nsteps: {network: {stack: network}}\n"
OK, FAILED, UNKNOWN, SKIPPED = CheckStatus.OK, CheckStatus.FAILED, CheckStatus.UNKNOWN, CheckStatus.SKIPPED


def provider(region: str = "eu-west-1", **settings: str) -> ProviderConfig:
    """A provider block."""
    return ProviderConfig("aws", AWS, {"region": region, **settings})


def create(kind: str, action: Action = Action.CREATE, source: str = AWS, **more: Any) -> PlannedChange:
    """A planned change."""
    return PlannedChange(f"{kind}.x", kind, source, action, "aws", **more)


def plan(*changes: PlannedChange, block: ProviderConfig | None = None) -> Plan:
    """A plan of these changes."""
    return Plan("1.11.4", changes, {"aws": block or provider()})


@dataclass
class Stacks:
    """Stacks whose plans a test gives, by the name of the folder."""

    plans: dict[str, Plan | str] = field(default_factory=dict)
    looks: dict[str, StackLook] = field(default_factory=dict)
    init_exit: int = 0
    initialised: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    locations: dict[str, str] = field(default_factory=dict)
    calls: list[StackCall] = field(default_factory=list)

    def facts(self, place: StackPlace) -> StackFacts:
        name = place.directory.name
        return StackFacts(self.locations.get(name, f"{name} {place.workspace or 'default'}"), None)

    def look(self, place: StackPlace) -> StackLook:
        return self.looks.get(place.directory.name, StackLook(managed=0))

    def initialise(self, place: StackPlace, step: str) -> CallEnd:  # noqa: ARG002 (the port's signature)
        self.initialised.append(step)
        return CallEnd(self.init_exit, tail=("no such provider",) if self.init_exit else ())

    def plan(self, call: StackCall) -> Plan | str:
        self.planned.append(call.place.directory.name)
        self.calls.append(call)
        return self.plans.get(call.place.directory.name, plan())

    def outputs(self, place: StackPlace) -> Mapping[str, Any]:  # noqa: ARG002 (the port's signature)
        return {"vpc": SimpleNamespace(value="vpc-1", sensitive=False)}


@dataclass
class Cloud:
    """An inventory that has so many objects of each type, and the limits of an account."""

    count: dict[str, int] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    account: str | None = "123456789012"
    identity: dict[str, str] = field(default_factory=dict)
    owner: str | None = None
    asked: list[str] = field(default_factory=list)

    def covers(self, kind: str) -> bool:
        return (entry := CATALOG.get(kind)) is not None and entry.list is not None

    def place(self, kind: str, block: ProviderConfig, region: str | None = None) -> Scope:
        entry = CATALOG.get(kind)
        where = "global" if entry is not None and entry.is_global else region or block.settings["region"]
        return Scope("aws", self.account, where, block.key)

    def list(self, kind: str, block: ProviderConfig, region: str | None = None) -> Listing:
        self.asked.append(kind)
        scope = self.place(kind, block, region)
        found = tuple(
            CloudObject("aws", self.account, scope.region, kind, f"{n}", f"{n}", self.identity, owner=self.owner)
            for n in range(self.count.get(kind, 0))
        )
        return Listing(kind, scope, found, Gap(f"{scope}", self.gaps[kind]) if kind in self.gaps else None)

    def limit(self, quota: Quota, block: ProviderConfig, scope: Scope) -> Limit:  # noqa: ARG002 (the port's signature)
        return self.limits.get(quota.code, Limit(100))


@dataclass
class Scene:
    """A blueprint beside a folder for records, with everything that its preflight asks."""

    folder: Path
    text: str = TEXT
    stacks: Stacks = field(default_factory=Stacks)
    cloud: Cloud = field(default_factory=Cloud)
    ends: tuple[Expiry, ...] = ()
    troubles: dict[str, TfguardError] = field(default_factory=dict)
    events: tuple[RequestEvent, ...] = ()
    said: list[str] = field(default_factory=list)
    quotas: Any = None
    inventory: Any = None

    @property
    def request(self) -> Request:
        """What the events add up to."""
        return fold(RequestIntent("01A", "service", "b.yaml", "d", NOW, "me", "me", "cc"), self.events)

    @property
    def context(self) -> BlueprintContext:
        """The blueprint with what is around it."""
        store = LocalStore(self.folder / "record")
        host: Any = SimpleNamespace(actor=lambda: Actor("me", "here"))
        requests = Requests(store, self.clock, host, self.console)
        stacks: Any = self.stacks
        none: Any = None
        return BlueprintContext(
            parse_blueprint(self.text).value, self.text, self.folder / "b.yaml", requests, stacks, none, none, Config(),
            self.console, str,
        )  # fmt: skip

    @property
    def clock(self) -> Any:
        """A clock that stands still."""
        return SimpleNamespace(now=lambda: NOW, interrupted=False)

    @property
    def console(self) -> Any:
        """What is said goes to `said`."""
        return SimpleNamespace(say=self.said.append, warn=self.said.append)

    def open(self, place: StackPlace) -> StackContext:
        """The stack in a folder."""
        name = place.directory.name
        if (error := self.troubles.get(name)) is not None:
            if isinstance(error, NotInitialisedError):
                del self.troubles[name]
            raise error
        around = Surroundings(self.ports.inventory, CATALOG, Config(), self.clock, self.console)
        engine: Any = SimpleNamespace(info=EngineInfo("terraform", "1.11.4"))
        records = Records(LocalStore(self.folder / f"{name}.tfguard"), self.clock, SimpleNamespace())  # type: ignore[arg-type]
        credentials: Any = SimpleNamespace(expiries=lambda _: self.ends)
        host: Any = None
        return StackContext(
            Stack("local", name, "default", str(place.directory)),
            engine,
            records,
            around,
            host,
            credentials=credentials,
        )

    @property
    def ports(self) -> PreflightPorts:
        """What the preflight asks."""
        return PreflightPorts(self.open, self.inventory or self.cloud, CATALOG, self.quotas or self.cloud)

    def look(self, **skipped: str) -> Sequence[CheckResult]:
        """The preflight."""
        return preflight(self.context, self.request, skipped, self.ports)

    def told(self, check: CheckName, **skipped: str) -> list[tuple[CheckStatus, str]]:
        """What one check says."""
        return [(result.status, result.detail) for result in self.look(**skipped) if result.name is check]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Two stacks, the second of which takes an output of the first."""
    scene = Scene(tmp_path)
    scene.stacks.plans["network"] = plan(create("aws_vpc"))
    return scene


def done(step: str) -> RequestEvent:
    """A step that came to its end."""
    return RequestEvent(NOW, "me", "applied", step=step, status=StepStatus.OK)


def test_after_an_interrupt_no_further_stack_is_planned_and_no_refusal_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    intents: list[int] = []

    def interrupted(call: StackCall) -> str:
        scene.stacks.planned.append(call.place.directory.name)
        intents.append(1)
        return "Error: operation canceled"

    monkeypatch.setattr(scene.stacks, "plan", interrupted)
    context = replace(
        scene.context, intents=lambda: len(intents), blueprint=parse_blueprint(TEXT + "parallel: 1\n").value
    )
    with pytest.raises(InterruptedRunError, match="nothing was changed"):
        preflight(context, scene.request, {}, scene.ports)
    assert (scene.stacks.planned, scene.said) == (["network"], [])


def test_nothing_in_the_way_names_every_check_and_refuses_nothing(scene: Scene) -> None:
    scene.text = ONE
    results = scene.look()
    assert {result.name for result in results} == set(CheckName)
    assert {result.status for result in results} == {OK}
    refuse_failures(scene.context, results)
    assert scene.said == []
    assert not (scene.folder / "record").exists()
    assert not (scene.folder / "network.tfguard").exists()


def test_what_takes_outputs_that_are_not_there_is_not_known_before_that_step(scene: Scene) -> None:
    assert scene.told(CheckName.STACKS) == [
        (OK, "planned: network (1 to create)"),
        (UNKNOWN, "service: not known before network"),
    ]
    assert scene.stacks.planned == ["network"]
    for check in (CheckName.PERMISSIONS, CheckName.QUOTAS):
        assert (UNKNOWN, "what service makes: not known before network") in scene.told(check)


def test_what_is_done_is_not_planned_again_and_its_outputs_are_used(scene: Scene) -> None:
    scene.events = (done("network"),)
    scene.stacks.looks["network"] = StackLook(operation_id="01O", managed=1)
    scene.stacks.plans["service"] = plan(create("aws_iam_role"))
    assert scene.told(CheckName.STACKS) == [(OK, "planned: service (1 to create)")]
    assert scene.stacks.planned == ["service"]


def test_a_stack_that_cannot_be_planned_fails_unless_something_before_it_is_missing(scene: Scene) -> None:
    scene.text = TEXT.replace(', vars: {vpc: "${steps.network.outputs.vpc}"}', "")
    scene.stacks.plans["service"] = "no such remote state"
    assert (UNKNOWN, "service: not known before network (no such remote state)") in scene.told(CheckName.STACKS)
    scene.stacks.plans["network"] = "no such variable"
    assert scene.told(CheckName.STACKS)[0] == (FAILED, "network: no such variable")


def test_a_stack_is_set_up_before_it_is_planned(scene: Scene) -> None:
    scene.troubles["network"] = NotInitialisedError("network is not initialised", "init")
    assert scene.told(CheckName.STACKS)[0] == (OK, "planned: network (1 to create)")
    assert scene.stacks.initialised == ["network"]
    scene.stacks.init_exit = 1
    assert scene.told(CheckName.STACKS)[0] == (FAILED, "network: its `init` ended with 1: no such provider")


def test_without_an_engine_that_alone_fails_and_keeps_its_exit_code(scene: Scene) -> None:
    scene.troubles["network"] = NoEngineError("no terraform on the PATH", "install it")
    results = scene.look()
    assert [result.detail for result in results if result.status is FAILED] == ["network: no terraform on the PATH"]
    with pytest.raises(NoEngineError) as caught:
        refuse_failures(scene.context, results)
    assert "the preflight failed: engine; nothing was changed" in caught.value.what
    assert "--skip-check engine=REASON" in caught.value.advice
    assert scene.said[0] == "preflight: engine: network: no terraform on the PATH; install it"


def test_every_place_of_a_record_must_be_writable(scene: Scene) -> None:
    (scene.folder / "network.tfguard").write_text("a file where a folder should be")
    ((status, detail), *_) = scene.told(CheckName.RECORDS)
    assert status is FAILED
    assert detail.startswith("network: ")
    with pytest.raises(RecordError):
        refuse_failures(scene.context, scene.look())
    (scene.folder / "record").write_text("this one, too")
    assert scene.told(CheckName.RECORDS)[0][1].startswith("of the request: ")


def test_a_stack_whose_state_has_no_place_for_a_record_fails_that_check(scene: Scene) -> None:
    scene.troubles["network"] = RecordError("no place beside the state", "add records:")
    assert (FAILED, "network: no place beside the state") in scene.told(CheckName.RECORDS)


@pytest.mark.parametrize(
    ("left", "for_sign_in", "status"),
    [(60, False, OK), (14, False, FAILED), (-5, False, FAILED), (14, True, OK), (-5, True, FAILED)],
)
def test_credentials_must_last_a_quarter_of_an_hour_where_no_run_is_known(
    scene: Scene, left: int, for_sign_in: bool, status: CheckStatus
) -> None:
    scene.text = ONE
    scene.ends = (Expiry("AWS_X", NOW + timedelta(minutes=left), for_sign_in),)
    ((found, detail),) = scene.told(CheckName.CREDENTIALS)
    assert found is status
    assert "AWS_X" in detail or for_sign_in


def test_each_of_several_stacks_signs_in_anew(scene: Scene) -> None:
    scene.text = TEXT.replace(', vars: {vpc: "${steps.network.outputs.vpc}"}', "")
    scene.ends = (Expiry("ARM_OIDC_TOKEN", NOW + timedelta(minutes=5), True),)
    assert scene.told(CheckName.CREDENTIALS)[0][0] is FAILED


def test_runs_behind_one_another_add_up(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.ends = (Expiry("AWS_X", NOW + timedelta(minutes=59)),)
    monkeypatch.setattr("tfguard.flows.blueprints.preflight.longest_run", lambda _: timedelta(minutes=20))
    assert scene.told(CheckName.CREDENTIALS) == [
        (FAILED, "they expire in 59 min (AWS_X), and what is to be done may take 1 h 0 min")
    ]
    scene.text = TEXT.replace(", needs: [network]", "").replace("${steps.network.outputs.vpc}", "x")
    assert scene.told(CheckName.CREDENTIALS)[0][0] is OK


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("UnauthorizedOperation on DescribeVpcs", FAILED),
        ("AccessDenied on ListRoles", FAILED),
        ("ExpiredToken on GetCallerIdentity", FAILED),
        ("ReadTimeoutError on DescribeVpcs", UNKNOWN),
        ("region of aws is not in the plan", UNKNOWN),
    ],
)
def test_a_list_that_is_refused_fails_and_one_that_nobody_answers_is_not_known(
    scene: Scene, reason: str, status: CheckStatus
) -> None:
    scene.text, scene.cloud.gaps = ONE, {"aws_vpc": reason}
    ((found, detail),) = scene.told(CheckName.PERMISSIONS)
    assert (found, detail) == (status, f"aws_vpc in aws 123456789012 eu-west-1 cannot be listed: {reason}")
    (quota,) = scene.told(CheckName.QUOTAS)
    assert quota == (UNKNOWN, f"how many aws_vpc there are in aws 123456789012 eu-west-1: {reason}")


def test_types_that_nothing_lists_or_limits_are_named(scene: Scene) -> None:
    scene.text = ONE
    scene.stacks.plans["network"] = plan(create("aws_strange"), create("terraform_data", source=BUILTIN))
    assert scene.told(CheckName.PERMISSIONS) == [(UNKNOWN, "nothing lists aws_strange")]
    assert scene.told(CheckName.QUOTAS) == [
        (UNKNOWN, "whether a limit applies to aws_strange: the catalogue names none")
    ]


@pytest.mark.parametrize(
    ("exist", "limit", "reserve", "status", "kept"),
    [
        (3, 5, "10%", OK, 1),
        (4, 5, "10%", FAILED, 1),
        (4, 5, "0", OK, 0),
        (88, 100, "10%", OK, 10),
        (89, 100, "10%", OK, 10),
        (90, 100, "10%", FAILED, 10),
        (2, 5, "2", OK, 2),
        (3, 5, "2", FAILED, 2),
    ],
)
def test_what_is_planned_must_fit_with_what_stays_free(
    scene: Scene, exist: int, limit: int, reserve: str, status: CheckStatus, kept: int
) -> None:
    scene.text = f"{ONE}preflight: {{reserve: {reserve}}}\n"
    scene.cloud.count, scene.cloud.limits = {"aws_vpc": exist}, {"L-F678F1CE": Limit(limit)}
    (result,) = [one for one in scene.look() if one.name is CheckName.QUOTAS]
    told = f"aws_vpc in aws 123456789012 eu-west-1: {exist} exist, 1 planned, {kept} kept free; the limit is {limit}"
    assert (result.status, result.detail) == (status, told)
    assert ("L-F678F1CE raised to" in result.advice) is (status is FAILED)


def test_a_limit_that_cannot_be_read_is_not_known_and_stops_nothing(scene: Scene) -> None:
    scene.text, scene.cloud.limits = ONE, {"L-F678F1CE": Limit(None, "AccessDenied on GetServiceQuota")}
    results = scene.look()
    refuse_failures(scene.context, results)
    assert scene.said == [
        "preflight: quotas: not known: the limit of aws_vpc in aws 123456789012 eu-west-1: "
        "AccessDenied on GetServiceQuota"
    ]


@pytest.mark.parametrize("account", ["123456789012", None])
def test_what_several_stacks_plan_in_one_place_adds_up_and_is_listed_once(scene: Scene, account: str | None) -> None:
    scene.text = TEXT.replace(', vars: {vpc: "${steps.network.outputs.vpc}"}', "")
    scene.stacks.plans["service"] = plan(create("aws_vpc"), create("aws_vpc", region="us-east-1"))
    scene.cloud.account = account
    told = [detail.partition(": ")[2] for _, detail in scene.told(CheckName.QUOTAS)]
    assert told == [f"0 exist, {planned} planned, 10 kept free; the limit is 100" for planned in (2, 1)]
    assert scene.cloud.asked == ["aws_vpc", "aws_vpc"]


def test_all_types_that_share_a_limit_are_counted(scene: Scene) -> None:
    scene.text = ONE
    scene.stacks.plans["network"] = plan(create("aws_db_instance"))
    scene.cloud.count = {"aws_db_instance": 1, "aws_rds_cluster_instance": 20, "aws_docdb_cluster_instance": 3}
    ((_, detail),) = scene.told(CheckName.QUOTAS)
    assert "aws_db_instance, aws_docdb_cluster_instance, " in detail
    assert ": 24 exist, 1 planned" in detail


def test_a_limit_counts_only_the_kind_that_it_is_for(scene: Scene) -> None:
    scene.text = ONE
    scene.stacks.plans["network"] = plan(create("aws_lb", desired={"load_balancer_type": "network"}))
    scene.cloud.count, scene.cloud.identity = {"aws_lb": 3}, {"load_balancer_type": "application"}
    scene.cloud.limits = {"L-53DA6B97": Limit(0), "L-69A177A2": Limit(7)}
    ((status, detail),) = scene.told(CheckName.QUOTAS)
    assert (status, detail.partition(": ")[2]) == (OK, "0 exist, 1 planned, 1 kept free; the limit is 7")


def test_only_what_is_one_more_counts(scene: Scene) -> None:
    scene.text, scene.cloud.count, scene.cloud.owner = ONE, {"aws_vpc": 4}, "999999999999"
    scene.stacks.plans["network"] = plan(
        create("aws_vpc", Action.UPDATE),
        create("aws_vpc", Action.REPLACE),
        create("aws_vpc", Action.REPLACE, create_first=True),
        create("aws_vpc", Action.DELETE),
    )
    ((_, detail),) = scene.told(CheckName.QUOTAS)
    assert ": 0 exist, 1 planned" in detail  # the four are another account's, and shared with this one


def test_a_check_is_left_out_for_a_reason_which_is_kept(scene: Scene) -> None:
    scene.cloud.limits = {"L-F678F1CE": Limit(0)}
    results = scene.look(quotas="raised yesterday")
    assert [(r.status, r.detail) for r in results if r.name is CheckName.QUOTAS] == [(SKIPPED, "raised yesterday")]
    refuse_failures(scene.context, results)
    assert skipped_checks(results) == {"quotas": "raised yesterday"}
    assert "preflight: quotas: skipped: raised yesterday" in scene.said


def test_without_plans_nothing_passes_in_silence(scene: Scene) -> None:
    scene.text = ONE
    reason = "what network makes: the check `stacks` is skipped"
    for check in (CheckName.PERMISSIONS, CheckName.QUOTAS):
        assert scene.told(check, stacks="no time") == [(UNKNOWN, reason)]
    assert scene.stacks.planned == scene.stacks.initialised == []


@pytest.mark.parametrize(
    ("skipped", "what"), [({"quota": "x"}, "no check quota"), ({"quotas": " "}, "without a reason")]
)
def test_only_a_known_check_is_left_out_and_not_without_a_reason(
    scene: Scene, skipped: dict[str, str], what: str
) -> None:
    with pytest.raises(UsageError) as caught:
        scene.look(**skipped)
    assert what in caught.value.what


def test_every_failure_is_said_with_its_advice_and_nothing_else_is_raised_than_their_names(scene: Scene) -> None:
    scene.text, scene.cloud.limits = ONE, {"L-F678F1CE": Limit(1)}
    scene.ends = (Expiry("AWS_X", NOW),)
    with pytest.raises(PreflightError) as caught:
        refuse_failures(scene.context, scene.look())
    assert caught.value.what == "the preflight failed: credentials, quotas; nothing was changed"
    assert scene.said[0] == "preflight: credentials: they expired 0 s ago (AWS_X); renew them"
    assert scene.said[1].endswith("have the quota vpc L-F678F1CE raised to 2, or remove what is not used")


def test_outputs_that_cannot_be_read_are_told_as_such(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: StackPlace) -> Mapping[str, Any]:
        raise InputError("the outputs cannot be read", "mend the state")

    scene.events = (done("network"),)
    scene.stacks.looks["network"] = StackLook(operation_id="01O", managed=1)
    monkeypatch.setattr(scene.stacks, "outputs", unreadable)
    assert (FAILED, "service: the outputs cannot be read") in scene.told(CheckName.STACKS)


REGION_OF_ITS_OWN = "af-south-1"
"""The simulation keeps its objects for the whole process: other tests make theirs elsewhere."""


@pytest.fixture(scope="module")
def aws_server() -> Iterator[str]:
    """The URL of a simulated AWS."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_quotas_of_a_simulated_account_against_what_is_in_it(
    scene: Scene, aws_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    ec2 = boto3.client(
        "ec2", REGION_OF_ITS_OWN, endpoint_url=aws_server, aws_access_key_id="test", aws_secret_access_key="test"
    )
    block = provider(REGION_OF_ITS_OWN, endpoint_url=aws_server, access_key="test", secret_key="test")
    scene.text, scene.inventory, scene.quotas = ONE, AwsInventory(CATALOG), AwsQuotas(CATALOG)
    scene.stacks.plans["network"] = plan(create("aws_vpc"), create("aws_iam_role"), block=block)

    def told() -> list[tuple[CheckStatus, str]]:
        return [(status, detail.partition(": ")[2]) for status, detail in scene.told(CheckName.QUOTAS)]

    not_known = (UNKNOWN, "NoSuchResourceException on ListAWSDefaultServiceQuotas")
    assert told() == [(OK, "1 exist, 1 planned, 1 kept free; the limit is 5"), not_known]
    for number in range(3):
        ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")
    assert told() == [(FAILED, "4 exist, 1 planned, 1 kept free; the limit is 5"), not_known]
    ((status, detail),) = scene.told(CheckName.PERMISSIONS)
    assert (status, detail.partition(";")[0]) == (OK, "aws_iam_role, aws_vpc can be listed")


def test_two_folders_that_turn_out_to_have_one_state_fail(scene: Scene) -> None:
    scene.stacks.locations = {"network": "s3 bucket/key default", "service": "s3 bucket/key default"}
    assert (FAILED, "service: it has the same state as the step network: s3 bucket/key default") in scene.told(
        CheckName.STACKS
    )


def test_a_stack_is_planned_in_the_environment_of_its_step(scene: Scene) -> None:
    scene.text = ONE.replace("stack: network", "stack: network, environment: {AWS_PROFILE: prod}")
    scene.look()
    assert [call.place.environment for call in scene.stacks.calls] == [{"AWS_PROFILE": "prod"}]


@pytest.mark.parametrize(
    ("said", "kind", "action", "told"),
    [
        ("", "aws_db_instance", Action.REPLACE, "would be replaced"),
        ("", "aws_db_instance", Action.DELETE, "would be deleted"),
        ("", "aws_db_instance", Action.UPDATE, None),
        ("", "aws_iam_role", Action.REPLACE, None),
        (", stateful: true", "aws_iam_role", Action.REPLACE, "would be replaced"),
        (", stateful: false", "aws_db_instance", Action.DELETE, None),
    ],
)
def test_a_plan_that_takes_data_away_fails(
    scene: Scene, said: str, kind: str, action: Action, told: str | None
) -> None:
    scene.text = ONE.replace("stack: network", f"stack: network{said}")
    scene.stacks.plans["network"] = plan(create(kind, action))
    ((status, detail),) = scene.told(CheckName.DATA)
    assert status is (FAILED if told else OK)
    assert not told or detail == f"network: {kind}.x, which holds data, {told}"
    assert scene.told(CheckName.DATA, data="it is a copy") == [(SKIPPED, "it is a copy")]


def test_what_becomes_of_data_is_not_known_without_a_plan(scene: Scene) -> None:
    scene.text = ONE.replace("stack: network", "stack: network, stateful: true")
    begun = RequestEvent(NOW, "me", "x", step="network", status=StepStatus.RUNNING, activity=Activity.APPLY)
    scene.events = (begun,)
    ((status, detail),) = scene.told(CheckName.DATA, stacks="it is slow")
    assert (status, detail.startswith("what becomes of the data of network")) == (UNKNOWN, True)


def test_what_builds_on_a_step_that_is_done_anew_is_planned_too(scene: Scene) -> None:
    scene.events = (replace(done("network"), work="earlier"), replace(done("service"), work=None))
    for name in ("network", "service"):
        scene.stacks.looks[name] = StackLook(operation_id="01O", managed=1)
    scene.look()
    assert sorted(scene.stacks.planned) == ["network", "service"]


def test_what_the_engine_would_do_is_counted_as_it_counts(scene: Scene) -> None:
    actions = (Action.CREATE, Action.UPDATE, Action.DELETE, Action.REPLACE, Action.NOOP, Action.FORGET)
    changes = [replace(create("aws_vpc", action), address=f"aws_vpc.{action.name.lower()}") for action in actions]
    scene.stacks.plans["network"] = plan(*changes)
    look = Preflight(scene.context, scene.request, {}, scene.ports)
    look.plan_alone()
    assert look.outlines() == {
        "network": PlanOutline(2, 1, 2, ("aws_vpc.delete",), ("aws_vpc.replace",)),
        "service": PlanOutline(untold="cannot be planned before network gives its outputs"),
    }
    assert scene.cloud.asked == [], "what else a preflight checks is not asked"


def test_what_could_not_be_planned_says_why(scene: Scene) -> None:
    look = Preflight(scene.context, scene.request, {"stacks": "in a hurry"}, scene.ports)
    look.run()
    assert look.outlines()["network"] == PlanOutline(untold="not planned: the check `stacks` is skipped")
    scene.troubles["network"] = NoEngineError("no engine", "install one")
    look = Preflight(scene.context, scene.request, {}, scene.ports)
    look.plan_alone()
    assert look.outlines()["network"] == replace(look.outlines()["network"], refused=True)
    assert look.refusals() == {"network": "no engine"}


def test_the_words_of_an_engine_that_refuses_a_plan_are_for_the_user_alone(scene: Scene) -> None:
    scene.stacks.plans["network"] = "Error: hunter2 is no size"
    look = Preflight(scene.context, scene.request, {}, scene.ports)
    look.plan_alone()
    assert (look.outlines()["network"].refused, "hunter2" in look.outlines()["network"].untold) == (True, False)
    assert look.outlines()["service"] == PlanOutline(untold="cannot be planned before network gives its outputs")
    assert look.refusals() == {"network": "Error: hunter2 is no size"}


def test_data_that_would_be_made_anew_fails_without_a_person_s_word(scene: Scene) -> None:
    scene.text = ONE.replace("stack: network", "stack: network, stateful: true")
    data = BlueprintObject("aws_vpc.x", "aws_vpc", observed_id="vpc-1")
    scene.events = (replace(done("network"), work="earlier", objects=(data,)),)
    scene.stacks.looks["network"] = StackLook(operation_id="01O", managed=1)
    scene.stacks.plans["network"] = plan(create("aws_vpc"))
    ((status, detail),) = scene.told(CheckName.DATA)
    assert (status, "aws_vpc.x, which holds data, would be made anew without it" in detail) == (FAILED, True)
    word = {"network": Told(False, "it was a copy")}
    results = Preflight(scene.context, scene.request, {}, scene.ports, word).run()
    assert [one.status for one in results if one.name is CheckName.DATA] == [OK]


def test_a_plan_by_outputs_that_are_about_to_change_says_so(scene: Scene) -> None:
    scene.events = (
        done("network"),
        RequestEvent(NOW, "me", "failed", step="network", status=StepStatus.OK, work="old"),
    )
    scene.stacks.looks["network"] = StackLook(operation_id="01O", managed=1)
    scene.stacks.plans["service"] = plan(create("aws_iam_role"))
    look = Preflight(scene.context, scene.request, {}, scene.ports)
    look.plan_alone()
    assert look.outlines()["service"] == PlanOutline(1, by_outputs_of=("network",))
    scene.stacks.plans["network"] = plan()
    look = Preflight(scene.context, scene.request, {}, scene.ports)
    look.plan_alone()
    assert look.outlines()["service"] == PlanOutline(1), "an apply that does nothing changes no output"
