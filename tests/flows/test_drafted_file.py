"""The file that drafted configuration goes to: what others write there is never lost, and it is never cut."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tfguard.errors import InputError
from tfguard.flows.drafted_file import (
    DraftedFile,
    clear_marked,
    drafted_file,
    keep_draft,
    marked_address,
    marked_block,
)

OURS = "# ours\n\n\n"
FINDING, OTHER = "o-0000000a", "o-0000000b"


@pytest.fixture
def file(tmp_path: Path) -> DraftedFile:
    """A file with something of the user's own in it."""
    (tmp_path / "imported.tf").write_text(OURS)
    return drafted_file(tmp_path, "imported.tf")


def test_what_was_put_is_replaced_and_taken_away_and_the_users_own_stays_to_the_byte(file: DraftedFile) -> None:
    assert file.put("A\n")
    assert file.path.read_text() == "# ours\n\nA\n"
    assert file.put("B\n")
    assert file.path.read_text() == "# ours\n\nB\n"
    assert file.put("")
    assert file.path.read_text() == OURS


def test_a_file_that_was_not_there_goes_again(tmp_path: Path) -> None:
    file = drafted_file(tmp_path, "imported.tf")
    assert file.put("A\n")
    assert file.put("")
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_types_meanwhile_stays(file: DraftedFile) -> None:
    file.put("A\n")
    with file.path.open("a") as typing:
        typing.write("# typed\n")
    assert file.put("B\n")
    assert file.path.read_text() == "# ours\n\nB\n# typed\n"
    assert file.put("")
    assert file.path.read_text() == "# ours\n\n# typed\n"


def test_what_somebody_changed_is_left_to_them(file: DraftedFile) -> None:
    file.put("A\n")
    file.path.write_text("# ours\n\nA, but better\n")
    assert not file.put("B\n")
    assert not file.put("")
    assert file.path.read_text() == "# ours\n\nA, but better\n"
    file.path.unlink()
    assert not file.put("")
    assert not file.path.exists()


def test_a_full_disk_leaves_the_users_own_file_whole(file: DraftedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        file.put("A\n" * 100)
    assert [path.name for path in file.path.parent.iterdir()] == ["imported.tf"]
    assert file.path.read_text() == OURS
    monkeypatch.undo()
    assert file.put("A\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError):
        file.put("")
    assert file.path.read_text() == "# ours\n\nA\n"


def test_a_link_and_the_files_mode_stay(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    real = tmp_path / "shared" / "all.tf"
    real.write_bytes(b"# ours\r\n")
    real.chmod(0o640)
    (tmp_path / "imported.tf").symlink_to(real)
    assert drafted_file(tmp_path, "imported.tf").put("A\n")
    assert (tmp_path / "imported.tf").is_symlink()
    assert (real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (b"# ours\n\nA\n", 0o640)


def test_blocks_of_an_adoption_that_was_killed_are_told_again_and_taken_away_alone(file: DraftedFile) -> None:
    folder, theirs = file.path.parent, 'import {\n  to = x.c\n  id = "c"\n}\n'
    blocks = marked_block(FINDING, "x.a", 'a"${b}') + marked_block(OTHER, "x.b", "b")
    file.put(f'{theirs}{blocks}\nresource "x" "a" {{}}\n')
    (folder / "main.tf").write_bytes(b"\xff")
    assert (marked_address(folder, FINDING), marked_address(folder, OTHER)) == ("x.a", "x.b")
    assert marked_address(folder, "o-0000000c") is None
    clear_marked(folder, {FINDING, "o-0000000c"})
    assert (marked_address(folder, FINDING), marked_address(folder, OTHER)) == (None, "x.b")
    clear_marked(folder, {OTHER})
    assert file.path.read_text() == f'# ours\n\n{theirs}\nresource "x" "a" {{}}\n'


def test_a_kept_draft_is_for_its_owner_alone_and_is_added_to(file: DraftedFile) -> None:
    kept = keep_draft(file, "A")
    assert keep_draft(file, "B") == kept
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == ("A\nB\n", 0o600)
