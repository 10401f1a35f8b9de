"""How many objects each `list` block of a folder's `.tfquery.hcl` files lets through: the stream does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

SUFFIX = ".tfquery.hcl"
DEFAULT_LIMIT = 100

# Comments, heredocs and texts: what stands in them is neither a block nor a brace. A label is a text that is kept.
_OPAQUE = re.compile(
    r"""#.*|//.*|/\*[\s\S]*?(?:\*/|\Z)|<<-?[ \t]*(?P<end>\w+)\n[\s\S]*?^[ \t]*(?P=end)\b|"(?:\\.|[^"\\\n])*\"""",
    re.MULTILINE,
)
_LABEL = re.compile(r'"[\w-]+"')
_BLOCK = re.compile(r'^[ \t]*list[ \t]+"?([\w-]+)"?[ \t]+"?([\w-]+)"?[ \t]*\{', re.MULTILINE)
_INNER = re.compile(r"\{[^{}]*\}")
_LIMIT = re.compile(r"(?:^|\s)limit[ \t]*=[ \t]*([^\n]*)")


def limits_in(directory: Path) -> Mapping[str, int | None]:
    """The limit of each list block by its address (`list.aws_vpc.all`); None for one that is no plain number.

    What cannot be read has no block: nothing is known then of its limits.
    """
    return {
        address: limit
        for path in sorted(directory.glob(f"*{SUFFIX}"))
        if not path.name.startswith(".")
        for address, limit in _limits(_content(path))
    }


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _limits(content: str) -> Iterator[tuple[str, int | None]]:
    bare = _OPAQUE.sub(lambda match: match[0] if _LABEL.fullmatch(match[0]) else '""', content)
    for block in _BLOCK.finditer(bare):
        found = _LIMIT.search(_own_settings(bare[block.end() :]))
        said = found[1].replace('""', "").strip() if found else str(DEFAULT_LIMIT)
        yield f"list.{block[1]}.{block[2]}", int(said) if said.isascii() and said.isdigit() else None


def _own_settings(text: str) -> str:
    """What stands in the block that the text begins in, without the blocks in it."""
    while inner := _INNER.search(text):
        if text.find("}") < inner.start():
            break  # the block itself ends before
        text = text[: inner.start()] + text[inner.end() :]
    return text.partition("}")[0]
