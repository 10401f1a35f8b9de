"""The demo's story: run by `scripts/demo` with a temporary folder as its only argument."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import find_engine, find_mirror, terraform_environment, write_cli_config, write_stack

ROLE = """\
resource "aws_iam_role" "app" {
  name = "app"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })
}
"""


class Story:
    """Runs commands where the reader can see them, in one stack and one environment."""

    def __init__(self, stack: Path, environ: Mapping[str, str]) -> None:
        self._stack = stack
        self._environ = environ
        self._bold, self._plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")

    def tell(self, text: str) -> None:
        """A line of the story."""
        print(f"\n{self._bold}# {text}{self._plain}", flush=True)

    def run(self, *arguments: str, expect: int) -> str:
        """Run tfguard, show what it prints, and stop the story when it does not end as the story says."""
        shown = " ".join(("tfguard", *arguments))
        print(f"{self._bold}$ {shown}{self._plain}", flush=True)
        printed: list[str] = []
        with subprocess.Popen(
            [sys.executable, "-m", "tfguard", *arguments],
            cwd=self._stack,
            env={**self._environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                printed.append(line)
        if process.returncode != expect:
            sys.exit(f"the demo expected exit code {expect} and got {process.returncode}")
        print(f"(exit code {process.returncode})", flush=True)
        return "".join(printed)


def main(work: Path) -> None:
    """Tell the story in `work`, which the caller removes."""
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    with MotoServer() as moto, FaultProxy(moto.url) as proxy:
        environ = terraform_environment(write_cli_config(work / "cli.tfrc", find_mirror()), endpoint=proxy.url)
        environ |= {"TFGUARD_ENGINE": str(engine), "TMPDIR": str(work), "PYTHONPATH": str(Path.cwd())}
        stack = write_stack(work / "stack", ROLE)
        story = Story(stack, environ)
        story.tell("An embedded AWS (moto) is up, and a stack with one IAM role is ready.")
        story.run("init", "-no-color", "-input=false", expect=0)
        story.tell("The network will lose AWS's reply to CreateRole. The pipeline applies, through tfguard.")
        proxy.add_rule("drop", action="CreateRole")
        story.run("apply", "-auto-approve", "-no-color", expect=1)
        story.tell("Terraform says that the role exists already, and its state is empty. What is left behind?")
        listed = story.run("orphans", "list", expect=2)
        orphan = re.search(r"o-[0-9a-f]{8}", listed)
        if orphan is None:
            sys.exit("the demo expected an orphan")
        story.tell("One command adopts it.")
        story.run("import", "--orphan", orphan[0], "--yes", expect=0)
        story.tell("And the plan is clean.")
        story.run("plan", "-detailed-exitcode", "-no-color", expect=0)
        shutil.rmtree(stack)


if __name__ == "__main__":
    os.umask(0o077)
    main(Path(sys.argv[1]))
