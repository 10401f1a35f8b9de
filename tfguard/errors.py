"""Every error that tfguard raises on purpose.

An error knows two lines, what happened and what to do, and the exit code that a pipeline sees. The codes are those of
the interface (README, "Exit codes"); a new code is a new member of `ExitCode`, and an error that carries it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a pipeline sees when tfguard itself decides (docs/interface.md, "Exit codes")."""

    DONE = 0
    ERROR = 1
    FOUND = 2
    INCOMPLETE = 3
    NO_RECORD = 10
    OPEN = 11
    ALIVE = 12
    NO_ENGINE = 13
    GAP = 14
    INTERRUPTED = 130


class TfguardError(Exception):
    """What happened (`what`), what to do about it (`advice`), and the exit code.

    Both texts are one line each, without a secret, for a person who reads them at two in the morning.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


class UsageError(TfguardError):
    """The command line asks for something that cannot be done."""


class ConfigError(TfguardError):
    """tfguard.yaml cannot be read or says something impossible; `what` names file, line and key."""


class InputError(TfguardError):
    """A plan file, state, or other input is missing, damaged or not what it claims to be."""


class NoStateError(InputError):
    """A pattern of states that matches none."""


class NotInitialisedError(InputError):
    """The configuration has a backend, and `init` was not run: where the state lies cannot be told."""


class EmptyStateError(InputError):
    """A state file of 0 bytes: a first write that was cut short, or a state that was lost."""


class EncryptedStateError(InputError):
    """A state that is encrypted: only the engine, with the key that it was written with, can read it."""


class RecordError(TfguardError):
    """The record could not be written or cannot be trusted; the engine was not started."""

    exit_code: ClassVar[ExitCode] = ExitCode.NO_RECORD


class BusyStoreError(RecordError):
    """The record's place did not answer in time, or answered that it cannot now: the same call may succeed later."""


class NewerRecordError(RecordError):
    """A record was written by a newer tfguard; it is left as it is."""


class CorruptRecordError(RecordError):
    """A record is not what it claims to be; it counts as an operation that is not settled, and is never overwritten."""

    exit_code: ClassVar[ExitCode] = ExitCode.OPEN


class ConflictError(TfguardError):
    """A compare-and-swap lost: somebody else wrote the record first. Read it again, and decide anew."""

    exit_code: ClassVar[ExitCode] = ExitCode.ALIVE


class PreflightError(TfguardError):
    """A check before the first step of a blueprint failed; nothing was changed."""


class OpenOperationError(TfguardError):
    """An operation that is not settled stands in the way."""

    exit_code: ClassVar[ExitCode] = ExitCode.OPEN


class OperationAliveError(TfguardError):
    """Another operation on this stack is running now."""

    exit_code: ClassVar[ExitCode] = ExitCode.ALIVE


class NoEngineError(TfguardError):
    """No terraform or tofu that tfguard can work with."""

    exit_code: ClassVar[ExitCode] = ExitCode.NO_ENGINE


class InterruptedRunError(TfguardError):
    """A signal came while no engine was running."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERRUPTED
