"""This machine and this process; and whether another holder still lives (case B26)."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tfguard.engine.ci import ci_job
from tfguard.engine.process import process_start_time
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import Actor


@dataclass(frozen=True, slots=True)
class LocalHost:
    """What the operating system and the environment tell."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def actor(self) -> Actor:
        """Who runs this command, with the CI job where there is one."""
        user, host, job = _user(), socket.gethostname(), ci_job(self.environ)
        if job is None:
            return Actor(user, host)
        return Actor(user, host, job.url, job.commit, job.job, job.actor, job.system)

    def process(self) -> ProcessIdentity:
        """This process."""
        return ProcessIdentity(os.getpid(), process_start_time(os.getpid()) or 0)

    def boot(self) -> str:
        """The id of this boot of this machine; empty where the system has none."""
        return boot_id()

    def runs(self, process: ProcessIdentity) -> bool:
        """Whether a process of this host still runs; one with the same number and another start time is not it."""
        return process_start_time(process.pid) == process.start_time

    def engine_writes_to(self, run_directory: Path) -> bool:
        """Whether an engine, with or without its tfguard, still writes to a run's folder."""
        return engine_writing_to(run_directory)

    def lease(self, operation_id: str, run_directory: str | None, now: datetime, expires_at: datetime) -> Lease:
        """A lease held by this process for an operation."""
        actor = self.actor()
        return Lease(
            operation_id=operation_id,
            user=actor.user,
            host=actor.host,
            boot_id=boot_id(),
            wrapper=self.process(),
            engine=None,
            ci_job=actor.ci_job,
            heartbeat=now,
            expires_at=expires_at,
            run_directory=run_directory,
            pid_namespace=pid_namespace(),
        )

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:
        """Whether a lease's holder lives: by pid and start time on this host, by the lease's expiry elsewhere.

        `now` tells the time as the holder's own clock would.
        """
        here = (socket.gethostname(), pid_namespace(), boot_id())
        if (lease.host, lease.pid_namespace, lease.boot_id) != here:
            # Also after a reboot: machines made from one image share their names, so it could be another one.
            return Liveness.ALIVE if now() < lease.expires_at else Liveness.GONE
        if self.runs(lease.wrapper):
            return Liveness.ALIVE
        left = (lease.engine is not None and self.runs(lease.engine)) or (
            lease.run_directory is not None and engine_writing_to(Path(lease.run_directory))
        )
        return Liveness.ENGINE_ALONE if left else Liveness.GONE


def boot_id() -> str:
    """The id of this boot of this machine; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """What tells one container's process numbers from another's; empty where the system has none."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def engine_writing_to(run_directory: Path) -> bool:
    """Whether some process has its standard output in this run folder, or in one below it where a deletion works, as
    only the run's engines have."""
    run_directory = run_directory.resolve()  # as the system tells it, also where a link leads there
    for link in Path("/proc").glob("[0-9]*/fd/1"):
        try:
            if run_directory in link.readlink().parents:
                return True
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
    return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
