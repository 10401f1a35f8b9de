"""Which engine."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine ran."""

    name: str
    version: str

    @property
    def release(self) -> tuple[int, ...]:
        """The three numbers of its version; a candidate or development version counts as its release."""
        found = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", self.version)
        return tuple(int(number or 0) for number in found.groups()) if found else (0, 0, 0)

    @property
    def reads_tofu_files(self) -> bool:
        """Whether it reads `.tofu` files, and leaves a `.tf` file of the same name alone."""
        return self.name == "tofu" and self.release >= (1, 8)

    @property
    def evaluates_early(self) -> bool:
        """Whether backend and encryption may depend on variables, so that every command takes `-var`."""
        return self.name == "tofu" and self.release >= (1, 8)

    @property
    def takes_variables_with_a_plan(self) -> bool:
        """Whether `apply PLANFILE` takes the `-var` that the plan was made with."""
        # Terraform 1.10.0 and 1.10.1 take equal lists for different ones (issue 36181 of hashicorp/terraform).
        return self.release >= ((1, 11) if self.name == "tofu" else (1, 10, 2))
