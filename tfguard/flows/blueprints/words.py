"""What a person has said of steps, each word for one use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tfguard.model.blueprint_decision import Told


@dataclass(slots=True)
class Words:
    """`told` are words about commands that may have done their work. `gone` are words about commands, and about stacks
    whose state is lost: that nothing of them is there, and how somebody knows. With `takes_data` a stack that holds
    data may be destroyed. `at` is when they were said."""

    at: datetime
    told: dict[str, Told] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    takes_data: bool = False
