"""The engine's own questions, word for word, and the closing note of `plan -out` that an apply would not print."""

from __future__ import annotations

import re

from tfguard.model.request import ChangeRequest

_RULE = re.compile(r"^(?:\x1b\[[0-9;]*m)*─{3,}(?:\x1b\[[0-9;]*m)*$")
_DIM = re.compile(r"^(?:\x1b\[[0-9;]*m)+$")


class PlanTrailer:
    """Lets the output of `plan -out` through, but for the closing note about the saved file.

    The note starts with a blank line (dimmed) and a rule. What might be its start is held back until the next lines
    decide. Partial lines pass at once, so that a question without a line end is seen (case B67).
    """

    def __init__(self) -> None:
        self._pending = ""
        self._held: list[str] = []
        self._done = False

    def feed(self, chunk: str) -> str:
        """The part of the output so far that is certain not to belong to the note."""
        if self._done:
            return ""
        self._pending += chunk
        out: list[str] = []
        while (end := self._pending.find("\n")) >= 0:
            line, self._pending = self._pending[: end + 1], self._pending[end + 1 :]
            out.append(self._line(line))
            if self._done:
                return "".join(out)
        if self._pending and not self._may_start_note(self._pending):
            out += [*self._held, self._pending]
            self._held, self._pending = [], ""
        return "".join(out)

    def finish(self) -> str:
        """What was held back and turned out to be output after all."""
        rest = "" if self._done else "".join(self._held) + self._pending
        self._held, self._pending = [], ""
        return rest

    def _line(self, line: str) -> str:
        bare = line.rstrip("\n")
        if _RULE.match(bare):
            self._held.append(line)
            return ""
        if self._held and _RULE.match(self._held[-1].rstrip("\n")) and not bare:
            self._held.append(line)
            return ""
        if len(self._held) >= 2 and "Saved the plan to:" in bare:
            self._done = True
            return ""
        out = "".join(self._held)
        self._held = []
        if not bare or _DIM.match(bare):
            self._held = [line]
            return out
        return out + line

    def _may_start_note(self, partial: str) -> bool:
        return partial.startswith(("\x1b[90m", "─")) or bool(self._held and len(self._held) > 1)


def question(request: ChangeRequest, workspace: str, product: str) -> str:
    """The engine's question before an apply, down to the place where the answer is typed.

    `product` is the engine's name as it writes it: Terraform or OpenTofu.
    """
    asked, explained = _wording(request, workspace, product)
    if not request.color:
        return f"\n{asked}\n{explained}\n  Enter a value: "
    return f"\x1b[0m\x1b[1m\n{asked}\x1b[0m\n{explained}\n  \x1b[1mEnter a value:\x1b[0m "


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
