"""Ask a service until it answers as expected, or until its time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.errors import TfguardError
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint import Probe
from tfguard.model.blueprint_request import RequestEvent
from tfguard.model.config import format_duration
from tfguard.model.operation import StepStatus

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(milliseconds=500), timedelta(seconds=10)


def ask_until(context: BlueprintContext, probe: Probe, stop: Callable[[], bool], *, once: bool = False) -> ProbeAnswer:
    """The first good answer to a probe without references, else the last bad one, when `within` is over.

    The pause between two tries doubles. With `once` there is one try.
    """
    began, pause, tries = context.clock.now(), _FIRST_PAUSE, 0
    while True:
        answer, tries = context.prober.ask(probe), tries + 1
        left = began + probe.within - context.clock.now()
        if answer.ok or once:
            return answer
        if left <= timedelta(0) or stop():
            many = "once" if tries == 1 else f"{tries} times"
            return ProbeAnswer(False, f"{answer.detail} (asked {many} within {format_duration(probe.within)})")
        context.clock.sleep(min(pause, left).total_seconds())
        pause = min(pause * 2, _LONGEST_PAUSE)


def ask_probes(
    context: BlueprintContext, journal: Journal, values: Values, stop: Callable[[], bool], *, once: bool = False
) -> Sequence[str]:
    """Ask every probe of `ready:`, at the same time, and write each answer down; the names of those that failed.

    A probe whose references have no value has failed. Raises `RecordError`.
    """
    probes = context.blueprint.ready.probes
    if not probes:
        return ()

    def ask(probe: Probe) -> ProbeAnswer:
        try:
            return ask_until(context, values.probe(probe, f"probe {probe.name}"), stop, once=once)
        except TfguardError as error:
            return ProbeAnswer(False, error.what)

    with ThreadPoolExecutor(len(probes)) as pool:
        answers = list(zip(probes, pool.map(ask, probes), strict=True))
    for probe, answer in answers:
        status = StepStatus.OK if answer.ok else StepStatus.ERROR
        context.console.say(f"probe {probe.name}: {status.value}: {answer.detail}")
        journal.write(
            lambda at, by, name=probe.name, seen=answer, status=status: RequestEvent(  # type: ignore[misc]
                at, by, seen.detail, probe=name, status=status
            )
        )
    return [probe.name for probe, answer in answers if not answer.ok]
