"""One stack with everything that a flow needs around it."""

from __future__ import annotations

from dataclasses import dataclass

from tfguard.errors import EmptyStateError
from tfguard.flows.records import Records
from tfguard.flows.verify import Surroundings
from tfguard.model.operation import Operation, Stack
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import Clock, Console, Engine, Host


@dataclass(frozen=True, slots=True)
class StackContext:
    """A stack, its engine, its record, and what is around them."""

    stack: Stack
    engine: Engine
    records: Records
    around: Surroundings
    host: Host

    @property
    def clock(self) -> Clock:
        """Time."""
        return self.around.clock

    @property
    def console(self) -> Console:
        """tfguard's words to the user."""
        return self.around.console

    def read_state(self, last: Operation | None) -> StateSnapshot:
        """The state now.

        A state file of 0 bytes is an error, but for one: when the last operation started without a state, the engine
        died before its first write (docs/facts/terraform.md, finding on SIGKILL), and there still is none.
        """
        try:
            return self.engine.pull_state()
        except EmptyStateError:
            if last is not None and not last.intent.lineage and not (last.result and last.result.lineage):
                return EMPTY_STATE
            raise

    def last_operation(self) -> Operation | None:
        """The stack's newest operation."""
        current = self.records.head().current
        return self.records.operation(current) if current else None
