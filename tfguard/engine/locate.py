"""Find the engine binary and read its version."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfguard.engine.queries import captured
from tfguard.errors import ExitCode, NoEngineError
from tfguard.model.engine import EngineInfo

MINIMUM = {"terraform": (1, 5), "tofu": (1, 6)}
_VERSION = re.compile(r"^(Terraform|OpenTofu) v(\d{1,9})\.(\d{1,9})\.(\d{1,9})(\S*)", re.MULTILINE)
_PROVIDER = re.compile(r"^\+ provider (\S+) v(\S+)", re.MULTILINE)
_NAMES = {"Terraform": "terraform", "OpenTofu": "tofu"}

_BEGINNING = 4096
_CALLS_TFGUARD = re.compile(rb"(?<![\w-])tfguard(?![\w/-])")
# By what tfguard sees that it was called by itself through a program that was not recognised.
_CALLED_BY = "TFGUARD_CALLED_BY"
_ASKING = "version"
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class InstalledEngine:
    """An engine binary, what it says it is, and the provider versions that the working directory has chosen."""

    binary: Path
    info: EngineInfo
    providers: Mapping[str, str]


def find_binary(choice: str | None, configured: str | None, environ: Mapping[str, str]) -> Path:
    """The engine binary: `--engine`, then `engine:` of tfguard.yaml, then TFGUARD_ENGINE, then PATH (terraform first).

    A choice is `terraform`, `tofu` or a path. On the PATH tfguard under the engine's name is passed over. Raises
    `NoEngineError` when there is none, when it cannot be run, or when it has led back to tfguard.
    """
    _refuse_own_call(environ)
    chosen = choice or configured or environ.get("TFGUARD_ENGINE")
    if chosen:
        found = _resolve(chosen, environ)
        if found is None:
            raise NoEngineError(
                f"the engine '{chosen}' is not there or cannot be run{_itself([chosen], environ)}",
                "name an installed terraform or tofu with --engine, `engine:` in tfguard.yaml or TFGUARD_ENGINE",
            )
        return found
    for name in MINIMUM:
        if found := _resolve(name, environ):
            return found
    raise NoEngineError(
        f"neither terraform nor tofu is on the PATH{_itself(MINIMUM, environ)}",
        "install one, or name it with --engine PATH",
    )


def _resolve(choice: str, environ: Mapping[str, str]) -> Path | None:
    if os.sep in choice:
        path = Path(choice).absolute()
        usable = path.is_file() and os.access(path, os.X_OK) and not _is_this_program(path)
        return path if usable else None
    for found in _on_path(choice, environ):
        real = _behind_setup_wrapper(found)
        if real != found or not _is_tfguard(found):
            return real
    return None


def _on_path(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        if found := shutil.which(name, path=folder or os.curdir):
            yield Path(found).absolute()


def _itself(choices: Iterable[str], environ: Mapping[str, str]) -> str:
    """For an error: which of what was passed over is tfguard itself."""
    paths = dict.fromkeys(path for choice in choices for path in _on_path(choice, environ))
    return "".join(f"; {path} is tfguard itself" for path in paths if _is_tfguard(path))


def _is_tfguard(path: Path) -> bool:
    """Whether a `terraform` on the PATH is tfguard under another name: a link to it, a copy, a script that calls it."""
    return _is_this_program(path) or _CALLS_TFGUARD.search(_script(path)) is not None


def _is_this_program(path: Path) -> bool:
    return path.resolve() == Path(sys.argv[0]).resolve()


def _script(path: Path) -> bytes:
    """The beginning of a script, without its comments; empty for a program that is none."""
    try:
        with path.open("rb") as file:
            start = file.read(_BEGINNING)
    except OSError:
        return b""
    if not start.startswith(b"#!"):
        return b""
    return b"\n".join(line for line in start.split(b"\n") if not line.startswith(b"#")) or b"\n"


def _refuse_own_call(environ: Mapping[str, str]) -> None:
    callers = environ.get(_CALLED_BY, "").split(",")
    if _ASKING in callers or str(os.getpid()) in callers or len(callers) > _DEEPEST:
        raise NoEngineError(
            "tfguard was called by itself: what it takes for the engine leads back to it",
            "name the real one with --engine PATH, `engine:` in tfguard.yaml or TFGUARD_ENGINE",
        )


def call_environment(binary: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment for becoming this engine: `environ`, with a mark where it may turn out to lead back to tfguard.

    Only a script can; for a real engine nothing changes. The mark is the list of the processes that have become one.
    """
    if not _script(binary):
        return environ
    callers = filter(None, (environ.get(_CALLED_BY), str(os.getpid())))
    return {**environ, _CALLED_BY: ",".join(callers)}


def _behind_setup_wrapper(path: Path) -> Path:
    """The real binary behind GitHub's setup-terraform wrapper, which does not forward signals (case B12)."""
    real = path.with_name(path.name + "-bin")
    return real if real.is_file() and os.access(real, os.X_OK) else path


def read_version(binary: Path, directory: Path) -> InstalledEngine:
    """Ask the engine for its version. Raises `NoEngineError` for one that does not answer or is too old."""
    with _marked_as_asking():
        answer = captured(binary, directory, "version", offline=True)
    if answer.exit_code == ExitCode.NO_ENGINE:
        raise NoEngineError(f"{binary} leads back to tfguard", "name the real engine with --engine PATH")
    return InstalledEngine(binary, *version_in(answer.stdout if answer.exit_code == 0 else "", binary))


def version_in(output: str, binary: Path) -> tuple[EngineInfo, Mapping[str, str]]:
    """The engine's name and version in the output of `version`, and the providers' versions by their sources.

    Raises `NoEngineError` for one that is too old, and for words that no engine would say; `binary` is named in it.
    """
    match = _VERSION.search(output)
    if match is None:
        raise NoEngineError(
            f"{binary} does not answer `version` as terraform or tofu would", "name another with --engine"
        )
    name = _NAMES[match[1]]
    version = f"{match[2]}.{match[3]}.{match[4]}{match[5]}"
    if (int(match[2]), int(match[3])) < MINIMUM[name]:
        least = ".".join(str(part) for part in MINIMUM[name])
        raise NoEngineError(
            f"{name} {version} at {binary} is too old: tfguard needs {name} {least} or newer (import blocks)",
            "upgrade it, or name a newer one with --engine PATH",
        )
    return EngineInfo(name, version), dict(_PROVIDER.findall(output))


@contextmanager
def _marked_as_asking() -> Iterator[None]:
    """No engine starts a tfguard to tell its version, so that one which is started meanwhile was called by itself."""
    before = os.environ.get(_CALLED_BY)
    os.environ[_CALLED_BY] = _ASKING
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CALLED_BY]
        else:
            os.environ[_CALLED_BY] = before
