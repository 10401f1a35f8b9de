"""Spans of time, for a person."""

from __future__ import annotations

from datetime import timedelta

_DAYS_FROM = 48


def in_words(time: timedelta) -> str:
    """A span of time as coarse as it is long: `13 d 4 h`, `3 h 12 min`, `12 min`, `40 s`. A negative one is none."""
    seconds = max(int(time.total_seconds()), 0)
    hours, minutes = divmod(seconds // 60, 60)
    if hours >= _DAYS_FROM:
        return f"{hours // 24} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
