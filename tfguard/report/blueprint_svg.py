"""A blueprint's request as a picture: one SVG file that needs nothing else, with all that it shows also as text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from xml.sax.saxutils import escape, quoteattr

from tfguard.model.blueprint_view import BlueprintView, StepView
from tfguard.model.durations import in_words
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus
from tfguard.model.printable import printable
from tfguard.report.blueprint import counted, failed_before, headline, object_text, waits

_MARGIN = 24
_LINE = 18
_CHAR = 7.3
"""A character of the fixed font, at most, at 12 units."""

_BOX_HEIGHT = 83
_NARROWEST, _INSET = 32, 14
_GAP_X, _GAP_Y, _GAP_BAND = 64, 18, 48
_ROWS, _COLUMNS = 12, 6
"""A layer with more steps becomes several columns; more columns go on in the next band below."""

_MOST_LINES = 40

_FILL: Mapping[StepStatus, tuple[str, str]] = {
    StepStatus.OK: ("#e3f4e6", "#1a7f37"),
    StepStatus.ERROR: ("#ffe3e0", "#b3261e"),
    StepStatus.RUNNING: ("#fff3c4", "#8a6100"),
    StepStatus.RETAINED: ("#e9e3fb", "#5b3fb5"),
    StepStatus.PENDING: ("#f1f3f5", "#5f6670"),
    StepStatus.DESTROYED: ("#ffffff", "#6b7280"),
    StepStatus.ABSENT: ("#ffffff", "#6b7280"),
}
_INK, _EDGE, _OWNED = "#1f2328", "#8c959f", "#5b3fb5"


@dataclass(frozen=True, slots=True)
class Box:
    """Where a step is drawn: the upper left corner, and its size; the band and the column; where that band ends."""

    x: float
    y: float
    width: float
    band: int
    column: int
    band_end: float
    height: float = _BOX_HEIGHT

    @property
    def middle(self) -> float:
        """Where lines come and go."""
        return self.y + self.height / 2


def blueprint_svg(view: BlueprintView) -> str:
    """The picture: layers from left to right, each step behind what it needs; an arrow is a need, a dashed one an
    owner. What a box has no room for is its tooltip."""
    head = list(_head_lines(view))
    top = _MARGIN + 28 + len(head) * _LINE + 40
    boxes = layout(view.steps, _MARGIN + _GAP_X / 2, top)
    right = max((box.x + box.width for box in boxes.values()), default=0)
    bottom = max((box.y + box.height for box in boxes.values()), default=top)
    width = max(right + _MARGIN + _GAP_X / 2, 900)
    foot = list(_foot_lines(view))
    height = bottom + 36 + len(foot) * _LINE + _MARGIN
    title = f"{view.blueprint}: {headline(view)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="tfguard-title tfguard-desc" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12" fill="{_INK}">',
        f'<title id="tfguard-title">{_safe(title)}</title>',
        f'<desc id="tfguard-desc">{_safe(_description(view))}</desc>',
        *_markers(),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(_MARGIN, _MARGIN + 16, title, width - 2 * _MARGIN, size=18, bold=True),
    ]
    parts += [_text(_MARGIN, _MARGIN + 22 + _LINE * (n + 1), line, width - 2 * _MARGIN) for n, line in enumerate(head)]
    parts += _legend(_MARGIN, top - 34)
    parts += _edges(view.steps, boxes)
    statuses = {step.id: step.status for step in view.steps}
    for step in view.steps:
        parts += _step(step, boxes[step.id], view, waits(step, statuses))
    parts += [
        _text(_MARGIN, bottom + 36 + _LINE * n, line, width - 2 * _MARGIN, bold=bold)
        for n, (line, bold) in enumerate(foot)
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def layout(steps: Sequence[StepView], left: float, top: float) -> Mapping[str, Box]:
    """Where each step is drawn; no two boxes touch."""
    width = max(_NARROWEST, *(len(step.id) for step in steps)) * _CHAR + 2 * _INSET if steps else 0
    columns = list(chain.from_iterable(_split(layer) for layer in _layers(steps)))
    boxes: dict[str, Box] = {}
    y = top
    for band, first in enumerate(range(0, len(columns), _COLUMNS)):
        here = columns[first : first + _COLUMNS]
        end = y + max(map(len, here)) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y
        for number, column in enumerate(here):
            x = left + number * (width + _GAP_X)
            for row, name in enumerate(column):
                boxes[name] = Box(x, y + row * (_BOX_HEIGHT + _GAP_Y), width, band, number, end)
        y = end + _GAP_BAND
    return boxes


def _layers(steps: Sequence[StepView]) -> Iterator[Sequence[str]]:
    """The steps by depth, in each layer near what they need, so that fewer lines cross."""
    by_depth: dict[int, list[StepView]] = {}
    for step in steps:
        by_depth.setdefault(step.depth, []).append(step)
    rank: dict[str, float] = {}
    for depth in sorted(by_depth):
        ordered = [step.id for step in sorted(by_depth[depth], key=lambda step: _middle(step, rank))]
        rank.update({name: (number + 0.5) / len(ordered) for number, name in enumerate(ordered)})
        yield ordered


def _middle(step: StepView, rank: Mapping[str, float]) -> float:
    known = [rank[need] for need in step.needs if need in rank]
    return sum(known) / len(known) if known else 0


def _split(layer: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(layer), _ROWS):
        yield layer[start : start + _ROWS]


def _head_lines(view: BlueprintView) -> Iterator[str]:
    if view.request_id:
        yield f"request {view.request_id}, seen {view.now:%Y-%m-%d %H:%M:%SZ}"
    yield f"owner {view.owner or 'not named'}, cost owner {view.cost_owner or 'not named'}"
    yield f"steps: {counted(view.steps)}"
    yield from view.notes


def _foot_lines(view: BlueprintView) -> Iterator[tuple[str, bool]]:
    for probe in view.probes:
        asked = f", asked {in_words(view.now - probe.at)} ago" if probe.at else ""
        yield f"probe {probe.name} ({probe.kind.value}): {probe.status.value}{asked}: {probe.detail}", False
    objects = [f"{step.id}: {object_text(found)}" for step in view.steps for found in step.objects]
    if objects:
        yield f"objects: {len(objects)}", True
    for line in islice(objects, _MOST_LINES):
        yield f"  {line}", False
    if len(objects) > _MOST_LINES:
        yield f"  and {len(objects) - _MOST_LINES} more, which the boxes' tooltips and --format json tell", False
    for action in view.next_actions:
        yield f"next: {action.command}  ({action.why})", False


def _description(view: BlueprintView) -> str:
    """What the picture says, for those who do not see it: whatever is not simply done."""
    told = [f"{step.id} is {step.status.value}" for step in view.steps if step.status is not StepStatus.OK]
    return f"Steps: {counted(view.steps)}. {first_of(told, _MOST_LINES)}"


def _markers() -> Iterator[str]:
    yield "<defs>"
    for name, colour in (("need", _EDGE), ("owner", _OWNED)):
        yield (
            f'<marker id="tfguard-{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        )
    yield "</defs>"


def _legend(x: float, y: float) -> Iterator[str]:
    for status, (fill, stroke) in _FILL.items():
        yield f'<rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" fill="{fill}" stroke="{stroke}"/>'
        yield _text(x + 18, y + 10, status.value, 200)
        x += 18 + len(status.value) * _CHAR + 18
    for word, is_owner in (("need", False), ("owner", True)):
        yield _line(f"M{x:.0f} {y + 6:.0f}H{x + 30:.0f}", owned=is_owner)
        yield _text(x + 38, y + 10, word, 200)
        x += 38 + len(word) * _CHAR + 18


def _edges(steps: Sequence[StepView], boxes: Mapping[str, Box]) -> Iterator[str]:
    known = ((step, need) for step in steps for need in step.needs if need in boxes)
    for number, (step, need) in enumerate(known):
        yield _line(_path(boxes[need], boxes[step.id], number), owned=step.owned_by == need)


def _path(start: Box, end: Box, number: int) -> str:
    """The way from a step to one that needs it, in the gaps between the boxes: a line that passed behind a box would
    look like one that ends there. `number` sets it off from others in the same gap."""
    x1, x2 = start.x + start.width, end.x
    if (end.band, end.column) == (start.band, start.column + 1):
        bend = _GAP_X * 0.6
        return (
            f"M{x1:.0f} {start.middle:.0f}"
            f"C{x1 + bend:.0f} {start.middle:.0f} {x2 - bend:.0f} {end.middle:.0f} {x2:.0f} {end.middle:.0f}"
        )
    aside = (number % 9 - 4) * 4
    if end.band != start.band:
        lane = start.band_end + _GAP_BAND / 2 + aside
    else:
        below = end.y >= start.y
        lane = (start.y + start.height + _GAP_Y / 2 if below else start.y - _GAP_Y / 2) + aside / 3
    return (
        f"M{x1:.0f} {start.middle:.0f}H{x1 + _GAP_X / 2 + aside:.0f}V{lane:.0f}"
        f"H{x2 - _GAP_X / 2 + aside:.0f}V{end.middle:.0f}H{x2:.0f}"
    )


def _line(path: str, *, owned: bool) -> str:
    colour, name, dashes = (_OWNED, "owner", ' stroke-dasharray="6 4"') if owned else (_EDGE, "need", "")
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.4" stroke-linejoin="round"{dashes} '
        f'marker-end="url(#tfguard-{name})"/>'
    )


def _step(step: StepView, box: Box, view: BlueprintView, behind: str) -> Iterator[str]:
    fill, stroke = _FILL[step.status]
    dashes = ' stroke-dasharray="4 3"' if step.status in (StepStatus.DESTROYED, StepStatus.ABSENT) else ""
    room = box.width - 2 * _INSET
    yield f"<g data-step={quoteattr(step.id)}>"
    yield f"<title>{_safe(_tooltip(step, behind))}</title>"
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="{3 if step.status is StepStatus.ERROR else 1.5}"{dashes}/>'
    )
    yield _text(box.x + _INSET, box.y + 20, step.id, room, bold=True)
    age = f", {in_words(view.now - step.since)}" if step.since else ""
    word = f"{step.status.value}{'?' if step.interrupted else ''}"
    kind = step.kind.value if step.kind else "not in the file"
    yield _text(box.x + _INSET, box.y + 38, f"{word} ({kind}){age}", room, colour=stroke, bold=True)
    remark = _remark(step, behind)
    yield _text(box.x + _INSET, box.y + 55, remark, room)
    yield _text(box.x + _INSET, box.y + 72, _reason(step, remark), room)
    yield "</g>"


def _remark(step: StepView, behind: str) -> str:
    if behind:
        return behind
    if step.until is not None:
        return f"until {step.until:%Y-%m-%d}{f' for {step.owner}' if step.owner else ''}"
    if step.status is StepStatus.ERROR or step.interrupted:
        return step.why
    if len(step.objects) == 1:
        found = step.objects[0]
        return f"{found.observed_id} ({found.type})" if found.observed_id else found.address
    return f"{len(step.objects)} objects" if step.objects else ""


def _reason(step: StepView, remark: str) -> str:
    """Why a step stands as it does: what is done next about it, else what its record says of a failure."""
    if step.decision and step.reason != remark and not step.blocked_by:
        return f"{step.decision.value}: {step.reason}"
    failed = step.why if step.status in (StepStatus.ERROR, StepStatus.RETAINED) and step.why != remark else ""
    return failed or failed_before(step)


def _tooltip(step: StepView, behind: str) -> str:
    lines = [f"{step.id}: {step.status.value}", behind, step.why if step.why != behind else ""]
    lines += [failed_before(step), f"{step.decision.value}: {step.reason}" if step.decision else "", step.asks]
    lines += [f"needs {', '.join(step.needs)}" if step.needs else ""]
    lines += [f"owned by {step.owned_by}" if step.owned_by else ""]
    lines += [object_text(found) for found in step.objects]
    return "\n".join(printable(line) for line in lines if line)


def _text(
    x: float, y: float, text: str, room: float, *, size: int = 12, bold: bool = False, colour: str | None = None
) -> str:
    """A line of text, cut where it would leave its `room`."""
    style = (f' font-size="{size}"' if size != 12 else "") + (' font-weight="bold"' if bold else "")
    ink = f' fill="{colour}"' if colour else ""
    shown = _cut(printable(text), int(room / (_CHAR * size / 12)))
    return f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve"{style}{ink}>{_safe(shown)}</text>'


def _cut(text: str, room: int) -> str:
    """As much of the text as `room` characters of the fixed font hold; a wide one takes two."""
    used = 0
    for number, char in enumerate(text):
        used += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if used > room:
            return f"{text[: max(number - 3, 0)]}..."
    return text


def _safe(text: str) -> str:
    """Text as XML holds it: escaped, and without the characters that no XML may have."""
    return escape("".join(char if char == "\n" or char.isprintable() else " " for char in text))
