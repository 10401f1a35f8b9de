"""How the engine splits TF_CLI_ARGS into words: nearly as a shell does, and not quite.

Measured with Terraform 1.11.4 (tests/engine/test_shell_words.py asks the engine at hand): a backslash takes the next
character as it is, also between double quotes; an operator of the shell ends the line; `$(...)` and what stands between
backquotes are handed on unread, and any other parenthesis is an error (but for `))`, which is one to no purpose).
"""

from __future__ import annotations

_SPACES = " \t\r\n"
_OPERATORS = ";&|<>"
_PARENTHESES = "()"
_BACKQUOTE = "`"


def shell_words(text: str) -> tuple[str, ...]:
    """The words of `text`. Raises `ValueError` for an open quote, a lone parenthesis, or a backslash at the end."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            word, escaped = (word or "") + character, False
        elif character == "\\" and quote != "'":
            escaped = True
        elif character in _SPACES and not quote:
            if word is not None:
                words.append(word)
            word = None
        elif character in "\"'" and quote in ("", character):
            word, quote = word or "", "" if quote else character
        elif character in _OPERATORS and not quote:
            if character == ">" and word and word[0].isdecimal():
                word = None  # the number of a stream, as in `2>&1`
            break
        else:
            quote = _in_or_out(character, quote, word or "")
            word = (word or "") + character
    if escaped or quote:
        raise ValueError("a quote, a parenthesis or a backslash is left open")
    return (*words, word) if word is not None else tuple(words)


def _in_or_out(character: str, quote: str, word: str) -> str:
    """What the text after `character` is quoted by: backquotes and `$(...)` keep their spaces, and stay."""
    if character == _BACKQUOTE and quote in ("", _BACKQUOTE):
        return "" if quote else _BACKQUOTE
    if character in _PARENTHESES and quote in ("", ")"):
        if character == "(" and (quote or not word.endswith("$")):
            raise ValueError("a parenthesis does not belong here")
        return "" if quote else ")"
    return quote
