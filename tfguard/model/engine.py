"""Which engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine ran."""

    name: str
    version: str
