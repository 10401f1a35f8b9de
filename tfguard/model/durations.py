"""Spans of time, for a person."""

from __future__ import annotations

from datetime import timedelta


def in_words(time: timedelta) -> str:
    """A span of time as coarse as it is long: `3 h 12 min`, `12 min`, `40 s`. One that is negative is none."""
    seconds = max(int(time.total_seconds()), 0)
    hours, minutes = divmod(seconds // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
