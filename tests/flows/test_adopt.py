"""What an adoption leaves behind, whatever fails on its way: with a stand-in for the engine and for its apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from packed import MovedClock
from test_dispose import ThisHost
from test_records import Heard
from test_records import intent as plain_intent
from test_story import LATER, FakeEngine
from test_verify import CATALOG, FakeInventory, listing

from tfguard.engine.configuration import written_imports
from tfguard.errors import InputError, InterruptedRunError, RecordError, TfguardError, UsageError
from tfguard.flows import adopt as adopting
from tfguard.flows.adopt import AdoptOptions, adopt, blocks_for
from tfguard.flows.context import StackContext
from tfguard.flows.drafted_file import DraftedFile, marked_block
from tfguard.flows.guard import GuardedRun, Prepared
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.model.action import ActionAnswer
from tfguard.model.config import Config
from tfguard.model.disposition import DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.importing import Draft, ImportTarget, ImportTrouble, WrittenImport
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.operation import Operation
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot
from tfguard.ports import KnownState
from tfguard.stores.local import LocalStore

AWS = "registry.terraform.io/hashicorp/aws"
ADDRESS = "aws_sqs_queue.jobs"
BLOCK = f'import {{\n  to = {ADDRESS}\n  id = "https://sqs/jobs"\n}}\n'
TEXT = 'resource "aws_sqs_queue" "jobs" {}\n'


def queue(name: str = "jobs", **fields: Any) -> CloudObject:
    """A queue that no operation tells of."""
    url = f"https://sqs/{name}"
    return CloudObject("aws", "1", "us-east-1", "aws_sqs_queue", url, url, {"url": url}, name=name, **fields)


def finding(
    found: CloudObject | None = None,
    verdict: Verdict = Verdict.UNMANAGED,
    address: str | None = None,
    operation_id: str | None = None,
) -> Finding:
    """A finding."""
    found = found or queue()
    return Finding(found.finding_id, verdict, Confidence.CERTAIN, address, operation_id, found)


def with_queue(*addresses: str) -> StateSnapshot:
    """A state that has the queue at these addresses."""
    url = {"url": "https://sqs/jobs"}
    held = [StateInstance(one, "aws_sqs_queue", AWS, "aws", identity=url) for one in addresses]
    return StateSnapshot("lineage", 2, tuple(held))


@dataclass
class Drafting(FakeEngine):
    """An engine that drafts for everything and plans every import; `unreadable` is why its state cannot be read."""

    folder: Path = Path()
    unreadable: str = ""
    targets: Sequence[ImportTarget] = ()
    arguments: Sequence[str] = ()
    secrets: frozenset[str] = frozenset()
    undrafted: tuple[ImportTrouble, ...] = ()

    def pull_state(self) -> StateSnapshot:
        if self.unreadable:
            raise InputError(self.unreadable, "mend it")
        return self.state

    def declares(self, address: str) -> bool:
        kind, _, name = address.partition(".")
        return any(f'resource "{kind}" "{name}"' in path.read_text() for path in self.folder.glob("*.tf"))

    def written_imports(self) -> Sequence[WrittenImport]:
        return written_imports(self.folder)

    def quiet_plan(self, *_: object) -> str:
        return "not now"

    def draft(
        self, targets: Sequence[ImportTarget], _: object, __: object, secrets: frozenset[str], folder: Path
    ) -> Draft:
        assert not list(folder.glob("*.tf"))
        self.secrets = secrets
        texts = {one.address: 'resource "{}" "{}" {{}}\n'.format(*one.address.split(".")) for one in targets}
        return Draft(texts, self.undrafted)

    def plan_imports(
        self, targets: Sequence[ImportTarget], _: str, arguments: Sequence[str], plan_file: Path
    ) -> tuple[ImportTrouble, ...]:
        self.targets, self.arguments = targets, arguments
        plan_file.write_text("plan")
        return ()

    def show_plan(self, _: Path) -> Plan:
        change = PlannedChange("", "aws_sqs_queue", AWS, Action.NOOP)
        changes = (replace(change, address=one.address, importing=one.import_id) for one in self.targets)
        return Plan("1.11.4", tuple(changes))


@dataclass
class Stack:
    """A stack's folder, with all around an adoption; `applying` is what happens while the engine applies."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    applying: Callable[[], None] = lambda: None
    runs: bool = True
    others: list[KnownState] = field(default_factory=list)
    readings: int = 0
    prepared: Prepared | None = None

    def __post_init__(self) -> None:
        self.engine, self.console = Drafting(folder=self.folder), Heard()
        clock = MovedClock(LATER)
        around = Surroundings(FakeInventory(lambda *_: listing()), CATALOG, Config(), clock, self.console)  # type: ignore[arg-type]
        self.records = Records(LocalStore(self.folder / "record"), clock, ThisHost())  # type: ignore[arg-type]
        stack = replace(plain_intent().stack, directory=str(self.folder))
        self.context = StackContext(stack, self.engine, self.records, around, ThisHost(), known_places=lambda: [self])  # type: ignore[arg-type]
        self.monkeypatch.setattr(adopting, "apply_prepared", self.apply)

    @property
    def file(self) -> str | None:
        """The file for drafts."""
        path = self.folder / "imported.tf"
        return path.read_text() if path.exists() else None

    def read(self) -> Sequence[KnownState]:
        """The other states that are known."""
        self.readings += 1
        return self.others

    def apply(self, _: object, prepared: Prepared, *__: object) -> GuardedRun:
        """Stand in for the guarded apply."""
        self.prepared = prepared
        self.applying()
        return GuardedRun(0, Operation(plain_intent(prepared.operation_id), None) if self.runs else None)

    def adopt(self, *known: Finding, **options: Any) -> GuardedRun:
        """Adopt these findings, or one."""
        known = known or (finding(),)
        told = AdoptOptions(yes=options.pop("yes", True), **options)
        ids, runs = [one.id for one in known], self.folder / "runs"
        return adopt(self.context, ids, told, ("import",), runs, known, lambda _: None)

    def decided(self) -> list[tuple[DispositionKind, str | None, str | None]]:
        """What the ledger says."""
        return [(one.kind, one.address, one.import_id) for one in self.records.dispositions()]


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """A stack without anything."""
    return Stack(tmp_path, monkeypatch)


def test_while_it_is_applied_the_file_imports_and_afterwards_it_only_describes(stack: Stack) -> None:
    seen: list[str | None] = []

    def applying() -> None:
        seen.append(stack.file)
        stack.engine.state = with_queue(ADDRESS)

    stack.applying = applying
    assert stack.adopt().exit_code == 0
    assert seen[0] is not None
    assert (BLOCK in seen[0], TEXT in seen[0]) == (True, True)
    assert stack.file == TEXT
    assert stack.decided() == [(DispositionKind.IMPORT, ADDRESS, "https://sqs/jobs")]


def test_the_file_is_the_one_that_the_user_names(stack: Stack) -> None:
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    assert stack.adopt(out="net.tf").exit_code == 0
    assert (stack.file, (stack.folder / "net.tf").read_text()) == (None, TEXT)


def test_a_state_that_cannot_be_read_afterwards_costs_no_configuration(stack: Stack) -> None:
    stack.applying = lambda: setattr(stack.engine, "unreadable", "the state cannot be read")
    with pytest.raises(InputError, match="whether the state has it is not known"):
        stack.adopt()
    assert stack.file is not None
    assert (BLOCK in stack.file, TEXT in stack.file) == (True, True)
    assert stack.decided() == []


def test_a_ledger_that_cannot_be_written_costs_no_configuration(stack: Stack) -> None:
    def refused(*_: object) -> None:
        raise RecordError("the ledger cannot be written", "make room")

    def applying() -> None:
        stack.engine.state = with_queue(ADDRESS)
        stack.monkeypatch.setattr(Records, "decide", refused)

    stack.applying = applying
    with pytest.raises(RecordError):
        stack.adopt()
    assert stack.file == TEXT


@pytest.mark.parametrize("why", ["it raised", "no operation", "not in the state"])
def test_what_was_not_adopted_leaves_nothing_in_the_file(stack: Stack, why: str) -> None:
    (stack.folder / "imported.tf").write_text("# ours\n")

    def applying() -> None:
        assert stack.file != "# ours\n"
        if why == "it raised":
            raise InterruptedRunError("interrupted", "again")

    stack.applying, stack.runs = applying, why != "no operation"
    if why == "no operation":
        assert stack.adopt().exit_code == 0
    else:
        with pytest.raises((InterruptedRunError, InputError)):
            stack.adopt()
    assert stack.file == "# ours\n"
    assert stack.decided() == []


def test_of_several_only_what_was_adopted_stays_in_the_file(stack: Stack) -> None:
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    run = stack.adopt(finding(), finding(queue("mails")))
    assert (run.exit_code, stack.file) == (1, TEXT)


def test_a_disk_that_is_full_afterwards_is_told_and_the_decision_stands(stack: Stack) -> None:
    def full(*_: object) -> bool:
        raise InputError("imported.tf cannot be written: No space left on device", "make room")

    def applying() -> None:
        stack.engine.state = with_queue(ADDRESS)
        stack.monkeypatch.setattr(DraftedFile, "put", full)

    stack.applying = applying
    assert stack.adopt().exit_code == 0
    assert "No space left on device" in str(stack.console.lines)
    assert stack.decided() == [(DispositionKind.IMPORT, ADDRESS, "https://sqs/jobs")]
    assert TEXT in (stack.file or "")


def test_an_adoption_that_was_killed_goes_on_at_its_address_and_takes_its_blocks_away(stack: Stack) -> None:
    def killed() -> None:
        (stack.folder / "left.tf").write_text(f"# ours\n{stack.file}")
        raise InterruptedRunError("killed", "again")

    stack.applying = killed
    with pytest.raises(InterruptedRunError):
        stack.adopt()
    assert stack.file is None
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    assert stack.adopt().exit_code == 0
    assert [one.address for one in stack.engine.targets] == [ADDRESS]
    assert (stack.folder / "left.tf").read_text().split() == ["#", "ours", *TEXT.split()]
    assert stack.file is None


def test_an_adoption_that_was_killed_does_not_go_on_at_another_address(stack: Stack) -> None:
    (stack.folder / "left.tf").write_text(marked_block(finding().id, ADDRESS, "https://sqs/jobs"))
    with pytest.raises(UsageError, match=f"left {ADDRESS} in the configuration"):
        stack.adopt(address="aws_sqs_queue.other")
    orphan = finding(verdict=Verdict.ORPHANED, address="aws_sqs_queue.other", operation_id="01THEIRS")
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    assert stack.adopt(orphan).exit_code == 0


def test_an_adoption_that_was_killed_after_the_apply_only_loses_its_blocks(stack: Stack) -> None:
    def killed() -> None:
        (stack.folder / "left.tf").write_text(stack.file or "")
        stack.engine.unreadable = "killed"

    stack.applying = killed
    with pytest.raises(InputError):
        stack.adopt()
    (stack.folder / "imported.tf").unlink()
    stack.engine.unreadable, stack.engine.state = "", with_queue(ADDRESS)
    assert stack.adopt().exit_code == 0
    assert (stack.folder / "left.tf").read_text().strip() == TEXT.strip()


def test_what_another_state_got_while_the_question_was_asked_is_not_adopted_nor_what_is_in_one_plan_with_it(
    stack: Stack,
) -> None:
    def asked(_: str) -> bool:
        stack.others.append(KnownState("s3://other", "default", with_queue("aws_sqs_queue.theirs")))
        return True

    stack.console.confirm = asked  # type: ignore[method-assign]
    run = stack.adopt(finding(), finding(queue("mails")), yes=False)
    assert (run.exit_code, stack.prepared, stack.file) == (1, None, None)
    assert "the state s3://other has it at aws_sqs_queue.theirs" in str(stack.console.lines)
    assert "run the command again" in str(stack.console.lines)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict.UNKNOWN, "is unknown, and only what is known to be stray can be adopted"),
        (Verdict.IGNORED, "is ignored, and only what is known to be stray can be adopted"),
        (Verdict.RETAINED, "is retained, and only what is known to be stray can be adopted"),
        (Verdict.MANAGED, "is managed already"),
        (Verdict.FOREIGN, "belongs to another account"),
    ],
)
def test_what_is_not_known_to_be_stray_is_not_adopted(stack: Stack, verdict: Verdict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        stack.adopt(finding(verdict=verdict))


def test_what_an_operation_of_this_stack_may_have_made_is_for_the_person_to_judge(stack: Stack) -> None:
    stack.records.begin(plain_intent("01B"), ())
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    stack.adopt(finding(verdict=Verdict.UNKNOWN, address=ADDRESS, operation_id="01B"))
    assert [one.address for one in stack.engine.targets] == [ADDRESS]


def test_one_of_several_for_an_address_can_be_named(stack: Stack) -> None:
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    assert stack.adopt(finding(verdict=Verdict.DUPLICATED)).exit_code == 0


def test_a_finding_of_another_stacks_operation_goes_where_the_user_says(stack: Stack) -> None:
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    theirs = finding(address="aws_sqs_queue.theirs", operation_id="01THEIRS", verdict=Verdict.ORPHANED)
    with pytest.raises(UsageError, match="of another stack: operation 01THEIRS is not on record"):
        stack.adopt(theirs)
    assert stack.adopt(theirs, address=ADDRESS).exit_code == 0


def test_the_variables_of_the_run_that_made_it_are_those_of_the_adoption_and_of_its_recovery(stack: Stack) -> None:
    stack.records.begin(replace(plain_intent("01B"), var_files=("prod.tfvars",)), ())
    orphan = finding(verdict=Verdict.ORPHANED, address=ADDRESS, operation_id="01B")
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    stack.adopt(orphan)
    assert "-var-file=prod.tfvars" in stack.engine.arguments
    assert stack.prepared is not None
    assert stack.prepared.request.var_files == ("prod.tfvars",)


def test_the_users_own_variables_come_first(stack: Stack) -> None:
    stack.records.begin(replace(plain_intent("01B"), var_files=("prod.tfvars",)), ())
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    orphan = finding(verdict=Verdict.ORPHANED, address=ADDRESS, operation_id="01B")
    stack.adopt(orphan, arguments=("-var-file", "mine.tfvars"), var_files=("mine.tfvars",))
    assert stack.prepared is not None
    assert stack.prepared.request.var_files == ("mine.tfvars",)
    assert "-var-file=prod.tfvars" not in stack.engine.arguments


def test_what_the_state_marks_is_told_to_whoever_drafts_and_stands_in_no_address(stack: Stack) -> None:
    stack.engine.state = replace(EMPTY_STATE, lineage="lineage", secrets=frozenset(["hunter22"]))
    stack.applying = lambda: setattr(stack.engine, "state", with_queue("aws_sqs_queue.this"))
    named = replace(queue(), name="hunter22")
    assert stack.adopt(finding(named)).exit_code == 0
    assert stack.engine.secrets == {"hunter22"}
    assert [one.address for one in stack.engine.targets] == ["aws_sqs_queue.this"]


def test_an_object_whose_id_is_marked_gets_no_text_and_no_block(stack: Stack) -> None:
    stack.engine.state = replace(EMPTY_STATE, lineage="lineage", secrets=frozenset(["jobs"]))
    with pytest.raises(InputError, match="repeats a value that is marked as sensitive"):
        stack.adopt()
    (stack.folder / "main.tf").write_text(TEXT)
    with pytest.raises(InputError, match="repeats a value that is marked as sensitive"):
        blocks_for(stack.context, [finding().id], AdoptOptions(address=ADDRESS), [finding()], lambda _: None)


def test_a_finding_that_is_told_without_its_id_is_not_adopted(stack: Stack) -> None:
    with pytest.raises(UsageError, match="told without its id"):
        stack.adopt(finding(replace(queue(), import_id="<removed> 1a2b3c4d5e6f")))


def test_a_draft_that_is_kept_says_nothing_that_the_engine_said(stack: Stack) -> None:
    stack.engine.undrafted = (ImportTrouble(ADDRESS, "hunter22 is not valid"),)
    with pytest.raises(TfguardError, match="hunter22"):
        stack.adopt(keep=True)
    assert (stack.folder / "imported.tf.draft").read_text() == f"{TEXT}\n"


def test_an_import_block_that_is_written_already_says_where_it_goes_and_nothing_is_drafted(stack: Stack) -> None:
    mine = BLOCK.replace("to =", "to   =").replace(ADDRESS, "aws_sqs_queue.mine")
    (stack.folder / "main.tf").write_text('resource "aws_sqs_queue" "mine" {}\n' + mine)
    stack.applying = lambda: setattr(stack.engine, "state", with_queue("aws_sqs_queue.mine"))
    with pytest.raises(UsageError, match=r"has an import block for .* already, to aws_sqs_queue.mine"):
        stack.adopt(address="aws_sqs_queue.other")
    with pytest.raises(UsageError, match=r"has an import block for .* already, to aws_sqs_queue.mine"):
        blocks_for(stack.context, [finding().id], AdoptOptions(), [finding()], lambda _: None)
    assert stack.adopt().exit_code == 0
    assert [(one.address, one.drafted) for one in stack.engine.targets] == [("aws_sqs_queue.mine", False)]
    assert (stack.file, mine in (stack.folder / "main.tf").read_text()) == (None, True)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (BLOCK, "which the configuration does not have"),
        (BLOCK.replace("to =", "for_each = local.all\n  to ="), "with a `for_each` or an expression"),
        (BLOCK + BLOCK.replace(".jobs", ".twice"), "2 of them for one object"),
    ],
)
def test_an_import_block_that_cannot_be_used_is_told_and_nothing_is_drafted_beside_it(
    stack: Stack, block: str, said: str
) -> None:
    (stack.folder / "main.tf").write_text(block)
    with pytest.raises(UsageError, match=said):
        stack.adopt()
    assert (stack.prepared, stack.file) == (None, None)


def test_an_import_block_that_is_applied_or_is_about_another_object_says_nothing(stack: Stack) -> None:
    others = BLOCK.replace("sqs/jobs", "sqs/mails").replace(".jobs", ".mails")
    (stack.folder / "main.tf").write_text(others + BLOCK.replace("aws_sqs_queue", "aws_iam_role") + f"/*\n{BLOCK}*/\n")
    stack.applying = lambda: setattr(stack.engine, "state", with_queue(ADDRESS))
    assert stack.adopt().exit_code == 0
    assert [(one.address, one.drafted) for one in stack.engine.targets] == [(ADDRESS, True)]


class Restoring:
    """A cloud that restores what it is asked to, and is counted."""

    asked = 0

    def restore(self, *_: object) -> ActionAnswer:
        self.asked += 1
        return ActionAnswer(("RestoreSecret",))


@pytest.mark.parametrize("allowed", [False, True])
def test_what_could_only_be_imported_with_an_update_is_not_restored_before_that_is_allowed(
    stack: Stack, allowed: bool
) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:1:secret:key-abc"
    secret = CloudObject("aws", "1", "us-east-1", "aws_secretsmanager_secret", arn, arn, {"arn": arn}, "key")
    cloud, listed = Restoring(), listing()

    def now(*_: object) -> Listing:
        return listed if cloud.asked else replace(listed, soft_deleted=(replace(secret, soft_deleted=True),))

    around = replace(stack.context.around, inventory=FakeInventory(now))
    stack.context = replace(stack.context, around=around, actions=cloud)  # type: ignore[arg-type]
    stray = finding(secret, Verdict.SOFT_DELETED)
    provider = ProviderConfig("aws", "hashicorp/aws")
    told = AdoptOptions(yes=True, allow_update=allowed)
    with pytest.raises(TfguardError) as refused:
        adopt(stack.context, [stray.id], told, ("import",), stack.folder / "runs", [stray], lambda _: provider)
    assert ("recovery_window_in_days" in refused.value.what, cloud.asked) == (not allowed, int(allowed))
    assert ("--allow-update" in refused.value.advice) != allowed
    assert [one.kind for one in stack.records.dispositions()] == [DispositionKind.RESTORE] * (2 if allowed else 0)
