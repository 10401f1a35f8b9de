"""States that OpenTofu has encrypted, read through OpenTofu alone: it has the key, and tfguard wants none of it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import Answer, captured
from tfguard.engine.state import parse_shown_state, parse_state, read_envelope
from tfguard.errors import EncryptedStateError
from tfguard.model.state import StateSnapshot


@dataclass(frozen=True, slots=True)
class EncryptedStates:
    """Encrypted states, as one engine in one working directory can read them.

    The key comes from TF_ENCRYPTION or from the configuration there, as for every command of the engine; `variables`
    are the `-var` and `-var-file` that it may depend on, `workspace` another one than the selected. Every method
    raises `EncryptedStateError` when the engine cannot decrypt: what a state holds is then unknown, and never nothing.
    """

    installed: InstalledEngine
    directory: Path
    catalog: Catalog
    variables: tuple[str, ...] = ()
    workspace: str | None = None

    def of_backend(self, where: str) -> StateSnapshot:
        """The state of the stack in the working directory."""
        answer = self._asked(where, "state", "pull", *self.variables)
        return parse_state(answer.stdout.encode(), where, self.catalog)

    def in_file(self, path: Path) -> StateSnapshot:
        """The state in a file, which the engine shows in another form than its own states."""
        answer = self._asked(str(path), "show", "-json", "-no-color", *self.variables, str(path.absolute()))
        return parse_shown_state(answer.stdout, read_envelope(path, self.catalog), str(path), self.catalog)

    def in_clear(self, path: Path) -> bytes:
        """The state in a file as `state push` wants it, which takes no encrypted one; it touches no disk.

        Pulled from a folder in which that file is the state, so that the key has to come from TF_ENCRYPTION.
        """
        with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
            shutil.copyfile(path, Path(folder) / "terraform.tfstate")
            clear = self._pulled_in(Path(folder), str(path))
        parse_state(clear, str(path), self.catalog)
        return clear

    def in_bytes(self, data: bytes, where: str) -> StateSnapshot:
        """The state in an encrypted document that lies somewhere else; its key has to come from TF_ENCRYPTION too."""
        with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
            (Path(folder) / "terraform.tfstate").write_bytes(data)
            return parse_state(self._pulled_in(Path(folder), where), where, self.catalog)

    def _pulled_in(self, folder: Path, where: str) -> bytes:
        return self._asked(where, "state", "pull", elsewhere=folder).stdout.encode()

    def _asked(self, where: str, *query: str, elsewhere: Path | None = None) -> Answer:
        name = self.installed.info.name
        if name != "tofu":
            raise EncryptedStateError(
                f"the state at {where} is encrypted, and {name} cannot read such a one",
                "name the tofu that wrote it with --engine",
            )
        place, own = elsewhere or self.directory, elsewhere is None
        workspace = self.workspace if own else None
        answer = captured(self.installed.binary, place, *query, elsewhere=not own, workspace=workspace)
        if answer.exit_code == 0 and answer.stdout.strip():
            return answer
        key = "TF_ENCRYPTION" if elsewhere else "TF_ENCRYPTION, or the variables of its `encryption` block,"
        raise EncryptedStateError(
            f"the state at {where} is encrypted, and {name} cannot decrypt it: {answer.reason}",
            f"set {key} to what the apply had; what the state holds is not known, and nothing was changed",
        )
