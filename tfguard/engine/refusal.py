"""The engine's own words about a command line that it does not take, asked for where nothing can come of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tfguard.engine.interrupts import SignalGate
from tfguard.engine.process import Following, Launch, run_followed
from tfguard.engine.queries import CLI_ARGUMENT_VARIABLES, Answer
from tfguard.engine.terminal import columns_of

NO_CONFIGURATION: Final = "No configuration files"
_SCRUBBED: Final = (CLI_ARGUMENT_VARIABLES, "TF_WORKSPACE", "TF_DATA_DIR")


def refusal(
    binary: Path, command: str, arguments: Sequence[str], environ: Mapping[str, str], gate: SignalGate
) -> Answer | None:
    """What `command` with these arguments, and no plan file, says in an empty folder; None when it goes on there.

    An engine that takes the arguments after all finds no configuration there, no state and no backend. Nobody says yes
    either, but for `-json`, which is refused at once without that; a destroy, which needs no configuration, is not
    asked then.
    """
    names = {word.lstrip("-").partition("=")[0] for word in arguments}
    if "json" in names and (command != "apply" or "destroy" in names):
        return None
    unapproved = [word for word in arguments if word.lstrip("-").partition("=")[0] != "auto-approve"]
    words = arguments if "json" in names else unapproved
    scrubbed = {name: value for name, value in environ.items() if not name.startswith(_SCRUBBED)}
    out, err = bytearray(), bytearray()
    with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()
        launch = Launch(
            [str(binary), f"-chdir={empty}", command, *words],
            scrubbed,
            Path(folder),
            "refusal",
            columns=(columns_of(1), columns_of(2)),
        )
        ended = run_followed(launch, gate, Following(out.extend, err.extend))
    answer = Answer(ended.exit_code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
    return answer if answer.exit_code == 1 else None
