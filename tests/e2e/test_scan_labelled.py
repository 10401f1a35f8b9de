"""A scan of an account in which the right answer is known of every object: it names every orphan, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import botocore
import botocore.session
import pytest
from helpers import Json

from fixtures.aws_sim import REGION, MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.fault_rules import ArmedRule
from fixtures.labelled.account import QUERY, STATES, LabelledAccount, WallClock
from fixtures.labelled.labels import VERDICTS, Label, Labelled
from fixtures.labelled.objects import RULES
from fixtures.labelled.stacks import BUCKETS, LOST, STACKS, Stacks
from fixtures.leftovers import end_processes_in
from fixtures.terraform_env import terraform_environment
from tests.conftest import ROOT, TFGUARD
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.types import ResourceType
from tfguard.cli.invocation import Invocation
from tfguard.cli.states import state_sources
from tfguard.engine.host import LocalHost
from tfguard.errors import ExitCode
from tfguard.flows.scan import ScanPorts, ScanRequest, exit_code_of, scan
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.combined import CombinedInventory
from tfguard.inventory.shards import lister_for, shards_for
from tfguard.model.config import Config
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import ScanResult
from tfguard.ports import KnownState

pytestmark = pytest.mark.e2e

CATALOG = load_catalog()
MOTO_CANNOT_LIST = {"aws_placement_group", "aws_dlm_lifecycle_policy", "aws_elastic_beanstalk_application_version"}
"""Its answer to their lists cannot be read, whether there are any or not."""
LISTABLE = {entry.type for entry in CATALOG if entry.list and entry.cloud == "aws"}
TYPES = tuple(sorted(LISTABLE - MOTO_CANNOT_LIST))


_TRIES = 3


@pytest.fixture(scope="module")
def account(
    engine: Path, seed: Path, cli_config: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabelledAccount]:
    """The account, which no test here changes.

    On a busy machine the simulation drops a connection now and then, and the provider's own repetition is told that the
    object is there. That is no part of what is tested here: the account is built again, in a new simulation.
    """
    for left in reversed(range(_TRIES)):
        folder = tmp_path_factory.mktemp("labelled")
        home = folder / "home"
        home.mkdir()
        with MotoServer() as moto, FaultProxy(moto.url) as proxy:
            environment = terraform_environment(cli_config, endpoint=moto.url)
            environment |= {"PYTHONPATH": str(ROOT), "HOME": str(home), "AWS_MAX_ATTEMPTS": "3"}
            built = LabelledAccount(moto, proxy, home, environment)
            try:
                built.build(Stacks(folder, engine, seed, environment))
            except (RuntimeError, subprocess.TimeoutExpired):
                end_processes_in(folder)
                if not left:
                    raise
                continue
            built.configure(aws={"regions": [REGION, "us-west-2"], "types": list(TYPES)})
            yield built
        end_processes_in(folder)
        return


@dataclass(frozen=True, slots=True)
class Scanned:
    """How a scan ended, and what it told."""

    code: int
    document: Json

    @property
    def findings(self) -> list[Json]:
        """The findings about objects that exist."""
        return [one for one in self.document["findings"] if one["object"] is not None]

    def named(self, *verdicts: str) -> set[tuple[str, str]]:
        """Type and import id of every object with one of these verdicts."""
        return {
            (one["object"]["type"], one["object"]["import_id"]) for one in self.findings if one["verdict"] in verdicts
        }


def run_scan(account: LabelledAccount, *arguments: str) -> Scanned:
    """Scan as a user would, through the proxy."""
    account.proxy.log.clear()
    done = subprocess.run(
        [*TFGUARD, "scan", *arguments, "--format", "json"],
        cwd=account.folder,
        env=account.environment | {"AWS_ENDPOINT_URL": account.proxy.url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 2, 3), done.stderr
    return Scanned(done.returncode, json.loads(done.stdout))


@pytest.fixture(scope="module")
def whole(account: LabelledAccount) -> Scanned:
    """A scan of everything that shows what rules leave out, too."""
    return run_scan(account, "--all")


def orphans_of(labels: Iterable[Labelled]) -> list[Labelled]:
    """Those that are labelled as orphans."""
    return [one for one in labels if one.label is Label.ORPHANED]


# --- the whole account ------------------------------------------------------------------------------------------------


def test_the_account_is_as_large_and_as_mixed_as_it_should_be(account: LabelledAccount, whole: Scanned) -> None:
    managed = [kind for kind, _ in account.managed() if CATALOG.canonical(kind) in TYPES]
    assert {one.label for one in account.labels} == set(Label) - {Label.MANAGED}
    assert len({*managed, *(one.type for one in account.labels)}) >= 60
    own = sum(count for verdict, count in whole.document["summary"].items() if verdict != "foreign")
    assert own >= 600
    assert whole.document["coverage"]["states_read"] == STATES >= 12
    assert len({stack.workspace for stack in STACKS}) == 3
    assert len(orphans_of(account.labels)) >= 20


def test_a_scan_names_every_orphan_and_nothing_else(account: LabelledAccount, whole: Scanned) -> None:
    assert whole.document["coverage"] | {"types_listed": 0} == {
        "complete": True, "states_read": STATES, "types_listed": 0, "gaps": [],
    }  # fmt: skip
    assert whole.code == ExitCode.FOUND
    seen = {one: [body for body in whole.findings if one.fits(body["object"])] for one in orphans_of(account.labels)}
    assert {one: [body["verdict"] for body in bodies] for one, bodies in seen.items()} == {
        one: ["orphaned"] for one in seen
    }
    named = [one for one in whole.document["findings"] if one["verdict"] in ("orphaned", "duplicated", "unmanaged")]
    expected = [body for bodies in seen.values() for body in bodies]
    assert [one for one in named if one not in expected] == []
    # Every instance of every state was found, by the keys that the real provider wrote.
    assert not {"missing", "unknown"} & whole.document["summary"].keys(), [
        one for one in whole.document["findings"] if one["verdict"] in ("missing", "unknown")
    ]


def test_every_other_object_is_left_out_for_the_reason_that_it_has(account: LabelledAccount, whole: Scanned) -> None:
    wrong, counted = [], Counter[Labelled]()
    for finding in whole.findings:
        labels = [one for one in account.labels if one.fits(finding["object"])]
        counted.update(labels)
        if not labels or any(VERDICTS[one.label] != finding["verdict"] for one in labels):
            wrong.append((finding["verdict"], finding["object"]["type"], finding["object"]["id"], labels))
    assert wrong == []
    assert [one for one in account.labels if (counted[one] < 1 if one.many else counted[one] != 1)] == []
    assert whole.document["summary"]["retained"] == len([one for one in account.labels if one.label is Label.RETAINED])


def test_rules_of_the_configuration_are_counted_and_the_idle_and_the_expired_are_told(whole: Scanned) -> None:
    told = whole.document["scan"]
    used = {name: count for name, count in told["rules"].items() if name.startswith("scan.ignore")}
    assert used == {f"scan.ignore[{n}]: {RULES[n]['reason']}": count for n, count in enumerate((2, 5, 1, 1))}
    assert [line.partition(" ")[0] for line in told["unused_rules"]] == ["scan.ignore[4]"]
    assert [line.partition(" ")[0] for line in told["expired_rules"]] == ["scan.ignore[5]"]


def test_a_database_whose_state_id_is_not_its_identifier_is_managed(account: LabelledAccount, whole: Scanned) -> None:
    (held,) = [attributes for kind, attributes in account.managed() if kind == "aws_db_instance"]
    assert held["id"] != held["identifier"]
    assert [one for one in whole.findings if one["object"]["type"] == "aws_db_instance"] == []


# --- some of the states -----------------------------------------------------------------------------------------------


def test_with_one_state_alone_the_objects_of_the_others_are_unmanaged_and_never_orphaned(
    account: LabelledAccount,
) -> None:
    one, other = (f"s3://{BUCKETS[0]}/{name}/terraform.tfstate{QUERY}" for name in ("network", "compute"))
    kinds = ("--type", "aws_vpc", "--type", "aws_subnet", "--type", "aws_internet_gateway", "--region", REGION)
    alone = run_scan(account, one, *kinds)
    both = run_scan(account, one, other, *kinds)
    assert alone.code == ExitCode.FOUND
    assert alone.document["summary"].keys() <= {"managed", "unmanaged", "ignored", "foreign"}
    theirs = {
        (kind, attributes["id"])
        for stack, kind, attributes in account.managed_by_stack()
        if stack == "compute" and kind in kinds
    }
    assert len(theirs) == 4
    assert theirs <= alone.named("unmanaged")
    assert alone.named("unmanaged") - both.named("unmanaged") == theirs


def test_of_a_stack_in_three_workspaces_the_chosen_one_is_read_alone(account: LabelledAccount) -> None:
    place = f"s3://{BUCKETS[1]}/app/terraform.tfstate{QUERY}&workspace=staging"
    found = run_scan(account, place, "--type", "aws_ecr_repository", "--region", REGION)
    assert found.document["coverage"]["states_read"] == 1
    assert found.document["summary"]["managed"] == 1
    names = {name for _, name in found.named("unmanaged")}
    assert {"lab-app-default", "lab-app-production"} <= names
    assert "lab-app-staging" not in names


# --- one permission less ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """A source of states that were read once: a denial of something else changes nothing in them."""

    pattern: str
    states: tuple[KnownState, ...]

    def read(self) -> Iterator[KnownState]:
        """The states, without their records."""
        return iter(self.states)


@pytest.fixture(scope="module")
def known(account: LabelledAccount) -> Kept:
    """All states of the account."""
    with pytest.MonkeyPatch.context() as patch:
        reach(patch, account)
        urls = [f"s3://{bucket}/**{QUERY}" for bucket in BUCKETS]
        found = [one for source in state_sources(urls, Invocation(), Config(), None) for one in source.read()]
    assert [one.failure for one in found] == [""] * STATES
    return Kept("all", tuple(replace(one, records=None) for one in found))


def reach(patch: pytest.MonkeyPatch, account: LabelledAccount) -> None:
    """Lead this process to the account, through the proxy, with nothing else that would steer it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "TFGUARD_"))]:
        patch.delenv(name)
    wanted = account.environment | {"AWS_ENDPOINT_URL": account.proxy.url}
    for name in [name for name in wanted if name.startswith("AWS_")]:
        patch.setenv(name, wanted[name])


@cache
def sdk() -> botocore.session.Session:
    """The SDK. Making one is dear."""
    return botocore.session.get_session()


@cache
def api_names(service: str) -> Mapping[str, str]:
    """What the service calls the methods of the SDK, by the SDK's own model."""
    return {botocore.xform_name(name): name for name in sdk().get_service_model(service).operation_names}


def api_name(service: str, operation: str) -> str:
    """What the service calls a method of the SDK."""
    return api_names(service)[operation]


def calls_for(entry: ResourceType) -> Iterator[str]:
    """The API calls without which objects of the type cannot be listed or told, those for its parents included."""
    assert entry.list is not None
    yield api_name(entry.service, entry.list.operation)
    if entry.list.each:
        yield api_name(entry.service, entry.list.each.operation)
    yield from detail_calls(entry)
    if entry.list.per:
        parent = CATALOG.get(entry.list.per.type)
        assert parent is not None
        yield from calls_for(parent)


def detail_calls(entry: ResourceType) -> set[str]:
    """The API calls for one object, which are made for candidates alone."""
    return {api_name(entry.service, call.operation) for call in entry.details}


def types_by_call() -> Mapping[str, set[str]]:
    """API call -> the types that need it."""
    found: dict[str, set[str]] = {}
    for entry in (entry for entry in CATALOG if entry.type in TYPES):
        for call in calls_for(entry):
            found.setdefault(call, set()).add(entry.type)
    return found


def scan_without(
    account: LabelledAccount, known: Kept, inventory: CombinedInventory, call: str, types: Iterable[str]
) -> tuple[ScanResult, ArmedRule]:
    """A scan of these types by somebody who may not make this call."""
    account.proxy.clear()
    rule = account.proxy.add_rule("deny", action=call, count=None)
    provider = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", {})
    lister = lister_for("threads", lambda: False, None, inventory)
    ports = ScanPorts((known,), lister, inventory, CATALOG, WallClock(), LocalHost())
    result = scan(ScanRequest(shards_for(CATALOG, provider, [REGION], sorted(types))), ports)
    account.proxy.clear()
    return result, rule


def test_whichever_permission_is_missing_its_types_become_gaps_and_the_scan_is_never_clean(
    account: LabelledAccount, known: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(monkeypatch, account)
    inventory = CombinedInventory([AwsInventory(CATALOG)])
    clean, tried, idle = [], 0, []
    details: set[str] = set()
    for call, types in sorted(types_by_call().items()):
        result, rule = scan_without(account, known, inventory, call, types)
        if not rule.fired:
            idle.append(call)  # nothing is there that it would be asked for
            continue
        tried += 1
        gaps = {word for gap in result.coverage.gaps for word in gap.scope.split()}
        lists = {kind for kind in types if _list_call(kind) == call}
        described = {kind for kind in types if call in detail_calls(CATALOG.types[kind])}
        details |= described & gaps
        if result.coverage.complete or not lists <= gaps or exit_code_of(result) not in (2, 3):
            clean.append((call, sorted(lists - gaps), exit_code_of(result)))
        missing = [one.address or "" for one in result.findings if one.verdict == "missing"]
        assert not [address for address in missing if lists & set(address.split("."))], call
    assert clean == []
    assert tried > 150, idle
    assert len(details) >= 15, sorted(details)


def _list_call(kind: str) -> str:
    entry = CATALOG.get(kind)
    assert entry is not None
    assert entry.list is not None
    return api_name(entry.service, entry.list.operation)


@pytest.mark.parametrize(
    ("types", "denied", "code"),
    [
        (("aws_internet_gateway", "aws_eip"), "DescribeAddresses", ExitCode.INCOMPLETE),
        (("aws_iam_group", "aws_iam_user"), "ListGroups", ExitCode.FOUND),
    ],
)
def test_the_exit_code_tells_of_a_gap_unless_something_was_found(
    account: LabelledAccount, types: tuple[str, ...], denied: str, code: ExitCode
) -> None:
    chosen = [word for kind in types for word in ("--type", kind)]
    assert not run_scan(account, *chosen).document["coverage"]["gaps"]
    rule = account.proxy.add_rule("deny", action=denied, count=None)
    try:
        found = run_scan(account, *chosen)
    finally:
        account.proxy.rules.clear()
    assert rule.fired
    assert found.code == code
    assert not found.document["coverage"]["complete"]
    assert {gap["reason"].split()[0] for gap in found.document["coverage"]["gaps"]} <= {
        "AccessDenied", "UnauthorizedOperation",
    }  # fmt: skip


def test_without_the_right_to_read_a_bucket_of_states_nothing_there_is_called_an_orphan(
    account: LabelledAccount,
) -> None:
    rule = account.proxy.add_rule("deny", action="GetObject", path=f"/{BUCKETS[0]}/{LOST.source}/*", count=None)
    try:
        found = run_scan(account, "--type", "aws_iam_role", "--type", "aws_iam_group")
    finally:
        account.proxy.rules.clear()
    assert rule.fired
    assert found.code == ExitCode.INCOMPLETE
    assert "orphaned" not in found.document["summary"]
    assert ("aws_iam_role", "lab-lost") in found.named("unknown")
