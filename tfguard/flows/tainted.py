"""The tainted objects of a stack: what its state marks for replacement, as findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfguard.errors import ConfigError, InputError, OperationAliveError
from tfguard.flows.records import Records
from tfguard.flows.withholding import also_hiding, of_record
from tfguard.model.finding import Finding
from tfguard.model.inventory import Gap
from tfguard.model.operation import Operation
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.tainted import tainted_findings

ReadState = Callable[[], StateSnapshot]


def state_or_gap(read_state: ReadState) -> tuple[StateSnapshot | None, tuple[Gap, ...]]:
    """The state, or a gap where it cannot be read: then what the operations left tainted is told."""
    try:
        return read_state(), ()
    except (ConfigError, InputError, OperationAliveError) as error:
        return None, (Gap("what is tainted", f"told as the record has it, since {error.what}"),)


def tainted(records: Records, operations: Sequence[Operation], state: StateSnapshot | None) -> tuple[Finding, ...]:
    """What is tainted now; without a state, what `operations` left so."""
    hidden = hidden_as_before(operations, state) if state else Withholding()
    return tainted_findings(operations, state, records.dispositions(), hidden)


def hidden_as_before(operations: Sequence[Operation], state: StateSnapshot) -> Withholding:
    """What keeps back of a state's addresses what `operations` (oldest first) kept back of theirs."""
    known = of_record(operations[-1])[0] if operations else Withholding()
    return also_hiding(known, state)
