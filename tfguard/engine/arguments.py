"""The engine's command line, as pure functions: what the user said, and what the inner commands get of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tfguard.engine.shell_words import shell_words
from tfguard.errors import UsageError
from tfguard.model.request import ChangeRequest, RepairRequest

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
        "deprecation",
        "backend-config",
        "backup-out",
        "config",
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
        "json-into",
    ]
)
# The warnings of the inner plan are shortened when it is known with which others they stand.
_APPLYING = frozenset(["auto-approve", "compact-warnings", "state-out", "backup", "suppress-forget-errors"])
_BOTH = frozenset(
    [
        "lock",
        "lock-timeout",
        "parallelism",
        "no-color",
        "input",
        "consolidate-warnings",
        "consolidate-errors",
        "deprecation",
        "show-sensitive",
        "state",
        "concise",
    ]
)
# What else has to be said whenever the engine is asked about the stack: in a look, in a probe, in an adoption.
OF_THE_STACK = ("var", "var-file", "state")
# Which form the apply's events come in, and which file they go to, is for tfguard to say; the plan's are the user's.
_FORM = frozenset(["json", "json-into", "h", "help"])
_HIDDEN_VALUES = ("var", "backend-config")

# What the engine takes out of its command line before it reads the flags, wherever it stands and only as it is here.
_VIEW = ("-no-color", "-compact-warnings", "-concise")
_VIEW_WITH_VALUE = ("-consolidate-warnings=", "-consolidate-errors=", "-deprecation=")
_VIEW_ALONE = ("no-color", "compact-warnings")

_HELP = ("-h", "-help", "--help")
_VERSION = ("-v", "-version", "--version")

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_BOOLEANS = frozenset(
    ["auto-approve", "destroy", "refresh", "refresh-only", "lock", "input", "json", "allow-deferral", "show-sensitive"]
)
_NUMBER = re.compile(r"[+-]?\d\w*", re.ASCII)
_DURATION = re.compile(r"[+-]?[\d.][\d.a-zµ]*")
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ms|[smh])", re.ASCII)
_WHOLE_DURATION = re.compile(rf"\+?(?:{_DURATION_PART.pattern})+", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_PATIENCE = 366 * 24 * 3600.0
_FORMS: Mapping[str, re.Pattern[str]] = {"parallelism": _NUMBER, "lock-timeout": _DURATION}

# `plan` takes these, `apply` does not, and `destroy` has its own mode. The inner plan would obey them.
_REFUSED: Mapping[str, frozenset[str]] = {
    "apply": frozenset(["out", "detailed-exitcode", "generate-config-out"]),
    "destroy": frozenset(["out", "detailed-exitcode", "generate-config-out", "destroy", "refresh-only"]),
}
# The engine reads these to the end of the line before it refuses them.
_MODES = ("destroy", "refresh-only")


_REPAIRING = frozenset(["force", "dry-run", "allow-missing", "ignore-remote-version", "orphan"])
_KNOWN = frozenset({*_PLANNING, *_APPLYING, *_BOTH, *_FORM, *_REFUSED["destroy"]})


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags that the engine at hand has and that this file does not know, told by its help (`engine/help_text.py`).

    Which of them the inner `plan` gets, which of them the inner `apply`, and which take a value.
    """

    planning: Collection[str] = ()
    applying: Collection[str] = ()
    taking: Collection[str] = ()


_NOTHING_MORE = Flags()

# A file can never be below this one.
_NO_PLAN = "/dev/null/tfguard does not know one of these options"


@dataclass(frozen=True, slots=True)
class Token:
    """One word, or a flag with its value, of a command line; `words` is what the user typed for it."""

    name: str | None
    value: str | None
    words: tuple[str, ...]

    @property
    def truth(self) -> bool:
        """A boolean flag's value, as Go's flag package reads it."""
        return self.value is None or self.value in _TRUE

    @property
    def view(self) -> bool:
        """Whether the engine takes this out before it reads its flags."""
        return self.words[0] in _VIEW or self.words[0].startswith(_VIEW_WITH_VALUE)


def takes_a_value(word: str) -> bool:
    """Whether the engine takes the word after this one for the value of this one, as far as is known here."""
    return word.startswith("-") and "=" not in word and word.removeprefix("-").removeprefix("-") in _TAKE_A_VALUE


def tokens(arguments: Sequence[str], taking: Collection[str] = ()) -> Iterator[Token]:
    """Split a command line as the engine does: one dash or two, `-flag=value` or `-flag value`.

    Flags are told from one end to the other; that the engine reads none after the first other word is for the caller.
    `taking` are further flags that take a value.
    """
    flag: Token | None = None  # one that waits for its value
    for word in arguments:
        if word in _VIEW or word.startswith(_VIEW_WITH_VALUE):
            name, _, value = word[1:].partition("=")
            yield Token(name, value or None, (word,))
        elif flag is not None:
            yield Token(flag.name, word, (*flag.words, word))
            flag = None
        elif not word.startswith("-") or word in ("-", "--"):
            yield Token(None, word, (word,))
        else:
            name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
            token = Token(name, value if equals else None, (word,))
            if not equals and (name in _TAKE_A_VALUE or name in taking):
                flag = token
            else:
                yield token
    if flag is not None:
        yield flag


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the engine would show its help: one of its three spellings stands anywhere before `--`."""
    words = list(arguments)
    return any(word in _HELP for word in (words[: words.index("--")] if "--" in words else words))


def asks_for_version(arguments: Sequence[str]) -> bool:
    """Whether the engine would show its version instead: one of the three spellings stands anywhere at all."""
    return any(word in _VERSION for word in arguments)


def expand_environment(command: str, arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments with TF_CLI_ARGS and TF_CLI_ARGS_<command> put in where the engine puts them: after the command.

    The engine inserts the general one first and the command's own before it (docs/facts/terraform.md, section 8). The
    variable of `state rm` is TF_CLI_ARGS_state_rm. Raises `UsageError` where the engine could not split them either.
    """
    variable = f"TF_CLI_ARGS_{command.replace('-', '_').replace(' ', '_')}"
    found: list[str] = []
    for name in (variable, "TF_CLI_ARGS"):
        try:
            found += shell_words(environ.get(name, ""))
        except ValueError as error:
            raise UsageError(f"{name} cannot be read: {error}", "mend its quotes") from error
    return (*found, *arguments)


def state_flag(arguments: Sequence[str]) -> str | None:
    """The value of the last `-state` in a command line."""
    return next((token.value for token in reversed(list(tokens(arguments))) if token.name == "state"), None)


def state_words(arguments: Sequence[str]) -> tuple[str, ...]:
    """What a command line says of `-state`, to be said to another command too."""
    return tuple(word for token in tokens(arguments) if token.name == "state" for word in token.words)


def unknown_flags(arguments: Sequence[str]) -> frozenset[str]:
    """The flags of an `apply` or `destroy` that are not known here: the engine may be newer."""
    return frozenset(token.name for token in tokens(arguments) if token.name) - _KNOWN


def change_request(command: str, arguments: Sequence[str], learned: Flags = _NOTHING_MORE) -> ChangeRequest:
    """Take an `apply` or `destroy` command line apart; `learned` are further flags that the engine at hand has.

    Raises `UsageError` for what the engine would refuse, as far as that can be told here: the inner commands would not
    refuse all of it, and would say it of `plan`.
    """
    found, files = _flags_and_operands(arguments, learned)
    flags = {token.name: token for token in found if token.name}
    if not asks_for_help(arguments):
        _refuse(command, found, files, learned)
    destroy = command == "destroy" or _is_set(flags, "destroy")
    planning = [word for token in found if _goes_to_plan(token, learned) for word in token.words]
    if command == "destroy":
        planning.append("-destroy")
    plan_file = files[0] if files and files[0] else None
    applying = [token for token in found if _goes_to_apply(token, bool(plan_file), learned)]
    return ChangeRequest(
        command=command,
        plan_file=plan_file,
        planning=tuple(planning),
        applying=tuple(word for token in applying for word in token.words),
        auto_approve=_is_set(flags, "auto-approve"),
        destroy=destroy,
        refresh_only=_is_set(flags, "refresh-only"),
        json=_is_set(flags, "json"),
        color=not _is_set(flags, "no-color"),
        input=_is_set(flags, "input", default=True),
        compact_warnings=_is_set(flags, "compact-warnings"),
        locking=_is_set(flags, "lock", default=True),
        targets=_values(found, "target"),
        var_files=_values(found, "var-file"),
        variables=tuple(word for token in found if token.name in OF_THE_STACK for word in token.words),
        state_path=_flag_value(flags, "state"),
        state_out=_flag_value(flags, "state-out"),
        help=asks_for_help(arguments),
        concise=_is_set(flags, "concise"),
        json_into=_flag_value(flags, "json-into"),
        lock_timeout=_lock_timeout(flags),
        arguments=tuple(arguments),
    )


def refused_line(command: str, arguments: Sequence[str], learned: Flags = _NOTHING_MORE) -> tuple[str, ...]:
    """A command line that `change_request` refuses, so that the engine says why, in its own words.

    Should the engine not refuse it, it changes nothing either: the plan file is one that cannot be there, and approval
    is neither given nor asked for. Only `destroy` keeps its plan file: every engine refuses that.
    """
    found, files = _flags_and_operands(arguments, learned)
    read: list[str] = ["-input=false"]
    for token in found:
        if _fault(command, token, learned) and token.name not in _MODES:
            return (*read, *_as_far_as(token, arguments, learned))
        if token.name not in ("auto-approve", "input"):
            read += token.words
    words = files if command == "destroy" and len(files) == 1 else [_NO_PLAN] * max(1, len(files))
    return (*read, *(["--"] if "--" in arguments else []), *words)


def _as_far_as(faulty: Token, arguments: Sequence[str], learned: Flags) -> Iterator[str]:
    """The flag at which the engine stops to read, and as many other words as it then counts: none, one, or too many."""
    found = list(tokens(arguments, learned.taking))
    rest = found[found.index(faulty) + 1 :]
    count = len(faulty.words) - 1 + sum(len(token.words) for token in rest if not token.view)
    yield faulty.words[0]
    if _is_no_flag(faulty):
        yield from [_NO_PLAN] * min(count, 1)
    elif not (faulty.name in _TAKE_A_VALUE and faulty.value is None):
        yield from [_NO_PLAN] * (2 if count > 1 else 1)
    yield from (token.words[0] for token in rest if token.view)


def _flags_and_operands(arguments: Sequence[str], learned: Flags) -> tuple[list[Token], list[str]]:
    """The flags, which end at the first other word or at `--`, and the words after them."""
    found = list(tokens(arguments, learned.taking))
    first = next((index for index, token in enumerate(found) if token.name is None), len(found))
    rest = [word for token in found[first:] if not token.view for word in token.words]
    flags = [*found[:first], *(token for token in found[first:] if token.view)]
    return flags, rest[1:] if rest[:1] == ["--"] else rest


def repair_request(command: str, arguments: Sequence[str]) -> RepairRequest:
    """Take the command line of one of `REPAIRS` apart; the engine itself judges it, and gets it as it is.

    As for the engine, the first word that is no flag ends the flags.
    """
    found = list(tokens(arguments))
    first = next((index for index, token in enumerate(found) if token.name is None), len(found))
    flags = {token.name: token for token in found[:first] if token.name}
    return RepairRequest(
        command=command,
        arguments=tuple(arguments),
        operands=tuple(word for token in found[first:] for word in token.words if word != "--"),
        json=_is_set(flags, "json"),
        locking=_is_set(flags, "lock", default=True),
        forced=_is_set(flags, "force") or _is_set(flags, "auto-approve"),
        changes_nothing=_is_set(flags, "dry-run") or bool({"h", "help"} & set(flags)),
        state_path=_flag_value(flags, "state"),
        state_out=_flag_value(flags, "state-out"),
        targets=_values(found[:first], "target"),
        var_files=_values(found[:first], "var-file"),
        variables=tuple(word for token in found[:first] if token.name in OF_THE_STACK for word in token.words),
        lock_timeout=_lock_timeout(flags),
    )


def _is_set(flags: Mapping[str, Token], name: str, default: bool = False) -> bool:
    return flags[name].truth if name in flags else default


def _lock_timeout(flags: Mapping[str, Token]) -> timedelta:
    """The time that `-lock-timeout` names; none for what the engine will refuse, or with `-lock=false`."""
    given = _flag_value(flags, "lock-timeout") or ""
    if not _WHOLE_DURATION.fullmatch(given) or not _is_set(flags, "lock", default=True):
        return timedelta(0)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(given))
    return timedelta(seconds=min(seconds, _LONGEST_PATIENCE))


def _flag_value(flags: Mapping[str, Token], name: str) -> str | None:
    return flags[name].value if name in flags else None


def _refuse(command: str, found: Sequence[Token], files: Sequence[str], learned: Flags) -> None:
    advice = f"see `tfguard {command} -help`"
    for token in found:
        if why := _fault(command, token, learned):
            raise UsageError(_on_one_line(why), advice)
    if len(files) > 1:
        raise UsageError("Too many command line arguments: one plan file at most", advice)
    if files and files[0] and command == "destroy":
        raise UsageError(
            "Destroy can't be called with a plan file", _on_one_line(f"apply it: `tfguard apply {files[0]}`")
        )


def _on_one_line(text: str) -> str:
    """Words of the user's in an error, without what would break its line."""
    return "".join(char if char.isprintable() else " " for char in text)


def _fault(command: str, token: Token, learned: Flags) -> str | None:
    """Why the engine refuses a flag, as far as that can be told here."""
    known = token.name in _KNOWN or token.name in learned.planning or token.name in learned.applying
    if why := _malformed(token):
        return why
    return f"the -{token.name} option is not valid here" if not known or token.name in _REFUSED[command] else None


def _is_no_flag(token: Token) -> bool:
    """Whether a word begins like a flag and is none: three dashes, or no name."""
    return not token.name or token.name.startswith("-")


def _malformed(token: Token) -> str | None:
    """Why the engine cannot read a flag, if it cannot."""
    name, value = token.name or "", token.value
    if _is_no_flag(token):
        return f"bad flag syntax: {token.words[0]}"
    if name in ("h", "help"):
        return "flag: help requested"
    if name in _VIEW_ALONE and not token.view:
        return f"flag provided but not defined: -{name}"
    if name in _TAKE_A_VALUE and value is None:
        return f"flag needs an argument: -{name}"
    if name in _BOOLEANS and value is not None and value not in _TRUE + _FALSE:
        return f"invalid boolean value {value!r} for -{name}"
    if name in _FORMS and not _FORMS[name].fullmatch(value or ""):
        return f"invalid value {value!r} for flag -{name}"
    return None


def _goes_to_plan(token: Token, learned: Flags) -> bool:
    return token.name in _PLANNING or token.name in _BOTH or token.name in learned.planning


def _goes_to_apply(token: Token, with_plan_file: bool, learned: Flags) -> bool:
    """A plan file that the user made is applied with every option that was given: the engine judges which may stand."""
    known = token.name in _APPLYING or token.name in _BOTH
    return known or token.name in learned.applying or (with_plan_file and token.name not in _FORM)


def _values(found: Sequence[Token], name: str) -> tuple[str, ...]:
    return tuple(token.value for token in found if token.name == name and token.value is not None)


def var_files_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """The files that the `-var-file` of a command line name."""
    return _values(list(tokens(arguments)), "var-file")


def variables_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """The `-var` and `-var-file` of a command line, in their order."""
    return tuple(word for token in tokens(arguments) if token.name in ("var", "var-file") for word in token.words)


def without_values(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command line as it may be recorded: values of `-var` and `-backend-config` removed (rule 10, case B69).

    So are those of flags that are not known: `-vars` may be a slip for `-var`.
    """
    kept: list[str] = []
    for token in tokens(arguments):
        if token.name in _HIDDEN_VALUES and token.value is not None:
            kept.append(f"-{token.name}={_shown_part(token)}<removed>")
        elif token.name and token.value is not None and token.name not in {*_KNOWN, *_TAKE_A_VALUE, *_REPAIRING}:
            kept.append(f"-{token.name}=<removed>")
        else:
            kept.extend(token.words)
    return tuple(kept)


def _shown_part(token: Token) -> str:
    name, equals, _ = (token.value or "").partition("=")
    return f"{name}=" if equals and name.replace("_", "").replace("-", "").isalnum() else ""
