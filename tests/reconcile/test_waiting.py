"""What is deleted and waits for its end, told apart from what is gone; and tags that tell of retentions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from scene import ACCOUNT, AFTER, CATALOG, END, INSIDE, LONG_AGO, START, listing, look, role, step
from test_decisions import operation

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Outcome, Step
from tfguard.model.plan import Action
from tfguard.model.retention_tags import OWNER, UNTIL, retention_tags, told_by
from tfguard.reconcile.disposal import changed_since
from tfguard.reconcile.findings import came_back, findings_of, waits
from tfguard.reconcile.outcomes import conclude
from tfguard.reconcile.strays import with_tag

GONE = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)
ADDRESS = "aws_secretsmanager_secret.token"


def secret(created: datetime = INSIDE) -> CloudObject:
    """A secret that somebody has deleted."""
    arn = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:token-a1b2c3"
    identity = {"arn": arn, "name": "token"}
    known = CloudObject("aws", ACCOUNT, "eu-west-1", "aws_secretsmanager_secret", arn, arn, identity, arn, "token")
    return replace(known, created_at=created, stateful=True, soft_deleted=True, gone_after=GONE)


def concluded(waiting: CloudObject, action: Action = Action.CREATE) -> Step:
    """What becomes of a step for a secret called `token`, of which this is all that is listed."""
    wanted = step(ADDRESS, action, desired={"name": "token"} if action.creates else {})
    if not action.creates:
        wanted = replace(wanted, before=dict(waiting.identity))
    answer = replace(listing("aws_secretsmanager_secret", region="eu-west-1"), soft_deleted=(waiting,))
    (done,) = conclude([wanted], look(answer, now=AFTER), CATALOG)
    return done


def test_what_a_run_made_and_somebody_deleted_is_absent_and_can_come_back() -> None:
    done = concluded(secret())
    assert (done.outcome, done.open) == (Outcome.ABSENT, False)
    (seen,) = done.observed
    assert (seen.soft_deleted, seen.gone_after, seen.finding_id) == (True, GONE, secret().finding_id)
    assert done.evidence[0].kind is EvidenceKind.SOFT_DELETED
    assert "gone after 2026-03-31 12:00Z" in done.evidence[0].detail


def test_what_was_there_before_the_run_is_none_of_its_own() -> None:
    assert concluded(secret(LONG_AGO)).observed == ()


def test_what_the_run_itself_deleted_is_no_finding() -> None:
    done = concluded(secret(LONG_AGO), Action.DELETE)
    assert (done.outcome, done.observed) == (Outcome.ABSENT, ())


def test_it_waits_until_its_end_and_not_longer() -> None:
    (seen,) = concluded(secret()).observed
    assert waits(seen, GONE - timedelta(seconds=1))
    assert not waits(seen, GONE)
    assert waits(replace(seen, gone_after=None), GONE)
    assert not waits(replace(seen, soft_deleted=False), START)


def test_one_that_was_restored_does_not_wait_any_more() -> None:
    entry = Disposition("o-1", DispositionKind.RESTORE, END, "me", "restored", "")
    assert came_back(entry)
    assert not came_back(None)
    assert not came_back(replace(entry, kind=DispositionKind.DESTROY))
    assert not entry.holds(END)


def test_the_finding_says_so_until_the_end_and_is_a_stray_once_it_is_restored() -> None:
    ran = operation(concluded(secret()))
    (waiting,) = findings_of([ran], (), END)
    assert (waiting.verdict, waiting.actions, waiting.needs_action) == (Verdict.SOFT_DELETED, ("import",), False)
    assert waiting.object is not None and waiting.object.gone_after == GONE
    assert findings_of([ran], (), GONE) == ()

    restored = Disposition(waiting.id, DispositionKind.RESTORE, END, "me", "restored: RestoreSecret", ran.id)
    (back,) = findings_of([ran], [restored], END)
    assert (back.verdict, back.needs_action, back.address) == (Verdict.ORPHANED, True, ADDRESS)
    assert back.object is not None and not back.object.soft_deleted
    kinds = {item.kind for item in back.evidence}
    assert EvidenceKind.RESTORED in kinds and EvidenceKind.SOFT_DELETED not in kinds


@pytest.mark.parametrize(("owner", "written"), [("audit", "audit"), ("a,b <c>", "a-b -c-"), ("o" * 300, "o" * 256)])
def test_a_tag_holds_the_date_and_of_the_owner_what_a_tag_may_hold(owner: str, written: str) -> None:
    assert retention_tags(GONE, owner) == {UNTIL: "2026-03-31T12:00:00Z", OWNER: written}


def test_a_tag_is_evidence_and_no_decision() -> None:
    tagged = replace(role(), tags={UNTIL: "2026-03-31T12:00:00Z", OWNER: "audit\n\x1b[31m"})
    finding = Finding(tagged.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, tagged)
    told = with_tag(finding)
    assert (told.verdict, told.disposition) == (Verdict.UNMANAGED, None)
    assert [item.detail for item in told.evidence] == [
        "a tag says that it is kept until 2026-03-31T12:00:00Z by audit [31m"
    ]
    assert with_tag(replace(finding, object=role())) == replace(finding, object=role())
    assert told_by({OWNER: "audit"}) is None


def test_the_tags_of_a_retention_are_no_change_of_an_object() -> None:
    before = replace(role(), tags={"team": "blue"})
    finding = Finding(before.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, before)
    assert changed_since(finding, replace(before, tags={"team": "blue", **retention_tags(GONE, "audit")})) == ()
    assert changed_since(finding, replace(before, tags={"team": "red"})) == ("tags",)
