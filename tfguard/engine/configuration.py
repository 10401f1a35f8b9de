"""Which files of a folder are the root module's configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tfguard.engine.documents import mapping, parse_json
from tfguard.model.address import hcl_meaning, normal_address
from tfguard.model.engine import EngineInfo
from tfguard.model.importing import WrittenImport

# What an editor keeps beside a file, and the engine leaves out.
_LEFT_OUT = (".", "#")
_SUFFIXES = {".tf": ".tofu", ".tf.json": ".tofu.json"}
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"({_TEXT})|#[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL)
_IMPORT = re.compile(rf"^[ \t]*import\s*\{{((?:{_TEXT}|\{{[^{{}}]*\}}|[^{{}}\"])*+)\}}", re.MULTILINE)
# A block of the root module, and not the one block that a variable or an output may have in it.
_HEADER = re.compile(r'^[ \t]*(?!validation\b|precondition\b)([\w-]+)(?:[ \t]+"?([\w-]+)"?)*[ \t]*\{', re.MULTILINE)
_HEREDOC = re.compile(r"<<-?[ \t]*(\w+)[ \t]*\n.*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_HIDING = ("sensitive", "ephemeral")
_HIDDEN = re.compile(rf"^[ \t]*(?:{'|'.join(_HIDING)})[ \t]*=[ \t]*true\b", re.MULTILINE)
_TO = re.compile(rf"^[ \t]*to[ \t]*=[ \t]*((?:{_TEXT}|[^\"\n])+?)[ \t]*$", re.MULTILINE)
_ID = re.compile(rf"^[ \t]*id[ \t]*=[ \t]*({_TEXT})[ \t]*$", re.MULTILINE)


def configuration_files(directory: Path, engine: EngineInfo | None = None) -> Iterator[Path]:
    """The files that the engine reads in `directory`, sorted; the name of one in JSON syntax ends with `.json`.

    OpenTofu from 1.8 on also reads `.tofu` and `.tofu.json`: each takes the place of a `.tf` or `.tf.json` of its name.
    """
    found = {path.name: path for path in sorted(directory.glob("*")) if not path.name.startswith(_LEFT_OUT)}
    tofu = engine is not None and engine.reads_tofu_files
    for name, path in found.items():
        for suffix, instead in _SUFFIXES.items():
            replaced = tofu and name.removesuffix(suffix) + instead in found
            if (name.endswith(suffix) and not replaced) or (tofu and name.endswith(instead)):
                yield path


def declared_resources(directory: Path, engine: EngineInfo | None = None) -> frozenset[str]:
    """The addresses, without keys, of the resources that the root module declares. A file that cannot be read has none:
    the engine says what is wrong with it."""
    found: set[str] = set()
    for path in configuration_files(directory, engine):
        with suppress(OSError, ValueError, RecursionError):
            content = path.read_text(errors="replace")
            found |= _in_json(parse_json(content)) if path.suffix == ".json" else _in_hcl(content)
    return frozenset(found)


def declared_values(directory: Path, kind: str, engine: EngineInfo | None = None) -> Mapping[str, bool] | None:
    """The values of one kind (`output`, `variable`) that the root module declares, and whether the engine hides each;
    None where there is no configuration at all."""
    found: dict[str, bool] = {}
    files = list(configuration_files(directory, engine))
    for path in files:
        with suppress(OSError, ValueError, RecursionError):
            content = path.read_text(errors="replace")
            for name, hidden in _json_values(content, kind) if path.suffix == ".json" else _hcl_values(content, kind):
                found[name] = hidden or found.get(name, False)  # an override file may say it alone
    return found if files else None


def written_imports(directory: Path, engine: EngineInfo | None = None, without: str = "") -> tuple[WrittenImport, ...]:
    """The import blocks of the root module, but for those in the file called `without`. A file that cannot be read has
    none."""
    found: list[WrittenImport] = []
    for path in configuration_files(directory, engine):
        with suppress(OSError, ValueError, RecursionError):
            content = path.read_text(errors="replace") if path.name != without else ""
            found += _imports_in_json(parse_json(content)) if path.suffix == ".json" else _imports_in_hcl(content)
    return tuple(found)


def _json_values(content: str, kind: str) -> Iterator[tuple[str, bool]]:
    block = mapping(parse_json(content)).get(kind)
    for one in block if isinstance(block, list) else [block]:
        for name, body in mapping(one).items():
            parts = [mapping(part) for part in (body if isinstance(body, list) else [body])]
            yield name, any(part.get(word) is True for part in parts for word in _HIDING)


def _hcl_values(content: str, kind: str) -> Iterator[tuple[str, bool]]:
    bare = _HEREDOC.sub('""', _COMMENT.sub(lambda match: match[1] or "", content))
    headers = list(_HEADER.finditer(bare))
    for header, behind in zip(headers, [*headers[1:], None], strict=True):
        if header[1] == kind and header[2]:
            body = bare[header.end() : behind.start() if behind else None]
            yield header[2], _HIDDEN.search(re.sub(_TEXT, '""', body)) is not None


def _imports_in_hcl(content: str) -> Iterator[WrittenImport]:
    bare = _COMMENT.sub(lambda match: match[1] or "", content)
    for block in _IMPORT.finditer(bare):
        to, named = _TO.search(block[1]), _ID.search(block[1])
        texts = frozenset(hcl_meaning(text[1:-1]) for text in re.findall(_TEXT, block[1]))
        each = re.search(r"^[ \t]*for_each[ \t]*=", block[1], re.MULTILINE)
        yield _written(to[1] if to else "", named[1][1:-1] if named and not each else None, texts)


def _imports_in_json(document: object) -> Iterator[WrittenImport]:
    block = mapping(document).get("import")
    for one in map(mapping, block if isinstance(block, list) else [block]):
        texts = [text for value in one.values() for text in (value, *mapping(value).values()) if isinstance(text, str)]
        named = one.get("id") if "for_each" not in one else None
        yield _written(str(one.get("to", "")), named if isinstance(named, str) else None, frozenset(texts))


def _written(to: str, named: str | None, texts: frozenset[str]) -> WrittenImport:
    is_plain = named is not None and not re.search(r"[$%]\{", named.replace("$${", "").replace("%%{", ""))
    return WrittenImport(normal_address(to), hcl_meaning(named) if named is not None and is_plain else None, texts)


def _in_hcl(content: str) -> set[str]:
    bare = re.sub(r"/\*.*?\*/", "", content, flags=re.DOTALL)
    named = re.findall(r'^[ \t]*resource[ \t]+"?([\w-]+)"?[ \t]+"?([\w-]+)"?[ \t]*\{', bare, re.MULTILINE)
    return {f"{kind}.{name}" for kind, name in named}


def _in_json(document: object) -> set[str]:
    block = mapping(document).get("resource")
    blocks = block if isinstance(block, list) else [block]
    return {f"{kind}.{name}" for one in blocks for kind, names in mapping(one).items() for name in mapping(names)}
