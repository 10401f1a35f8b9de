"""The JSON Schemas below docs/schemas: written from the code, or compared with it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tfguard.schemas.published import file_name, schemas, text

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"
_FILE = re.compile(r"(?P<name>[a-z-]+)\.v(?P<version>\d+)\.schema\.json", re.ASCII)


def differences(folder: Path = FOLDER) -> list[str]:
    """What is wrong with the files in `folder`, a line each: none that is missing, other than generated, or unknown.

    Of a document in version N the schemas of the versions before stay as they were published.
    """
    wanted = {name: text(schema) for name, schema in schemas().items()}
    there = {path.name for path in folder.glob("*.schema.json")}
    told = [f"{name} is missing" for name in sorted((wanted.keys() | _earlier(wanted)) - there)]
    told += [f"{name} is of no document" for name in sorted(there - wanted.keys() - _earlier(wanted))]
    stale = [name for name in sorted(there & wanted.keys()) if (folder / name).read_text() != wanted[name]]
    return [*told, *(f"{name} is not what the code says: run scripts/schemas" for name in stale)]


def write(folder: Path = FOLDER) -> None:
    """Write the schemas of the present versions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(text(schema))


def _earlier(wanted: dict[str, str]) -> set[str]:
    """The files of all versions before the present ones."""
    found = (_FILE.fullmatch(name) for name in wanted)
    return {file_name(m["name"], version) for m in found if m for version in range(1, int(m["version"]))}


def main() -> int:
    """`--check` compares and gives 1 where something differs; without it the files are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, tell what differs")
    if not parser.parse_args().check:
        write()
    told = differences()
    print("\n".join(told) if told else f"{len(schemas())} schemas are up to date")
    return 1 if told else 0


if __name__ == "__main__":
    raise SystemExit(main())
