"""`tfguard blueprint validate|plan|apply|resume|status|list|cancel|destroy`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import click

from tfguard.cli.blueprint_preflight import FirstLook, planned
from tfguard.cli.blueprint_wiring import (
    Intents,
    blueprint_context,
    check_stacks,
    open_requests,
    removing_context,
    standing_context,
)
from tfguard.cli.console import SystemClock
from tfguard.cli.interruptible import engine_command, own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import duration, format_option, print_document, stdout_paint, yes_option
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ConfigError, ExitCode, UsageError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.checking import check_again
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.kept import by_kept, decided_left_behind, kept_blueprint
from tfguard.flows.blueprints.provide import ProvideOptions, provide, upcoming
from tfguard.flows.blueprints.requests import Journal, Requests
from tfguard.flows.blueprints.stopping import refuse_interrupted
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.model.blueprint_view import BlueprintView, ListedRequest, PlanOutline
from tfguard.model.preflight import CheckResult
from tfguard.ports import Console
from tfguard.reconcile.blueprint_removal import removals
from tfguard.reconcile.blueprint_view import blueprint_view
from tfguard.report.blueprint import blueprint_text, plan_text, requests_text
from tfguard.report.blueprint_svg import blueprint_svg
from tfguard.schemas.blueprint import blueprint_document, requests_document

_DESTROYED = "destroyed"
_GOOD = (RequestState.READY, RequestState.CLEANED)


@dataclass(frozen=True, slots=True)
class Called:
    """How tfguard was called, for the commands that it advises: what stands before the command, and the file."""

    invocation: Invocation
    file: Path


file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
request_option = click.option("--request", "request_id", metavar="ID", help="An earlier request.")


@click.group("blueprint")
def command() -> None:
    """Provide something that people use out of several stacks, commands and checks, and always tell how it stands.

    FILE is the blueprint (README, "Blueprints"). Its request is recorded beside it, or below `records:`.
    """


@command.command("validate")
@file_argument
@click.pass_obj
def validate_command(invocation: Invocation, file: Path) -> int:
    """Check a blueprint: its form, its graph, its references, and the folders of its stacks. Nothing is run."""
    with own_command() as gate:
        context, parsed = blueprint_context(invocation, gate, file)
        check_stacks(context, parsed)
        blueprint = context.blueprint
        steps, inputs = _counted(len(blueprint.steps), "step"), _counted(len(blueprint.inputs), "input")
        click.echo(f"{file}: {blueprint.name} is sound: {steps}, {inputs}")
    return ExitCode.DONE


@command.command("plan")
@file_argument
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="The value of an input.")
@format_option()
@click.pass_obj
def plan_command(invocation: Invocation, file: Path, inputs: tuple[str, ...], form: str) -> int:
    """Show what would be done about each step, and why, with what the engine plans for each stack. Nothing is changed,
    and no command of a step is run; a stack that was never set up is (`init`).

    Exit code 11 where a step waits for a person, 1 where the engine refuses a plan. Each interrupt is passed on to the
    engine at once, and nothing more is planned.
    """
    with _interruptible() as (gate, intents):
        context, parsed = blueprint_context(invocation, gate, file, intents)
        with _only_looking(context, intents):
            check_stacks(context, parsed)
            found = context.requests.current()
            standing_now = found if found is not None and not found.terminal else None
            request = upcoming(context, ProvideOptions(_pairs("--input", inputs)))
            decided = decisions(context, request)
            if standing_now is not None:
                decided = {**decided, **decided_left_behind(context, standing_now, request.inputs)}
            # Where another tfguard is at work, it sets the stacks up and changes them.
            outlines = {} if context.requests.live() else planned(context, request)
            outlines = {name: one for name, one in outlines.items() if _is_applied(decided[name])}
            refuse_interrupted(context)
        _show(Called(invocation, file), context, standing_now, decided, form, outlines, request.inputs)
    if any(one.refused for one in outlines.values()):
        return ExitCode.ERROR
    return ExitCode.OPEN if any(one.asks for one in decided.values()) else ExitCode.DONE


@command.command("apply")
@file_argument
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="The value of an input.")
@click.option("--skip-check", "skipped", multiple=True, metavar="NAME=REASON", help="Leave a preflight check out.")
@yes_option()
@format_option()
@click.pass_obj
def apply_command(
    invocation: Invocation, file: Path, inputs: tuple[str, ...], skipped: tuple[str, ...], yes: bool, form: str
) -> int:
    """Provide what the blueprint asks for, or bring what is there in line with it.

    Exit code 11 when it is not Ready in the end: `blueprint status` says what is there, and what can be done.
    A first interrupt begins nothing new and waits for what runs; a second is passed on to it.
    """
    return _provide(invocation, file, ProvideOptions(_pairs("--input", inputs)), skipped, yes, form, new=True)


@command.command("resume")
@file_argument
@click.option("--done", multiple=True, metavar="STEP", help="On your word: the command of this step has done its work.")
@click.option(
    "--again",
    multiple=True,
    metavar="STEP",
    help="On your word: the command of this step, or the apply of what it only adopted, can run again.",
)
@click.option("--reason", default="", metavar="TEXT", help="How you know it; kept in the record.")
@click.option("--skip-check", "skipped", multiple=True, metavar="NAME=REASON", help="Leave a preflight check out.")
@yes_option()
@format_option()
@click.pass_obj
def resume_command(
    invocation: Invocation,
    file: Path,
    done: tuple[str, ...],
    again: tuple[str, ...],
    reason: str,
    skipped: tuple[str, ...],
    yes: bool,
    form: str,
) -> int:
    """Go on with the request that stands: skip what is done, look up what is not known, make what is missing.

    Its inputs stay as they are: `blueprint apply FILE --input NAME=VALUE` does the same with another one.
    """
    if (done or again) and not reason.strip():
        raise UsageError("--done and --again need a reason", "add --reason TEXT; it is kept in the record")
    told = {**{name: Told(True, reason) for name in done}, **{name: Told(False, reason) for name in again}}
    return _provide(invocation, file, ProvideOptions(told=told), skipped, yes, form, new=False)


@command.command("status")
@file_argument
@click.option("--probe", is_flag=True, help="Ask the probes anew, once each, and look the objects up.")
@request_option
@format_option("svg")
@click.pass_obj
def status_command(invocation: Invocation, file: Path, probe: bool, request_id: str | None, form: str) -> int:
    """Show the request: its steps, what exists, who pays, and what can be done next.

    Exit code 11 when it is not Ready or Cleaned, or with --probe when a probe fails; also where there is no request.
    """
    with own_command() as gate:
        context = standing_context(invocation, gate, file)
        known = (*context.requests.packed_ids(), *context.requests.ids()) if request_id else ()
        if request_id and request_id not in known:
            raise UsageError(f"there is no request {request_id} of {file}", f"there are: {', '.join(known) or 'none'}")
        request = context.requests.read(request_id) if request_id else context.requests.current()
        if request is None:
            _show_nothing(Called(invocation, file), context, form)
            return ExitCode.OPEN
        if request_id and context.requests.digest(context.text) != request.blueprint_digest:
            with suppress(ConfigError):
                context = by_kept(context, request)
        failed: Sequence[str] = ()
        if probe and not request.terminal:
            journal = Journal(context.requests, request)
            intents = Intents()
            with gate.forwarding(intents.hear), _only_looking(context, intents):
                failed = check_again(context, journal, lambda: gate.interrupted)
            request = journal.request
        decided: Mapping[str, Decision] = {}
        if not request.terminal:
            decided = {**decisions(context, request), **decided_left_behind(context, request)}
        view = _show(Called(invocation, file), context, request, decided, form)
    good = (view.ready_now and not failed) or request.state is RequestState.CLEANED
    return ExitCode.DONE if good else ExitCode.OPEN


@command.command("list")
@file_argument
@format_option()
@click.pass_obj
def list_command(invocation: Invocation, file: Path, form: str) -> int:
    """List the requests of a blueprint, the newest first, those that were packed away included.

    `status --request ID` shows one. Exit code 11 when the record of one is damaged.
    """
    with own_command() as gate:
        requests = open_requests(invocation, file, gate)
        listed = [_as_seen(one, requests, SystemClock(gate).now(), file) for one in requests.listed()]
        if form == "json":
            print_document(requests_document(listed))
        else:
            click.echo(requests_text(listed) or f"no request is recorded at {requests.location}\n", nl=False)
    return ExitCode.OPEN if any(one.trouble for one in listed) else ExitCode.DONE


def _as_seen(one: ListedRequest, requests: Requests, now: datetime, file: Path) -> ListedRequest:
    """A request with whether it is Ready by what was last seen of it, as far as the blueprint that it keeps tells."""
    if one.state is not RequestState.READY:
        return one
    with suppress(ConfigError):
        request = requests.read(one.request_id)
        blueprint, _ = kept_blueprint(requests, request)
        return replace(one, ready_now=blueprint_view(blueprint, request, {}, now, file=str(file)).ready_now)
    return one


@command.command("cancel")
@file_argument
@click.option("--reason", default="cancelled", metavar="TEXT", help="Why; kept in the record.")
@click.option("--interrupt", is_flag=True, help="Also send what runs one interrupt, as Ctrl-C would.")
@click.option("--no-wait", is_flag=True, help="Do not stay until nothing runs any more.")
@click.option("--retain", is_flag=True, help="Keep what was made, for a review.")
@click.option("--for", "time", metavar="DURATION", help="For how long it is kept; `retention.default` without it.")
@click.option("--owner", default="", metavar="TEAM", help="Who keeps it; `owner` of the blueprint without it.")
@format_option()
@click.pass_obj
def cancel_command(
    invocation: Invocation,
    file: Path,
    reason: str,
    interrupt: bool,
    no_wait: bool,
    retain: bool,
    time: str | None,
    owner: str,
    form: str,
) -> int:
    """Stop a request: nothing new is begun, what runs is waited for, what was made is on record.

    Afterwards `destroy` takes it away; `cancel --retain` keeps it for a time, from where `resume` goes on. Exit code
    11, as for each request that is not Ready or Cleaned.
    """
    if (time or owner) and not retain:
        raise UsageError("--for and --owner belong to --retain", "add --retain")
    with own_command() as gate:
        context = removing_context(invocation, gate, file)
        kept = (duration(time, "--for") if time else context.config.retention.default) if retain else None
        options = CancelOptions(reason, interrupt, not no_wait, kept, owner or context.owner)
        request = cancel(context, options)
        _show(Called(invocation, file), context, request, {}, form)
    return ExitCode.DONE if request.state in _GOOD else ExitCode.OPEN


@command.command("destroy")
@file_argument
@click.option("--reason", default=_DESTROYED, metavar="TEXT", help="Why; kept in the record.")
@click.option("--stateful", is_flag=True, help="Also what holds data.")
@click.option("--dispose", is_flag=True, help="Also what is retained.")
@click.option("--step", "steps", multiple=True, metavar="STEP", help="This step alone; the request goes on without.")
@click.option(
    "--gone", multiple=True, metavar="STEP", help="On your word: nothing of it is there, and nothing can tell."
)
@click.option("--again", multiple=True, metavar="STEP", help="On your word: the step's compensation can run again.")
@yes_option()
@format_option()
@click.pass_obj
def destroy_command(
    invocation: Invocation,
    file: Path,
    reason: str,
    stateful: bool,
    dispose: bool,
    steps: tuple[str, ...],
    gone: tuple[str, ...],
    again: tuple[str, ...],
    yes: bool,
    form: str,
) -> int:
    """Take away what the request has made, in reverse, and verify that it is gone.

    What is retained or holds data stays unless told otherwise, and so does what it needs. With --step these steps alone
    go, as the request keeps them, whether the file still has them or not; what stays must not need them. Can be
    repeated. Exit code 11 when something is left.
    """
    with _interruptible() as (gate, intents):
        context = removing_context(invocation, gate, file, intents, kept=bool(steps))
        if (gone or again) and reason == _DESTROYED:
            raise UsageError(
                "--gone and --again need a reason", "add --reason TEXT: how you know it; it is kept in the record"
            )
        _refuse_unknown_steps(context, (*gone, *again), file)
        options = TakeAwayOptions(
            reason, stateful, dispose, dict.fromkeys(gone, reason), steps, dict.fromkeys(again, reason)
        )
        once = _ToldOnce(context.console)
        context = replace(context, console=once)
        request = take_away(context, options, lambda found: once.stays(_approve_destroy(context, found, options, yes)))
        if request is None:
            _show_nothing(Called(invocation, file), context, form)
            return ExitCode.DONE
        if steps:
            # It goes on with the file, where that is sound.
            with suppress(ConfigError):
                context, _ = blueprint_context(invocation, gate, file)
        _show(Called(invocation, file), context, request, {}, form)
    if steps:
        return ExitCode.OPEN if any(request.step(name).made for name in steps) else ExitCode.DONE
    return ExitCode.DONE if request.state is RequestState.CLEANED else ExitCode.OPEN


def _provide(
    invocation: Invocation,
    file: Path,
    options: ProvideOptions,
    skipped: Sequence[str],
    yes: bool,
    form: str,
    *,
    new: bool,
) -> int:
    with _interruptible() as (gate, intents):
        context, parsed = blueprint_context(invocation, gate, file, intents)
        check_stacks(context, parsed)
        _refuse_unknown_steps(context, options.told, file)
        standing_now = context.requests.current()
        if not new and (standing_now is None or standing_now.terminal):
            raise UsageError(
                f"{file} has no request to go on with", f"`tfguard blueprint apply {shlex.quote(str(file))}` makes one"
            )
        look = FirstLook(context, _pairs("--skip-check", skipped, "reason"), options.told)

        def preflight(found: Request) -> Sequence[CheckResult]:
            with _only_looking(context, intents):
                return look(found)

        request = provide(
            context, options, preflight, lambda found: _approve_provide(context, found, options, look.outlines, yes)
        )
        _show(Called(invocation, file), context, request, decisions(context, request), form)
    return ExitCode.DONE if request.state is RequestState.READY else ExitCode.OPEN


def _refuse_unknown_steps(context: BlueprintContext, names: Iterable[str], file: Path) -> None:
    if unknown := [name for name in names if name not in context.blueprint.steps]:
        raise UsageError(f"there is no step {unknown[0]}", f"see `tfguard blueprint status {shlex.quote(str(file))}`")


@contextmanager
def _interruptible() -> Iterator[tuple[SignalGate, Intents]]:
    """A first signal begins nothing new, a second is passed on to what runs."""
    intents = Intents()
    with engine_command() as gate, gate.forwarding(intents.hear):
        yield gate, intents


@contextmanager
def _only_looking(context: BlueprintContext, intents: Intents) -> Iterator[None]:
    """While nothing is changed, a first signal, too, is passed on to what runs."""

    def pass_on() -> None:
        context.console.warn("interrupted: nothing more is looked at; what runs gets an interrupt for each Ctrl-C")
        context.stacks.interrupt()

    with intents.followed(pass_on):
        yield


def _approve_provide(
    context: BlueprintContext,
    request: Request,
    options: ProvideOptions,
    outlines: Mapping[str, PlanOutline],
    yes: bool,
) -> None:
    for name, decision in decisions(context, request, options.told).items():
        context.console.say(f"{name}: {decision.kind.value}: {decision.reason}")
        if name in outlines:
            context.console.say(f"{name}: {plan_text(outlines[name])}")
    _approve(context, "Go on with these steps? Only 'yes' is taken:", yes)


def _is_applied(decision: Decision) -> bool:
    return decision.kind in (DecisionKind.RUN, DecisionKind.WAIT)


@dataclass(slots=True)
class _ToldOnce:
    """A console that does not say again that a step stays, which was told before the question."""

    console: Console
    _told: tuple[str, ...] = ()

    def stays(self, told: Mapping[str, str]) -> None:
        """This was told of the steps, before the question."""
        self._told = tuple(f"{name}: stays: " for name, text in told.items() if text.startswith("stays: "))

    def say(self, text: str) -> None:
        """One line on stderr."""
        if not text.startswith(self._told):
            self.console.say(text)

    def warn(self, text: str) -> None:
        """One line that should be noticed."""
        self.console.warn(text)

    def confirm(self, question: str) -> bool:
        """Ask yes or no."""
        return self.console.confirm(question)

    def ask(self, question: str) -> str | None:
        """The line that is typed as an answer."""
        return self.console.ask(question)


def _approve_destroy(
    context: BlueprintContext, request: Request, options: TakeAwayOptions, yes: bool
) -> Mapping[str, str]:
    """Tell what becomes of each step, and ask; what was told. Raises `UsageError` where the answer is no."""
    context.console.say(f"request {request.id} of {context.blueprint.name} is {request.state.value}")
    found = removals(
        context.blueprint,
        request,
        stateful=options.stateful,
        dispose=options.dispose,
        gone=options.gone,
        steps=options.steps,
    )
    for name, told in found.items():
        context.console.say(f"{name}: {told}")
    if not found:
        context.console.say("nothing of it is on record that could be taken away")
    _approve(context, "Take it away? Only 'yes' is taken:", yes)
    return found


def _approve(context: BlueprintContext, question: str, yes: bool) -> None:
    if yes:
        return
    if context.console.ask(question) != "yes":
        raise UsageError("not approved; nothing was changed", "answer yes, or give --yes where nobody can be asked")


def _show(
    called: Called,
    context: BlueprintContext,
    request: Request | None,
    decided: Mapping[str, Decision],
    form: str,
    outlines: Mapping[str, PlanOutline] | None = None,
    inputs: Mapping[str, object] | None = None,
) -> BlueprintView:
    view = blueprint_view(
        context.blueprint,
        request,
        decided,
        context.clock.now(),
        file=str(called.file),
        live=request is not None and context.requests.live(),
        command=called.invocation.command,
        folder=os.path.relpath(context.folder),
        owner=context.owner,
        cost_owner=context.cost_owner,
        digest=context.requests.digest(context.text),
        plans=outlines,
        inputs=inputs,
    )
    if form == "json":
        print_document(blueprint_document(view))
    elif form == "svg":
        click.echo(blueprint_svg(view), nl=False)
    else:
        click.echo(blueprint_text(view, stdout_paint()), nl=False)
    return view


def _show_nothing(called: Called, context: BlueprintContext, form: str) -> None:
    """Say that there is no request; a program gets the document of what would be made."""
    if form == "text":
        click.echo(f"no request is recorded at {context.requests.location}")
    else:
        _show(called, context, None, {}, form)


def _counted(many: int, what: str) -> str:
    return f"{many} {what}{'' if many == 1 else 's'}"


def _pairs(option: str, words: Sequence[str], what: str = "value") -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {word} has no {what}", f"write {option} {name or 'NAME'}={what.upper()}")
        if name in found:
            raise UsageError(f"{option} {name} is given twice", "give it once")
        found[name] = value
    return found
