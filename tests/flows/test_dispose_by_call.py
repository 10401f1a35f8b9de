"""Deletions of what the engine cannot import: by the type's own call, verified like any other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from test_dispose import Account, Cloud, roles
from test_verify import role

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError
from tfguard.flows.restore import Restorer
from tfguard.model.action import ActionAnswer
from tfguard.model.disposition import DestroyStage
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Deletion, DeletionTarget


@dataclass
class Calls:
    """The cloud's own calls: `answer` is what they say; where they work, the object goes."""

    cloud: Cloud
    answer: ActionAnswer
    works: bool = True
    asked: list[str] = field(default_factory=list)

    def delete(self, found: CloudObject, _: ProviderConfig) -> ActionAnswer:
        self.asked.append(found.import_id)
        if self.works:
            self.cloud.there.pop(found.import_id)
        return self.answer

    def restore(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:  # noqa: ARG002 (the port's)
        return self.answer

    def tag(self, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]) -> ActionAnswer:
        raise NotImplementedError

    def untag(self, found: CloudObject, provider: ProviderConfig, names: Collection[str]) -> ActionAnswer:
        raise NotImplementedError


def account(
    folder: Path, imported: Deletion, answer: ActionAnswer, *, works: bool, found: CloudObject | None = None
) -> tuple[Account, Calls]:
    """An account with one role or what is `found`, an engine that says this of its import, and calls that answer so."""
    made = Account([found] if found else roles("one"), folder)

    def prepare(_target: DeletionTarget, *_: object) -> Deletion:
        return imported

    made.cloud.prepare_deletion = prepare  # type: ignore[method-assign]
    calls = Calls(made.cloud, answer, works)
    object.__setattr__(made.context, "actions", calls)
    return made, calls


NOT_IMPORTABLE = Deletion(None, errors=("resource aws_x doesn't support import",), importable=False)


def test_what_the_engine_says_it_cannot_import_is_deleted_by_its_call(tmp_path: Path) -> None:
    made, calls = account(tmp_path, NOT_IMPORTABLE, ActionAnswer(("DeleteRole",)), works=True)
    (done,) = made.destroy()
    assert (done.absent, calls.asked) == (True, ["one"])
    assert made.stages(made.roles[0]) == [DestroyStage.REQUESTED, DestroyStage.IN_PROGRESS, DestroyStage.ABSENT]


def test_an_import_that_fails_for_another_reason_leads_to_no_call(tmp_path: Path) -> None:
    refused = Deletion(None, errors=("AccessDenied",))
    made, calls = account(tmp_path, refused, ActionAnswer(("DeleteRole",)), works=True)
    (done,) = made.destroy()
    assert (done.stage, calls.asked) == (DestroyStage.STOPPED, [])
    assert "the engine cannot import it" in done.what


@pytest.mark.parametrize("works", [True, False])
def test_a_call_without_an_answer_is_left_for_the_look_to_tell(tmp_path: Path, works: bool) -> None:
    answer = ActionAnswer(refused="ReadTimeoutError on DeleteRole", unanswered=True)
    made, calls = account(tmp_path, NOT_IMPORTABLE, answer, works=works)
    (done,) = made.destroy()
    assert (done.absent, calls.asked) == (works, ["one"])
    if not works:
        assert "is not verified: it is still there" in done.what


def test_a_refused_call_is_told_and_not_made_again(tmp_path: Path) -> None:
    answer = ActionAnswer(refused="DeleteConflict on DeleteRole", blocked=True)
    made, calls = account(tmp_path, NOT_IMPORTABLE, answer, works=False)
    (done,) = made.destroy()
    assert (done.stage, calls.asked) == (DestroyStage.STOPPED, ["one"])
    assert "DeleteConflict on DeleteRole" in done.what and "hangs on it" in done.advice


@pytest.mark.parametrize(
    ("refused", "kept"),
    [
        ("DeleteConflict on DeleteRole", "DeleteConflict on DeleteRole"),
        ("no hunter2 is known of it", "the call was not made, or it failed; why is in the run's output"),
    ],
)
def test_of_a_refused_call_the_ledger_keeps_code_and_call_alone(tmp_path: Path, refused: str, kept: str) -> None:
    answer = ActionAnswer(("GetRole",), refused)
    made, _ = account(tmp_path, NOT_IMPORTABLE, answer, works=False)
    (done,) = made.destroy()
    assert refused in done.what
    assert kept in made.records.dispositions()[-1].reason
    restorer = Restorer(made.context, (), lambda _: ProviderConfig("aws", "hashicorp/aws"))
    (found,) = made.roles
    finding = Finding(found.finding_id, Verdict.SOFT_DELETED, Confidence.CERTAIN, None, None, found)
    with pytest.raises(InputError, match=refused):
        restorer.restore(finding, replace(found, name="a secret name"))
    last = made.records.dispositions()[-1]
    assert (last.stage, kept in last.reason) == (DestroyStage.STOPPED, True)
    assert not any(word in made.ledger() for word in ("hunter2", "a secret name"))


@pytest.mark.parametrize("attached", [True, False])
def test_what_the_provider_would_detach_first_is_deleted_by_its_call_and_the_engine_is_not_asked(
    tmp_path: Path, attached: bool
) -> None:
    user = replace(role("one"), type="aws_iam_user", identity={"name": "one"}, arn="arn:aws:iam::123456789012:user/one")
    answer = ActionAnswer(refused="DeleteConflict on DeleteUser", blocked=True) if attached else ActionAnswer()
    made, calls = account(tmp_path, NOT_IMPORTABLE, answer, works=not attached, found=user)
    made.cloud.prepare_deletion = lambda *_: pytest.fail("the engine is asked")  # type: ignore[method-assign]
    said: list[str] = []
    made.context.console.say = said.append  # type: ignore[method-assign]
    (done,) = made.destroy()
    assert (done.absent, calls.asked, list(made.cloud.there)) == (not attached, ["one"], ["one"] if attached else [])
    assert "it is deleted by DeleteUser itself: the provider would detach it first" in "\n".join(said)


def test_where_a_provider_would_detach_first_the_catalogue_knows_the_services_own_call() -> None:
    assert {kind.type for kind in load_catalog() if kind.by_call} == {
        "aws_autoscaling_group",
        "aws_iam_user",
        "aws_network_acl",
        "aws_route_table",
        "aws_ssm_patch_baseline",
        "aws_vpc_dhcp_options",
    }
