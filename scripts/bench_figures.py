"""Measurements, each against what it is compared with, in turn; writes its section of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from fixtures.aws_sim import MotoServer
from fixtures.large_runs import LARGE, SMALL, measured
from fixtures.terraform_env import find_engine, find_mirror, terraform_environment, write_cli_config, write_stack
from scripts.bench_archive import archive_figures
from scripts.bench_blueprint import blueprint_figures
from scripts.bench_google import google_figures
from scripts.bench_import import import_figures
from scripts.bench_journal import bench_journal
from scripts.bench_match import match_figures
from scripts.bench_scan import scan_figures

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "docs" / "benchmarks.md"
STREAM_EVENTS = 10_000


def parameters(count: int) -> str:
    """A stack of `count` cheap resources of four types."""
    quarter = count // 4
    return f"""\
resource "aws_iam_policy" "p" {{
  count  = {quarter}
  name   = "p${{count.index}}"
  policy = jsonencode({{
    Version   = "2012-10-17"
    Statement = [{{ Effect = "Allow", Action = "s3:Get*", Resource = "*" }}]
  }})
}}
resource "aws_ssm_parameter" "s" {{
  count = {quarter}
  name  = "/bench/${{count.index}}"
  type  = "String"
  value = "x"
}}
resource "aws_cloudwatch_log_group" "l" {{
  count = {quarter}
  name  = "/bench/${{count.index}}"
}}
resource "aws_sns_topic" "t" {{
  count = {count - 3 * quarter}
  name  = "t${{count.index}}"
}}
"""


def bench_apply(runs: int, count: int) -> str:
    """tfguard apply against `terraform plan -out && terraform apply`, each on a fresh account, in turn."""
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder, MotoServer() as moto:
        work = Path(folder)
        environ = terraform_environment(write_cli_config(work / "cli.tfrc", find_mirror()), endpoint=moto.url)
        environ["PYTHONPATH"] = str(ROOT)
        stack = write_stack(work / "stack", parameters(count))
        subprocess.run([engine, "init", "-no-color"], cwd=stack, env=environ, check=True, stdout=subprocess.DEVNULL)

        def plain() -> None:
            _run([str(engine), "plan", "-input=false", "-out=p"], stack, environ)
            _run([str(engine), "apply", "-input=false", "p"], stack, environ)

        def guarded() -> None:
            _run([sys.executable, "-m", "tfguard", "apply", "-auto-approve"], stack, environ)

        def shown() -> None:
            _run([str(engine), "show", "-json", "p"], stack, environ)

        times: dict[str, list[float]] = {"plain": [], "guarded": [], "show": []}
        for turn in range(runs + 1):
            measured = {name: _timed(moto, stack, run) for name, run in (("plain", plain), ("guarded", guarded))}
            measured["show"] = _seconds(shown)
            if turn:  # the first turn warms caches
                for name, value in measured.items():
                    times[name].append(value)
    return _apply_text(times, runs, count)


def _timed(moto: MotoServer, stack: Path, run: Callable[[], None]) -> float:
    moto.reset()
    for left in stack.glob("terraform.tfstate*"):
        subprocess.run(["rm", "-rf", str(left)], check=True)
    return _seconds(run)


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _run(argv: list[str], cwd: Path, environ: Mapping[str, str]) -> None:
    done = subprocess.run(argv, cwd=cwd, env={**environ}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")


def _apply_text(times: Mapping[str, list[float]], runs: int, count: int) -> str:
    ratios = [g / p for g, p in zip(times["guarded"], times["plain"], strict=True)]
    plain, guarded = statistics.median(times["plain"]), statistics.median(times["guarded"])
    show = statistics.median(times["show"])
    rows = "".join(
        f"| {name} | {min(values):.2f} | {statistics.median(values):.2f} | {max(values):.2f} |\n"
        for name, values in (
            ("`terraform plan -out && terraform apply`, s", times["plain"]),
            ("`tfguard apply -auto-approve`, s", times["guarded"]),
            ("one `show -json` of that plan, s", times["show"]),
            ("ratio, pair by pair", ratios),
        )
    )
    rest = guarded - plain - show
    return (
        f"{count} resources of four types, {runs} pairs in turn after one warm-up, a fresh account each time.\n\n"
        f"| | min | median | max |\n|---|---|---|---|\n{rows}\n"
        f"Where it goes, from the medians: {guarded - plain:.2f} s more than the engine alone, of which `show -json` "
        f"takes {show:.2f} s and the lists, the record and tfguard itself {rest:.2f} s.\n"
    )


def bench_events() -> str:
    """CPU for following, rendering and journalling 10,000 events."""
    from tfguard.engine.events import StreamReader
    from tfguard.engine.render import Renderer
    from tfguard.model.secrets import Withholding
    from tfguard.reconcile.progress import Progress, journal_entry

    data = b"".join(_event(number) for number in range(STREAM_EVENTS // 2))
    reader, renderer, progress = StreamReader(), Renderer(color=True), Progress()
    before = resource.getrusage(resource.RUSAGE_SELF)
    now, hidden = datetime.now(UTC), Withholding(frozenset({"a-marked-value"}))
    for start in range(0, len(data), 1 << 16):
        for event in reader.feed(data[start : start + (1 << 16)]):
            renderer.render(event)
            entry = journal_entry(event, now, hidden)
            if entry:
                progress.add([entry])
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"Parsing, rendering and journalling {reader.counts.events:,} events takes {spent:.2f} s of CPU.\n"


def _event(number: int) -> bytes:
    hook = {
        "resource": {
            "addr": f"aws_ssm_parameter.s[{number}]",
            "module": "",
            "resource": f"aws_ssm_parameter.s[{number}]",
            "implied_provider": "aws",
            "resource_type": "aws_ssm_parameter",
            "resource_name": "s",
            "resource_key": number,
        },
        "action": "create",
    }
    start = {"@level": "info", "@message": f"aws_ssm_parameter.s[{number}]: Creating...", "@module": "terraform.ui"}
    done = {**start, "@message": f"aws_ssm_parameter.s[{number}]: Creation complete after 0s [id=/bench/{number}]"}
    ended = {**hook, "id_key": "id", "id_value": f"/bench/{number}", "elapsed_seconds": 0}
    lines = ({**start, "hook": hook, "type": "apply_start"}, {**done, "hook": ended, "type": "apply_complete"})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def bench_version(runs: int) -> str:
    """How long `tfguard version` takes as a whole process, the engine's own `version` included."""
    command = [sys.executable, "-m", "tfguard", "version"]
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder:
        environ = terraform_environment(write_cli_config(Path(folder) / "cli.tfrc", None)) | {"PYTHONPATH": str(ROOT)}
        times = [_seconds(lambda: _run(command, Path(folder), environ)) for _ in range(runs + 2)][2:]
    return (
        f"`tfguard version`: min {min(times) * 1000:.0f} ms, median {statistics.median(times) * 1000:.0f} ms, "
        f"max {max(times) * 1000:.0f} ms over {runs} runs, with the engine's own `version` inside.\n"
    )


def bench_memory() -> str:
    """The most memory of tfguard itself in an apply of each large stack, beside that of a small one."""
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    rows = []
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder:
        environ = terraform_environment(write_cli_config(Path(folder) / "cli.tfrc", None)) | {"PYTHONPATH": str(ROOT)}
        for number, (name, body) in enumerate({"one object": SMALL, **LARGE}.items()):
            stack = Path(folder) / str(number)
            stack.mkdir()
            (stack / "main.tf").write_text(body)
            _run([str(engine), "init", "-no-color"], stack, environ)
            done = measured("apply", "-auto-approve", "-no-color", cwd=stack, env=environ)
            if done.code != 0:
                sys.exit(f"the apply of {name} ended with {done.code}: {done.err[-2000:]}")
            rows.append(f"| {name} | {len(done.out) / 1e6:.1f} | {done.peak / 1024:.0f} |\n")
    return "| | output, MB | most memory, MB |\n|---|---|---|\n" + "".join(rows)


def bench_archive(runs: int, count: int) -> str:
    """`status`, `history` and `archive` on a stack with very many operations."""
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder:
        environ = terraform_environment(write_cli_config(Path(folder) / "cli.tfrc", None)) | {"PYTHONPATH": str(ROOT)}
        stack = Path(folder) / "stack"
        stack.mkdir()
        (stack / "main.tf").write_text(SMALL)
        _run([str(engine), "init", "-no-color"], stack, environ)
        return archive_figures(stack, count, runs, environ)


def bench_blueprint() -> str:
    """Every command on a blueprint of a thousand steps."""
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder:
        environ = terraform_environment(write_cli_config(Path(folder) / "cli.tfrc", None)) | {"PYTHONPATH": str(ROOT)}
        return blueprint_figures(environ)


def write_section(name: str, text: str) -> None:
    """Put a measurement's text into the report, in place of the one before."""
    content = REPORT.read_text()
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    head, rest = content.split(begin)
    tail = rest.split(end)[1]
    where = f"Measured {datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, "
    where += f"Python {platform.python_version()}.\n\n"
    REPORT.write_text(head + begin + where + text + end + tail)


def main() -> None:
    """Run the measurement that was asked for."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    names = "apply archive blueprint events google-scan import journal match memory scan version"
    parser.add_argument("what", choices=names.split())
    parser.add_argument("--runs", type=int, default=5, help="how many counted runs (5)")
    parser.add_argument("--resources", type=int, default=50, help="size of the stack for `apply` (50)")
    parser.add_argument("--operations", type=int, default=5000, help="how many for `archive` (5000)")
    parser.add_argument("--dry", action="store_true", help="print only, leave docs/benchmarks.md alone")
    arguments = parser.parse_args()
    texts = {
        "apply": lambda: bench_apply(arguments.runs, arguments.resources),
        "archive": lambda: bench_archive(arguments.runs, arguments.operations),
        "blueprint": bench_blueprint,
        "events": bench_events,
        "google-scan": google_figures,
        "import": import_figures,
        "journal": bench_journal,
        "match": match_figures,
        "memory": bench_memory,
        "scan": lambda: scan_figures(arguments.runs),
        "version": lambda: bench_version(max(arguments.runs, 10)),
    }
    text = texts[arguments.what]()
    print(text)
    if not arguments.dry:
        write_section(arguments.what, text)


if __name__ == "__main__":
    main()
