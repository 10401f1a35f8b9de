"""What may not be written (rule 10): values that were marked as sensitive, and addresses whose keys carry one.

Only what the engine's own documents mark is a secret here; nothing is guessed from how a text looks.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets as randomness
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tfguard.model.address import hcl_meaning

WITHHELD_PLACE = "(withheld)"
"""Stands for a region or an account that is marked: it is no place, so that no later look takes another one for it."""

WITHHELD_WORD = "<removed>"
"""Stands for a word of a command line."""

# A marked value this short (0, "-", "eu") would match everywhere and says nothing about anybody's secret.
_SHORTEST_SECRET = 4
# How a boolean or nothing reads: a text that has one of these in it copies no value.
_PLAIN_WORDS = frozenset(["", "true", "false", "null"])

_KEY = re.compile(r'\[\s*"((?:[^"\\]|\\.)*)"\s*\]', re.DOTALL)
_MASK = re.compile(r"<withheld [0-9a-f]{12}>")
_FLAG = re.compile(r"--?[a-z]+(?:-[a-z]+)*")
_BARE = re.compile(r"[\w.\-\[\]]*")


def is_secret(value: str, secrets: Collection[str]) -> bool:
    """Whether `value` is a marked value or carries one inside it, as an interpolated name would."""
    return (value in secrets and value not in _PLAIN_WORDS) or carries(value, secrets)


def carries(text: str, secrets: Collection[str]) -> bool:
    """Whether a longer text repeats a marked value, leaving out those that are too short to tell."""
    beginnings = _by_beginning(frozenset(secrets))
    for at in range(len(text) - _SHORTEST_SECRET + 1 if beginnings else 0):
        begun = beginnings.get(text[at : at + _SHORTEST_SECRET])
        if begun and any(text.startswith(secret, at) for secret in begun):
            return True
    return False


@lru_cache(maxsize=8)
def _by_beginning(secrets: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """The marked values by their first characters: a large plan has thousands, and each text is held against all."""
    found: dict[str, tuple[str, ...]] = {}
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET and secret not in _PLAIN_WORDS:
            begin = secret[:_SHORTEST_SECRET]
            found[begin] = (*found.get(begin, ()), secret)
    return found


def has_key(text: str) -> bool:
    """Whether a text has an instance key in it."""
    return _KEY.search(text) is not None


def without_keys(address: str) -> str:
    """An address, or what else has one in it, without any instance key."""
    return _KEY.sub("", address)


def keys_in(address: str) -> frozenset[str]:
    """The instance keys in an address, as they are meant; masks are none."""
    return frozenset(hcl_meaning(key) for key in _KEY.findall(address) if not _MASK.fullmatch(key))


def is_withheld(address: str) -> bool:
    """Whether an address is one of which a key was withheld."""
    return address == WITHHELD_WORD or _MASK.search(address) is not None


def masks_in(address: str) -> frozenset[str]:
    """The masks that stand for keys in an address."""
    return frozenset(_MASK.findall(address))


@dataclass(frozen=True, slots=True)
class Withholding:
    """What one run, or one look, keeps out of everything that is written. In memory only.

    `secrets` are the marked values; `key` makes the masks of instance keys (docs/decisions/0012), and without it nobody
    can tell again what one stands for. `masks` are those that are known already: a key that one of them stands for is
    masked even where it is not known to be marked. `values` are digests, made with the same key, of names that were
    seen to carry a marked value. `silent` are the addresses of objects whose id may repeat one that nobody knows yet.
    """

    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    key: bytes = field(default_factory=lambda: randomness.token_bytes(32), repr=False)
    masks: frozenset[str] = frozenset()
    values: frozenset[str] = field(default=frozenset(), repr=False)
    silent: frozenset[str] = field(default=frozenset(), repr=False)

    def digest(self, text: str) -> str:
        """What tells a text again, to whoever has the key."""
        return hmac.new(self.key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:12]

    def address(self, address: str) -> str:
        """An address as it may be written: the same one for the same instance, without the keys that carry a secret."""
        shown = _KEY.sub(self._key_shown, address)
        if not carries(shown, self.secrets):
            return shown
        # A name in the configuration is no value, whatever it spells. What is no address at all may be anything.
        names = _KEY.sub("\0", shown).split("\0")
        spelled = any(carries(name, self.secrets) for name in names) and all(map(_BARE.fullmatch, names))
        spelled = spelled and "." in names[0]
        return shown if spelled else WITHHELD_WORD

    def needs_key(self, address: str) -> bool:
        """Whether an address has a key that may not be written."""
        return any(carries(hcl_meaning(found), self.secrets) for found in _KEY.findall(address))

    def _key_shown(self, match: re.Match[str]) -> str:
        if _MASK.fullmatch(match[1]):
            return match[0]
        meaning = hcl_meaning(match[1])
        if not self.masks and not carries(meaning, self.secrets):
            return match[0]
        mask = f"<withheld {self.digest(meaning)}>"
        return f'["{mask}"]' if mask in self.masks or carries(meaning, self.secrets) else match[0]

    def tells(self, text: str) -> bool:
        """Whether a text is or carries a marked value, also in an address in it, where keys are escaped."""
        return is_secret(text, self.secrets) or self.needs_key(text)

    def text(self, text: str, instead: str) -> str:
        """A text with the addresses in it masked, or `instead` where it tells a marked value all the same."""
        shown = _KEY.sub(self._key_shown, text)
        return instead if is_secret(shown, self.secrets) else shown

    def word(self, word: str) -> str:
        """A word of a command line; the name of a flag stays, and of a value that is an address everything but keys."""
        name, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if name and not _FLAG.fullmatch(name):
            return self.text(word, WITHHELD_WORD)
        shown = self.address(value)
        return name + equals + (shown if _KEY.search(value) else self.text(shown, WITHHELD_WORD))
