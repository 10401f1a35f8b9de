"""Which CI job a run belongs to, as each system's own variables tell it, and that none of them can do harm."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tfguard.engine.ci import CiJob, ci_job
from tfguard.engine.host import LocalHost

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/infra",
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "apply",
    "GITHUB_SHA": "c0ffee",
    "GITHUB_ACTOR": "who-pushed",
    "GITHUB_TRIGGERING_ACTOR": "who-ran-it-again",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_PATH": "acme/infra",
    "CI_JOB_ID": "4711",
    "CI_JOB_URL": "https://gitlab.example/acme/infra/-/jobs/4711",
    "CI_COMMIT_SHA": "c0ffee",
    "GITLAB_USER_LOGIN": "ada",
}
JENKINS = {
    "JOB_NAME": "infra/main",
    "BUILD_NUMBER": "12",
    "BUILD_URL": "https://ci.example/job/infra/job/main/12/",
    "GIT_COMMIT": "c0ffee",
    "BUILD_USER_ID": "ada",
    "CHANGE_AUTHOR": "grace",
}
ATLANTIS = {
    "ATLANTIS_TERRAFORM_VERSION": "1.11.4",
    "BASE_REPO_OWNER": "acme",
    "BASE_REPO_NAME": "infra",
    "PULL_NUM": "9",
    "PULL_URL": "https://github.com/acme/infra/pull/9",
    "REPO_REL_DIR": "live/network",
    "WORKSPACE": "default",
    "HEAD_COMMIT": "c0ffee",
    "USER_NAME": "ada",
}
BUILDKITE = {
    "BUILDKITE_JOB_ID": "01-ab",
    "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/infra/builds/5",
    "BUILDKITE_COMMIT": "c0ffee",
    "BUILDKITE_BUILD_CREATOR": "Ada",
}
CIRCLECI = {
    "CIRCLE_WORKFLOW_JOB_ID": "ab-1",
    "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/infra/5",
    "CIRCLE_SHA1": "c0ffee",
    "CIRCLE_USERNAME": "ada",
}
AZURE = {
    "SYSTEM_TEAMPROJECT": "Our Infra",
    "BUILD_BUILDID": "31",
    "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI": "https://dev.azure.com/acme/",
    "BUILD_SOURCEVERSION": "c0ffee",
    "BUILD_REQUESTEDFOR": "Ada L",
}


@pytest.mark.parametrize(
    ("environ", "job"),
    [
        (
            GITHUB,
            CiJob(
                "github",
                "acme/infra/77/apply/2",
                "https://github.com/acme/infra/actions/runs/77/attempts/2",
                "c0ffee",
                "who-ran-it-again",
            ),
        ),
        (GITLAB, CiJob("gitlab", "acme/infra/4711", GITLAB["CI_JOB_URL"], "c0ffee", "ada")),
        (JENKINS, CiJob("jenkins", "infra/main/12", "https://ci.example/job/infra/job/main/12", "c0ffee", "ada")),
        (
            ATLANTIS,
            CiJob("atlantis", "acme/infra/pull/9/live/network/default", ATLANTIS["PULL_URL"], "c0ffee", "ada"),
        ),
        (BUILDKITE, CiJob("buildkite", "01-ab", f"{BUILDKITE['BUILDKITE_BUILD_URL']}#01-ab", "c0ffee", "Ada")),
        (CIRCLECI, CiJob("circleci", "ab-1", CIRCLECI["CIRCLE_BUILD_URL"], "c0ffee", "ada")),
        (
            AZURE,
            CiJob(
                "azure",
                "Our Infra/31",
                "https://dev.azure.com/acme/Our%20Infra/_build/results?buildId=31",
                "c0ffee",
                "Ada L",
            ),
        ),
    ],
    ids=lambda value: value.system if isinstance(value, CiJob) else "",
)
def test_each_system_tells_job_link_commit_and_who(environ: Mapping[str, str], job: CiJob) -> None:
    assert ci_job(environ) == job


def test_nothing_is_claimed_outside_of_ci() -> None:
    assert ci_job({"USER": "ada", "PULL_NUM": "9", "BUILD_NUMBER": "1", "GITHUB_ACTOR": "ada"}) is None


def test_what_an_older_or_smaller_system_does_not_set_is_left_out() -> None:
    old = {
        name: value for name, value in GITHUB.items() if name in ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_JOB")
    }
    assert ci_job(old) == CiJob("github", "acme/infra/77/apply")
    assert ci_job(old | {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_ACTOR": "ada"}) == CiJob(
        "github", "acme/infra/77/apply", "https://github.com/acme/infra/actions/runs/77", None, "ada"
    )
    assert ci_job({name: value for name, value in JENKINS.items() if name != "BUILD_USER_ID"}).actor == "grace"  # type: ignore[union-attr]


def test_atlantis_is_told_from_the_system_that_its_server_runs_in() -> None:
    assert ci_job(GITLAB | ATLANTIS).system == "atlantis"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://bot:hunter2@ci.example/job/1", "https://ci.example/job/1"),
        ("https://bot@ci.example/job/1?token=hunter2#x", "https://ci.example/job/1"),
        ("https://a:b@c:d@ci.example:8443/job", "https://ci.example:8443/job"),
        ("ftp://ci.example/job", None),
        ("javascript:alert(1)", None),
        ("https://", None),
        ("https://[broken/job", None),
        ("https://ci.example/a b\x1b[31m", "https://ci.example/a%20b[31m"),
    ],
)
def test_a_link_is_an_http_one_that_carries_no_credential(given: str, kept: str | None) -> None:
    assert ci_job(JENKINS | {"BUILD_URL": given}).url == kept  # type: ignore[union-attr]


def test_a_value_that_somebody_made_up_is_one_bounded_line_of_plain_characters() -> None:
    nasty = "ada\n\x1b[2J\u202eroot\u2028 {GITHUB_SHA}" + "x" * 5000 + "\udcff"
    actor = ci_job(GITHUB | {"GITHUB_TRIGGERING_ACTOR": nasty}).actor  # type: ignore[union-attr]
    assert actor is not None
    assert actor.startswith("ada[2Jroot {GITHUB_SHA}xxx")
    assert len(actor) <= 500


def test_the_actor_of_an_operation_carries_them_beside_the_machines_own_names() -> None:
    actor = LocalHost(GITLAB).actor()
    assert (actor.ci_system, actor.ci_job, actor.ci_actor) == ("gitlab", "acme/infra/4711", "ada")
    assert (actor.ci_url, actor.ci_commit) == (GITLAB["CI_JOB_URL"], "c0ffee")
    assert actor.user
    assert LocalHost({}).actor().ci_system is None
