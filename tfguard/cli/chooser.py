"""`tfguard orphans` alone on a terminal: choose findings from a table, and what is to become of them.

Nothing is decided in here: what was chosen becomes a command line, which is shown, asked about, and run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from tfguard.cli.chooser_screen import Screen, opened_screen, screen_size
from tfguard.cli.chooser_table import (
    HELP,
    PROMPT_HELP,
    Act,
    Table,
    View,
    fitted,
    numbered_lines,
    one_line,
    table_lines,
    wrapped,
)
from tfguard.cli.console import StderrConsole, UserStreams, marked
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import duration, stdout_paint
from tfguard.cli.wiring import stack_context
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ExitCode, InterruptedRunError, TfguardError, UsageError
from tfguard.flows.retain import Keeping, check_keeping, check_time
from tfguard.flows.stray_findings import decidable
from tfguard.model.config import Config, format_duration
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import Coverage
from tfguard.model.printable import printable
from tfguard.report.findings import coverage_line, findings_text
from tfguard.report.paint import Paint
from tfguard.schemas.scan import load_kept

_DOES = {
    Act.IMPORT: "it plans the adoption, shows the plan, and asks before anything is applied",
    Act.RETAIN: "it writes into the ledger who keeps it, why, and until {until}; nothing else changes",
    Act.DESTROY: "it looks again, shows what hangs on it, and asks for its name before it deletes; nothing is forced",
}
_UNTAINTS = "it looks whether it is still there, and takes the mark away, so that no apply replaces it"


@dataclass(frozen=True, slots=True)
class ChooserOptions:
    """What the user gave along, for all commands that are run: a scan's findings, the state, and variables.

    `variables` are words of the engine's such as `-var-file=prod.tfvars`.
    """

    findings_file: Path | None = None
    state_path: str | None = None
    variables: tuple[str, ...] = ()

    def words(self, act: Act, ids: Sequence[str], more: Sequence[str] = ()) -> tuple[str, ...]:
        """The words behind `tfguard orphans` that do this with these findings; `more` are options of that command."""
        given = [*self.variables]
        given += [f"--findings={self.findings_file}"] if self.findings_file else []
        given += [f"-state={self.state_path}"] if self.state_path else []
        return (act.value, *ids, *more, *given)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What there is to decide about now."""

    findings: tuple[Finding, ...]
    coverage: Coverage
    config: Config
    now: datetime


def choose(invocation: Invocation, options: ChooserOptions, run: Callable[[Sequence[str]], object]) -> int:
    """Let the user decide until nothing is left or they leave; the exit code, which is 0 for leaving.

    `run` runs words behind `tfguard orphans` as if they had been typed. Raises `InterruptedRunError` or
    `KeyboardInterrupt` for a Ctrl-C, the former also for one at a command's own question.
    """
    return _Chooser(invocation, options, run).until_left()


class _Chooser:
    def __init__(self, invocation: Invocation, options: ChooserOptions, run: Callable[[Sequence[str]], object]) -> None:
        self._invocation = invocation
        self._options = options
        self._run = run
        self._owner = self._reason = ""  # what was typed last time is offered the next time

    def until_left(self) -> int:
        """Show, let choose, run, and look anew."""
        table, told = None, False
        with _signals_end_the_chooser():
            while True:
                loaded = self._load()
                if not loaded.findings:
                    click.echo(f"no findings to decide about; {printable(coverage_line(loaded.coverage))}")
                    return ExitCode.DONE if loaded.coverage.complete else ExitCode.INCOMPLETE
                if told and self._view(loaded).roomy and not _has_read():
                    return ExitCode.DONE
                table = table.refreshed(loaded.findings) if table else Table(loaded.findings)
                table, act = self._chosen(table, loaded)
                if act is Act.LEAVE:
                    return ExitCode.DONE
                told = self._try_to(act, table.chosen, loaded)

    def _load(self) -> _Loaded:
        with own_command() as gate:
            kept = load_kept(self._options.findings_file) if self._options.findings_file else None
            context = stack_context(self._invocation, gate, self._options.state_path)
            found, coverage = decidable(context, kept)
            left = tuple(finding for finding in found if finding.disposition is None)
            return _Loaded(left, coverage, context.around.config, context.clock.now())

    def _view(self, loaded: _Loaded) -> View:
        columns, lines = screen_size(os.environ)
        # Not the last column: what comes behind a full line is taken differently by each terminal.
        return View(columns - 1, lines, loaded.now, printable(coverage_line(loaded.coverage)), stdout_paint())

    def _chosen(self, table: Table, loaded: _Loaded) -> tuple[Table, Act]:
        """The decision that the user wants, with the table as they left it; by keys where there is a screen."""
        while True:
            if self._view(loaded).roomy:
                with opened_screen() as screen:
                    table, act = self._by_keys(screen, table, loaded)
            else:
                table, act = self._by_lines(table, loaded)
            if act is not None:
                return table, act

    def _by_keys(self, screen: Screen, table: Table, loaded: _Loaded) -> tuple[Table, Act | None]:
        """None for the wish when the window has become too small."""
        drawn = None
        while (view := self._view(loaded)).roomy:
            if drawn != view.size:
                screen.draw(table_lines(table, view))
                drawn = view.size
            if (key := screen.key()) is None:
                continue
            drawn = None
            table, act = table.press(key, view.rows)
            if act is Act.HELP:
                self._page(screen, "\n".join(HELP), loaded)
            elif act is Act.SHOW:
                self._page(screen, _details(table.current, loaded), loaded)
            elif act is not None:
                return table, act
        return table, None

    def _page(self, screen: Screen, text: str, loaded: _Loaded) -> None:
        """A text in the place of the table, until a key takes it back."""
        top, key, drawn = 0, None, None
        while (view := self._view(loaded)).roomy and (key is None or key in ("up", "down", "j", "k", " ")):
            if key is None and drawn == view.size:
                key = screen.key()
                continue
            lines, room = wrapped(text, view.columns), view.lines - 2
            top += {"up": -1, "k": -1, "down": 1, "j": 1, " ": room}.get(key or "", 0)
            top = max(0, min(top, len(lines) - room))
            foot = "up, down and space move; any other key goes back" if len(lines) > room else "any key goes back"
            screen.draw([*lines[top : top + room], "", view.paint(fitted(foot, view.columns), "dim")])
            key, drawn = screen.key(), view.size

    def _by_lines(self, table: Table, loaded: _Loaded) -> tuple[Table, Act | None]:
        """The same by typed lines. None for the wish when the window has become large enough."""
        streams = UserStreams()
        shown = [*numbered_lines(table, loaded.now), printable(coverage_line(loaded.coverage))]
        streams.out("".join(f"{line}\n" for line in shown))
        while True:
            with own_command() as gate:
                line = StderrConsole(gate).ask("numbers and a letter (i import, r retain, d destroy; ? help, q leave):")
            if line is None:
                return table, Act.LEAVE
            table, act = table.answer(line)
            if table.said:
                streams.err(marked(table.said))
            elif act is Act.HELP:
                streams.out("".join(f"{line}\n" for line in PROMPT_HELP))
            elif act is Act.SHOW:
                text = _details(table.current, loaded)
                streams.out("".join(f"{printable(line)}\n" for line in text.splitlines()))
            elif act is not None or self._view(loaded).roomy:
                return table, act

    def _try_to(self, act: Act, findings: Sequence[Finding], loaded: _Loaded) -> bool:
        """Show the command, ask, and run it; whether there is something to read now.

        What goes wrong is told, and ends nothing but this.
        """
        try:
            with own_command() as gate:
                words = self._asked(StderrConsole(gate), act, findings, loaded)
            if words is None:
                return False
            self._run(words)
        except InterruptedRunError:
            raise
        except TfguardError as error:
            UserStreams().err(marked(error.what, error.advice))
        except click.ClickException as error:
            UserStreams().err(marked(error.format_message()))
        return True

    def _asked(
        self, console: StderrConsole, act: Act, findings: Sequence[Finding], loaded: _Loaded
    ) -> tuple[str, ...] | None:
        """The words of the command that the user has agreed to; None when they have not."""
        console.say(f"{act.value}:")
        for finding in findings:
            console.say(f"  {one_line(finding, loaded.now)}")
        does = _DOES[act]
        more: Sequence[str] = ()
        if act is Act.RETAIN and any(finding.verdict is Verdict.TAINTED for finding in findings):
            does = _UNTAINTS
            more = (f"--reason={self._why(console)}", "--yes")  # which is asked here
        elif act is Act.RETAIN:
            more, until = self._keeping(console, loaded)
            does = does.format(until=until)
        elif act is Act.IMPORT:
            more = self._place(console, findings)
        elif any(finding.object and finding.object.stateful for finding in findings):
            if not console.confirm("Delete what HOLDS DATA, too (--stateful)?"):
                console.say("nothing was done")
                return None
            more = ("--stateful",)
        words = self._options.words(act, [finding.id for finding in findings], more)
        console.say(f"this would run: {self._invocation.command} orphans {shlex.join(words)}")
        console.say(f"  {does}")
        if not console.confirm("Run it?"):
            console.say("nothing was done")
            return None
        return words

    def _keeping(self, console: StderrConsole, loaded: _Loaded) -> tuple[Sequence[str], str]:
        """The options of a retention, and its date. Raises `UsageError` for what the command would refuse."""
        rules = loaded.config.retention
        usual, owner = format_duration(rules.default), self._owner or loaded.config.owner or ""
        question = f"for how long, at most {format_duration(rules.max)}"
        time = _answer_that(console, question, usual, lambda typed: check_time(duration(typed, "--for"), loaded.config))
        self._owner = _answer(console, "who keeps it", owner)
        reason = self._why(console)
        kept, _ = check_keeping(Keeping(reason, duration(time, "--for"), self._owner), loaded.config)
        until = f"{loaded.now + kept:%Y-%m-%d %H:%M}Z"
        return (f"--for={time}", f"--owner={self._owner}", f"--reason={reason}"), until

    def _why(self, console: StderrConsole) -> str:
        """The reason, which has no default but what was typed last time. Raises `UsageError` where none is given."""
        self._reason = _answer(console, "why", self._reason)
        if not self._reason:
            raise UsageError("nothing was done: no reason was given", "say in a few words why it is kept")
        return self._reason

    def _place(self, console: StderrConsole, findings: Sequence[Finding]) -> Sequence[str]:
        """The address for one finding that fits several (rule 11: a person chooses); no option where none is needed.

        Raises `UsageError` where none was chosen.
        """
        if len(findings) != 1 or findings[0].address or len(findings[0].addresses) < 2:
            return ()
        addresses = findings[0].addresses
        for number, address in enumerate(addresses, 1):
            console.say(f"  {number}: {address}")

        def check(typed: str) -> None:
            if not (typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(addresses)):
                raise UsageError(
                    f"there is no address with the number {typed}", "type the number that stands before it"
                )

        question = f"it fits several addresses; which one, 1 to {len(addresses)}"
        if typed := _answer_that(console, question, "", check):
            return (f"--address={addresses[int(typed) - 1]}",)
        raise UsageError("nothing was done: no address was chosen", "type the number that stands before it")


def _answer(console: StderrConsole, question: str, usual: str) -> str:
    """What is typed, or what is usual where nothing is; nothing where no answer comes."""
    typed = console.ask(f"{question}{f' [{printable(usual)}]' if usual else ''}:")
    return "" if typed is None else typed.strip() or usual


def _answer_that(console: StderrConsole, question: str, usual: str, check: Callable[[str], object]) -> str:
    """An answer that passes `check`, which raises `UsageError` for one that does not: then it is asked for again at
    once. As `_answer` where none is typed."""
    while typed := _answer(console, question, usual):
        try:
            check(typed)
        except UsageError as error:
            console.say(f"{error.what}; {error.advice}")
            continue
        return typed
    return ""


def _details(finding: Finding, loaded: _Loaded) -> str:
    """What `orphans show` prints."""
    return findings_text([finding], loaded.coverage, Paint())


def _has_read() -> bool:
    """Wait until the user has read what a command said, which the table would hide; False where nobody is there."""
    with own_command() as gate:
        return StderrConsole(gate).ask("enter goes back to the table") is not None


@contextmanager
def _signals_end_the_chooser() -> Iterator[None]:
    """Between two commands a signal ends the chooser, as it does before the first: no command leaves them ignored."""
    left, SignalGate.leaves = SignalGate.leaves, None
    try:
        yield
    finally:
        SignalGate.leaves = left
