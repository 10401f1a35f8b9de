"""The configuration file that drafted resources go to: it is added to, and what others write there stays.

While an adoption is under way the file has the import blocks too. An engine that is started after tfguard was killed
imports the objects then, where it would make others; for what it has already such a block means nothing.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tfguard.errors import InputError, UsageError
from tfguard.model.address import import_block

DEFAULT = "imported.tf"
_DRAFT = ".draft"
_NEW_FILE = 0o666
_OWN_FILE = 0o600
_MARK = "# By tfguard for {}, and removed by it once the state has the object: that can be done by hand, too.\n"
_MARKED = re.compile(_MARK.format(r"(o-[0-9a-f]{8})") + r"import \{\n  to = (.*)\n  id = .*\n\}\n")


def marked_block(finding_id: str, address: str, import_id: str) -> str:
    """An import block that can be told from others' ones, for as long as the adoption of this finding is under way."""
    return _MARK.format(finding_id) + import_block(address, import_id)


def marked_address(directory: Path, finding_id: str) -> str | None:
    """The address of the block that a killed adoption of this finding left in a folder; None where it left none."""
    for path in directory.glob("*.tf"):
        for found in _MARKED.finditer(_content(path)):
            if found[1] == finding_id:
                return found[2]
    return None


def clear_marked(directory: Path, finding_ids: Collection[str]) -> None:
    """Take the blocks of these findings out of a folder's configuration, and nothing else. Raises `OSError`."""
    for path in directory.glob("*.tf"):
        before = _content(path)
        after = _MARKED.sub(lambda found: "" if found[1] in finding_ids else found[0], before)
        if after != before:
            _write(path, after.lstrip("\n"))


def _content(path: Path) -> str:
    """What a file says; nothing where it cannot be read, for then tfguard wrote nothing to it either."""
    with suppress(OSError, ValueError):
        return path.read_bytes().decode()
    return ""


@dataclass(slots=True)
class DraftedFile:
    """A file of the root module. `added` is what tfguard has put there, `before` what it said before that; None where
    there was none."""

    path: Path
    before: str | None = field(default=None, repr=False)
    added: str = field(default="", repr=False)

    def put(self, text: str) -> bool:
        """Have the file say this in the place of what was put there before; an empty text only takes that away.

        False where somebody has changed what was put there: the file stays as it is then. What others write beside it
        stays in any case. The file is the old one or the new one, whatever happens. Raises `InputError`.
        """
        try:
            now = self.path.read_bytes().decode() if self.path.exists() else None
            if not self.added:
                self.before = now
                content = f"{now.rstrip()}\n\n{text}" if now and now.strip() else text
            elif now is None or now.count(self.added) != 1:
                return False
            elif text:
                content = now.replace(self.added, text)
            elif self.before is not None and now == self._with_added:
                content = self.before
            else:
                content = f"{now.replace(self.added, '').rstrip()}\n".lstrip("\n")
            if not content and self.before is None:
                self.path.unlink()
            else:
                _write(self.path, content)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"{self.path} cannot be written: {why}", "name another file with --out") from error
        self.added = text
        return True

    @property
    def _with_added(self) -> str:
        """The whole file as tfguard wrote it."""
        before = self.before or ""
        return f"{before.rstrip()}\n\n{self.added}" if before.strip() else self.added


def _write(path: Path, content: str) -> None:
    """Write a file whole or not at all: a full disk must not cut what somebody else has written there."""
    real = path.resolve()
    beside = real.with_name(f".{real.name}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _NEW_FILE), "wb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
        if real.exists():
            beside.chmod(real.stat().st_mode & 0o7777)
        beside.replace(real)
    finally:
        beside.unlink(missing_ok=True)


def drafted_file(directory: Path, name: str) -> DraftedFile:
    """The file of this name in the stack's folder. Raises `UsageError` for one that the engine would not read there."""
    path = directory / name
    if path.suffix != ".tf" or path.name.startswith("."):
        raise UsageError(
            f"--out {name}: the engine reads configuration from files that end with .tf", "name such a one"
        )
    if path.parent.resolve() != directory.resolve():
        raise UsageError(f"--out {name}: the engine reads what lies in {directory} itself", "name a file there")
    return DraftedFile(path)


def keep_draft(file: DraftedFile, text: str) -> Path:
    """Leave what could not be made clean beside the configuration, under a name that the engine does not read, for its
    owner alone; a file of that name is added to. Raises `InputError`."""
    path = file.path.with_name(file.path.name + _DRAFT)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWN_FILE), "w") as out:
            out.write(f"{text}\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "make the folder writable") from error
    return path
