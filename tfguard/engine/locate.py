"""Find the engine binary and read its version."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfguard.engine.queries import captured
from tfguard.errors import NoEngineError
from tfguard.model.engine import EngineInfo

MINIMUM = {"terraform": (1, 5), "tofu": (1, 6)}
_VERSION = re.compile(r"^(Terraform|OpenTofu) v(\d+)\.(\d+)\.(\d+)(\S*)", re.MULTILINE)
_PROVIDER = re.compile(r"^\+ provider (\S+) v(\S+)", re.MULTILINE)
_NAMES = {"Terraform": "terraform", "OpenTofu": "tofu"}


@dataclass(frozen=True, slots=True)
class InstalledEngine:
    """An engine binary, what it says it is, and the provider versions that the working directory has chosen."""

    binary: Path
    info: EngineInfo
    providers: Mapping[str, str]


def find_binary(choice: str | None, configured: str | None, environ: Mapping[str, str]) -> Path:
    """The engine binary: `--engine`, then `engine:` of tfguard.yaml, then TFGUARD_ENGINE, then PATH (terraform first).

    A choice is `terraform`, `tofu` or a path. Raises `NoEngineError` when it is not there or cannot be run.
    """
    chosen = choice or configured or environ.get("TFGUARD_ENGINE")
    if chosen:
        found = _resolve(chosen, environ)
        if found is None:
            raise NoEngineError(
                f"the engine '{chosen}' is not there or cannot be run",
                "name an installed terraform or tofu with --engine, `engine:` in tfguard.yaml or TFGUARD_ENGINE",
            )
        return found
    for name in MINIMUM:
        if found := _resolve(name, environ):
            return found
    raise NoEngineError("neither terraform nor tofu is on the PATH", "install one, or name it with --engine PATH")


def _resolve(choice: str, environ: Mapping[str, str]) -> Path | None:
    if os.sep in choice:
        path = Path(choice)
        return path.absolute() if path.is_file() and os.access(path, os.X_OK) else None
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(choice, path=folder or os.curdir)
        if found and not _is_tfguard(Path(found)):
            return _behind_setup_wrapper(Path(found).absolute())
    return None


def _is_tfguard(path: Path) -> bool:
    """Whether a `terraform` on the PATH is tfguard itself under another name, which would call itself for ever."""
    return path.resolve() == Path(sys.argv[0]).resolve()


def _behind_setup_wrapper(path: Path) -> Path:
    """The real binary behind GitHub's setup-terraform wrapper, which does not forward signals (case B12)."""
    real = path.with_name(path.name + "-bin")
    return real if real.is_file() and os.access(real, os.X_OK) else path


def read_version(binary: Path, directory: Path) -> InstalledEngine:
    """Ask the engine for its version. Raises `NoEngineError` for one that does not answer or is too old."""
    answer = captured(binary, directory, "version", offline=True)
    match = _VERSION.search(answer.stdout)
    if answer.exit_code != 0 or match is None:
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
    return InstalledEngine(binary, EngineInfo(name, version), dict(_PROVIDER.findall(answer.stdout)))
