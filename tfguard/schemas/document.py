"""A versioned document: JSON with a `schema` that is read before anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from tfguard.errors import CorruptRecordError, NewerRecordError
from tfguard.schemas.codec import ShapeError, dump, load

T = TypeVar("T")
_SCHEMA = re.compile(r"([a-z.]{1,64})/v(\d{1,9})", re.ASCII)
_LINE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """The JSON form of `kind` under the name `name` (`tfguard.head`), as of `version`.

    The lines of a journal are `short`: each has its version as `v`, and the name goes without saying.
    """

    name: str
    version: int
    kind: type[T]
    short: bool = False

    @property
    def schema(self) -> str:
        """The value of the document's `schema` field."""
        return f"{self.name}/v{self.version}"

    def encode(self, value: T) -> bytes:
        """`value` as a document that a person can read."""
        return json.dumps(self._body(value), indent=1).encode() + b"\n"

    def encode_line(self, value: T) -> bytes:
        """`value` as one line of a journal."""
        return json.dumps(self._body(value), separators=(",", ":")).encode() + b"\n"

    def decode(self, data: bytes, where: str = "") -> T:
        """The value in `data`; `where` names the document in errors.

        Raises `NewerRecordError` for a version that this tfguard does not know, `CorruptRecordError` for anything else.
        """
        where = where or f"{self.name} document"
        return self.read(parse_json(data, where), where)

    def read(self, raw: object, where: str) -> T:
        """The value in the parsed JSON `raw`; raises what `decode` raises."""
        if not isinstance(raw, dict):
            _corrupt(where, "it is not a JSON object")
        self._check_version(raw, where)
        try:
            return load(self.kind, raw)
        except ShapeError as error:
            _corrupt(where, str(error))

    def _body(self, value: T) -> Mapping[str, object]:
        body = dump(value)
        return {"v": self.version, **as_object(body)} if self.short else with_schema(self.schema, body)

    def _check_version(self, raw: Mapping[str, object], where: str) -> None:
        version = raw.get("v") if self.short else self._version_in(raw.get("schema"))
        if type(version) is not int or version < 1:
            _corrupt(where, f"its {'v' if self.short else 'schema'} is not that of {self.schema}")
        if version > self.version:
            raise NewerRecordError(
                f"{where} was written by a newer tfguard ({self.name}/v{version}, known is v{self.version})",
                "update tfguard here to the version that the other runs of this stack use",
            )

    def _version_in(self, schema: object) -> int | None:
        match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
        return int(match.group(2)) if match and match.group(1) == self.name else None


@dataclass(frozen=True, slots=True)
class Lines(Generic[T]):
    """The items of a journal, in order, and how many lines were cut off while they were written.

    With `cut` above zero something happened that is not in `items`: nothing may be called "never started" (rule 3).
    """

    items: tuple[T, ...]
    cut: int = 0


def decode_lines(document: Document[T], data: bytes, where: str) -> Lines[T]:
    """Every line of a journal of `document`s.

    A line that is not JSON is what a writer left that died or ran out of disk; it is counted as cut, wherever it
    stands, since the next writer starts a new line. A line that is JSON of another shape raises what `decode` raises.
    """
    items: list[T] = []
    cut = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        name = f"{where} line {number}"
        try:
            raw = parse_json(line, name)
        except CorruptRecordError:
            cut += 1
        else:
            items.append(document.read(raw, name))
    return Lines(tuple(items), cut)


def parse_json(data: bytes, where: str) -> object:
    """`data` as JSON in UTF-8; `CorruptRecordError` when it is not."""
    try:
        parsed: object = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        _corrupt(where, "it is nested too deeply")
    except ValueError:
        _corrupt(where, "it is not JSON" if data.strip() else "it is empty")
    return parsed


def with_schema(schema: str, body: object) -> Mapping[str, object]:
    """The JSON object `body` with its schema in front."""
    return {"schema": schema, **as_object(body)}


def as_object(body: object) -> Mapping[str, object]:
    """`body`, which must be a JSON object; `TypeError` else, for only a mistake in the program makes it another."""
    if not isinstance(body, dict):
        raise TypeError("a document is a JSON object")
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _corrupt(where: str, reason: str) -> NoReturn:
    one_line = " ".join(reason.split())[:_LINE_LIMIT]
    raise CorruptRecordError(
        f"{where} cannot be read as a record: {one_line}",
        "keep it for inspection; run `tfguard recover`, which looks at the provider instead of trusting it",
    )
