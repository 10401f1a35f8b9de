"""The configuration file that drafted resources go to: it is added to, and never overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfguard.errors import InputError, UsageError

DEFAULT = "imported.tf"
_DRAFT = ".draft"


@dataclass(slots=True)
class DraftedFile:
    """A file of the root module. `before` is its content before anything was added; None where there was none."""

    path: Path
    before: str | None = None
    written: str | None = None

    def add(self, text: str) -> None:
        """Have the file end with this text, in the place of what was added before. Raises `InputError`."""
        try:
            if self.written is None:
                self.before = self.path.read_text() if self.path.exists() else None
            content = f"{self.before.rstrip()}\n\n{text}" if self.before and self.before.strip() else text
            self.path.write_text(content)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"{self.path} cannot be written: {why}", "name another file with --out") from error
        self.written = content

    def undo(self) -> None:
        """Take what was added away again, unless somebody else has written to the file meanwhile."""
        if self.written is None or not self.path.exists() or self.path.read_text() != self.written:
            return
        if self.before is None:
            self.path.unlink()
        else:
            self.path.write_text(self.before)
        self.written = None


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


def keep_draft(file: DraftedFile, text: str, why: str) -> Path:
    """Leave what could not be made clean beside the configuration, under a name that the engine does not read; a file
    of that name is added to. Raises `InputError`."""
    path = file.path.with_name(file.path.name + _DRAFT)
    try:
        with path.open("a") as out:
            out.write(f"# {' '.join(why.split())}\n{text}\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "make the folder writable") from error
    return path
