"""Who is working on a stack now, so that the next run can tell whether it still lives (case B26)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, told apart from a later one with the same number by its start time (clock ticks since boot)."""

    pid: int
    start_time: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change one stack.

    `wrapper` is tfguard itself, `engine` the engine that it started, which may outlive it (rule 8). `boot_id` tells
    whether a pid can still mean the same process, and so does `pid_namespace`, the container's. Heartbeat and expiry
    count for holders whose processes cannot be seen from here. `run_directory` is where the engine writes to: an
    engine whose tfguard died before it could note the pid is known by it. So is one that came after the noted one.
    """

    operation_id: str
    user: str
    host: str
    boot_id: str
    wrapper: ProcessIdentity
    engine: ProcessIdentity | None
    ci_job: str | None
    heartbeat: datetime
    expires_at: datetime
    run_directory: str | None = None
    pid_namespace: str = ""


class Liveness(StrEnum):
    """What is known of a lease's holder."""

    ALIVE = "alive"
    ENGINE_ALONE = "engine-alone"
    GONE = "gone"
