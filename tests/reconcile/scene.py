"""Small builders for the things that a conclusion is drawn from: steps, objects, listings, states, looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tfguard.catalog.loader import load_catalog
from tfguard.model.evidence import EvidenceKind
from tfguard.model.inventory import CloudObject, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.look import ListingKey, Look
from tfguard.reconcile.outcomes import conclude

CATALOG = load_catalog()
AWS = "registry.terraform.io/hashicorp/aws"
ACCOUNT = "123456789012"
OTHER_ACCOUNT = "999999999999"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
END = START + timedelta(minutes=5)
GRACE = timedelta(minutes=2)
IN_GRACE = END + timedelta(seconds=5)
AFTER = END + GRACE
LONG_AGO = START - timedelta(days=400)
INSIDE = START + timedelta(minutes=1)
REFUSED = "AccessDenied"


def step(address: str, action: Action = Action.CREATE, status: StepStatus = StepStatus.RUNNING, **fields: Any) -> Step:
    """A step of the type that its address names; started and not ended, unless something else is said."""
    kind = address.rsplit(".", 2)[-2]
    return Step(address, kind, fields.pop("provider", AWS), action, status, **{"provider_key": "aws", **fields})


def role(name: str = "app", created: datetime | None = INSIDE, account: str | None = ACCOUNT) -> CloudObject:
    """A role: its name is unique in the account."""
    identity = {"name": name, "arn": f"arn:aws:iam::{account}:role/{name}"}
    return CloudObject(
        "aws", account, "global", "aws_iam_role", name, name, identity, identity["arn"], name, created_at=created
    )


def vpc(id_: str, cidr: str = "10.0.0.0/16", name: str | None = None, created: datetime | None = None) -> CloudObject:
    """A VPC: any number may look alike, and none tells when it was made."""
    identity = {"id": id_, "arn": f"arn:aws:ec2:eu-west-1:{ACCOUNT}:vpc/{id_}", "cidr_block": cidr}
    identity |= {"tags.Name": name} if name else {}
    return CloudObject(
        "aws", ACCOUNT, "eu-west-1", "aws_vpc", id_, id_, identity, identity["arn"], name, created_at=created
    )


def queue(
    name: str, region: str = "eu-west-1", created: datetime | None = INSIDE, account: str | None = ACCOUNT
) -> CloudObject:
    """A queue: its name is unique in the account and region."""
    url = f"https://sqs.{region}.amazonaws.com/{account or ACCOUNT}/{name}"
    identity = {"url": url, "name": name}
    identity |= {"arn": f"arn:aws:sqs:{region}:{account}:{name}"} if account else {}
    return CloudObject(
        "aws", account, region, "aws_sqs_queue", url, url, identity, identity.get("arn"), name, created_at=created
    )


def key_of(found: CloudObject, provider_key: str = "aws", asked_region: str = "") -> ListingKey:
    """The listing that an object comes from."""
    return (found.type, provider_key, asked_region)


def listing(
    kind: str, *objects: CloudObject, gap: str | None = None, account: str | None = ACCOUNT, region: str | None = None
) -> Listing:
    """A listing of these objects; with `gap`, one that is not complete for that reason."""
    scope = Scope("aws", account, region or _region_of(kind), "aws")
    return Listing(kind, scope, objects, Gap(f"{scope} {kind}", gap) if gap else None)


def baseline(
    kind: str,
    *objects: CloudObject,
    complete: bool = True,
    account: str | None = ACCOUNT,
    provider_key: str = "aws",
    region: str | None = None,
) -> BaselineEntry:
    """The list before the run."""
    ids = tuple(found.finding_id for found in objects)
    where = region or _region_of(kind)
    return BaselineEntry(kind, "aws", account, where, complete, provider_key, "", ids, None if complete else REFUSED)


def _region_of(kind: str) -> str:
    entry = CATALOG.get(kind)
    return "global" if entry and entry.is_global else "eu-west-1"


def held(address: str, found: CloudObject | None = None, **fields: Any) -> StateInstance:
    """An instance in a state, as the object that it is."""
    kind = address.rsplit(".", 2)[-2]
    identity: Mapping[str, str] = found.identity if found else {}
    return StateInstance(address, kind, AWS, **{"provider_key": "aws", "identity": identity, **fields})


def state(*instances: StateInstance) -> StateSnapshot:
    """A state with these instances."""
    return StateSnapshot("lineage", 7, instances)


def look(
    *listings: Listing,
    before: Sequence[BaselineEntry] = (),
    holds: Sequence[StateInstance] = (),
    now: datetime = AFTER,
    **fields: Any,
) -> Look:
    """What is known when the grace is over, unless `now` says something else."""
    answers = {(one.type, one.scope.provider_key, ""): one for one in listings}
    fields = {"stream_whole": True, **fields}
    return Look(state(*holds), answers, tuple(before), START, END, now, GRACE, **fields)


def through(provider_key: str, one: Listing, region: str | None = None) -> Listing:
    """The listing as another provider configuration gives it."""
    return replace(one, scope=replace(one.scope, provider_key=provider_key, region=region or one.scope.region))


def concluded(one: Step, seen: Look) -> Step:
    """The conclusion about a single step."""
    return conclude([one], seen, CATALOG)[0]


def findings(one: Step) -> set[str]:
    """The ids of the objects that a step was seen with and that somebody has to decide about."""
    return {seen.id for seen in one.observed if seen.finding_id}


def kinds(one: Step) -> set[EvidenceKind]:
    """The kinds of evidence of a step."""
    return {evidence.kind for evidence in one.evidence}
