"""The user's terminal while the chooser has it: keys one by one, whole screens, and everything back at the end."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tfguard.cli.console import UserStreams

_TO_OTHER_SCREEN, _BACK_FROM_IT = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_POLL_SECONDS = 0.2
# Over a slow line the rest of an arrow key comes later than its escape.
_REST_OF_A_KEY_SECONDS = 0.1
_READ = 256

_TOKENS = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b(?:[\[O][0-9;]*)?\Z")
_NAMES = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    **{
        f"\x1b{kind}{letter}": name
        for kind in "[O"
        for letter, name in {"A": "up", "B": "down", "H": "home", "F": "end"}.items()
    },
}
_INTERRUPT = "\x03"


def on_a_terminal() -> bool:
    """Whether there is somebody to choose: what is read and what is shown are a terminal's."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def screen_size(environment: Mapping[str, str]) -> tuple[int, int]:
    """Columns and lines of the screen; none of a terminal that has no screen, or that does not tell."""
    if environment.get("TERM", "") in ("", "dumb", "unknown"):
        return 0, 0
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return 0, 0


def keys_in(text: str) -> list[str]:
    """The keys that a terminal tells with these characters, named as for `Table.press`; unknown ones as they come."""
    return [_NAMES.get(token, token) for token in _TOKENS.findall(text)]


def unfinished(text: str) -> bool:
    """Whether the last key may have more characters to come."""
    return _UNFINISHED.search(text) is not None


class Screen:
    """A screen to draw on; `opened_screen` gives one, and takes it back."""

    def __init__(self, streams: UserStreams) -> None:
        self._streams = streams
        self._keys: deque[str] = deque()

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, and nothing else. Over what was there: a screen that is emptied first would flicker."""
        self._streams.out("\x1b[H" + "\r\n".join(f"\x1b[2K{line}" for line in lines) + "\x1b[J")

    def key(self) -> str | None:
        """The next key; None when it is worth looking at the window's size again.

        Raises `KeyboardInterrupt` for Ctrl-C. A terminal that is gone leaves, as the escape key does.
        """
        if not self._keys:
            self._keys.extend(keys_in(self._read()))
        key = self._keys.popleft() if self._keys else None
        if key == _INTERRUPT:
            raise KeyboardInterrupt
        return key

    def _read(self) -> str:
        text, wait = "", _POLL_SECONDS
        while not text or unfinished(text):
            if not select.select([sys.stdin], [], [], wait)[0]:
                return text
            try:
                read = os.read(sys.stdin.fileno(), _READ)
            except OSError:
                read = b""
            if not read:
                return "\x1b"
            text, wait = text + read.decode("utf-8", "replace"), _REST_OF_A_KEY_SECONDS
        return text


@contextmanager
def opened_screen() -> Iterator[Screen]:
    """Take the terminal; at the end, whatever ends it, it is as it was, with all that stood on it.

    Keys that nobody has read by then are thrown away: none may answer a question that was not there yet.
    """
    descriptor, streams = sys.stdin.fileno(), UserStreams()
    before = termios.tcgetattr(descriptor)
    try:
        ours = termios.tcgetattr(descriptor)
        ours[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
        ours[6][termios.VMIN], ours[6][termios.VTIME] = 1, 0
        termios.tcsetattr(descriptor, termios.TCSADRAIN, ours)
        streams.out(_TO_OTHER_SCREEN)
        yield Screen(streams)
    finally:
        with suppress(termios.error):  # the window may be closed
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
        streams.out(_BACK_FROM_IT)
