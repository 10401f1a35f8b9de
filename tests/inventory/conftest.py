"""A simulated AWS, and a server that answers whatever a test says: refusals, half a list, nothing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from moto.server import ThreadedMotoServer

from fixtures.aws_sim import aws_client
from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.google import GoogleInventory
from tfguard.inventory.google_access import GoogleAccesses, Pace
from tfguard.model.plan import ProviderConfig

REGION = "eu-west-1"
Answer = tuple[int, str]
Answers = Callable[[str, dict[str, Any]], Answer]

IDENTITY = (
    "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/u</Arn>"
    "<Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
)


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nothing that the environment or the home folder says about AWS reaches a test."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def inventory() -> AwsInventory:
    """The inventory under test, without any client yet."""
    return AwsInventory(load_catalog())


@pytest.fixture(scope="session")
def aws_server() -> Iterator[str]:
    """The URL of a simulated AWS."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(aws_server: str) -> Callable[..., Any]:
    """Makes clients of the SDK for the simulated AWS."""

    def make(service: str, region: str = REGION) -> Any:
        # Set up and asked beside the code under test: a server that has no thread left for a moment decides no test.
        return aws_client(service, aws_server, region=region, retries=8)

    return make


@pytest.fixture
def block() -> Callable[..., ProviderConfig]:
    """Makes provider blocks with credentials and a region; `__` in a name stands for a dot, "" leaves a setting out."""

    def make(unresolved: tuple[str, ...] = (), key: str = "aws", **settings: str) -> ProviderConfig:
        given = {"region": REGION, "access_key": "test", "secret_key": "test"} | settings
        settings = {name.replace("__", "."): value for name, value in given.items() if value}
        return ProviderConfig(key, "registry.terraform.io/hashicorp/aws", settings, frozenset(unresolved))

    return make


@pytest.fixture
def aws(aws_server: str, block: Callable[..., ProviderConfig]) -> ProviderConfig:
    """A provider block that points at the simulated AWS."""
    return block(endpoint_url=aws_server)


@pytest.fixture
def answering(block: Callable[..., ProviderConfig]) -> Iterator[Callable[[Answers], ProviderConfig]]:
    """Starts a server that answers as the function says that it is given, and makes a provider block for it."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: Answers) -> ProviderConfig:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answers))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return block(endpoint_url=f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            operation, arguments = _asked(self.headers.get("X-Amz-Target"), body)
            known = (200, IDENTITY) if operation == "GetCallerIdentity" else None
            status, text = known or answers(operation, arguments)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _asked(target: str | None, body: str) -> tuple[str, dict[str, Any]]:
    if target:
        return target.rsplit(".", 1)[-1], json.loads(body)
    form = {name: values[0] for name, values in parse_qs(body).items()}
    return form.get("Action", ""), form


@pytest.fixture(scope="session")
def google_server() -> Iterator[GoogleSim]:
    """The fake of Google Cloud, with whatever the tests before have left in it."""
    with GoogleSim() as sim:
        yield sim


@pytest.fixture
def google(google_server: GoogleSim, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> GoogleSim:
    """The fake of Google Cloud with nothing in it; nothing of this machine's own Google settings reaches a test."""
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "CLOUDSDK_", "GCLOUD_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    google_server.reset()
    google_server.token = "shown"
    return google_server


@pytest.fixture
def google_block(google: GoogleSim) -> Callable[..., ProviderConfig]:
    """Makes provider blocks that point at the fake; `__` in a name stands for a dot, "" leaves a setting out."""

    def make(key: str = "google", **settings: str) -> ProviderConfig:
        given = {"project": "app-prod", "access_token": "shown", **google.endpoints} | settings
        told = {name.replace("__", "."): value for name, value in given.items() if value}
        return ProviderConfig(key, "registry.terraform.io/hashicorp/google", told)

    return make


@pytest.fixture
def google_inventory() -> GoogleInventory:
    """The inventory under test, which waits for nothing."""
    accesses = GoogleAccesses(Pace(60_000, 1000), pause=lambda _: None)
    return GoogleInventory(load_catalog(), accesses)
