"""What `orphans destroy` refuses, and what it does when it is interrupted; with fakes of engine and cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from packed import MovedClock
from test_records import intent as plain_intent
from test_story import LATER, BootedHost, FakeEngine
from test_verify import CATALOG, START, FakeInventory, listing, role

from tfguard.errors import InputError, RecordError
from tfguard.flows.context import StackContext
from tfguard.flows.dispose import DestroyOptions, Disposed, destroy_orphans
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.model.config import Config
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.model.retention_tags import retention_tags
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot
from tfguard.ports import Deletion, DeletionTarget
from tfguard.stores.local import LocalStore


class ThisHost(BootedHost):
    """A host with one process."""

    def process(self) -> ProcessIdentity:
        return ProcessIdentity(1, 1)


@dataclass
class Cloud(FakeEngine):
    """An engine that deletes; where it `interrupts`, a signal comes while it does."""

    clock: MovedClock = field(default_factory=lambda: MovedClock(LATER))
    there: dict[str, CloudObject] = field(default_factory=dict)
    interrupts: bool = False

    def prepare_deletion(self, target: DeletionTarget, *_: object) -> Deletion:
        return Deletion(target.import_id in self.there)

    def delete_object(self, target: DeletionTarget, *_: object) -> Deletion:
        self.clock.interrupted = self.interrupts
        del self.there[target.import_id]
        return Deletion(True, deleted=True, interrupted=self.interrupts)


class Silent:
    """A console that nobody reads."""

    def say(self, text: str) -> None:
        """Not shown."""

    warn = say


@dataclass
class Account:
    """Roles that exist and that a scan has found, with all around a deletion of them."""

    roles: list[CloudObject]
    folder: Path
    interrupts: bool = False

    def __post_init__(self) -> None:
        self.told: list[Disposed] = []
        self.cloud = Cloud(there={found.import_id: found for found in self.roles}, interrupts=self.interrupts)
        inventory = FakeInventory(lambda *_: listing(*self.cloud.there.values()))
        inventory.list_many = lambda *_: iter(())  # type: ignore[attr-defined]
        around = Surroundings(inventory, CATALOG, Config(), self.cloud.clock, Silent())  # type: ignore[arg-type]
        self.records = Records(LocalStore(self.folder / "record"), self.cloud.clock, ThisHost())  # type: ignore[arg-type]
        self.context = StackContext(plain_intent().stack, self.cloud, self.records, around, ThisHost())  # type: ignore[arg-type]

    def list_hanging(self, *found: CloudObject, gap: str | None = None, kind: str = "") -> None:
        """Let the lists of other types have these objects."""
        told = listing(*found, gap=gap, kind=kind)
        self.context.around.inventory.list_many = lambda *_: iter([told])  # type: ignore[method-assign]

    def destroy(self, **options: Any) -> Sequence[Disposed]:
        """Delete all of them, approved by name."""
        found = [Finding(one.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, one) for one in self.roles]
        names = {"confirmed": tuple(one.import_id for one in self.roles)}
        return self.destroy_these(found, **(names | options))

    def destroy_these(self, found: Sequence[Finding], **options: Any) -> Sequence[Disposed]:
        """Delete the objects of these findings; what is told of each stays in `told`."""
        return destroy_orphans(
            self.context,
            [finding.id for finding in found],
            found,
            DestroyOptions("stray", yes=True, **options),
            self.folder / "runs",
            lambda _: ProviderConfig("aws", "hashicorp/aws"),
            self.told.append,
        )

    def ledger(self) -> str:
        """The ledger as it lies there."""
        return (self.folder / "record" / "dispositions.jsonl").read_text()

    def stages(self, found: CloudObject) -> list[DestroyStage | None]:
        """What the ledger says of the deletion of one."""
        return [entry.stage for entry in self.records.dispositions() if entry.finding_id == found.finding_id]


def roles(*names: str) -> list[CloudObject]:
    return [role(name, created=START) for name in names]


UNLISTED = "aws_security_group_rule"


def unlisted() -> CloudObject:
    """An object of a type that the catalogue knows, and that no list has: as a record tells it."""
    return replace(role("one"), type=UNLISTED, region="us-east-1", identity={})


def hangs_on(found: CloudObject, kind: str = "aws_iam_role_policy_attachment", **more: Any) -> CloudObject:
    """What a list tells to hang on a role."""
    name = f"{found.import_id}/reads"
    identity = {"role": found.import_id, "policy_arn": "reads", "role+policy_arn": name}
    return replace(found, type=kind, id=name, import_id=name, identity=identity, name=None, arn=None, **more)


def test_what_holds_data_is_never_deleted_in_bulk(tmp_path: Path) -> None:
    account = Account([replace(found, stateful=True) for found in roles("one", "two", "three")], tmp_path)
    done = {one.object.import_id: one for one in account.destroy(stateful=True)}
    assert [name for name, one in done.items() if one.absent] == ["one"]
    assert all("so does another" in done[name].what for name in ("two", "three"))
    assert list(account.cloud.there) == ["two", "three"]


@pytest.mark.parametrize("by", ["name", "import_id", "arn"])
def test_an_object_is_approved_by_any_of_its_exact_names(tmp_path: Path, by: str) -> None:
    (found,) = (replace(one, id="id-1", import_id="id-1", name="one", arn="arn:x:one") for one in roles("one"))
    account = Account([found], tmp_path)
    exact = getattr(found, by)
    (refused,) = account.destroy(confirmed=(exact[:-1], exact.upper()))
    assert (refused.what, list(account.cloud.there)) == ("not approved", ["id-1"])
    (done,) = account.destroy(confirmed=(exact,))
    assert done.absent


def test_a_name_that_two_have_is_left_for_the_one_that_is_not_named_more_exactly(tmp_path: Path) -> None:
    both = [replace(one, name="same", arn=f"arn:x:{one.id}") for one in roles("one", "two")]
    done = Account(both, tmp_path).destroy(confirmed=("same", "arn:x:one"))
    assert [one.absent for one in done] == [True, True]


def test_without_leave_nothing_that_holds_data_goes(tmp_path: Path) -> None:
    account = Account([replace(found, stateful=True) for found in roles("one")], tmp_path)
    (done,) = account.destroy()
    assert (done.stage, "holds data" in done.what, list(account.cloud.there)) == (None, True, ["one"])


def test_what_a_state_has_taken_while_the_question_was_asked_stays(tmp_path: Path) -> None:
    (taken,) = roles("one")
    account = Account([taken], tmp_path)
    empty = account.cloud.state
    held = StateInstance("aws_iam_role.one", "aws_iam_role", "aws", "aws", dict(taken.identity) | {"id": "one"})
    states = iter([empty, replace(empty, instances=(held,))])
    account.cloud.pull_state = lambda: next(states)  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert ("is managed already" in done.what, list(account.cloud.there)) == (True, ["one"])
    assert account.stages(taken) == [DestroyStage.REQUESTED, DestroyStage.STOPPED]


def test_an_interrupt_ends_the_deletion_that_is_under_way_and_begins_no_other(tmp_path: Path) -> None:
    account = Account(roles("one", "two"), tmp_path, interrupts=True)
    first, second = account.destroy()
    assert (first.stage, second.stage) == (DestroyStage.ABSENT, DestroyStage.STOPPED)
    assert "interrupted" in second.what
    assert list(account.cloud.there) == ["two"]
    assert account.stages(account.roles[1]) == [DestroyStage.REQUESTED, DestroyStage.STOPPED]


def test_a_name_that_the_record_withholds_does_not_come_into_the_ledger_by_the_look(tmp_path: Path) -> None:
    (seen,) = roles("one")
    account = Account([replace(seen, name="hunter2")], tmp_path)
    known = Finding(seen.finding_id, Verdict.ORPHANED, Confidence.CERTAIN, None, None, replace(seen, name=None))
    (done,) = account.destroy_these([known], confirmed=("hunter2",))
    assert done.absent
    assert "hunter2" not in account.ledger()


def test_of_the_engines_words_the_ledger_keeps_the_kind_of_error_alone(tmp_path: Path) -> None:
    said = ("deleting it", "operation error IAM: DeleteRole, https response error StatusCode: 409, RequestID: 1-2, "
            "DeleteConflict: hunter2 is in the way")  # fmt: skip
    account = Account(roles("one"), tmp_path)

    def refused(*_: object) -> Deletion:
        return Deletion(True, errors=("DeleteConflict: hunter2 is in the way",), raw=(said,))

    account.cloud.delete_object = refused  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert (done.stage, "hunter2 is in the way" in done.what) == (DestroyStage.STOPPED, True)
    last = account.records.dispositions()[-1]
    assert last.reason == "the engine could not delete it: IAM DeleteRole: HTTP 409 DeleteConflict"


@pytest.mark.parametrize(
    ("held", "advice", "reason"),
    [
        (Deletion(True, errors=("it is protected",), advice="unprotect it"), "unprotect it", "it is protected"),
        (Deletion(True, errors=("no plan",)), "", "the engine could not delete it: no plan"),
        (Deletion(True), "", "the engine could not delete it: it does not say why"),
    ],
)
def test_what_is_not_the_engines_word_is_kept_with_its_reason(
    tmp_path: Path, held: Deletion, advice: str, reason: str
) -> None:
    account = Account(roles("one"), tmp_path)
    account.cloud.delete_object = lambda *_: held  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert (done.stage, done.what, account.records.dispositions()[-1].reason) == (DestroyStage.STOPPED, reason, reason)
    assert advice in done.advice
    assert "hangs on it" not in done.advice


def test_an_error_of_the_run_is_told_and_its_words_are_not_kept(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)

    def broken(*_: object) -> Deletion:
        raise InputError("hunter2 cannot be written", "mend it")

    account.cloud.prepare_deletion = broken  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert (done.what, "hunter2" in account.ledger()) == ("hunter2 cannot be written", False)


def test_one_approval_by_name_approves_one_object(tmp_path: Path) -> None:
    account = Account([replace(found, name="the app") for found in roles("one", "two")], tmp_path)
    first, second = sorted(account.destroy(confirmed=("the app",)), key=lambda one: one.absent, reverse=True)
    assert (first.absent, second.what) == (True, "not approved")
    assert "--confirm 'the app', once for each" in second.advice
    assert len(account.cloud.there) == 1
    account.roles = list(account.cloud.there.values())
    assert account.destroy(confirmed=("the app",))[0].absent


def test_states_that_cannot_be_read_after_the_question_keep_what_was_approved(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    states = iter([account.cloud.state])

    def pull() -> StateSnapshot:
        for state in states:
            return state
        raise InputError("the state cannot be read", "look")

    account.cloud.pull_state = pull  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert (done.what, list(account.cloud.there)) == ("the state cannot be read", ["one"])
    assert account.stages(account.roles[0]) == [DestroyStage.REQUESTED, DestroyStage.STOPPED]


def test_what_a_state_has_taken_while_another_was_deleted_stays(tmp_path: Path) -> None:
    account = Account(roles("one", "two"), tmp_path)
    taken, deleting = account.roles[1], account.cloud.delete_object

    def delete(target: DeletionTarget, *rest: object) -> Deletion:
        held = StateInstance("aws_iam_role.two", "aws_iam_role", "aws", "aws", dict(taken.identity) | {"id": "two"})
        account.cloud.state = replace(EMPTY_STATE, lineage="lineage", instances=(held,))
        return deleting(target, *rest)

    account.cloud.delete_object = delete  # type: ignore[method-assign]
    first, second = account.destroy()
    assert (first.absent, second.stage) == (True, DestroyStage.STOPPED)
    assert ("is managed already" in second.what, list(account.cloud.there)) == (True, ["two"])


def test_a_list_that_leaves_out_what_is_new_does_not_make_it_gone(tmp_path: Path) -> None:
    (young,) = roles("one")
    account = Account([replace(young, created_at=LATER)], tmp_path)
    hidden = dict(account.cloud.there)
    account.cloud.there.clear()
    sleep = account.cloud.clock.sleep

    def sleep_until_listed(seconds: float) -> bool:
        account.cloud.there.update(hidden if account.cloud.clock.now() > LATER + timedelta(seconds=20) else {})
        return sleep(seconds)

    account.cloud.clock.sleep = sleep_until_listed  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert (done.stage, "less than the consistency grace" in done.what) == (None, True)
    assert account.stages(account.roles[0]) == []


def test_what_stays_unlisted_until_the_grace_is_over_is_gone(tmp_path: Path) -> None:
    (young,) = roles("one")
    account = Account([replace(young, created_at=LATER)], tmp_path)
    account.cloud.there.clear()
    (done,) = account.destroy()
    assert (done.absent, account.cloud.clock.now() >= LATER + Config().consistency_grace) == (True, True)


def test_an_object_without_a_creation_time_is_as_old_as_the_first_scan_that_saw_it(tmp_path: Path) -> None:
    account = Account([replace(found, created_at=None) for found in roles("one")], tmp_path)
    (found,) = account.roles
    known = Finding(found.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, found)
    (done,) = account.destroy_these([replace(known, first_seen=LATER)], confirmed=("one",))
    assert (done.stage, "less than the consistency grace" in done.what) == (None, True)
    (done,) = account.destroy_these([replace(known, first_seen=START)], confirmed=("one",))
    assert done.absent


def test_a_ledger_that_fails_stops_the_run_and_what_was_done_by_then_is_told(tmp_path: Path) -> None:
    account = Account(roles("one", "two", "three"), tmp_path)
    decide = account.records.decide

    def fails_for_the_second(entries: Sequence[Disposition]) -> None:
        if entries[0].import_id == "two" and entries[0].stage is DestroyStage.ABSENT:
            raise RecordError("the record cannot be written", "mend it")
        decide(entries)

    account.records.decide = fails_for_the_second  # type: ignore[method-assign]
    with pytest.raises(RecordError):
        account.destroy()
    assert [(one.object.import_id, one.absent) for one in account.told] == [("one", True), ("two", True)]
    assert list(account.cloud.there) == ["three"], "nothing is deleted of which no ledger tells"
    assert account.stages(account.roles[1]) == [DestroyStage.REQUESTED, DestroyStage.IN_PROGRESS]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([False], "verified to be gone"),
        ([True, None, False], "verified to be gone"),
        ([True] * 100, "is not verified: the engine can still import it"),
        ([None] * 100, "is not verified: the engine could not tell: it does not say why"),
    ],
)
def test_what_no_list_has_is_looked_for_by_the_engine_until_the_grace_is_over(
    tmp_path: Path, answers: Sequence[bool | None], said: str
) -> None:
    account = Account([unlisted()], tmp_path)
    read = StateInstance("aws_security_group_rule.orphan", UNLISTED, "aws", identity={"id": "one"})
    found = iter([True, *answers])
    account.cloud.prepare_deletion = lambda *_: Deletion(next(found), read)  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert said in done.what


def test_what_the_engine_reads_instead_of_what_was_found_stays(tmp_path: Path) -> None:
    account = Account([unlisted()], tmp_path)
    read = StateInstance("aws_security_group_rule.orphan", UNLISTED, "aws", identity={"id": "another"})
    account.cloud.prepare_deletion = lambda *_: Deletion(True, read)  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert ("reads another object" in done.what, list(account.cloud.there)) == (True, ["one"])


def test_a_type_that_is_not_in_the_catalogue_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    account = Account([replace(found, type="aws_unheard_of") for found in roles("one")], tmp_path)
    (done,) = account.destroy()
    assert (done.stage, "aws_unheard_of is not in the catalogue" in done.what) == (None, True)
    assert list(account.cloud.there) == ["one"]


def kept(found: CloudObject, kind: DispositionKind = DispositionKind.RETAIN) -> Disposition:
    """A decision about one of the roles, for two days where it keeps it."""
    until = LATER + timedelta(days=2) if kind is DispositionKind.RETAIN else None
    return Disposition(found.finding_id, kind, LATER, "them", "the audit", "", until=until, owner="audit")


@pytest.mark.parametrize("when", ["before it is shown", "while it is asked", "while another is deleted"])
def test_what_is_kept_meanwhile_stays_and_so_does_its_retention(tmp_path: Path, when: str) -> None:
    account = Account(roles("one", "two"), tmp_path)
    last = account.roles[1]

    def keep(*_: object) -> None:
        if not account.stages(last) or account.stages(last)[-1] is DestroyStage.REQUESTED:
            account.records.decide([kept(last)])

    if when == "before it is shown":
        keep()
    elif when == "while it is asked":
        account.context.console.say = keep  # type: ignore[method-assign]
    else:
        deleting = account.cloud.delete_object

        def delete(target: DeletionTarget, *rest: object) -> Deletion:
            keep()
            return deleting(target, *rest)

        account.cloud.delete_object = delete  # type: ignore[method-assign]
    done = account.destroy()
    assert [one.absent for one in done if one.object.import_id == "two"] == [False]
    assert "was settled: retain by them" in next(one.what for one in done if one.object.import_id == "two")
    assert list(account.cloud.there) == ["two"]
    about = [entry.kind for entry in account.records.dispositions() if entry.finding_id == last.finding_id]
    assert about[-1] is DispositionKind.RETAIN


@pytest.mark.parametrize(
    ("kept_for", "released", "goes"),
    [
        ([], False, False),
        ([], True, False),  # released long ago, or where its line cannot be read: somebody keeps it since
        ([9], True, True),
        ([9, 2], True, True),  # kept for less later, which the tag was not moved to
        ([2], True, False),
        ([-1], False, False),  # overdue here, and kept by another
    ],
)
def test_what_a_tag_keeps_stays_unless_this_ledger_had_put_it_there_and_has_released_it(
    tmp_path: Path, kept_for: Sequence[int], released: bool, goes: bool
) -> None:
    (found,) = tagged = [replace(one, tags=retention_tags(LATER + timedelta(days=9), "audit")) for one in roles("one")]
    account = Account(tagged, tmp_path)
    here = [replace(kept(found), until=LATER + timedelta(days=days, microseconds=7)) for days in kept_for]
    account.records.decide([*here, *([kept(found, DispositionKind.RELEASE)] if released else [])])
    (done,) = account.destroy()
    assert (done.absent, "by audit" in done.what) == (goes, not goes)


def test_tags_that_a_finding_withholds_are_no_change_and_others_are(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    (found,) = account.roles
    account.cloud.there["one"] = replace(found, tags={"team": "hunter22"})
    (refused,) = account.destroy()
    assert "it has changed since it was found: tags" in refused.what
    account.cloud.state = replace(EMPTY_STATE, lineage="lineage", secrets=frozenset(["hunter22"]))
    (done,) = account.destroy()
    assert done.absent


def test_what_no_list_has_and_the_engine_never_found_is_not_called_gone(tmp_path: Path) -> None:
    account = Account([unlisted()], tmp_path)
    account.cloud.there.clear()
    (done,) = account.destroy()
    assert (done.stage, "cannot be told" in done.what) == (DestroyStage.STOPPED, True)


def test_what_hangs_on_it_and_is_another_stacks_keeps_it(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    child = hangs_on(account.roles[0])
    account.list_hanging(child)
    held = StateInstance("aws_iam_role_policy_attachment.x", child.type, "aws", "aws", dict(child.identity))
    account.cloud.state = replace(EMPTY_STATE, lineage="lineage", instances=(held,))
    (done,) = account.destroy()
    assert "on it hangs aws_iam_role_policy_attachment one/reads, which the state " in done.what
    assert (done.stage, list(account.cloud.there)) == (None, ["one"])


@pytest.mark.parametrize("by", ["the ledger", "a tag"])
def test_what_hangs_on_it_and_is_kept_keeps_it(tmp_path: Path, by: str) -> None:
    account = Account(roles("one"), tmp_path)
    tags = retention_tags(LATER + timedelta(days=1), "audit") if by == "a tag" else {}
    child = hangs_on(account.roles[0], tags=tags)
    account.list_hanging(child)
    if by == "the ledger":
        account.records.decide([kept(child)])
    (done,) = account.destroy()
    assert "on it hangs aws_iam_role_policy_attachment one/reads, which is kept" in done.what
    assert (done.stage, list(account.cloud.there)) == (None, ["one"])


@pytest.mark.parametrize("days", [1, 2])
def test_what_hangs_on_it_and_was_kept_by_this_ledger_does_not_keep_it_once_it_is_released(
    tmp_path: Path, days: int
) -> None:
    account = Account(roles("one"), tmp_path)
    child = hangs_on(account.roles[0], tags=retention_tags(LATER + timedelta(days=days), "audit"))
    account.list_hanging(child)
    account.records.decide([kept(child), kept(child, DispositionKind.RELEASE)])
    (done,) = account.destroy()
    assert done.absent is (days == 2), "of another date it is another ledger's"


def test_what_hangs_on_it_and_is_nobodys_does_not_keep_it(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    account.list_hanging(hangs_on(account.roles[0]))
    (done,) = account.destroy()
    assert done.absent


@pytest.mark.parametrize("listed", [True, False])
def test_what_the_provider_would_take_it_out_of_keeps_it_and_so_does_a_list_of_it_that_fails(
    tmp_path: Path, listed: bool
) -> None:
    account = Account(roles("one"), tmp_path)
    profile = hangs_on(account.roles[0], "aws_iam_instance_profile")
    account.list_hanging(*([profile] if listed else []), gap=None if listed else "AccessDenied", kind=profile.type)
    (done,) = account.destroy()
    assert ("would take it out of that" in done.what, "is not known" in done.what) == (listed, not listed)
    assert (done.stage, list(account.cloud.there)) == (None, ["one"])
