"""How far the journal in a far store lags behind a run, how often the store is asked, and what that costs the run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import find_engine, terraform_environment, write_cli_config

ROOT = Path(__file__).parent.parent
STEPS = 40
STEP_SECONDS = 0.4
DISTANCE_SECONDS = 0.3
_KEY = "/events.jsonl/"

BODY = f"""
resource "terraform_data" "step" {{
  count = {STEPS}
  provisioner "local-exec" {{
    command = "sleep {STEP_SECONDS}"
  }}
}}
"""


def bench_journal() -> str:
    """An apply of many short steps whose record lies in a slow S3, and the same with the record beside the state."""
    with tempfile.TemporaryDirectory() as name, MotoServer() as moto, FaultProxy(moto.url) as proxy:
        folder = Path(name)
        environ = terraform_environment(write_cli_config(folder / "cli.tfrc", None), endpoint=moto.url)
        environ["PYTHONPATH"] = str(ROOT)
        moto.client("s3").create_bucket(Bucket="records")
        near = _apply(folder / "near", environ, None)
        proxy.add_rule(f"delay:{DISTANCE_SECONDS}", service="s3", count=None)
        place = f"s3://records/far?region=us-east-1&use_path_style=true&endpoint={proxy.url}"
        far = _apply(folder / "far", environ, place)
        lags, gaps = _lags(moto, proxy)
    return (
        f"{STEPS} steps of {STEP_SECONDS} s, one after the other, each with three events; S3 (moto) answers "
        f"{DISTANCE_SECONDS} s late.\n\n| | |\n|---|---|\n"
        f"| the most that an event in the store was behind, s | {max(lags):.2f} |\n"
        f"| writes to the journal | {len(gaps) + 1} |\n"
        f"| the least time between two of them while the engine ran, s | {min(gaps[:-1]):.2f} |\n"
        f"| the run, record beside the state, s | {near:.1f} |\n"
        f"| the run, record in the slow S3, s | {far:.1f} |\n"
    )


def _apply(stack: Path, environ: Mapping[str, str], records: str | None) -> float:
    """An apply of a new stack; the seconds that it took."""
    stack.mkdir()
    (stack / "main.tf").write_text(BODY)
    if records:
        (stack / "tfguard.yaml").write_text(f'records: "{records}"\n')
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    subprocess.run([engine, "init", "-input=false"], cwd=stack, env=environ, check=True, capture_output=True)
    argv = [sys.executable, "-m", "tfguard", "apply", "-auto-approve", "-input=false", "-parallelism=1"]
    began = time.monotonic()
    subprocess.run(argv, cwd=stack, env=environ, check=True, capture_output=True)
    return time.monotonic() - began


def _lags(moto: MotoServer, proxy: FaultProxy) -> tuple[list[float], list[float]]:
    """How many seconds after it was heard each event was in the store, and those between the beginnings of writes."""
    client = moto.client("s3")
    lags: list[float] = []
    began: list[float] = []
    for entry in proxy.log.entries(service="s3"):
        if entry.method != "PUT" or _KEY not in entry.path:
            continue
        at = datetime.fromisoformat(entry.time).timestamp()
        began.append(at)
        key = entry.path.partition("?")[0].split("/", 2)[2]
        lines = client.get_object(Bucket="records", Key=key)["Body"].read().splitlines()
        heard = [datetime.fromisoformat(json.loads(line)["at"]).timestamp() for line in lines]
        lags += [at + DISTANCE_SECONDS - one for one in heard]
    return lags, [after - before for before, after in pairwise(began)]
