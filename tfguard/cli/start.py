"""The entry point: answers an interrupt that comes while everything else is still being loaded."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn


def _leave(_signum: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"tfguard: interrupted\ntfguard: nothing was running\n")
    os._exit(130)


def run() -> None:
    """Load tfguard and run it; never returns."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, _leave)
    from tfguard.cli import main  # takes its time

    main.run()
