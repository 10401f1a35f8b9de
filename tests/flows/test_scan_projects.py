"""A scan of an organization: a listing of each project, an index that lags, and projects that nobody can name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from packed import MovedClock, OneHost
from test_scan import NOW, FakeSource, known

from tfguard.catalog.loader import load_catalog
from tfguard.flows.scan import ScanPorts, ScanRequest, exit_code_of, scan
from tfguard.inventory.listers import list_shard
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import ScanResult, Shard
from tfguard.model.state import StateInstance
from tfguard.ports import Inventory
from tfguard.reconcile.wanted import named_object

CATALOG = load_catalog()
SOURCE = "registry.terraform.io/hashicorp/google"
TOPIC = "google_pubsub_topic"
WIDE = Shard(
    "google", ProviderConfig("google.organizations/1", SOURCE, {"organization": "1"}), None, "cloudasset", (TOPIC,)
)


def topic(name: str, project: str = "app-prod") -> CloudObject:
    unique = f"projects/{project}/topics/{name}"
    identity = {"id": unique, "name": name, "project": project}
    return CloudObject("google", project, "global", TOPIC, unique, unique, identity, name=name)


def listing(project: str, *objects: CloudObject, gap: str = "") -> Listing:
    scope = Scope("google", project, "global", WIDE.provider.key)
    return Listing(TOPIC, scope, objects, Gap(f"{scope} {TOPIC}", gap) if gap else None)


def held(found: CloudObject) -> StateInstance:
    return StateInstance(f"{TOPIC}.{found.name}", TOPIC, SOURCE, "google", found.identity, account=found.account or "")


@dataclass
class Lister:
    """Answers the one shard with these listings."""

    listings: Sequence[Listing]

    def list(self, shards: Sequence[Shard], done: Callable[[Shard], None]) -> Iterator[Listing]:
        yield from self.listings
        for shard in shards:
            done(shard)


@dataclass
class Details:
    """An inventory that is asked for details alone: those of `gone` are not there, those of `refused` not told."""

    gone: Sequence[str] = ()
    refused: Sequence[str] = ()
    asked: list[str] = field(default_factory=list)
    types: Sequence[str] = (TOPIC,)

    def covers(self, resource_type: str) -> bool:
        return resource_type in self.types

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:  # noqa: ARG002 (the port's)
        self.asked.append(found.import_id)
        gap, name = Gap(f"google {found.account} global {TOPIC}", "DENIED on GetTopic"), found.identity["name"]
        return Detail(found, gap if name in self.refused else None, name in self.gone)


def run(
    listings: Sequence[Listing], *instances: StateInstance, details: Details | None = None, shard: Shard = WIDE
) -> ScanResult:
    ports = ScanPorts(
        (FakeSource([[known(*instances)]]),),
        Lister(listings),
        details or Details(),  # type: ignore[arg-type]
        CATALOG,
        MovedClock(NOW),
        OneHost(),  # type: ignore[arg-type]
    )
    return scan(ScanRequest((shard,)), ports)


def told(result: ScanResult) -> dict[str, Verdict]:
    return {one.object.name or "" if one.object else "missing": one.verdict for one in result.findings}


def test_each_project_has_a_listing_of_its_own() -> None:
    kept, left = topic("kept"), topic("left", "app-test")
    result = run([listing("app-prod", kept), listing("app-test", left), listing("app-empty")], held(kept))
    assert told(result) == {"left": Verdict.UNMANAGED}
    assert result.coverage.complete
    assert {place.account for place in result.places} == {"app-prod", "app-test", "app-empty"}
    assert {part.account for part in result.scope.lists} == {"app-prod", "app-test", "app-empty"}


@pytest.mark.parametrize("again", [False, True])
def test_of_two_folders_of_one_organization_both_count(again: bool) -> None:
    """Each tells its own part of what lies in the organization, as no list of it all."""

    def part(*names: str) -> Listing:
        objects = tuple(topic(name, "organizations/1") for name in names)
        return replace(listing("organizations/1", *objects), exhaustive=False)

    parts = [part("of-both", "first"), part("of-both", "second")]
    whole = [listing("organizations/1", *(topic(name, "organizations/1") for name in ("of-both", "third")))]
    result = run([*parts, *parts, *(whole if again else [])])
    names = ["of-both", "first", "second", *(["third"] if again else [])]
    assert told(result) == dict.fromkeys(names, Verdict.UNMANAGED)
    assert result.summary == {"unmanaged": len(names)}
    assert bool(result.complete_listings) is again


def test_a_type_of_which_no_project_has_an_answer_is_a_gap() -> None:
    result = run([])
    assert [gap.reason for gap in result.coverage.gaps] == ["1 lists were not answered"]
    assert exit_code_of(result) == 3


def test_a_search_that_breaks_off_is_a_gap_though_one_project_was_answered() -> None:
    @dataclass
    class Breaks:
        def list_many(self, _types: Iterable[str], _provider: ProviderConfig, _place: str | None) -> Iterator[Listing]:
            yield listing("app-prod", topic("kept"))
            raise RuntimeError("secret words")

    inventory: Inventory = Breaks()  # type: ignore[assignment]
    answers = list(list_shard(inventory, WIDE))
    assert [(one.scope.account, one.gap and one.gap.reason) for one in answers] == [
        ("app-prod", None),
        (None, "the listing failed (RuntimeError)"),
    ]
    narrow = replace(WIDE, provider=ProviderConfig("google", SOURCE, {"project": "app-prod"}))
    assert [one.gap for one in list_shard(inventory, narrow)] == [None]


def test_what_is_in_the_index_alone_is_no_finding() -> None:
    result = run([listing("app-prod", topic("left"), topic("gone"))], details=Details(gone=["gone"]))
    assert told(result) == {"left": Verdict.UNMANAGED}
    assert result.summary == {"unmanaged": 1}


def test_what_its_service_does_not_know_by_a_name_that_was_read_nowhere_is_no_proof_of_absence() -> None:
    kind, zone = "google_dns_managed_zone", "projects/app-prod/managedZones/example.com."
    found = replace(topic("zone"), type=kind, id=zone, import_id=zone)
    details = Details(gone=["zone"], types=(kind,))
    result = run([replace(listing("app-prod", found), type=kind)], details=details)
    assert told(result) == {"zone": Verdict.UNKNOWN}
    assert exit_code_of(result) == 3


def test_what_the_index_lacks_is_missing_only_where_its_own_service_has_it_no_more() -> None:
    new, lost, hidden = topic("new"), topic("lost"), topic("hidden")
    details = Details(gone=["lost"], refused=["hidden"])
    result = run([listing("app-prod")], held(new), held(lost), held(hidden), details=details)
    assert [one.address for one in result.findings] == ["google_pubsub_topic.lost"]
    assert [one.verdict for one in result.findings] == [Verdict.MISSING]
    assert sorted(details.asked) == sorted(one.import_id for one in (new, lost, hidden))
    assert [gap.reason for gap in result.coverage.gaps] == ["DENIED on GetTopic"]


def test_what_no_service_can_be_asked_for_is_no_loss_where_the_list_may_lag() -> None:
    kind = "google_sql_database"
    unique = "projects/app-prod/instances/i/databases/d"
    lost = StateInstance(f"{kind}.d", kind, SOURCE, "google", {"id": unique, "name": "d"}, account="app-prod")
    result = run([replace(listing("app-prod"), type=kind)], lost, details=Details(types=(kind,)))
    assert not result.findings
    assert not result.coverage.complete


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("google_kms_crypto_key", "projects/app-prod/locations/eu/keyRings/r/cryptoKeys/k"),
        ("google_secret_manager_secret_version", "projects/app-prod/secrets/s/versions/1"),
    ],
)
def test_a_unique_name_that_is_made_of_others_names_its_object_in_full(kind: str, name: str) -> None:
    entry = CATALOG.get(kind)
    assert entry is not None
    found = named_object(entry, name, Scope("google", "app-prod", "global"))
    assert found is not None and found.import_id == name


def test_nothing_is_said_of_an_object_whose_project_has_a_number_alone() -> None:
    result = run([listing("4711", topic("left", "4711"), gap="its id is not told")])
    assert told(result) == {"left": Verdict.UNKNOWN}
    assert exit_code_of(result) == 3


@pytest.mark.parametrize("project", ["1001", "projects/app-prod"])
def test_a_project_that_is_configured_by_another_name_is_asked_through_the_same_configuration(project: str) -> None:
    shard = replace(WIDE, provider=replace(WIDE.provider, settings={"project": project}))
    details = Details(gone=["gone"])
    listed = [listing("app-prod", topic("gone"), topic("live"))]
    result = run(listed, held(topic("newer")), details=details, shard=shard)
    assert told(result) == {"live": Verdict.UNMANAGED}
    assert sorted(details.asked) == [topic(name).import_id for name in ("gone", "live", "newer")]
    assert result.coverage.complete


def test_what_nobody_can_be_asked_to_confirm_is_no_finding() -> None:
    shard = replace(WIDE, provider=replace(WIDE.provider, key="another", settings={"project": "another"}))
    result = run([listing("app-prod", topic("one"))], shard=shard)
    assert told(result) == {"one": Verdict.UNKNOWN}
    assert [gap.reason for gap in result.coverage.gaps] == ["whom to ask whether it is there is not known"]
