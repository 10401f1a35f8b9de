"""Runs one plan with the real engine in its human form and in its JSON form, the latter through `Renderer`.

Both applies work on copies of the same folder, planned once, so that nothing but ids and elapsed times may differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tfguard.engine.events import StreamReader
from tfguard.engine.render import RenderedText, Renderer

TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="no terraform on the PATH")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ELAPSED = re.compile(r"(?<= after )\d+s|\b\d+s(?= elapsed)")


@dataclass(frozen=True)
class Forms:
    """What the engine printed for a person, and what the renderer made of its stream."""

    human: RenderedText
    rendered: RenderedText


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process's own, without settings of terraform's, and with an empty CLI configuration."""
    config = folder / "cli.tfrc"
    config.write_text("")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TF_") and key != "NO_COLOR"}
    return {**kept, "TF_CLI_CONFIG_FILE": str(config), "CHECKPOINT_DISABLE": "1", **(extra or {})}


class Stack:
    """A folder with a configuration, planned once, that can be applied in either form any number of times."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        self.folder = root / "stack"
        self.folder.mkdir()
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self._env = environment(root)
        self._copies = 0
        self.run(self.folder, "init", "-no-color")

    def plan(self, *args: str) -> None:
        """Plans into the file `p` of the folder."""
        done = self.run(self.folder, "plan", "-out=p", "-no-color", *args)
        assert done.returncode == 0, done.stderr.decode()

    def apply(self, *args: str, plan: Sequence[str] = ("p",)) -> None:
        """Applies in the folder itself, to prepare a state."""
        done = self.run(self.folder, "apply", "-no-color", *args, *plan)
        assert done.returncode == 0, done.stderr.decode()

    def run(self, folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
        assert TERRAFORM is not None
        return subprocess.run([TERRAFORM, *args], cwd=folder, env=self._env, capture_output=True, timeout=120)

    def both(
        self,
        *flags: str,
        command: Sequence[str] = ("apply", "-parallelism=1"),
        target: Sequence[str] = ("p",),
        renderer: Renderer | None = None,
    ) -> Forms:
        """The command in both forms at the same time; `flags` are for the human form, the renderer is told of them."""
        folders = self._copy(), self._copy()
        commands = (*command, *flags, *target), (*command, "-json", *target)
        with ThreadPoolExecutor(2) as pool:
            human, stream = pool.map(lambda folder, args: self.run(folder, *args), folders, commands)
        assert human.returncode == stream.returncode
        renderer = renderer or Renderer(color="-no-color" not in flags, compact_warnings="-compact-warnings" in flags)
        return Forms(
            human=normal(RenderedText(human.stdout.decode(), human.stderr.decode())),
            rendered=normal(rendered(renderer, stream.stdout)),
        )

    def _copy(self) -> Path:
        self._copies += 1
        copy = self.root / f"copy{self._copies}"
        shutil.copytree(self.folder, copy)
        return copy


def rendered(renderer: Renderer, stream: bytes) -> RenderedText:
    """A whole stream through reader and renderer."""
    reader = StreamReader()
    text = RenderedText()
    for event in [*reader.feed(stream), *reader.finish()]:
        text += renderer.render(event)
    assert reader.counts.unknown == reader.counts.plain == reader.counts.cut == 0
    return text + renderer.finish()


def normal(text: RenderedText) -> RenderedText:
    """Ids and elapsed times replaced; nothing else."""
    return RenderedText(_normal(text.stdout), _normal(text.stderr))


def _normal(text: str) -> str:
    return _ELAPSED.sub("<elapsed>", _UUID.sub("<id>", text))
