"""A versioned document: JSON with a `schema` that is read before anything else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Generic, NoReturn, TypeVar

from tfguard.errors import CorruptRecordError, NewerRecordError
from tfguard.schemas.codec import ShapeError, dump, load

T = TypeVar("T")
Migration = Callable[[Mapping[str, object]], Mapping[str, object]]
"""Lifts a document of one version to the next, as JSON. What is not of the form that it should have is left as it is:
loading it afterwards tells what is wrong with it."""

_SCHEMA = re.compile(r"([a-z.-]{1,64})/v(\d{1,9})", re.ASCII)
_LINE_LIMIT = 200
_ADVICE = "keep it for inspection; run `tfguard recover`, which looks at the provider instead of trusting it"
SUM = "sum"
"""The field of a document that holds a hash of all others."""


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """The JSON form of `kind` under the name `name` (`tfguard.head`), as of `version`.

    The lines of a journal are `short`: each has its version as `v`, and the name goes without saying. `migrations`
    lift a document of an earlier version, the first from v1 to v2, and so on; `TypeError` when a step is missing.

    A `summed` document carries a hash of what it holds, so that damage that leaves it readable (a changed name, after
    which a field seems not to be there) is not taken for what was written.

    `advice` says what to do about a damaged one.
    """

    name: str
    version: int
    kind: type[T]
    short: bool = False
    migrations: tuple[Migration, ...] = ()
    summed: bool = True
    advice: str = _ADVICE

    def __post_init__(self) -> None:
        if len(self.migrations) != self.version - 1:
            raise TypeError(f"{self.schema} needs {self.version - 1} migrations and has {len(self.migrations)}")

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
        return self.read(parse_json(data, where, self.advice), where)

    def read(self, raw: object, where: str) -> T:
        """The value in the parsed JSON `raw`; raises what `decode` raises."""
        if not isinstance(raw, dict):
            _corrupt(where, "it is not a JSON object", self.advice)
        lifted: Mapping[str, object] = raw
        for migrate in self.migrations[self._version_of(raw, where) - 1 :]:
            lifted = migrate(lifted)
        try:
            value = load(self.kind, lifted)
        except ShapeError as error:
            _corrupt(where, str(error), self.advice)
        if self.summed:
            self._check_sum(raw, lifted, where)
        return value

    def _body(self, value: T) -> Mapping[str, object]:
        body = dump(value)
        whole = {"v": self.version, **as_object(body)} if self.short else with_schema(self.schema, body)
        return with_sum(whole) if self.summed else whole

    def _check_sum(self, raw: Mapping[str, object], lifted: Mapping[str, object], where: str) -> None:
        """Documents had no sums once. Such a one has known fields alone: any other has lost the name of its sum."""
        if SUM in raw:
            if raw[SUM] != _sum_of(raw, where):
                _corrupt(where, "it was changed after it was written", self.advice)
        elif lifted.keys() - {"v" if self.short else "schema", *(f.name for f in fields(self.kind))}:  # type: ignore[arg-type]
            _corrupt(where, "it has a field that is not known, and no sum", self.advice)

    def _version_of(self, raw: Mapping[str, object], where: str) -> int:
        version = raw.get("v") if self.short else self._version_in(raw.get("schema"))
        if type(version) is not int or version < 1:
            _corrupt(where, f"its {'v' if self.short else 'schema'} is not that of {self.schema}", self.advice)
        if version > self.version:
            raise NewerRecordError(
                f"{where} was written by a newer tfguard ({self.name}/v{version}, known is v{self.version})",
                "update tfguard here to the version that the other runs of this stack use",
            )
        return version

    def _version_in(self, schema: object) -> int | None:
        match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
        return int(match.group(2)) if match and match.group(1) == self.name else None


@dataclass(frozen=True, slots=True)
class Lines(Generic[T]):
    """The items of a journal, in order, and how many lines were cut off while they were written.

    With `cut` above zero something happened that is not in `items`: nothing may be called "never started" (rule 3).
    The items from `whole_from` on stand behind the last such line: nothing is missing among them.
    """

    items: tuple[T, ...]
    cut: int = 0
    whole_from: int = 0


def decode_lines(document: Document[T], data: bytes, where: str) -> Lines[T]:
    """Every line of a journal of `document`s.

    A line that is not JSON is what a writer left that died or ran out of disk; it is counted as cut, wherever it
    stands, since the next writer starts a new line. A line that is JSON of another shape raises what `decode` raises.
    """
    items: list[T] = []
    cut = whole_from = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        name = f"{where} line {number}"
        try:
            raw = parse_json(line, name)
        except CorruptRecordError:
            cut, whole_from = cut + 1, len(items)
        else:
            items.append(document.read(raw, name))
    return Lines(tuple(items), cut, whole_from)


def parse_json(data: bytes, where: str, advice: str = _ADVICE) -> object:
    """`data` as JSON in UTF-8; `CorruptRecordError` with this `advice` when it is not."""
    try:
        parsed: object = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        _corrupt(where, "it is nested too deeply", advice)
    except ValueError:
        _corrupt(where, "it is not JSON" if data.strip() else "it is empty", advice)
    return parsed


def with_sum(raw: Mapping[str, object]) -> Mapping[str, object]:
    """A JSON object with the hash of what it holds behind its first field, which is its version."""
    first, *rest = ((name, value) for name, value in raw.items() if name != SUM)
    return dict([first, (SUM, _sum_of(raw, "")), *rest])


def _sum_of(raw: Mapping[str, object], where: str) -> str:
    held = {name: value for name, value in raw.items() if name != SUM}
    try:
        return hashlib.sha256(json.dumps(held, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
    except RecursionError:
        _corrupt(where, "it is nested too deeply")


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


def _corrupt(where: str, reason: str, advice: str = _ADVICE) -> NoReturn:
    one_line = " ".join(reason.split())[:_LINE_LIMIT]
    raise CorruptRecordError(f"{where} cannot be read as a record: {one_line}", advice)
