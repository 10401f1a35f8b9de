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


def resource_type(address: str) -> str:
    """The type in an address: `module.net["a"].aws_vpc.main[0]` is an `aws_vpc`. Empty for a module's own address."""
    position = 0
    while match := _MODULE_STEP.match(address, position):
        position = match.end()
    kind, dot, _ = address[position:].partition(".")
    return kind if dot and kind != "module" else ""


def lies_below(address: str, named: str) -> bool:
    """Whether `named`, an instance, a resource or a module as a person writes it, stands for `address` too."""
    is_module = named.startswith("module.") and not resource_type(named)
    return address == named or address.startswith(f"{named}[") or (is_module and address.startswith(f"{named}."))
