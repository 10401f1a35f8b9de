"""The states that a scan reads on this machine: files, folders, patterns, and the stacks whose folders these are."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures import stand_in_tofu
from tfguard.cli.invocation import Invocation
from tfguard.cli.states import state_sources
from tfguard.engine.queries import captured
from tfguard.errors import ConfigError, NoStateError
from tfguard.model.config import Config, ScanConfig
from tfguard.ports import KnownState
from tfguard.states.reader import StateReader

BACKEND = 'terraform {\n  backend "s3" {}\n}\n'


def state(name: str, version: int = 4) -> str:
    return json.dumps({"version": version, "serial": 1, "lineage": name, "outputs": {}, "resources": []})


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, without what the caller's environment says of a stack."""
    for name in [name for name in os.environ if name.startswith("TF_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def read(*patterns: str, workspaces: Sequence[str] = (), set_up_alone: bool = False) -> list[KnownState]:
    sources = state_sources(patterns, Invocation(), Config(), None, workspaces, set_up_alone=set_up_alone)
    return [known for source in sources for known in source.read()]


def lineages(found: Sequence[KnownState]) -> list[str]:
    return [one.snapshot.lineage for one in found if one.snapshot]


def test_a_folder_means_every_state_below_it_and_nothing_that_lies_beside_one(here: Path) -> None:
    write(here / "a/terraform.tfstate", state("a"))
    write(here / "a/terraform.tfstate.d/dev/terraform.tfstate", state("a-dev"))
    write(here / "b/c/net.tfstate", state("net"))
    write(here / ".hidden/x.tfstate", state("hidden"))
    for beside in (
        "a/terraform.tfstate.backup",
        "a/errored.tfstate",
        "a/.terraform/terraform.tfstate",
        "a/.terraform/modules/m/terraform.tfstate",
        "a/terraform.tfstate.tfguard/operations/1/rescued/errored.tfstate",
        "a/.terraform.tfstate.lock.info",
        "b/notes.txt",
    ):
        write(here / beside, "{}")
    found = read(".")
    assert sorted(lineages(found)) == ["a", "a-dev", "hidden", "net"]
    assert [one.failure for one in found if one.failure] == []
    assert {one.workspace for one in found if "terraform.tfstate.d/dev/" in one.location} == {"dev"}
    assert all(one.records and one.records.location == f"{one.location}.tfguard" for one in found)
    assert lineages(read("a", workspaces=["dev"])) == lineages(read("a?workspace=dev")) == ["a-dev"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", ["a", "a-b", "x"]),
        ("infra/**", ["a", "a-b"]),
        ("infra/*", ["a", "a-b"]),
        ("infra/a", ["a", "a-b"]),
        ("infra/*/terraform.tfstate", ["a"]),
        ("**/b", ["a-b"]),
        ("**/terraform.tfstate", ["a", "a-b"]),
        ("infra/a/*.tfstate", ["a"]),
        ("infra/a/*.json", ["odd"]),
        ("infra/a/odd.json", ["odd"]),
        ("../here/*.tfstate", ["x"]),
        ("x.tfs?ate", ["x"]),
    ],
)
def test_a_pattern_means_files_and_whole_folders(here: Path, pattern: str, expected: list[str]) -> None:
    write(here / "infra/a/terraform.tfstate", state("a"))
    write(here / "infra/a/b/terraform.tfstate", state("a-b"))
    write(here / "infra/a/odd.json", state("odd"))
    write(here / "x.tfstate", state("x"))
    assert sorted(lineages(read(pattern))) == expected
    assert sorted(lineages(read(str(here / pattern)))) == expected
    assert sorted(lineages(read(f"file://{here}/{pattern}"))) == expected


@pytest.mark.parametrize("pattern", ["absent", "absent.tfstate", "*.tfstate", "absent/**", "empty", "main.tf/*", "**"])
def test_a_pattern_that_matches_nothing_is_an_error(here: Path, pattern: str) -> None:
    write(here / "empty/notes.txt")
    write(here / "main.tf", "# a configuration that was never applied")
    with pytest.raises(NoStateError, match="matches no state"):
        read(pattern)


@pytest.mark.parametrize("pattern", ["infra", "infra/*.tfstate", "infra/terraform.tfstate", "infra/**"])
def test_a_workspace_that_no_state_has_is_what_is_wrong(here: Path, pattern: str) -> None:
    write(here / "infra/terraform.tfstate", state("a"))
    with pytest.raises(NoStateError, match="no state of the workspace nope") as caught:
        read(f"{pattern}?workspace=nope")
    assert "workspace" in caught.value.advice


def test_patterns_of_the_configuration_count_from_its_folder(here: Path) -> None:
    write(here / "conf/infra/terraform.tfstate", state("configured"))
    write(here / "infra/terraform.tfstate", state("typed"))
    config = Config(scan=ScanConfig(stacks=("infra",)))
    path = here / "conf/tfguard.yaml"
    for base, expected in ((path.parent, "configured"), (None, "typed")):
        (source,) = state_sources(["infra"], Invocation(), config, path, base=base)
        assert lineages(list(source.read())) == [expected]


def test_a_state_that_cannot_be_read_is_one_line_and_hides_no_other(here: Path) -> None:
    write(here / "a.tfstate", state("a"))
    write(here / "cut.tfstate", state("cut")[:-5])
    write(here / "empty.tfstate")
    write(here / "newer.tfstate", state("n", version=5))
    write(here / "old.tfstate", state("o", version=2))
    write(here / "binary.tfstate").write_bytes(b"\xff\x00")
    (here / "gone.tfstate").symlink_to(here / "nowhere")
    found = read(".")
    assert lineages(found) == ["a"]
    assert len([one for one in found if one.failure]) == 6
    assert all("\n" not in one.failure and one.location in one.failure for one in found if one.failure)


@pytest.mark.parametrize("pattern", [".", "**", "**/*.tfstate", "stacks/*/terraform.tfstate", "stacks/b", "{0}"])
@pytest.mark.parametrize("kind", ["dangling link", "link to itself", "pipe", "device", "link to a pipe"])
def test_what_is_named_as_a_state_and_is_no_file_is_a_failure_and_never_an_empty_state(
    here: Path, pattern: str, kind: str
) -> None:
    write(here / "stacks/a/terraform.tfstate", state("a"))
    odd, pipe = here / "stacks/b/terraform.tfstate", here / "pipe"
    odd.parent.mkdir()
    if "pipe" in kind:
        os.mkfifo(odd if kind == "pipe" else pipe)
    targets: dict[str, str | Path] = {
        "dangling link": "/mnt/share/none",
        "link to itself": odd,
        "device": "/dev/zero",
        "link to a pipe": pipe,
    }
    if kind in targets:
        odd.symlink_to(targets[kind])
    found = read(pattern.format(odd))
    (failure,) = [one for one in found if one.snapshot is None]
    assert (failure.location, str(odd) in failure.failure) == (str(odd), True)
    assert all(one.snapshot.lineage == "a" for one in found if one.snapshot)


def test_a_local_stack_whose_state_is_a_dangling_link_is_a_failure(here: Path) -> None:
    write(here / "main.tf", 'resource "terraform_data" "a" {}\n')
    (here / "terraform.tfstate").symlink_to("/mnt/share/none")
    write(here / "terraform.tfstate.d/dev/terraform.tfstate", state("dev"))
    (here / "terraform.tfstate.d/qa").mkdir()
    (here / "terraform.tfstate.d/qa/terraform.tfstate").symlink_to("/mnt/share/none")
    for pattern in (".", "terraform.tfstate*"):
        found = read(pattern)
        assert lineages(found) == ["dev"]
        assert sorted(Path(one.location).parent.name for one in found if one.failure) == ["here", "qa"]


def test_a_state_that_vanishes_before_it_is_read_is_a_failure(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(here / "a.tfstate", state("a"))
    known = StateReader.known

    def known_too_late(*arguments: Any) -> KnownState:
        path.unlink()
        return known(*arguments)

    monkeypatch.setattr(StateReader, "known", known_too_late)
    (found,) = read(".")
    assert (found.snapshot, str(path) in found.failure) == (None, True)


def test_a_link_that_leads_to_itself_hides_nothing_beside_it(here: Path) -> None:
    write(here / "a.tfstate", state("a"))
    (here / "loop").symlink_to(here / "loop")
    assert lineages(read(".")) == lineages(read("**")) == ["a"]


def test_a_folder_behind_a_link_that_may_not_be_followed_is_a_failure(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here / "a.tfstate", state("a"))
    locked = write(here / "locked/terraform.tfstate", state("l")).parent
    really = os.scandir

    class Refused:
        name = "locked"

        def is_dir(self) -> bool:
            raise PermissionError(13, "Permission denied")

    class Entries(list[Any]):
        def __enter__(self) -> Entries:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def scandir(path: Path) -> object:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return Entries(Refused() if entry.name == "locked" else entry for entry in really(path))

    monkeypatch.setattr(os, "scandir", scandir)
    found = read(".")
    assert lineages(found) == ["a"]
    assert [one.failure for one in found if one.failure] == [f"the folder {locked} cannot be read: Permission denied"]


def test_a_folder_that_may_not_be_read_is_a_failure(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here / "a/terraform.tfstate", state("a"))
    locked = write(here / "locked/terraform.tfstate", state("l")).parent
    really = os.scandir

    def scandir(path: Path) -> object:
        if path == locked:
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = read(".")
    assert lineages(found) == ["a"]
    assert [one.failure for one in found if one.failure] == [f"the folder {locked} cannot be read: Permission denied"]


def test_links_are_followed_and_a_state_behind_two_names_is_one(here: Path) -> None:
    write(here / "releases/5/terraform.tfstate", state("five"))
    (here / "current").symlink_to(here / "releases/5")
    (here / "releases/5/loop").symlink_to(here)
    assert lineages(read(".")) == ["five"]
    assert lineages(read("current")) == ["five"]
    assert lineages(read("cur*")) == ["five"]


def test_a_run_that_never_wrote_its_state_is_known_by_its_record(here: Path) -> None:
    write(here / "a/terraform.tfstate.tfguard/head.json", "{}")
    write(here / "a/terraform.tfstate.d/dev/terraform.tfstate.tfguard/head.json", "{}")
    for pattern in (".", "a", "**"):
        found = read(pattern)
        assert {one.workspace for one in found} == {"default", "dev"}
        assert all(one.snapshot is not None and not one.snapshot.instances for one in found)
    assert len(read("a/terraform.tfstate")) == 1


def test_a_backend_that_was_not_set_up_is_a_state_that_cannot_be_read(here: Path) -> None:
    write(here / "a/main.tf", BACKEND)
    write(here / "b/terraform.tfstate", state("b"))
    write(here / "module/main.tf", 'variable "x" {}\n')
    found = read(".")
    assert lineages(found) == ["b"]
    (unread,) = [one for one in found if one.failure]
    assert unread.location == str(here / "a")
    assert "its backend 's3' has not been set up" in unread.failure
    assert [one.failure for one in read(".", set_up_alone=True)] == [""]


def test_a_damaged_backend_file_is_a_state_that_cannot_be_read(here: Path) -> None:
    write(here / "a/.terraform/terraform.tfstate", "{")
    (found,) = read(".")
    assert "is damaged" in found.failure


def test_what_was_left_here_when_the_backend_moved_is_no_state(here: Path) -> None:
    config = {"type": "nowhere", "config": {"address": "x"}}
    write(here / ".terraform/terraform.tfstate", json.dumps({"version": 3, "backend": config}))
    write(here / "terraform.tfstate", state("stale"))
    write(here / "terraform.tfstate.d/dev/terraform.tfstate", state("stale-dev"))
    write(here / "other.tfstate", state("other"))
    found = read(".")
    assert lineages(found) == ["other"]
    assert [one.location for one in found if one.failure] == ["nowhere:x"]


def test_a_local_backend_has_its_states_where_it_says(here: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "main.state", state("main"))
    write(elsewhere / "ws/dev/terraform.tfstate", state("dev"))
    write(elsewhere / "ws/begun/terraform.tfstate.tfguard/head.json", "{}")
    local = {"type": "local", "config": {"path": str(elsewhere / "main.state"), "workspace_dir": str(elsewhere / "ws")}}
    write(here / "a/.terraform/terraform.tfstate", json.dumps({"version": 3, "backend": local}))
    found = read("a")
    assert [(one.workspace, one.snapshot.lineage) for one in found if one.snapshot] == [
        ("default", "main"),
        ("begun", ""),
        ("dev", "dev"),
    ]
    assert lineages(read("a", workspaces=["dev"])) == ["dev"]


def test_a_data_folder_for_all_stacks_tells_of_the_one_here_alone(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    config = {"type": "nowhere", "config": {"address": "x"}}
    write(data / "terraform.tfstate", json.dumps({"version": 3, "backend": config}))
    write(here / "b/main.tf", BACKEND)
    write(here / "c/terraform.tfstate", state("c"))
    monkeypatch.setenv("TF_DATA_DIR", str(data))
    found = read(".")
    assert lineages(found) == ["c"]
    assert sorted(one.location for one in found if one.failure) == [str(here / "b"), "nowhere:x"]


def test_a_source_reads_anew_each_time(here: Path) -> None:
    write(here / "a.tfstate", state("before"))
    (source,) = state_sources(["."], Invocation(), Config(), None)
    assert lineages(list(source.read())) == ["before"]
    write(here / "a.tfstate", state("after"))
    write(here / "b.tfstate", state("new"))
    assert lineages(list(source.read())) == ["after", "new"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "names nothing"),
        ("?workspace=dev", "names nothing"),
        ("file://", "names nothing"),
        ("ftp://x/y", "ftp:// names no kind of place for states"),
        ("s3://", "must be s3://BUCKET/PREFIX"),
        ("s3://user:hunter2@bucket/x", "without credentials"),
        ("s3://bucket/x?secret_key=hunter2", "has the parameter 'secret_key'"),
        ("azblob://account", "must be azblob://ACCOUNT/CONTAINER/PREFIX"),
        ("postgresql://u:hunter2@host/db", "has a password in it"),
        ("postgresql://host/db/more", "has more than a database"),
        ("infra?region=x", "of a folder only ?workspace=NAME"),
    ],
)
def test_a_pattern_that_names_no_place_is_refused_before_anything_is_read(pattern: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        state_sources([pattern], Invocation(), Config(), None)
    assert said in caught.value.what
    assert "hunter2" not in caught.value.what + caught.value.advice
    assert "records" not in caught.value.what + caught.value.advice


@pytest.fixture
def tofu(tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The stand-in for OpenTofu, with a key for encrypted states."""
    program = tmp_path / "bin/tofu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {stand_in_tofu.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("STAND_IN_TERRAFORM", str(engine))
    return str(program)


def test_an_encrypted_state_is_read_through_the_engine_that_has_the_key(
    here: Path, tofu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here / "main.tf", 'resource "terraform_data" "a" {}\n')
    monkeypatch.setenv("TF_ENCRYPTION", "passphrase")
    for command in (("init",), ("apply", "-auto-approve")):
        done = captured(Path(tofu), here, *command)
        assert done.exit_code == 0, done.stderr
    assert "encrypted_data" in (here / "terraform.tfstate").read_text()

    def one(engine: str) -> KnownState:
        (source,) = state_sources(["."], Invocation(engine=engine), Config(), None)
        (found,) = source.read()
        return found

    found = one(tofu)
    assert found.snapshot is not None, found.failure
    assert [held.address for held in found.snapshot.instances] == ["terraform_data.a"]
    monkeypatch.setenv("TF_ENCRYPTION", "another")
    assert "is encrypted, and tofu cannot decrypt it" in one(tofu).failure
    assert "is encrypted, and terraform cannot read such a one" in one("terraform").failure
    without = one(str(here / "no-engine"))
    assert (without.snapshot, "it is encrypted, and the engine" in without.failure) == (None, True)
