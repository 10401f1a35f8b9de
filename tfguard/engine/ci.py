"""The CI job that tfguard runs in, told by the variables that each system sets. A system is one entry of the table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

_NAME = re.compile(r"\{(\w+)\}")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class CiJob:
    """One CI job: the system's name, the job's id there, its link, the commit, and who started it."""

    system: str
    job: str | None = None
    url: str | None = None
    commit: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class _System:
    """How one CI system is known: by `marks`, which are all set. The rest are templates; the first that can be filled
    counts, so that a variable that older versions of the system lack is asked for first and missed later."""

    name: str
    marks: tuple[str, ...]
    job: tuple[str, ...]
    url: tuple[str, ...]
    commit: tuple[str, ...]
    actor: tuple[str, ...]


# Asked in this order. Atlantis comes first: its server may run inside one of the others, whose variables it hands on.
_SYSTEMS = (
    _System(
        "atlantis",
        ("ATLANTIS_TERRAFORM_VERSION", "PULL_NUM"),
        ("{BASE_REPO_OWNER}/{BASE_REPO_NAME}/pull/{PULL_NUM}/{REPO_REL_DIR}/{WORKSPACE}",),
        ("{PULL_URL}",),
        ("{HEAD_COMMIT}",),
        ("{USER_NAME}",),
    ),
    _System(
        "github",
        ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_JOB"),
        (
            "{GITHUB_REPOSITORY}/{GITHUB_RUN_ID}/{GITHUB_JOB}/{GITHUB_RUN_ATTEMPT}",
            "{GITHUB_REPOSITORY}/{GITHUB_RUN_ID}/{GITHUB_JOB}",
        ),
        (
            "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}/attempts/{GITHUB_RUN_ATTEMPT}",
            "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
        ),
        ("{GITHUB_SHA}",),
        # Who started this attempt, and not who started the run that it repeats.
        ("{GITHUB_TRIGGERING_ACTOR}", "{GITHUB_ACTOR}"),
    ),
    _System(
        "gitlab",
        ("CI_PROJECT_PATH", "CI_JOB_ID"),
        ("{CI_PROJECT_PATH}/{CI_JOB_ID}",),
        ("{CI_JOB_URL}",),
        ("{CI_COMMIT_SHA}",),
        ("{GITLAB_USER_LOGIN}",),
    ),
    _System(
        "buildkite",
        ("BUILDKITE_JOB_ID",),
        ("{BUILDKITE_JOB_ID}",),
        ("{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}",),
        ("{BUILDKITE_COMMIT}",),
        ("{BUILDKITE_UNBLOCKER}", "{BUILDKITE_BUILD_CREATOR}"),
    ),
    _System(
        "circleci",
        ("CIRCLE_WORKFLOW_JOB_ID",),
        ("{CIRCLE_WORKFLOW_JOB_ID}",),
        ("{CIRCLE_BUILD_URL}",),
        ("{CIRCLE_SHA1}",),
        ("{CIRCLE_USERNAME}",),
    ),
    _System(
        "azure",
        ("SYSTEM_TEAMPROJECT", "BUILD_BUILDID"),
        ("{SYSTEM_TEAMPROJECT}/{BUILD_BUILDID}",),
        ("{SYSTEM_TEAMFOUNDATIONCOLLECTIONURI}/{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",),
        ("{BUILD_SOURCEVERSION}",),
        ("{BUILD_REQUESTEDFOR}",),
    ),
    # Last, since these names could be anybody's. The user is the build-user-vars plugin's, else the change's author.
    _System(
        "jenkins",
        ("JOB_NAME", "BUILD_NUMBER"),
        ("{JOB_NAME}/{BUILD_NUMBER}",),
        ("{BUILD_URL}",),
        ("{GIT_COMMIT}",),
        ("{BUILD_USER_ID}", "{CHANGE_AUTHOR}"),
    ),
)


def ci_job(environ: Mapping[str, str]) -> CiJob | None:
    """The CI job that this environment belongs to; None outside of CI.

    Whoever can start a job writes some of these values: each is one line of bounded length, without control characters,
    and a link is an http one without a user name, a password, or a query that this table did not put there.
    """
    for system in _SYSTEMS:
        if all(environ.get(name) for name in system.marks):
            return CiJob(
                system.name,
                _filled(system.job, environ, _plain),
                _link(_filled(system.url, environ, _for_link)),
                _filled(system.commit, environ, _plain),
                _filled(system.actor, environ, _plain),
            )
    return None


def _filled(templates: tuple[str, ...], environ: Mapping[str, str], clean: Callable[[str], str]) -> str | None:
    for template in templates:
        values = {name: clean(environ.get(name, "")) for name in _NAME.findall(template)}
        if all(values.values()):
            return template.format_map(values)[:_LONGEST]
    return None


def _plain(text: str) -> str:
    """One line of text: characters that steer a terminal or turn the reading direction are left out."""
    kept = "".join(char for char in text if unicodedata.category(char)[0] != "C")
    return " ".join(kept.split())[:_LONGEST]


def _for_link(text: str) -> str:
    """A value as a part of a link, without a query or fragment of its own."""
    return quote(re.split(r"[?#]", _plain(text), maxsplit=1)[0].rstrip("/"), safe="/:@%~[]")


def _link(text: str | None) -> str | None:
    try:
        parts = urlsplit(text or "")
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("http", "https") or not host:
        return None
    return urlunsplit(parts._replace(netloc=host))
