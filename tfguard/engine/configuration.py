"""Which files of a folder are the root module's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tfguard.model.engine import EngineInfo

# What an editor keeps beside a file, and the engine leaves out.
_LEFT_OUT = (".", "#")
_SUFFIXES = {".tf": ".tofu", ".tf.json": ".tofu.json"}


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
