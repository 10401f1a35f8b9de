"""Resource addresses and the HCL text that names them."""

from __future__ import annotations

import re
import sys

from tfguard.model.printable import steers

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MODULE_STEP = re.compile(r'module\.([^.\[]+)(\[(?:"(?:[^"\\]|\\.)*"|\d+)\])?\.')


def hcl_string(text: str) -> str:
    """`text` as an HCL string literal that means exactly `text` (docs/facts/terraform.md, section 7)."""
    escaped = "".join(_ESCAPES.get(char) or _seen(char) for char in text)
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def _seen(char: str) -> str:
    """A character as HCL may have it in quotes, and as whoever reads the block sees it; a surrogate has no escape."""
    if not steers(char) or "\ud800" <= char <= "\udfff":
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def import_block(address: str, import_id: str, provider: str = "") -> str:
    """An import block, escaped so that it means exactly this id (case B52).

    `provider` is a provider's local name with its alias (`aws.eu`), which only an address without configuration may
    have.
    """
    through = f"  provider = {provider}\n" if provider else ""
    target = "".join(map(_seen, address))  # in quotes, too: only a key can have such a character
    return f"import {{\n  to = {target}\n  id = {hcl_string(import_id)}\n{through}}}\n"


def module_path(address: str) -> tuple[str, ...]:
    """The names of the modules that `address` lies in, outermost first, without instance keys."""
    names: list[str] = []
    position = 0
    while match := _MODULE_STEP.match(address, position):
        names.append(match.group(1))
        position = match.end()
    return tuple(names)


def without_instance_key(address: str) -> str:
    """`address` without the key of its last step: `aws_vpc.a["x"]` becomes `aws_vpc.a`."""
    if not address.endswith("]"):
        return address
    match = re.search(r'\[(?:"(?:[^"\\]|\\.)*"|\d+)\]$', address)
    return address[: match.start()] if match else address


_KEY = re.compile(r'\[\s*(?:"((?:[^"\\]|\\.)*)"|(\d+))\s*\]', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def normal_address(typed: str) -> str:
    """An address as the state writes it: a person may type spaces, other escapes in a key, or `resource.` before it.

    What is no address comes back as it is, or as no address either.
    """
    keys: list[str] = []

    def keep(match: re.Match[str]) -> str:
        keys.append(f"[{int(match[2])}]" if match[2] else f"[{hcl_string(hcl_meaning(match[1]))}]")
        return f"[{len(keys) - 1}]"

    bare = re.sub(r"\s+", "", _KEY.sub(keep, typed))
    address = re.sub(r"\[(\d+)\]", lambda match: keys[int(match[1])], bare)
    position = _behind_modules(address)
    rest = address[position:]
    return address[:position] + (rest.removeprefix("resource.") if re.match(r"resource\.[^.\[]+\.", rest) else rest)


def hcl_meaning(written: str) -> str:
    """What the text between the quotes of an HCL string literal means."""

    def meaning(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if not code:
            return _PLAIN_ESCAPES.get(match[3], match[3])
        return chr(int(code, 16)) if int(code, 16) <= sys.maxunicode else match[0]

    return _ESCAPE.sub(meaning, written).replace("$${", "${").replace("%%{", "%{")


def is_address(text: str) -> bool:
    """Whether a text has the form of a resource instance's address."""
    return bool(re.fullmatch(r'[\w-]+\.[\w-]+(\[("(?:[^"\\]|\\.)*"|\d+)\])?', text[_behind_modules(text) :]))


def resource_type(address: str) -> str:
    """The type in an address: `module.net["a"].aws_vpc.main[0]` is an `aws_vpc`. Empty for a module's own address."""
    kind, dot, _ = address[_behind_modules(address) :].partition(".")
    return kind if dot and kind != "module" else ""


def _behind_modules(address: str) -> int:
    position = 0
    while match := _MODULE_STEP.match(address, position):
        position = match.end()
    return position


def lies_below(address: str, named: str) -> bool:
    """Whether `named`, an instance, a resource or a module as a person writes it, stands for `address` too."""
    is_module = named.startswith("module.") and not resource_type(named)
    return address == named or address.startswith(f"{named}[") or (is_module and address.startswith(f"{named}."))
