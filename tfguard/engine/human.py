"""The engine's own questions, word for word, and the closing note of `plan -out` that an apply would not print."""

from __future__ import annotations

import re
from itertools import takewhile

from tfguard.model.request import ChangeRequest

_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_BLANK = re.compile(_COLOUR)
_RULE = re.compile(f"{_COLOUR}(?:─+{_COLOUR})?")  # nothing is left of it on a terminal without a width
_START_OF_RULE = re.compile(rf"{_COLOUR}(?:─+{_COLOUR})?(?:\x1b(?:\[[0-9;]*)?)?")
_SAVED = "Saved the plan to:"


class PlanTrailer:
    """Lets the output of `plan -out` through, but for the closing note about the saved file.

    The note is a blank line (dimmed), a rule, a blank line, and the words; the end of the plan's last colour stands on
    its first line too. What might be its start is held back until more decides. Any other partial line passes at once,
    so that a question without a line end is seen (case B67).
    """

    def __init__(self) -> None:
        self._pending = ""
        self._held: list[str] = []
        self._inside_line = False
        self._done = False

    def feed(self, chunk: str) -> str:
        """The part of the output so far that is certain not to belong to the note."""
        if self._done:
            return ""
        *lines, rest = (self._pending + chunk).split("\n")
        self._pending = ""
        out = [self._line(line) for line in lines]
        out.append(self._partial(rest))
        return "".join(out)

    def finish(self) -> str:
        """What was held back and turned out to be output after all."""
        if self._done:
            return ""
        is_note = self._awaits_words and _without_colour(self._pending).startswith(_SAVED)
        rest = self._before_note() if is_note else "".join(self._held) + self._pending
        self._held, self._pending = [], ""
        return rest

    def _line(self, line: str) -> str:
        """What of the held lines and this one, given without its line end, is output."""
        if self._done:
            return ""
        if self._inside_line:
            self._inside_line = False
            return line + "\n"
        if self._awaits_words and _without_colour(line).startswith(_SAVED):
            self._done = True
            return self._before_note()
        self._held.append(line + "\n")
        kept = self._possible_start()
        out = "".join(self._held[: len(self._held) - kept])
        self._held = self._held[len(self._held) - kept :]
        return out

    def _before_note(self) -> str:
        """What of the held lines is the plan's: the colours before the one that dims the rule."""
        *blank, rule, _ = self._held
        if "─" not in rule:
            return "".join(blank).removesuffix("\n")
        return re.sub(r"(?:\x1b\[[0-9;]*m)?\n\Z", "", "".join(blank))

    @property
    def _awaits_words(self) -> bool:
        if len(self._held) < 2 or self._held[-1] != "\n" or not _RULE.fullmatch(self._held[-2][:-1]):
            return False
        return "─" in self._held[-2] or (len(self._held) == 3 and self._held[-2] == "\n")

    def _possible_start(self) -> int:
        """How many of the held lines may be the note's first ones."""
        newest_first = [held[:-1] for held in reversed(self._held[-3:])]
        possible = sum(1 for _ in takewhile(_RULE.fullmatch, newest_first))
        return 2 if possible == 3 and not _BLANK.fullmatch(newest_first[-1]) else possible

    def _partial(self, text: str) -> str:
        """What of a line without its end, and of the lines held before it, is output."""
        if not text or self._done:
            return ""
        if not self._inside_line and self._may_start_note(text):
            self._pending = text
            return ""
        out = "".join(self._held) + text
        self._held, self._inside_line = [], True
        return out

    def _may_start_note(self, text: str) -> bool:
        if _START_OF_RULE.fullmatch(text):
            return True
        bare = _without_colour(text)
        return self._awaits_words and (_SAVED.startswith(bare) or bare.startswith(_SAVED))


_APPLIED = "\nApply complete! Resources: "
_SUMMARY = re.compile(r"\nApply complete! Resources: (?:.*, )?(\d+ destroyed)")
_OUTPUTS = re.compile(r"(?:\x1b\[0m\x1b\[1m\x1b\[32m)?\nOutputs:\n.*", re.DOTALL)


class DestroyWords:
    """Turns the end of the apply of a destroy plan into that of `destroy`: its summary, and nothing of the outputs.

    What comes before the summary passes as it comes, partial lines too.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, chunk: str) -> str:
        """The part of the output so far that does not belong to the end."""
        text = self._held + chunk
        start = text.find(_APPLIED)
        if start < 0:
            begun = next((size for size in range(len(_APPLIED), 0, -1) if text.endswith(_APPLIED[:size])), 0)
            start = len(text) - begun
        self._held = text[start:]
        return text[:start]

    def finish(self) -> str:
        """The end, as `destroy` has it."""
        held, self._held = self._held, ""
        return _OUTPUTS.sub("", _SUMMARY.sub(r"\nDestroy complete! Resources: \1", held, count=1))


def _without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def question(request: ChangeRequest, workspace: str, product: str) -> str:
    """The engine's question before an apply, down to the place where the answer is typed.

    `product` is the engine's name as it writes it: Terraform or OpenTofu.
    """
    asked, explained = _wording(request, workspace, product)
    if not request.color:
        return f"\n{asked}\n{explained}\n  Enter a value: "
    return f"\x1b[0m\x1b[1m\n{asked}\x1b[0m\n{explained}\n  \x1b[1mEnter a value:\x1b[0m \x1b[0m"


def _wording(request: ChangeRequest, workspace: str, product: str) -> tuple[str, str]:
    named = "" if workspace == "default" else f'"{workspace}"'
    where = f" in workspace {named}" if named else ""
    no_undo = "  There is no undo. Only 'yes' will be accepted to confirm.\n"
    if request.destroy:
        explained = f"  {product} will destroy all your managed infrastructure, as shown above.\n"
        return f"Do you really want to destroy all resources{where}?", explained + no_undo
    if request.refresh_only:
        state = f"{product} state for {named}" if named else f"{product} state"
        explained = f"  {product} will write these changes to the state without modifying any real infrastructure.\n"
        return f"Would you like to update the {state} to reflect these detected changes?", explained + no_undo
    explained = f"  {product} will perform the actions described above.\n  Only 'yes' will be accepted to approve.\n"
    return f"Do you want to perform these actions{where}?", explained


def error_text(summary: str, color: bool) -> str:
    """An error without source and detail, framed as the engine frames it."""
    if not color:
        return f"\nError: {summary}\n\n"
    red, bold, reset = "\x1b[31m", "\x1b[1m", "\x1b[0m"
    return (
        f"{red}╷{reset}{reset}\n{red}│{reset} {reset}{bold}{red}Error: {reset}{reset}{bold}{summary}{reset}\n"
        f"{red}│{reset} {reset}\n{red}│{reset} {reset}{reset}\n{red}╵{reset}{reset}\n"
    )
