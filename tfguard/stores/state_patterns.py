"""Which files and objects a pattern of states means. `**` stands for any folders, `*` and `?` for no slash."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

STATE_SUFFIX = ".tfstate"
RECORD_SUFFIX = ".tfguard"
HEAD = f"{RECORD_SUFFIX}/head.json"
"""What stands behind a state's key in the name of its record's head."""

_WILDCARD = re.compile(r"[*?\[]")
_COMPANIONS = (".backup", ".tflock", ".lock.info")
_ERRORED = "errored.tfstate"


def has_wildcard(text: str) -> bool:
    """Whether a text is a pattern and not a name."""
    return _WILDCARD.search(text) is not None


def is_state_name(key: str) -> bool:
    """Whether a file or object is named as states are, and is none of the things that lie beside one."""
    return key.endswith(STATE_SUFFIX) and not is_companion(key)


def is_companion(key: str) -> bool:
    """Whether a file or object is a record, a lock, a backup or a state that could not be saved."""
    *folders, name = key.split("/")
    return any(folder.endswith(RECORD_SUFFIX) for folder in folders) or name.endswith(_COMPANIONS) or name == _ERRORED


@dataclass(frozen=True)
class Glob:
    """A pattern with wildcards over names with `/`."""

    text: str

    @property
    def start(self) -> str:
        """What every match begins with."""
        found = _WILDCARD.search(self.text)
        return self.text[: found.start()] if found else self.text

    @property
    def is_open(self) -> bool:
        """Whether it leaves open how a name ends, so that only what is named as a state can be meant."""
        return self.text.endswith("*")

    def matches(self, name: str) -> bool:
        """Whether the whole name fits."""
        return self._expression.fullmatch(name) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts, at = [], 0
        while at < len(self.text):
            if self.text.startswith("**/", at) and self._begins_part(at):
                parts.append("(?:[^/]*/)*")
                at += 3
            elif self.text[at:] == "**" and self._begins_part(at):
                parts.append(".*")
                at += 2
            elif found := _CHARACTERS.match(self.text, at):
                parts.append(f"(?!/)[{'^' if found[1] else ''}{re.escape(found[2])}]".replace(r"\-", "-"))
                at = found.end()
            else:
                parts.append({"*": "[^/]*", "?": "[^/]"}.get(self.text[at], re.escape(self.text[at])))
                at += 1
        return re.compile("".join(parts), re.DOTALL)

    def _begins_part(self, at: int) -> bool:
        return at == 0 or self.text[at - 1] == "/"


_CHARACTERS = re.compile(r"\[(!?)(\]?[^\]]*)\]")


@dataclass(frozen=True)
class KeyPattern:
    """The part of a URL behind a bucket's name.

    With wildcards it is matched whole. Without: what ends with `/` means every object below, anything else the object
    of this name and those below it that are named as states, and nothing at all means those of the whole bucket.
    """

    text: str

    @property
    def is_name(self) -> bool:
        """Whether it may name one object."""
        return bool(self.text) and not self.text.endswith("/") and not has_wildcard(self.text)

    @property
    def start(self) -> str:
        """What every key that it means begins with."""
        return self._glob.start

    def takes(self, key: str) -> bool:
        """Whether an object is one of the states that are meant."""
        if is_companion(key):
            return False
        if has_wildcard(self.text):
            return self._glob.matches(key) and (is_state_name(key) or not self._glob.is_open)
        if self.text.endswith("/"):
            return key.startswith(self.text) and not key.endswith("/")
        return key == self.text or (is_state_name(key) and (not self.text or key.startswith(f"{self.text}/")))

    @cached_property
    def _glob(self) -> Glob:
        return Glob(self.text)
