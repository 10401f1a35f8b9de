"""What a list of Google Cloud lacks is asked for at its own service, since that list is an index which lags behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from test_verify import CATALOG, END, GRACE, START, FakeClock, FakeInventory, answers, around, outcomes, run

from tfguard.catalog.types import PLACEHOLDER
from tfguard.flows import untaint
from tfguard.flows.direct_look import asking_for_planned
from tfguard.flows.looking import baseline_entries
from tfguard.flows.stray_look import object_now
from tfguard.flows.verify import verify
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, Outcome, Step, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.state import StateInstance
from tfguard.reconcile.disposal import Refusal
from tfguard.reconcile.wanted import lists_lag, named_object, told_in_full, wanted_object

SCOPE = Scope("google", "app", "global", "google")
NETWORK, ACCOUNT = "google_compute_network", "google_service_account"
BUCKET, BINDING = "google_storage_bucket", "google_tags_tag_binding"
STEP = Step(
    f"{NETWORK}.net",
    NETWORK,
    "registry.terraform.io/hashicorp/google",
    Action.CREATE,
    StepStatus.RUNNING,
    provider_key="google",
    desired={"name": "net", "project": "app"},
)
BASELINE = (BaselineEntry(NETWORK, "google", "app", "global", True, "google", ""),)
ID = "projects/app/global/networks/net"


@dataclass
class Service(FakeInventory):
    """An index that has nothing, and a service that says what the function says."""

    says: Callable[[CloudObject], Detail] = field(default=Detail)
    asked_for: list[CloudObject] = field(default_factory=list)

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:  # noqa: ARG002 (the port's)
        """What the service says."""
        self.asked_for.append(found)
        return self.says(found)


LAGGING = [kind.type for kind in CATALOG if lists_lag(kind, CATALOG)]
# What no template names, and what has no call of its own: nothing tells of them but the list.
UNASKED = ["google_service_account_key", "google_sql_database", "google_sql_user", "google_dns_record_set"]


def _refused(found: CloudObject) -> Detail:
    return Detail(found, Gap(f"{SCOPE} {NETWORK}", "PERMISSION_DENIED on GetNetwork"))


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        (lambda found: replace(Detail(found), found=replace(found, created_at=START)), Outcome.ORPHANED),
        (lambda found: Detail(found, gone=True), Outcome.ABSENT),
        (_refused, Outcome.UNKNOWN),
    ],
)
def test_the_service_has_the_last_word_on_what_the_index_lacks(
    says: Callable[[CloudObject], Detail], outcome: Outcome
) -> None:
    inventory = Service(answers(Listing(NETWORK, SCOPE)), says=says)
    surroundings, *_ = around(inventory, FakeClock(END + GRACE))
    verdict = verify(run(STEP, baseline=BASELINE), surroundings, patient=False)
    assert outcomes(verdict) == [outcome]
    assert inventory.asked_for[0].id == ID
    assert [seen.import_id for seen in verdict.steps[0].observed] == ([ID] if outcome is Outcome.ORPHANED else [])


def _looked(step: Step, kind: str, says: Callable[[CloudObject], Detail], **more: object) -> tuple[Step, Service]:
    """The step as it is concluded where no list has anything, long after the run."""
    inventory = Service(answers(replace(Listing(kind, SCOPE), **more)), says=says)  # type: ignore[arg-type]
    surroundings, *_ = around(inventory, FakeClock(END + GRACE))
    met = {step.address: Failure(FailureKind.ALREADY_EXISTS, "it exists", None, 409)} if step.action.creates else {}
    baseline = (BaselineEntry(kind, "google", "app", "global", True, "google", ""),)
    verdict = verify(run(step, baseline=baseline, failures=met), surroundings, patient=False)
    return verdict.steps[0], inventory


@pytest.mark.parametrize(("kind", "outcome"), [(NETWORK, Outcome.UNKNOWN), (BUCKET, Outcome.ABSENT)])
def test_what_was_met_and_may_not_be_read_is_somebody_elses_only_where_names_are_the_worlds(
    kind: str, outcome: Outcome
) -> None:
    step, _ = _looked(replace(STEP, address=f"{kind}.net", type=kind, status=StepStatus.ERROR), kind, _refused)
    assert step.outcome is outcome


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        (Detail, Outcome.ORPHANED),
        (lambda found: Detail(found, gone=True), Outcome.ABSENT),
        (_refused, Outcome.UNKNOWN),
    ],
)
def test_what_another_state_dropped_is_asked_for_before_it_counts_as_gone(
    says: Callable[[CloudObject], Detail], outcome: Outcome
) -> None:
    dropped = replace(STEP, action=Action.NOOP, status=StepStatus.ERROR, desired={}, before={"name": "net", "id": ID})
    step, service = _looked(dropped, NETWORK, says)
    assert (step.outcome, [one.import_id for one in service.asked_for[:1]]) == (outcome, [ID])


@pytest.mark.parametrize(
    ("says", "outcome"),
    [(Detail, Outcome.UNKNOWN), (lambda found: Detail(found, gone=True), Outcome.ABSENT), (_refused, Outcome.UNKNOWN)],
)
def test_a_parent_that_is_not_listed_takes_its_child_along_only_by_its_own_services_word(
    says: Callable[[CloudObject], Detail], outcome: Outcome
) -> None:
    child = replace(STEP, type="google_sql_database", desired={"name": "db", "instance": "new", "project": "app"})
    step, service = _looked(child, "google_sql_database_instance", says)
    assert (step.outcome, [one.identity["name"] for one in service.asked_for]) == (outcome, ["new"])


@pytest.mark.parametrize("action", [Action.CREATE, Action.NOOP, Action.DELETE])
def test_a_list_that_never_has_all_proves_no_absence(action: Action) -> None:
    binding = {"parent": "//storage.googleapis.com/projects/_/buckets/logs", "tag_value": "tagValues/1"}
    step = replace(STEP, type=BINDING, action=action, status=StepStatus.ERROR, desired=binding, before=binding)
    assert _looked(step, BINDING, Detail, exhaustive=False)[0].outcome is Outcome.UNKNOWN


def test_the_engines_word_that_it_deleted_something_needs_no_list() -> None:
    binding = {"parent": "//storage.googleapis.com/projects/_/buckets/logs", "tag_value": "tagValues/1"}
    step = replace(STEP, type=BINDING, action=Action.DELETE, status=StepStatus.OK, desired={}, before=binding)
    assert _looked(step, BINDING, Detail, exhaustive=False)[0].outcome is Outcome.ABSENT


def test_a_project_that_was_made_is_in_itself_whatever_lists_it_first() -> None:
    kind = CATALOG.get("google_project")
    assert kind is not None
    found = wanted_object(kind, replace(STEP, type=kind.type, desired={"project_id": "new"}), SCOPE)
    assert found is not None and found.account == "new"


@pytest.mark.parametrize("project", ["1001", "example.com:app", "projects/app"])
def test_a_service_account_is_asked_for_by_the_address_that_is_made_of_its_projects_id(project: str) -> None:
    kind = CATALOG.get(ACCOUNT)
    assert kind is not None
    step = replace(STEP, type=ACCOUNT, desired={"account_id": "robot"})
    made = wanted_object(kind, step, SCOPE)
    assert made is not None
    assert made.import_id == "projects/app/serviceAccounts/robot@app.iam.gserviceaccount.com"
    assert wanted_object(kind, replace(step, desired={"account_id": "robot", "project": project}), SCOPE) is None


UNNAMED = [
    ("google_folder", {"display_name": "team", "parent": "organizations/1"}),
    ("google_monitoring_alert_policy", {"display_name": "late"}),
    ("google_compute_instance_template", {"name_prefix": "web-"}),
    (ACCOUNT, {"project": "1001", "account_id": "robot"}),
    ("google_service_account_key", {}),
    ("google_dns_record_set", {"managed_zone": "zone", "name": "www.", "type": "A"}),
]


@pytest.mark.parametrize(("kind", "desired"), UNNAMED)
def test_what_the_plan_does_not_name_is_not_gone_because_an_index_lacks_it(kind: str, desired: dict[str, str]) -> None:
    step = replace(STEP, type=kind, desired=desired, status=StepStatus.ERROR)
    inventory = Service(answers(Listing(kind, SCOPE)))
    surroundings, *_ = around(inventory, FakeClock(END + GRACE))
    baseline = (BaselineEntry(kind, "google", "app", "global", True, "google", ""),)
    assert outcomes(verify(run(step, baseline=baseline), surroundings, patient=False)) == [Outcome.UNKNOWN]
    # Only the engine's own word that it never began needs no list.
    never = run(replace(step, status=StepStatus.PENDING), baseline=baseline)
    assert outcomes(verify(never, surroundings, patient=False)) == [Outcome.ABSENT]


@pytest.mark.parametrize(
    ("says", "complete", "ids"),
    [
        (Detail, True, 1),
        (lambda found: Detail(found, gone=True), True, 0),
        (_refused, False, 0),
    ],
)
def test_before_a_run_each_planned_name_is_asked_for_where_the_list_lags(
    says: Callable[[CloudObject], Detail], complete: bool, ids: int
) -> None:
    surroundings, *_ = around(Service(answers(Listing(NETWORK, SCOPE)), says=says))
    listed = asking_for_planned([STEP], surroundings)(NETWORK, ProviderConfig("google", STEP.provider), None)
    (entry,) = baseline_entries({(NETWORK, "google", ""): listed})
    assert (entry.complete, len(entry.object_ids)) == (complete, ids)


@pytest.mark.parametrize(("kind", "desired"), UNNAMED)
def test_an_index_is_no_complete_baseline_of_what_the_plan_does_not_name(kind: str, desired: dict[str, str]) -> None:
    surroundings, *_ = around(Service(answers(Listing(kind, SCOPE))))
    step = replace(STEP, type=kind, desired=desired)
    listed = asking_for_planned([step], surroundings)(kind, ProviderConfig("google", STEP.provider), None)
    assert not listed.complete


def test_why_a_list_that_never_has_all_is_no_complete_baseline_is_told() -> None:
    (entry,) = baseline_entries({(BINDING, "google", ""): Listing(BINDING, SCOPE, exhaustive=False)})
    assert (entry.complete, entry.reason) == (False, "no list has every google_tags_tag_binding there is")


def test_somebody_elses_object_that_no_list_had_before_the_run_is_not_called_its_own() -> None:
    theirs = CloudObject("google", "app", "global", NETWORK, ID, ID, {"id": ID, "name": "net", "project": "app"})
    surroundings, *_ = around(Service(answers(Listing(NETWORK, SCOPE))), FakeClock(END + GRACE))
    listed = asking_for_planned([STEP], surroundings)(NETWORK, ProviderConfig("google", STEP.provider), None)
    baseline = baseline_entries({(NETWORK, "google", ""): listed})
    for made in (None, START - timedelta(minutes=10)):
        seen = replace(theirs, created_at=made)
        surroundings, *_ = around(Service(answers(Listing(NETWORK, SCOPE, (seen,)))), FakeClock(END + GRACE))
        verdict = verify(run(STEP, baseline=baseline), surroundings, patient=False)
        assert outcomes(verdict) == [Outcome.ABSENT]
        assert verdict.steps[0].evidence[0].kind is EvidenceKind.EXISTED_BEFORE


def test_an_older_object_is_not_the_runs_own_where_nothing_proved_that_it_was_not_there() -> None:
    older = Detail(CloudObject("google", "app", "global", NETWORK, ID, ID, {"id": ID, "name": "net", "project": "app"}))
    older = replace(older, found=replace(older.found, created_at=START - timedelta(minutes=10)))
    surroundings, *_ = around(Service(answers(Listing(NETWORK, SCOPE)), says=lambda _: older), FakeClock(END + GRACE))
    baseline = (BaselineEntry(NETWORK, "google", "app", "global", False, "google", ""),)
    assert outcomes(verify(run(STEP, baseline=baseline), surroundings, patient=False)) == [Outcome.ABSENT]


def test_the_project_is_the_resources_own_else_that_of_the_list() -> None:
    kind = CATALOG.get(NETWORK)
    assert kind is not None
    unnamed = replace(STEP, desired={"name": "net"})
    found = wanted_object(kind, unnamed, SCOPE)
    own = wanted_object(kind, replace(unnamed, own_account="other"), SCOPE)
    assert found is not None
    assert own is not None
    assert (found.import_id, found.account) == (ID, "app")
    assert (own.import_id, own.account) == ("projects/other/global/networks/net", "other")


@pytest.mark.parametrize("name", LAGGING)
def test_what_a_record_tells_by_its_ids_alone_is_gone_only_by_its_own_services_word(name: str) -> None:
    kind = CATALOG.get(name)
    assert kind is not None
    unique = kind.keys[kind.arn_key] if kind.arn_key else ""
    for trait, text in kind.traits.items():
        unique = unique.replace(f"{{{trait}}}", text) if PLACEHOLDER.search(text) else unique
    made = named_object(kind, PLACEHOLDER.sub("app", unique), SCOPE) if unique else None
    if name == BUCKET:
        made = wanted_object(kind, replace(STEP, type=name, desired={"name": "app", "project": "app"}), SCOPE)
    bare = replace(made, identity={}) if made else CloudObject("google", "app", "global", name, "a/b", "a/b")
    assert (made is None) is (name in UNASKED)
    assert told_in_full(kind, bare) == (replace(made, name=made.name or made.identity.get("name")) if made else None)

    def now(says: Callable[[CloudObject], Detail]) -> CloudObject | Refusal | None:
        surroundings, *_ = around(Service(answers(Listing(name, SCOPE)), says=says))
        return object_now(surroundings, replace(bare, account="app"), ProviderConfig("google", STEP.provider))

    if made is None:
        assert isinstance(now(lambda found: Detail(found, gone=True)), Refusal)
        return
    assert now(lambda found: Detail(found, gone=True)) is None
    assert isinstance(now(Detail), CloudObject)
    assert isinstance(now(_refused), Refusal)


def test_a_name_that_is_not_told_does_not_keep_others_of_its_type_from_being_asked_for() -> None:
    kind = "google_compute_instance_template"
    steps = [
        replace(STEP, address=f"{kind}.{number}", type=kind, desired=desired, status=StepStatus.ERROR)
        for number, desired in enumerate([{"name_prefix": "web-"}, {"name": "db", "project": "app"}])
    ]
    surroundings, *_ = around(Service(answers(Listing(kind, SCOPE))), FakeClock(END + GRACE))
    baseline = (BaselineEntry(kind, "google", "app", "global", True, "google", ""),)
    verdict = verify(run(*steps, baseline=baseline), surroundings, patient=False)
    assert outcomes(verdict) == [Outcome.UNKNOWN, Outcome.ORPHANED]


def test_a_tainted_object_that_an_index_lacks_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    surroundings, *_ = around(Service(answers(Listing(NETWORK, SCOPE))))
    monkeypatch.setattr(untaint, "providers_of", lambda *_: {})
    held = StateInstance(STEP.address, NETWORK, STEP.provider, identity={"id": ID, "name": "net"}, tainted=True)
    finding = Finding("o-1", Verdict.TAINTED, Confidence.CERTAIN, STEP.address, None, None)
    asked = (SimpleNamespace(around=surroundings), finding, held, None, untaint.UntaintOptions("kept"))
    assert not untaint._is_listed(*asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [(NETWORK, ID, type(None)), (ACCOUNT, "projects/app/serviceAccounts/robot@app.iam.gserviceaccount.com", Refusal)],
)
def test_what_is_listed_under_a_name_that_was_read_nowhere_is_not_gone_because_its_service_does_not_know_that(
    kind: str, name: str, told: type
) -> None:
    entry = CATALOG.get(kind)
    found = named_object(entry, name, SCOPE) if entry else None
    assert found is not None
    service = Service(answers(Listing(kind, SCOPE, (found,))), says=lambda one: Detail(one, gone=True))
    surroundings, *_ = around(service)
    assert isinstance(object_now(surroundings, found, ProviderConfig("google", STEP.provider)), told)
