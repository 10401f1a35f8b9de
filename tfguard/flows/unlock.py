"""`force-unlock`: who holds the lock, since when, and whether they live; then the lock's id, typed (case B25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tfguard.errors import InputError, InterruptedRunError, OperationAliveError, TfguardError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.guard import GuardedRun
from tfguard.flows.repair import repair
from tfguard.model.durations import in_words
from tfguard.model.lock import StateLock
from tfguard.model.request import RepairRequest

_ADVICE = "wait for it to end; a lock that is taken from a living run lets two runs write one state"


def unlock(context: StackContext, request: RepairRequest, argv: Sequence[str], folder: Path) -> GuardedRun:
    """Show who holds the lock, refuse while they live, ask for the lock's id, then let the engine unlock.

    With `-force` the id on the command line is the word for it; a living holder is refused all the same. `argv` and
    `folder` are as for `repair`. Raises `OperationAliveError` for a holder that lives.
    """
    lock = _lock(context, request)
    if lock is not None:
        _describe(context, lock)
    context.records.refuse_if_alive()
    if lock is None:
        return repair(context, request, argv, folder)
    if lock.process is not None:
        where = f"process {lock.process} of this machine" if lock.process else "a process that cannot be seen from here"
        raise OperationAliveError(f"lock {lock.id} is held by {where}, which is running", _ADVICE)
    wanted = request.operands[0] if request.operands else ""
    if wanted != lock.id:
        raise UsageError(f"the lock on the state is {lock.id}, and not {wanted}", "name the lock that is there")
    if not request.forced and not _typed(context, lock):
        return GuardedRun(1)
    forced = request if request.forced else replace(request, arguments=("-force", *request.arguments), forced=True)
    return repair(context, forced, argv, folder)


def _lock(context: StackContext, request: RepairRequest) -> StateLock | None:
    """The lock on the state. Raises `InputError` when nobody knows whether there is one, and `-force` is not given."""
    try:
        lock = context.engine.lock()
    except InputError as error:
        if not request.forced:
            raise
        context.console.warn(error.what)
        return None
    if lock is None:
        context.console.say("no lock could be found on the state; the engine has the last word")
    return lock


def _typed(context: StackContext, lock: StateLock) -> bool:
    """Whether a person has typed the lock's id."""
    answer = context.console.ask("Type the lock's ID to take it away:")
    if context.clock.interrupted:
        raise InterruptedRunError("interrupted at the question; nothing was unlocked", "run the command again")
    if answer is not None and answer.strip() == lock.id:
        return True
    why = "that is not the lock's ID" if answer else "no ID was typed; without a terminal, add -force"
    context.console.say(f"nothing was unlocked: {why}")
    return False


def _describe(context: StackContext, lock: StateLock) -> None:
    say = context.console.say
    since = f", taken {in_words(context.clock.now() - lock.created)} ago" if lock.created else ""
    holder = f"{lock.operation or 'taken'} by {lock.who}" if lock.who else "its holder is not known"
    say(f"lock {lock.id}: {holder}{since}")
    if lock.process_known:
        say("  no process of this machine holds it" if lock.process is None else f"  process {lock.process} holds it")
    else:
        say("  whether its holder lives cannot be told from here; ask them before you take it away")
    try:
        last = context.last_operation()
    except TfguardError as error:
        context.console.warn(error.what)
        return
    if last is not None:
        intent = last.intent
        job = f", {intent.actor.ci_url or intent.actor.ci_job}" if intent.actor.ci_url or intent.actor.ci_job else ""
        how = "ended" if last.result else "has not ended"
        say(
            f"  the last operation on record is {last.id}: {intent.command} by {intent.actor.user}@{intent.actor.host}"
            f"{job}, begun {in_words(context.clock.now() - intent.started_at)} ago, {how}"
        )
