"""Ask a service until it answers as expected, or until its time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.errors import TfguardError
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.patience import Patience
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint import Probe
from tfguard.model.blueprint_request import Activity, RequestEvent
from tfguard.model.config import format_duration
from tfguard.model.durations import in_words
from tfguard.model.operation import StepStatus

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(milliseconds=500), timedelta(seconds=10)


def ask_until(
    context: BlueprintContext, name: str, probe: Probe, stop: Callable[[], bool], *, once: bool = False
) -> ProbeAnswer:
    """The first good answer to a probe without references, else the last bad one, when `within` is over.

    The pause between two tries doubles, and the user is told of the first that has failed, by the probe's `name`. With
    `once` there is one try.
    """
    began, pause, tries = context.clock.now(), _FIRST_PAUSE, 0
    waiting = Patience(context, f"{name}: still asked")
    while True:
        answer, tries = context.prober.ask(probe), tries + 1
        spent = context.clock.now() - began
        left = probe.within - spent
        if answer.ok or once:
            return answer
        if (over := left <= timedelta(0)) or stop():
            long = f"within {format_duration(probe.within)}" if over else f"in {in_words(spent)}, then cancelled"
            many = "once" if tries == 1 else f"{tries} times"
            return ProbeAnswer(False, f"{answer.detail} (asked {many} {long})")
        if tries == 1:
            until = began + probe.within
            context.console.say(f"{name}: not yet: {answer.detail}; asked again until {until:%H:%M:%SZ}")
        waiting.tell()
        context.clock.sleep(min(pause, left).total_seconds())
        pause = min(pause * 2, _LONGEST_PAUSE)


def ask_probes(
    context: BlueprintContext, journal: Journal, values: Values, stop: Callable[[], bool], *, once: bool = False
) -> Sequence[str]:
    """Ask every probe of `ready:`, at the same time, and write each answer down; the names of those that failed.

    A probe whose references have no value has failed. With `once` the steps that are probes are asked, too, where what
    they need is there; and of a probe whose references have no value here nothing is written: whoever looks may have
    less than who provides. Raises `RecordError`.
    """
    probes = [_Question(probe.name, probe, is_step=False) for probe in context.blueprint.ready.probes]
    if once and not context.requests.live():
        probes += _probe_steps(context, journal)
    if not probes:
        return ()

    def ask(question: _Question) -> ProbeAnswer | None:
        try:
            resolved = values.probe(question.probe, f"probe {question.name}")
        except TfguardError as error:
            context.console.warn(f"probe {question.name} cannot be asked: {error.what}; {error.advice}")
            return None if once else ProbeAnswer(False, error.what)
        return ask_until(context, f"probe {question.name}", resolved, stop, once=once)

    with ThreadPoolExecutor(len(probes)) as pool:
        answers = list(zip(probes, pool.map(ask, probes), strict=True))
    for question, answer in answers:
        if answer is not None:
            context.console.say(f"probe {question.name}: {_status(answer).value}: {answer.detail}")
            journal.write(partial(_told, question, answer))
    return [question.name for question, answer in answers if answer is None or not answer.ok]


@dataclass(frozen=True, slots=True)
class _Question:
    """A probe of `ready:`, or of a step with this name."""

    name: str
    probe: Probe
    is_step: bool


def _probe_steps(context: BlueprintContext, journal: Journal) -> Iterator[_Question]:
    """The steps that are probes and were asked before, where what they need is done."""
    request = journal.request
    for name, step in context.blueprint.steps.items():
        asked = request.step(name).made and all(request.step(need).done for need in step.needs)
        if step.probe is not None and asked:
            yield _Question(name, step.probe, is_step=True)


def _told(question: _Question, answer: ProbeAnswer, at: datetime, by: str) -> RequestEvent:
    status = _status(answer)
    if question.is_step:
        return RequestEvent(at, by, answer.detail, step=question.name, status=status, activity=Activity.PROBE)
    return RequestEvent(at, by, answer.detail, probe=question.name, status=status)


def _status(answer: ProbeAnswer) -> StepStatus:
    return StepStatus.OK if answer.ok else StepStatus.ERROR
