"""Resource addresses and the HCL text that names them."""

from __future__ import annotations

import re

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MODULE_STEP = re.compile(r'module\.([^.\[]+)(\[(?:"(?:[^"\\]|\\.)*"|\d+)\])?\.')


def hcl_string(text: str) -> str:
    """`text` as an HCL string literal that means exactly `text` (docs/facts/terraform.md, section 7)."""
    escaped = "".join(_ESCAPES.get(char, char) for char in text)
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def import_block(address: str, import_id: str) -> str:
    """An import block, escaped so that it means exactly this id (case B52)."""
    return f"import {{\n  to = {address}\n  id = {hcl_string(import_id)}\n}}\n"


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
