"""The engine's command line, as pure functions: what the user said, and what the inner commands get of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfguard.errors import UsageError
from tfguard.model.request import ChangeRequest

_TAKE_A_VALUE = frozenset(
    [
        "var",
        "var-file",
        "target",
        "exclude",
        "target-file",
        "exclude-file",
        "replace",
        "out",
        "state",
        "state-out",
        "backup",
        "lock-timeout",
        "parallelism",
        "generate-config-out",
        "json-into",
        "backend-config",
    ]
)
_PLANNING = frozenset(
    [
        "destroy",
        "refresh-only",
        "refresh",
        "replace",
        "target",
        "exclude",
        "target-file",
        "exclude-file",
        "var",
        "var-file",
        "allow-deferral",
    ]
)
_APPLYING = frozenset(["auto-approve", "state-out", "backup"])
_BOTH = frozenset(["lock", "lock-timeout", "parallelism", "no-color", "input", "compact-warnings", "state", "concise"])
_HIDDEN_VALUES = ("var", "backend-config")

# `plan` takes these, `apply` does not, and `destroy` has its own mode. The inner plan would obey them.
_REFUSED: Mapping[str, frozenset[str]] = {
    "apply": frozenset(["out", "detailed-exitcode", "generate-config-out"]),
    "destroy": frozenset(["out", "detailed-exitcode", "generate-config-out", "destroy", "refresh-only"]),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One word, or a flag with its value, of a command line; `words` is what the user typed for it."""

    name: str | None
    value: str | None
    words: tuple[str, ...]

    @property
    def truth(self) -> bool:
        """A boolean flag's value, as Go's flag package reads it."""
        return (self.value or "true").lower() in ("1", "t", "true")


def tokens(arguments: Sequence[str]) -> Iterator[Token]:
    """Split a command line as the engine does: one dash or two, `-flag=value` or `-flag value`."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        if not word.startswith("-") or word in ("-", "--"):
            yield Token(None, word, (word,))
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if equals:
            yield Token(name, value, (word,))
        elif name in _TAKE_A_VALUE and index < len(arguments):
            yield Token(name, arguments[index], (word, arguments[index]))
            index += 1
        else:
            yield Token(name, None, (word,))


def expand_environment(command: str, arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments with TF_CLI_ARGS and TF_CLI_ARGS_<command> put in where the engine puts them: after the command.

    The engine inserts the general one first and the command's own before it (docs/facts/terraform.md, section 8).
    """
    own = environ.get(f"TF_CLI_ARGS_{command.replace(' ', '_')}", "")
    general = environ.get("TF_CLI_ARGS", "")
    try:
        return (*shlex.split(own), *shlex.split(general), *arguments)
    except ValueError as error:
        raise UsageError(f"TF_CLI_ARGS or TF_CLI_ARGS_{command} cannot be read: {error}", "mend its quotes") from error


def change_request(command: str, arguments: Sequence[str]) -> ChangeRequest:
    """Take an `apply` or `destroy` command line apart.

    Raises `UsageError` for what the engine would refuse and the inner commands would not: a flag of `plan`'s alone, a
    flag without its value (which would swallow the next one), a plan file too many.
    """
    found = list(tokens(arguments))
    flags = {token.name: token for token in found if token.name}
    _refuse(command, found)
    files = [token.value for token in found if token.name is None and token.value is not None]
    if len(files) > 1:
        raise UsageError("Too many command line arguments: one plan file at most", "see `tfguard apply -help`")
    if files and command == "destroy":
        raise UsageError("Destroy can't be called with a plan file", f"apply it: `tfguard apply {files[0]}`")
    destroy = command == "destroy" or ("destroy" in flags and flags["destroy"].truth)
    planning = [word for token in found if _goes_to_plan(token) for word in token.words]
    if command == "destroy":
        planning.append("-destroy")
    return ChangeRequest(
        command=command,
        plan_file=files[0] if files else None,
        planning=tuple(planning),
        applying=tuple(word for token in found if _goes_to_apply(token, bool(files)) for word in token.words),
        auto_approve="auto-approve" in flags and flags["auto-approve"].truth,
        destroy=destroy,
        refresh_only="refresh-only" in flags and flags["refresh-only"].truth,
        json="json" in flags and flags["json"].truth,
        color=not ("no-color" in flags and flags["no-color"].truth),
        input=not ("input" in flags and not flags["input"].truth),
        compact_warnings="compact-warnings" in flags and flags["compact-warnings"].truth,
        locking=not ("lock" in flags and not flags["lock"].truth),
        targets=_values(found, "target"),
        var_files=_values(found, "var-file"),
        variables=tuple(word for token in found if token.name in ("var", "var-file") for word in token.words),
        state_path=flags["state"].value if "state" in flags else None,
        state_out=flags["state-out"].value if "state-out" in flags else None,
        help=bool({"h", "help"} & set(flags)),
    )


def _refuse(command: str, found: Sequence[Token]) -> None:
    for token in found:
        if token.name in _REFUSED.get(command, frozenset()):
            raise UsageError(f"the -{token.name} option is not valid for `{command}`", f"see `tfguard {command} -help`")
        if token.name in _TAKE_A_VALUE and token.value is None:
            raise UsageError(f"flag needs an argument: -{token.name}", f"see `tfguard {command} -help`")


def _goes_to_plan(token: Token) -> bool:
    if token.name is None:
        return False
    known = token.name in _PLANNING or token.name in _BOTH
    return known or token.name not in _APPLYING | {"json", "h", "help"}


def _goes_to_apply(token: Token, with_plan_file: bool) -> bool:
    """A plan file that the user made is applied with every option that was given: the engine judges which may stand."""
    if token.name is None:
        return False
    return token.name in _APPLYING | _BOTH or (with_plan_file and token.name not in ("json", "h", "help"))


def _values(found: Sequence[Token], name: str) -> tuple[str, ...]:
    return tuple(token.value for token in found if token.name == name and token.value is not None)


def without_values(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command line as it may be recorded: values of `-var` and `-backend-config` removed (rule 10, case B69)."""
    kept: list[str] = []
    for token in tokens(arguments):
        if token.name in _HIDDEN_VALUES and token.value is not None:
            kept.append(f"-{token.name}={_shown_part(token)}<removed>")
        else:
            kept.extend(token.words)
    return tuple(kept)


def _shown_part(token: Token) -> str:
    name, equals, _ = (token.value or "").partition("=")
    return f"{name}=" if equals and name.replace("_", "").replace("-", "").isalnum() else ""
