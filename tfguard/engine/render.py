"""Each event of `apply -json`, rendered as `apply` would have printed it for a person.

A table maps every kind of event to a function (event, renderer's context) -> text. The texts were taken from
Terraform 1.11.4 by running the same plan in both forms (tests/engine/test_render.py keeps that comparison). For most
messages the engine's own `@message` is the human text, so that a newer engine's wording comes through unchanged.
Nothing is kept but the ids of what is changing now, and nothing is printed that the engine did not say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from tfguard.engine.diagnostics import (
    BOLD,
    RESET,
    Diagnostic,
    Severity,
    batches,
    compact_text,
    diagnostic_of,
    diagnostic_text,
    repeats_plan,
    wrapped,
)
from tfguard.engine.events import mapping, string
from tfguard.engine.outputs import outputs_text
from tfguard.model.event import EngineEvent, EventKind

Command = Literal["apply", "destroy", "refresh"]

NO_TERMINAL_WIDTH: Final = 78
"""Columns that the engine assumes where its output is not a terminal."""

KNOWN_DIFFERENCES: Final[Mapping[str, str]] = {
    "deposed": "'(deposed object 1a2b3c4d)' in the lines of a destruction is missing where neither the plan nor a local"
    " state names the key in time: a create-before-destroy replacement with another backend, or of an object that goes"
    " away within milliseconds",
    "imports": "'Importing...' and 'Import complete' come as late as is known for sure (before the object's own first"
    " line, or before the summary), and only for imports that the caller names: the stream has no event for them",
    "blank provisioner lines": "a blank line of a provisioner's output is missing: the stream leaves it out",
    "early warnings": "with -compact-warnings a warning that comes before the planning (of provider development"
    " overrides) is told in full: the plan's warnings are shortened when it is known with which others they stand",
    "interrupt at the question": "tfguard's own words and 130, where the engine tells of an interrupt and gives 1: no"
    " engine runs then",
    "unreadable input": "a state, or a plan file that was cut, that tfguard cannot read is refused in tfguard's own"
    " words, with the engine's exit code",
    "own form": "where the engine prints an apply itself beside its events (OpenTofu from 1.12) and asks nothing, the"
    " plan's warnings come before the apply's lines; those about the configuration come again behind them",
    "newer types": "an event of a type that is not known here shows its @message, without the human form's colours",
}
"""Where tfguard shows something else than the engine, each with its reason (tests/e2e/test_matrix.py has the proof)."""

_GREEN: Final = "\x1b[32m"
_LONGEST_ID: Final = 80
_SECOND_INTERRUPT: Final = "\nTwo interrupts received."
_STATE_OUT_HINT: Final = (
    "The state of your infrastructure has been saved to the path below. This state is required to modify and destroy"
    " your infrastructure, so keep it safe. To inspect the complete state use the `{} show` command."
)
_READING: Final = (
    ("Still refreshing...", "Still reading..."),
    ("Refreshing...", "Reading..."),
    ("Refresh complete", "Read complete"),
)


@dataclass(frozen=True, slots=True)
class RenderedText:
    """What goes to the user's stdout and stderr; stdout first, where both are one terminal."""

    stdout: str = ""
    stderr: str = ""

    def __add__(self, other: RenderedText) -> RenderedText:
        return RenderedText(self.stdout + other.stdout, self.stderr + other.stderr)


DeposedKey = Callable[[str, str | None], str | None]
"""The key of the deposed object that is being destroyed at an address, by the object's id; None for a current one."""


def _none_deposed(address: str, id_value: str | None) -> str | None:  # noqa: ARG001 (a `DeposedKey`)
    return None


@dataclass(slots=True)
class _Context:
    """What a rendering function may need besides the event; `changing` holds (id, deposed key) of what is at work."""

    color: bool
    width: int
    error_width: int
    command: Command
    compact_warnings: bool
    imports: dict[str, str]
    deposed: DeposedKey
    state_out: str | None
    product: str = "Terraform"
    changing: dict[tuple[str, str], tuple[str, str | None]] = field(default_factory=dict)
    imported: int = 0


class Renderer:
    """Turns the events of one engine run, in their order, into the human form.

    `color` is off with -no-color alone: the engine colours without a terminal too. `width` and `error_width` are the
    columns of the user's stdout and stderr (`NO_TERMINAL_WIDTH` where that is no terminal). `command` is what the user
    asked for: an applied destroy plan ends with other words under `destroy`. `imports` are (address, id) of the plan's
    imports, `deposed` finds keys of deposed objects, `state_out` is the value of -state-out.
    `outputs_from_events=False` leaves the `Outputs:` block out.

    An apply that has planned for itself passes what its plan has warned of: `said` are the summaries of all, which are
    not told a second time, and `waiting` are the warnings that the engine prints with those of the apply.
    """

    def __init__(
        self,
        color: bool,
        width: int = NO_TERMINAL_WIDTH,
        command: Command = "apply",
        *,
        error_width: int | None = None,
        compact_warnings: bool = False,
        imports: Sequence[tuple[str, str]] = (),
        deposed: DeposedKey = _none_deposed,
        state_out: str | None = None,
        outputs_from_events: bool = True,
        said: Collection[str] | None = None,
        waiting: Sequence[Diagnostic] = (),
    ) -> None:
        self._context = _Context(
            color=color,
            width=width,
            error_width=width if error_width is None else error_width,
            command=command,
            compact_warnings=compact_warnings,
            imports=dict(imports),
            deposed=deposed,
            state_out=state_out,
        )
        self._outputs = outputs_from_events
        self._said = said
        self._waiting = tuple(waiting)
        self._diagnostics: list[Diagnostic] = []

    def render(self, event: EngineEvent) -> RenderedText:
        """The text of this event; diagnostics wait for the next event that is none, or for `finish`."""
        if event.kind is EventKind.DIAGNOSTIC:
            diagnostic = diagnostic_of(event)
            if self._said is None or not repeats_plan(diagnostic, self._said):
                self._diagnostics.append(diagnostic)
            return RenderedText()
        text = self._render_other(event)
        return self.finish() + text if self._diagnostics or _ends(event) else text

    def finish(self) -> RenderedText:
        """The diagnostics that still wait. Call it when the engine has ended."""
        # The engine prints an apply's diagnostics when it is over, the plan's among them.
        due, self._diagnostics, self._waiting = [*self._waiting, *self._diagnostics], [], ()
        rendered = RenderedText()
        for batch in batches(due):
            rendered += _batch(batch, self._context)
        return rendered

    def _render_other(self, event: EngineEvent) -> RenderedText:
        if event.kind is EventKind.LOG:
            return _log(event, self._context)
        if event.kind is EventKind.OUTPUTS and not self._outputs:
            return RenderedText()
        return RenderedText(stdout=RENDERINGS[event.kind](event, self._context))


def _ends(event: EngineEvent) -> bool:
    """Whether the event is the summary of an apply or destroy."""
    return event.kind is EventKind.CHANGE_SUMMARY and _operation(event) != "plan"


def _operation(event: EngineEvent) -> str | None:
    return string(mapping(event.raw.get("changes")).get("operation"))


def _batch(diagnostics: Sequence[Diagnostic], context: _Context) -> RenderedText:
    """Warnings go to stdout, errors to stderr, each wrapped for its own width."""
    warnings = [item for item in diagnostics if item.severity is Severity.WARNING]
    errors = [item for item in diagnostics if item.severity is Severity.ERROR]
    if context.compact_warnings and not errors:
        return RenderedText(stdout=compact_text(warnings, color=context.color, product=context.product))
    return RenderedText(
        stdout="".join(diagnostic_text(item, color=context.color, width=context.width) for item in warnings),
        stderr="".join(diagnostic_text(item, color=context.color, width=context.error_width) for item in errors),
    )


def _log(event: EngineEvent, context: _Context) -> RenderedText:
    """The words about an interrupt, and the state itself where the engine could save it nowhere else."""
    if "state" in event.raw:
        return RenderedText(stderr=_indented_json(event.raw["state"]) + "\n\n")
    if event.message.startswith(_SECOND_INTERRUPT):
        return RenderedText(stderr=_wrapped_text(event.message, context.error_width) + "\n")
    return RenderedText(stdout=_wrapped_text(event.message, context.width) + "\n")


def _wrapped_text(text: str, width: int) -> str:
    return "\n".join(wrapped(line, width - 1) for line in text.split("\n"))


def _nothing(event: EngineEvent, context: _Context) -> str:  # noqa: ARG001 (every entry of the table has this form)
    """For messages that the human form does not have."""
    return ""


def _version(event: EngineEvent, context: _Context) -> str:
    """Prints nothing; tells which product's name the engine uses for itself."""
    if "tofu" in event.raw:
        context.product = "OpenTofu"
    return ""


def _plain(event: EngineEvent, context: _Context) -> str:  # noqa: ARG001
    return event.text + "\n"


def _cut(event: EngineEvent, context: _Context) -> str:  # noqa: ARG001
    """The start of a JSON line tells a person nothing; the start of any other line is shown as far as it goes."""
    return "" if event.text.lstrip().startswith("{") else event.text


def _message(event: EngineEvent, context: _Context) -> str:  # noqa: ARG001
    return event.message + "\n" if event.message else ""


def _apply_start(event: EngineEvent, context: _Context) -> str:
    address, action = event.address or "", event.action or ""
    known = f"{event.id_key}={_shortened(event.id_value)}" if event.id_key and event.id_value is not None else ""
    key = context.deposed(address, event.id_value) if action == "delete" else None
    context.changing[address, action] = known, key
    text = _with_deposed_key(_human(event), address, key)
    return _import_lines(address, context) + _highlighted(text, context, resets=2)


def _apply_progress(event: EngineEvent, context: _Context) -> str:
    """The human form names the object's id too, if it had one when the change began."""
    address = event.address or ""
    known, key = context.changing.get((address, event.action or ""), ("", None))
    text = _with_deposed_key(_human(event), address, key)
    start = text.rfind("[")
    if known and start >= 0 and f"[{known}" not in text:
        text = f"{text[: start + 1]}{known}, {text[start + 1 :]}"
    return _highlighted(text, context, resets=2)


def _with_deposed_key(text: str, address: str, key: str | None) -> str:
    return text.replace(address, f"{address} (deposed object {key})", 1) if key else text


def _apply_complete(event: EngineEvent, context: _Context) -> str:
    context.changing.pop((event.address or "", event.action or ""), None)
    return _highlighted(_human(event), context, resets=1)


def _apply_errored(event: EngineEvent, context: _Context) -> str:
    context.changing.pop((event.address or "", event.action or ""), None)
    return ""


def _one_reset(event: EngineEvent, context: _Context) -> str:
    return _highlighted(event.message, context, resets=1)


def _two_resets(event: EngineEvent, context: _Context) -> str:
    return _highlighted(event.message, context, resets=2)


def _provision_progress(event: EngineEvent, context: _Context) -> str:
    hook = mapping(event.raw.get("hook"))
    prefix = f"{event.address} ({string(hook.get('provisioner'))}):"
    if context.color:
        prefix = f"{RESET}{BOLD}{prefix}{RESET}"
    reset = RESET if context.color else ""
    lines = (line.rstrip() for line in (string(hook.get("output")) or "").split("\n"))
    return "".join(f"{prefix} {reset}{line}\n" for line in lines if line)


def _change_summary(event: EngineEvent, context: _Context) -> str:
    """The last line of an apply or destroy; the summary of a plan belongs to the plan's own output."""
    if not _ends(event):
        return ""
    changes = mapping(event.raw.get("changes"))
    message = event.message
    if context.command == "destroy":
        message = f"Destroy complete! Resources: {changes.get('remove')} destroyed."
    imports = _remaining_imports(changes, context)
    return imports + _heading(message + "\n", context) + _state_out_hint(changes, context)


def _state_out_hint(changes: Mapping[str, object], context: _Context) -> str:
    if context.state_out is None or not (changes.get("add") or changes.get("change")):
        return ""
    hint = _STATE_OUT_HINT.format(context.product.lower().removeprefix("open"))
    return f"\n{wrapped(hint, context.width - 1)}\n\nState path: {context.state_out}\n"


def _outputs(event: EngineEvent, context: _Context) -> str:
    """Outputs after an apply or refresh; those of a plan carry an action and belong to the plan's own output."""
    outputs = mapping(event.raw.get("outputs"))
    if not outputs or context.command == "destroy" or any("action" in mapping(item) for item in outputs.values()):
        return ""
    return _heading("Outputs:\n\n", context) + outputs_text(outputs)


def _human(event: EngineEvent) -> str:
    """The event's message; the stream calls it "refreshing" where the human form says that a data source is read."""
    if event.action != "read" or event.address is None:
        return event.message
    prefix = f"{event.address}: "
    words = event.message.removeprefix(prefix)
    for stream_words, human_words in _READING:
        if words.startswith(stream_words):
            return prefix + human_words + words.removeprefix(stream_words)
    return event.message


def _highlighted(text: str, context: _Context, *, resets: int) -> str:
    return f"{RESET}{BOLD}{text}{RESET * resets}\n" if context.color else f"{text}\n"


def _heading(text: str, context: _Context) -> str:
    return f"{RESET}{BOLD}{_GREEN}\n{text}{RESET}" if context.color else f"\n{text}"


def _import_lines(address: str, context: _Context) -> str:
    id_ = context.imports.pop(address, None)
    if id_ is None:
        return ""
    context.imported += 1
    texts = (f"{address}: Importing... [id={id_}]", f"{address}: Import complete [id={id_}]")
    return "".join(_highlighted(text, context, resets=1) for text in texts)


def _remaining_imports(changes: Mapping[str, object], context: _Context) -> str:
    """Imports without a change of their own; told only when the engine's count says that every one was done."""
    if changes.get("import") != context.imported + len(context.imports):
        return ""
    return "".join(_import_lines(address, context) for address in tuple(context.imports))


def _shortened(id_: str) -> str:
    """At most 80 characters, with dots for the middle part."""
    if len(id_) <= _LONGEST_ID:
        return id_
    half = (_LONGEST_ID - 3) // 2
    return f"{id_[: _LONGEST_ID - 3 - half]}...{id_[-half:]}"


def _indented_json(value: object, indent: str = "") -> str:
    """JSON as the engine writes a state: two spaces, keys in the order they came, `<`, `>` and `&` escaped."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        lines = (f"{inner}{_json_scalar(key)}: {_indented_json(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{inner}{_indented_json(item, inner)}" for item in value) + f"\n{indent}]"
    return _json_scalar(value)


_JSON_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def _json_scalar(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False).translate(_JSON_ESCAPES)


RENDERINGS: Final[Mapping[EventKind, Callable[[EngineEvent, _Context], str]]] = {
    EventKind.VERSION: _version,
    EventKind.PLANNED_CHANGE: _nothing,
    EventKind.RESOURCE_DRIFT: _nothing,
    EventKind.CHANGE_SUMMARY: _change_summary,
    EventKind.OUTPUTS: _outputs,
    EventKind.APPLY_START: _apply_start,
    EventKind.APPLY_PROGRESS: _apply_progress,
    EventKind.APPLY_COMPLETE: _apply_complete,
    EventKind.APPLY_ERRORED: _apply_errored,
    EventKind.PROVISION_START: _two_resets,
    EventKind.PROVISION_PROGRESS: _provision_progress,
    EventKind.PROVISION_COMPLETE: _nothing,
    EventKind.PROVISION_ERRORED: _nothing,
    EventKind.REFRESH_START: _one_reset,
    EventKind.REFRESH_COMPLETE: _nothing,
    EventKind.STATE_LOCK_ACQUIRE: _message,
    EventKind.STATE_LOCK_RELEASE: _message,
    EventKind.EPHEMERAL_START: _one_reset,
    EventKind.EPHEMERAL_PROGRESS: _two_resets,
    EventKind.EPHEMERAL_COMPLETE: _one_reset,
    EventKind.EPHEMERAL_ERRORED: _nothing,
    EventKind.UNKNOWN: _message,
    EventKind.PLAIN: _plain,
    EventKind.CUT: _cut,
}
