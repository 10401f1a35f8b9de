"""Colour, where the reader has a terminal."""

from __future__ import annotations

from dataclasses import dataclass

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours text, or leaves it as it is."""

    on: bool = False

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in these styles: bold, red, green, yellow, dim."""
        if not self.on or not styles:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"
