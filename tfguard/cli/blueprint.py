"""`tfguard blueprint validate|plan|apply|resume|status|cancel|destroy`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tfguard.cli.blueprint_preflight import look_first
from tfguard.cli.blueprint_wiring import Intents, blueprint_context, check_stacks
from tfguard.cli.interruptible import engine_command, own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import duration, format_option, print_document, stdout_paint, yes_option
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.blueprints.asking import ask_probes
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.context import BlueprintContext, values_of
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.provide import ProvideOptions, provide, upcoming
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.take_away import TakeAwayOptions, standing, take_away
from tfguard.model.blueprint_decision import Decision, Told
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.model.blueprint_view import BlueprintView
from tfguard.reconcile.blueprint_view import blueprint_view
from tfguard.report.blueprint import blueprint_text
from tfguard.report.blueprint_svg import blueprint_svg
from tfguard.schemas.blueprint import blueprint_document

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
        click.echo(f"{file}: {blueprint.name} is sound: {len(blueprint.steps)} steps, {len(blueprint.inputs)} inputs")
    return ExitCode.DONE


@command.command("plan")
@file_argument
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="The value of an input.")
@format_option()
@click.pass_obj
def plan_command(invocation: Invocation, file: Path, inputs: tuple[str, ...], form: str) -> int:
    """Show what would be done about each step, and why. Nothing is changed, and no command of a step is run.

    Exit code 11 where a step waits for a person.
    """
    with own_command() as gate:
        context, parsed = blueprint_context(invocation, gate, file)
        check_stacks(context, parsed)
        found = context.requests.current()
        standing_now = found if found is not None and not found.terminal else None
        decided = decisions(context, upcoming(context, ProvideOptions(_pairs("--input", inputs))))
        _show(Called(invocation, file), context, standing_now, decided, form)
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
@click.option("--again", multiple=True, metavar="STEP", help="On your word: the command of this step can run again.")
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
    """Go on with the request that stands: skip what is done, look up what is not known, make what is missing."""
    if (done or again) and not reason.strip():
        raise UsageError("--done and --again need a reason", "add --reason TEXT; it is kept in the record")
    told = {**{name: Told(True, reason) for name in done}, **{name: Told(False, reason) for name in again}}
    return _provide(invocation, file, ProvideOptions(told=told), skipped, yes, form, new=False)


@command.command("status")
@file_argument
@click.option("--probe", is_flag=True, help="Ask the probes anew, once each.")
@request_option
@format_option("svg")
@click.pass_obj
def status_command(invocation: Invocation, file: Path, probe: bool, request_id: str | None, form: str) -> int:
    """Show the request: its steps, what exists, who pays, and what can be done next.

    Exit code 11 when it is not Ready or Cleaned, or with --probe when a probe fails.
    """
    with own_command() as gate:
        context, _ = blueprint_context(invocation, gate, file)
        known = (*context.requests.packed_ids(), *context.requests.ids()) if request_id else ()
        if request_id and request_id not in known:
            raise UsageError(f"there is no request {request_id} of {file}", f"there are: {', '.join(known) or 'none'}")
        request = context.requests.read(request_id) if request_id else context.requests.current()
        if request is None:
            return _show_nothing(Called(invocation, file), context, form)
        failed: Sequence[str] = ()
        if probe and not request.terminal:
            journal = Journal(context.requests, request)
            failed = ask_probes(context, journal, values_of(context, request), lambda: gate.interrupted, once=True)
            request = journal.request
        view = _show(Called(invocation, file), context, request, decisions(context, request), form)
    good = (view.ready_now and not failed) or request.state is RequestState.CLEANED
    return ExitCode.DONE if good else ExitCode.OPEN


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
        context, _ = blueprint_context(invocation, gate, file)
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
@click.option("--gone", multiple=True, metavar="STEP", help="On your word: nothing of it is there; its state is lost.")
@yes_option()
@format_option()
@click.pass_obj
def destroy_command(
    invocation: Invocation,
    file: Path,
    reason: str,
    stateful: bool,
    dispose: bool,
    gone: tuple[str, ...],
    yes: bool,
    form: str,
) -> int:
    """Take away what the request has made, in reverse, and verify that it is gone.

    What is retained or holds data stays unless told otherwise, and so does what it needs. Can be repeated. Exit code 11
    when something is left.
    """
    with _interruptible() as (gate, intents):
        context, _ = blueprint_context(invocation, gate, file, intents)
        if gone and reason == _DESTROYED:
            raise UsageError("--gone needs a reason", "add --reason TEXT: how you know it; it is kept in the record")
        _refuse_unknown_steps(context, gone, file)
        options = TakeAwayOptions(reason, stateful, dispose, dict.fromkeys(gone, reason))
        request = take_away(context, options, lambda found: _approve_destroy(context, found, yes))
        if request is None:
            return _show_nothing(Called(invocation, file), context, form)
        _show(Called(invocation, file), context, request, {}, form)
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
        if standing_now and (idle := [name for name in options.told if not standing_now.step(name).made]):
            raise UsageError(
                f"{idle[0]} was never begun: there is nothing to say of its work", "leave --done or --again out"
            )
        if not new and (standing_now is None or standing_now.terminal):
            raise UsageError(f"{file} has no request to go on with", f"`tfguard blueprint apply {file}` makes one")
        left_out = _pairs("--skip-check", skipped)
        request = provide(
            context,
            options,
            lambda found: look_first(context, found, left_out),
            lambda found: _approve_provide(context, found, yes),
        )
        _show(Called(invocation, file), context, request, decisions(context, request), form)
    return ExitCode.DONE if request.state is RequestState.READY else ExitCode.OPEN


def _refuse_unknown_steps(context: BlueprintContext, names: Iterable[str], file: Path) -> None:
    if unknown := [name for name in names if name not in context.blueprint.steps]:
        raise UsageError(f"there is no step {unknown[0]}", f"see `tfguard blueprint status {file}`")


@contextmanager
def _interruptible() -> Iterator[tuple[SignalGate, Intents]]:
    """A first signal begins nothing new, a second is passed on to what runs."""
    intents = Intents()
    with engine_command() as gate, gate.forwarding(intents.hear):
        yield gate, intents


def _approve_provide(context: BlueprintContext, request: Request, yes: bool) -> None:
    for name, decision in decisions(context, request).items():
        context.console.say(f"{name}: {decision.kind.value}: {decision.reason}")
    _approve(context, "Go on with these steps? Only 'yes' is taken:", yes)


def _approve_destroy(context: BlueprintContext, request: Request, yes: bool) -> None:
    context.console.say(f"request {request.id} of {context.blueprint.name} is {request.state.value}")
    for name in standing(context, request):
        context.console.say(f"{name}: to be taken away, unless it is kept or holds data")
    _approve(context, "Take all of it away? Only 'yes' is taken:", yes)


def _approve(context: BlueprintContext, question: str, yes: bool) -> None:
    if yes:
        return
    if context.console.ask(question) != "yes":
        raise UsageError("not approved; nothing was changed", "answer yes, or give --yes where nobody can be asked")


def _show(
    called: Called, context: BlueprintContext, request: Request | None, decided: Mapping[str, Decision], form: str
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
    )
    if form == "json":
        print_document(blueprint_document(view))
    elif form == "svg":
        click.echo(blueprint_svg(view), nl=False)
    else:
        click.echo(blueprint_text(view, stdout_paint()), nl=False)
    return view


def _show_nothing(called: Called, context: BlueprintContext, form: str) -> ExitCode:
    """Say that there is no request; a program gets the document of what would be made."""
    if form == "text":
        click.echo(f"no request is recorded at {context.requests.location}")
    else:
        _show(called, context, None, {}, form)
    return ExitCode.DONE


def _pairs(option: str, words: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {word} has no value", f"write {option} NAME=VALUE")
        if name in found:
            raise UsageError(f"{option} {name} is given twice", "give it once")
        found[name] = value
    return found
