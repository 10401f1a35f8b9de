"""`${inputs.NAME}` and `${steps.STEP.outputs.NAME}` in the texts of a blueprint; `$${` stands for `${` itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_FORM = re.compile(r"\$\$\{|\$\{([^{}]*)\}?")
_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_INPUT = re.compile(rf"inputs\.({_NAME})", re.ASCII)
_OUTPUT = re.compile(rf"steps\.({_NAME})\.outputs\.({_NAME})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a text refers to: an input, or (with a `step`) the output of a step."""

    name: str
    step: str | None = None

    def __str__(self) -> str:
        """As it is written, without the braces."""
        return f"steps.{self.step}.outputs.{self.name}" if self.step else f"inputs.{self.name}"


def references_in(value: object) -> Iterator[Reference]:
    """What a text, or all the texts of a list or mapping, refer to. Raises `ValueError` for an unknown form."""
    if isinstance(value, str):
        for match in _FORM.finditer(value):
            if match[0] != "$${":
                yield _reference(match)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references_in(item)


def resolve(value: object, value_of: Callable[[Reference], object]) -> object:
    """`value` with every reference in its texts replaced.

    A text that is one reference and nothing else becomes that value, whatever its type; inside a longer text it is
    written as text. Raises what `value_of` raises, and `ValueError` for a list or mapping inside a longer text.
    """
    if isinstance(value, str):
        whole = _FORM.fullmatch(value)
        if whole and whole[0] != "$${":
            return value_of(_reference(whole))
        return _FORM.sub(lambda match: "${" if match[0] == "$${" else _as_text(value_of, _reference(match)), value)
    if isinstance(value, Mapping):
        return {key: resolve(item, value_of) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, value_of) for item in value]
    return value


def as_text(value: object) -> str:
    """A value as a command or an environment variable takes it. Raises `ValueError` for a list or a mapping."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return ""
        case str() | int() | float():
            return str(value)
    raise ValueError("is a list or a mapping, which no text can hold")


def _as_text(value_of: Callable[[Reference], object], reference: Reference) -> str:
    try:
        return as_text(value_of(reference))
    except ValueError as error:
        raise ValueError(f"${{{reference}}} {error}") from None


def _reference(match: re.Match[str]) -> Reference:
    inside = (match[1] or "").strip()
    if match[0].endswith("}"):
        if found := _INPUT.fullmatch(inside):
            return Reference(found[1])
        if found := _OUTPUT.fullmatch(inside):
            return Reference(found[2], found[1])
    raise ValueError(
        f"{match[0]} is no reference: write ${{inputs.NAME}} or ${{steps.STEP.outputs.NAME}}, and $${{ for ${{ itself"
    )
