"""One mapping of a catalogue file, read strictly: every error tells file, entry and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, cast

from tfguard.errors import ConfigError

ADVICE = "correct the entry; the head of aws.yaml describes the format"


def parsed(file: str, text: str) -> object:
    """What a YAML text holds. Raises `ConfigError` for one that is none, and for a key that is there twice."""
    import yaml  # here, and not above: most commands never open the catalogue

    class Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A loader that does not take the second of two equal keys in silence."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
            """The mapping, if no key is there twice."""
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
                seen.add(key.value)
            built: dict[object, object] = super().construct_mapping(node, deep)
            return built

    try:
        return yaml.load(text, Loader=Strict)
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: {' '.join(str(error).split())}", "correct the YAML") from error


@dataclass(frozen=True, slots=True)
class Node:
    """One mapping of a file, which knows where it stands so that its errors can tell."""

    file: str
    type: str
    path: str
    value: object

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict) or not all(isinstance(key, str) for key in self.value):
            raise ConfigError(f"{self.file}: {self.type}: {self.path or 'the entry'}: must be a mapping", ADVICE)

    def names(self) -> list[str]:
        """The keys, which must be texts."""
        return list(self._mapping())

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._mapping()

    def allow(self, *keys: str) -> None:
        """Refuse every key that is not among `keys`."""
        for key in self._mapping():
            if key not in keys:
                self.fail(key, f"unknown key; known are {', '.join(keys)}")

    def fail(self, key: str, what: str) -> NoReturn:
        """Raise a `ConfigError` about one key."""
        where = f"{self.path}.{key}".strip(".")
        raise ConfigError(f"{self.file}: {self.type}: {where}: {what}", ADVICE)

    def at(self, key: str) -> Node:
        """The mapping below `key`, empty when it is left out."""
        return Node(self.file, self.type, f"{self.path}.{key}".strip("."), self._mapping().get(key, {}))

    def entry(self, name: str) -> Node:
        """The mapping below `name`, as the entry of the type of that name."""
        return Node(self.file, name, "", self._need(name))

    def each(self, key: str) -> list[Node]:
        """The mappings of the list below `key`, none when it is left out."""
        items = self._mapping().get(key, [])
        if not isinstance(items, list):
            self.fail(key, "must be a list")
        return [Node(self.file, self.type, f"{self.path}.{key}[{n}]".strip("."), item) for n, item in enumerate(items)]

    def text(self, key: str) -> str:
        """A text that must be there and not be empty."""
        value = self._need(key)
        if not isinstance(value, str) or not value:
            self.fail(key, "must be a text")
        return value

    def optional_text(self, key: str) -> str | None:
        """A text, or None when it is left out."""
        return self.text(key) if self.has(key) else None

    def is_text(self, key: str) -> bool:
        """Whether a text is below `key`, and not a mapping or a list."""
        return isinstance(self._need(key), str)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when it is left out."""
        value = self._mapping().get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "must be a list of texts")
        return tuple(value)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """A mapping from text to text, empty when it is left out."""
        below = self.at(key)
        return {name: below.text(name) for name in below.names()}

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; the default when it is left out."""
        value = self._mapping().get(key, default)
        if not isinstance(value, bool):
            self.fail(key, "must be true or false")
        return value

    def positive(self, key: str) -> int | None:
        """A whole number above zero, or None when it is left out."""
        value = self._mapping().get(key)
        if value is None and not self.has(key):
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self.fail(key, "must be a whole number above zero")
        return value

    def arguments(self, key: str) -> dict[str, object]:
        """Arguments for a call of the SDK: any YAML, since the contract test checks them against the SDK's model."""
        return dict(self.at(key)._mapping())

    def _need(self, key: str) -> object:
        if not self.has(key):
            self.fail(key, "is missing")
        return self._mapping()[key]

    def _mapping(self) -> dict[str, object]:
        return cast("dict[str, object]", self.value)
