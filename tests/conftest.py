"""Fixtures for every test: a simulated cloud, a fault proxy before it, stacks, the engine and tfguard as processes.

`run_env` is what `tf`, `tfguard` and `tfguard_popen` run with. A test that asks for `proxy` (directly or through
`stack_factory`) gets an environment whose AWS calls go through it; any other gets one without a cloud.

`tf` and `tfguard` attach their engines to an AWS provider that is up already, in tests with stacks on it. What
`tfguard_popen` starts, which tests signal and kill, starts a provider of its own, and so does a test that is marked
`own_provider`: one about the provider's process, or about what it reads of its environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO

import botocore.loaders
import botocore.session
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from fixtures.aws_sim import REGION, MotoServer  # noqa: E402
from fixtures.fault_proxy import FaultProxy  # noqa: E402
from fixtures.kept_provider import KeptProvider  # noqa: E402
from fixtures.leftovers import end_processes_in  # noqa: E402
from fixtures.terraform_env import (  # noqa: E402
    ProviderUnavailableError,
    find_engine,
    find_mirror,
    make_seed,
    needs_own_init,
    plant,
    terraform_environment,
    write_cli_config,
    write_stack,
)

pytest_plugins = ["fixtures.record_servers", "fixtures.google_stacks"]

# A timing decides no test. In CI every run tries the same examples; elsewhere each run looks for new ones.
settings.register_profile(
    "tfguard", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tfguard")

# What is ignored stays ignored in every process that a test starts; a suite under `nohup` tests the same as any other.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# For the processes that tests start: bytecode is kept, and engines, which end soon, collect garbage less often.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("GOGC", "400")

# Each session of the SDK reads the models of its services anew, which is dearer than most tests: here they share them.
botocore.session.create_loader = cache(botocore.loaders.create_loader)

RUN_TIMEOUT_SECONDS = 300
TFGUARD = (sys.executable, "-m", "tfguard")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]
StackFactory = Callable[..., Path]
Attach = Callable[[Mapping[str, str], Path, Collection[str]], dict[str, str]]


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoServer]:
    """One simulated cloud for the session, so one for each xdist worker; `proxy` resets it."""
    with MotoServer() as server:
        yield server


@pytest.fixture(scope="session")
def kept_port() -> Iterator[socket.socket]:
    """The port of the session's proxies, so that the kept provider sends its calls to each."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield listener


@pytest.fixture(scope="session")
def kept_provider(seed: Path, kept_port: socket.socket, cli_config: Path) -> Iterator[KeptProvider]:
    """One AWS provider for the session, so one for each xdist worker."""
    host, port = kept_port.getsockname()
    with KeptProvider(seed, terraform_environment(cli_config, endpoint=f"http://{host}:{port}")) as running:
        yield running


@pytest.fixture
def attach(request: pytest.FixtureRequest) -> Attach:
    """What adds the kept provider to the environment of a run in a folder, where it fits."""
    wanted = {"proxy", "seed"} <= set(request.fixturenames)
    if not wanted or request.node.get_closest_marker("own_provider") is not None:
        return lambda environment, _folder, _command: dict(environment)
    kept: KeptProvider = request.getfixturevalue("kept_provider")
    return kept.environment


@pytest.fixture
def proxy(moto: MotoServer, kept_port: socket.socket) -> Iterator[FaultProxy]:
    """A fault proxy without rules before an account without objects."""
    moto.reset()
    with FaultProxy(moto.url, listener=kept_port) as running:
        yield running


@pytest.fixture(scope="session")
def engine() -> Path:
    """The real engine; a test that needs it is skipped where there is none."""
    found = find_engine()
    if found is None:
        pytest.skip("neither terraform nor tofu is on PATH")
    return found


@pytest.fixture(scope="session")
def cli_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLI configuration of our own, whatever the machine has."""
    return write_cli_config(tmp_path_factory.mktemp("cli") / "terraform.rc", find_mirror())


@pytest.fixture(scope="session")
def mirror_env(cli_config: Path) -> dict[str, str]:
    """The environment for engine runs that reach no cloud."""
    return terraform_environment(cli_config)


@pytest.fixture(scope="session")
def seed(engine: Path, mirror_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stack with the AWS provider installed, to be copied; skipped where the provider cannot be had."""
    try:
        return make_seed(tmp_path_factory.mktemp("seed"), engine, mirror_env)
    except ProviderUnavailableError as error:
        pytest.skip(f"no AWS provider; set TFGUARD_PROVIDER_MIRROR to a mirror folder. The engine says: {error}")


@pytest.fixture
def workdir(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; what still runs in it when the test ends is ended."""
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    end_processes_in(folder)


@pytest.fixture
def run_env(request: pytest.FixtureRequest, cli_config: Path, workdir: Path) -> dict[str, str]:
    """The environment of a run; a test may add to it before it starts something."""
    endpoint: str | None = request.getfixturevalue("proxy").url if "proxy" in request.fixturenames else None
    environment = terraform_environment(cli_config, endpoint=endpoint)
    search_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    home = workdir.with_name("home")
    home.mkdir()
    return environment | {"PYTHONPATH": search_path, "HOME": str(home)}


@pytest.fixture
def tf(engine: Path, run_env: dict[str, str], attach: Attach) -> Run:
    """Run the real engine: `tf("apply", "-auto-approve", cwd=stack)`; a non-zero exit raises unless `check=False`."""

    def run(
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float = RUN_TIMEOUT_SECONDS,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        done = _run([str(engine), *arguments], cwd, attach(run_env | dict(env or {}), cwd, arguments), stdin, timeout)
        if check and done.returncode != 0:
            pytest.fail(f"{engine.name} {' '.join(arguments)} gave {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    return run


@pytest.fixture
def stack_factory(workdir: Path, proxy: FaultProxy, seed: Path, tf: Run) -> StackFactory:  # noqa: ARG001 (for run_env)
    """Write an initialised stack on the AWS provider: `stack_factory(body, backend=None, aliases=None)`."""

    def make(
        body: str,
        *,
        name: str = "stack",
        backend: Mapping[str, object] | None = None,
        aliases: Mapping[str, str] | None = None,
        region: str = REGION,
    ) -> Path:
        stack = write_stack(workdir / name, body, region=region, backend=backend, aliases=aliases)
        plant(seed, stack)
        if needs_own_init(body, backend):
            tf("init", "-input=false", "-no-color", cwd=stack)
        return stack

    return make


@pytest.fixture
def plain_stack(workdir: Path, tf: Run) -> StackFactory:
    """Write and initialise a stack without any provider but the builtin one, which is quick: `plain_stack(body)`."""

    def make(body: str, *, name: str = "stack") -> Path:
        stack = workdir / name
        stack.mkdir()
        (stack / "main.tf").write_text(body)
        tf("init", "-input=false", "-no-color", cwd=stack)
        return stack

    return make


@pytest.fixture
def tfguard(run_env: dict[str, str], workdir: Path, attach: Attach) -> Run:
    """Run tfguard as a user would: `tfguard("apply", "-auto-approve", cwd=stack)`; the caller checks the exit code."""

    def run(
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float = RUN_TIMEOUT_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        folder = cwd or workdir
        environment = attach(run_env | dict(env or {}), folder, arguments)
        return _run([*TFGUARD, *arguments], folder, environment, stdin, timeout)

    return run


@pytest.fixture
def tfguard_popen(run_env: dict[str, str], workdir: Path, attach: Attach) -> Iterator[Start]:
    """Start tfguard in a session of its own and go on, as `Popen` does; it is killed if it outlives the test.

    With `kept_provider` its engines use the provider that is up: for a run that nobody disturbs.
    """
    started: list[subprocess.Popen[str]] = []

    def start(
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[str] = subprocess.DEVNULL,
        stdout: int | IO[str] = subprocess.PIPE,
        stderr: int | IO[str] = subprocess.PIPE,
        kept_provider: bool = False,
    ) -> subprocess.Popen[str]:
        folder, environment = cwd or workdir, run_env | dict(env or {})
        process = subprocess.Popen(
            [*TFGUARD, *arguments],
            cwd=folder,
            env=attach(environment, folder, arguments) if kept_provider else environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        # Pipes are closed, not read to their end: an engine that lives on may hold them open.
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def _run(
    argv: list[str], cwd: Path, env: Mapping[str, str], stdin: str | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with nothing on stdin unless something is given."""
    source = subprocess.DEVNULL if stdin is None else None
    return subprocess.run(
        argv, cwd=cwd, env=env, stdin=source, input=stdin, capture_output=True, text=True, timeout=timeout
    )
