"""The states that a scan reads, over every kind of place: all of them, each with its workspace, record and failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

from fixtures.azure_sim import ACCOUNT, ACCOUNT_KEY, AzureServer
from fixtures.postgres_server import ADMIN, PASSWORD, PostgresServer
from fixtures.record_servers import GcsServer, new_name
from tfguard.cli.invocation import Invocation
from tfguard.cli.record_place import stack_name
from tfguard.cli.states import state_sources
from tfguard.engine.backend import StateLocation, remote_state
from tfguard.errors import InputError, NoStateError
from tfguard.model.config import BESIDE_STATE, Config
from tfguard.ports import KnownState


def state(name: str, version: int = 4) -> bytes:
    """A state with one role."""
    instance = {"attributes": {"name": name, "arn": f"arn:aws:iam::123456789012:role/{name}"}}
    resource = {"mode": "managed", "type": "aws_iam_role", "name": "a", "provider": "provider.aws"}
    document = {"version": version, "serial": 1, "lineage": name, "resources": [{**resource, "instances": [instance]}]}
    return json.dumps(document).encode()


@dataclass(frozen=True, slots=True)
class Place:
    """One kind of place. `put` writes the state of a workspace of a stack, `put_head` the head of its record. `url` is
    the pattern that means all of it; `located` tells where a stack's own backend says that its state is."""

    url: str
    put: Callable[[str, str, bytes], None]
    put_head: Callable[[str, str], None]
    located: Callable[[str, str], StateLocation]


def read(*patterns: str, config: Config | None = None, workspaces: Sequence[str] = ()) -> list[KnownState]:
    sources = state_sources(patterns, Invocation(), config or Config(), None, workspaces)
    return [known for source in sources for known in source.read()]


def names(found: Sequence[KnownState]) -> list[tuple[str, str, str]]:
    """Workspace, lineage or failure, and location."""
    return sorted((one.workspace, one.snapshot.lineage if one.snapshot else one.failure, one.location) for one in found)


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    bucket = new_name("states")
    client = boto3.client("s3", endpoint_url=s3_server, region_name="us-east-1")
    client.create_bucket(Bucket=bucket)

    def key(name: str, workspace: str) -> str:
        own = f"infra/{name}/terraform.tfstate"
        return own if workspace == "default" else f"env:/{workspace}/{own}"

    def located(name: str, workspace: str) -> StateLocation:
        return remote_state("s3", {"bucket": bucket, "key": f"infra/{name}/terraform.tfstate"}, workspace)

    return Place(
        f"s3://{bucket}/infra/**/terraform.tfstate?region=us-east-1&use_path_style=true&endpoint={s3_server}",
        lambda name, workspace, data: client.put_object(Bucket=bucket, Key=key(name, workspace), Body=data),
        lambda name, workspace: client.put_object(
            Bucket=bucket, Key=f"{key(name, workspace)}.tfguard/head.json", Body=b"{}"
        ),
        located,
    )


@pytest.fixture
def gcs(gcs_server: GcsServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "testing")
    from tfguard.stores.gcs_client import backend_access

    bucket = gcs_server.make_bucket(new_name("states"))
    settings = {"bucket": bucket, "access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint}
    client = backend_access(settings).client.bucket(bucket)
    return Place(
        f"gs://{bucket}/infra/**/*.tfstate?endpoint={gcs_server.url}",
        lambda name, workspace, data: client.blob(f"infra/{name}/{workspace}.tfstate").upload_from_string(data),
        lambda name, workspace: client.blob(f"infra/{name}/{workspace}.tfstate.tfguard/head.json").upload_from_string(
            b"{}"
        ),
        # The engine cleans the prefix, and so does not care for the slash.
        lambda name, workspace: remote_state("gcs", {"bucket": bucket, "prefix": f"infra/{name}/"}, workspace),
    )


@pytest.fixture
def azblob(azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SSL_CERT_FILE", str(azure_server.certificate))
    monkeypatch.setenv("ARM_ACCESS_KEY", ACCOUNT_KEY)
    container = new_name("states")
    client = azure_server.container(container)
    client.create_container()

    def key(name: str, workspace: str) -> str:
        return f"infra/{name}/terraform.tfstate" + ("" if workspace == "default" else f"env:{workspace}")

    settings = {"storage_account_name": ACCOUNT, "container_name": container}
    return Place(
        f"azblob://{ACCOUNT}/{container}/infra/**/*.tfstate?endpoint={azure_server.endpoint}",
        lambda name, workspace, data: client.upload_blob(key(name, workspace), data, overwrite=True),
        lambda name, workspace: client.upload_blob(f"{key(name, workspace)}.tfguard/head.json", b"{}"),
        lambda name, workspace: remote_state("azurerm", {**settings, "key": key(name, "default")}, workspace),
    )


@pytest.fixture
def postgres(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    database = new_name("states").replace("-", "_")
    postgres_server.execute(f"CREATE DATABASE {database}")

    def execute(schema: str, statement: str, *values: object) -> None:
        import psycopg

        url = postgres_server.url().replace("/postgres?", f"/{database}?")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
            columns = "id bigserial PRIMARY KEY, name text UNIQUE, data text"
            connection.execute(f'CREATE TABLE IF NOT EXISTS "{schema}".states ({columns})'.encode())
            connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{schema}".tfguard_records (stack text, name text)'.encode()
            )
            connection.execute(statement.replace("SCHEMA", f'"{schema}"').encode(), values or None)

    place = f"127.0.0.1:{postgres_server.port}/{database}"
    return Place(
        f"postgresql://{ADMIN}@{place}?sslmode=disable",
        lambda name, workspace, data: execute(
            name, "INSERT INTO SCHEMA.states (name, data) VALUES (%s, %s)", workspace, data.decode()
        ),
        lambda name, workspace: execute(
            name, "INSERT INTO SCHEMA.tfguard_records (stack, name) VALUES (%s, 'head.json')", workspace
        ),
        lambda name, workspace: remote_state(
            "pg", {"conn_str": f"postgres://u@{place}?sslmode=disable", "schema_name": name}, workspace
        ),
    )


@pytest.fixture(params=["s3", "gcs", "azblob", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield request.getfixturevalue(request.param)


def test_every_state_of_every_workspace_is_read_where_its_own_backend_says_that_it_is(place: Place) -> None:
    for name, workspace in (("net", "default"), ("net", "dev"), ("net", "prod"), ("app", "default")):
        place.put(name, workspace, state(f"{name}-{workspace}"))
    found = read(place.url)
    assert [(workspace, lineage) for workspace, lineage, _ in names(found)] == [
        ("default", "app-default"),
        ("default", "net-default"),
        ("dev", "net-dev"),
        ("prod", "net-prod"),
    ]
    dev = next(one for one in found if one.workspace == "dev")
    assert dev.location == place.located("net", "dev").stack.location.replace("/#", "#")
    role = dev.snapshot.instances[0] if dev.snapshot else None
    assert role is not None and role.identity["name"] == "net-dev"
    assert {one.workspace for one in read(f"{place.url}", workspaces=["dev"])} == {"dev"}
    joint = "&" if "?" in place.url else "?"
    assert {one.workspace for one in read(f"{place.url}{joint}workspace=dev&workspace=prod")} == {"dev", "prod"}


def test_a_state_that_cannot_be_read_is_told_and_hides_no_other(place: Place) -> None:
    place.put("a", "default", state("a"))
    place.put("cut", "default", state("cut")[:-9])
    place.put("empty", "default", b"")
    place.put("newer", "default", state("newer", version=5))
    place.put("strange", "default", b'{"hello": 1}')
    place.put("z", "default", state("z"))
    found = read(place.url)
    assert [one.snapshot.lineage for one in found if one.snapshot] == ["a", "z"]
    told = "\n".join(one.failure for one in found)
    for why in ("it is cut or not JSON", "it is empty", "it has version 5", "it has no version"):
        assert why in told
    assert all("\n" not in one.failure and one.location in one.failure for one in found if one.failure)


def test_a_run_that_has_begun_and_never_wrote_its_state_is_known_by_its_record(place: Place) -> None:
    place.put("net", "default", state("net"))
    place.put_head("net", "default")
    place.put_head("net", "dev")
    found = read(place.url)
    assert [(workspace, lineage) for workspace, lineage, _ in names(found)] == [("default", "net"), ("dev", "")]
    assert all(one.records is not None for one in found)


def test_a_pattern_that_matches_nothing_is_an_error(place: Place) -> None:
    with pytest.raises(NoStateError, match="matches no state"):
        read(place.url)
    place.put("net", "dev", state("net"))
    with pytest.raises(NoStateError):
        read(place.url, workspaces=["other"])


def test_below_a_shared_place_each_state_has_the_record_that_its_applies_write(place: Place, tmp_path: Path) -> None:
    place.put("net", "dev", state("net"))
    config = Config(records=f"file://{tmp_path}")
    assert config.records != BESIDE_STATE
    head = tmp_path / stack_name(place.located("net", "dev").stack) / "head.json"
    head.parent.mkdir()
    head.write_text("{}")
    (found,) = read(place.url, config=config)
    assert found.records is not None
    assert found.records.location == str(head.parent)


def test_a_place_that_is_not_there_cannot_be_listed(place: Place) -> None:
    absent = place.url.replace("states", "absent")
    with pytest.raises(InputError) as caught:
        read(absent)
    assert not isinstance(caught.value, NoStateError)
    assert "record" not in caught.value.what


@dataclass(frozen=True, slots=True)
class Bucket:
    """An S3 bucket to put anything into; `url` makes a pattern for it."""

    name: str
    endpoint: str

    def put(self, *keys: str, data: bytes | None = None) -> None:
        client = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1")
        for key in keys:
            client.put_object(Bucket=self.name, Key=key, Body=state(key) if data is None else data)

    def url(self, keys: str, more: str = "") -> str:
        return f"s3://{self.name}{keys}?region=us-east-1&use_path_style=true&endpoint={self.endpoint}{more}"


@pytest.fixture
def bucket(s3_server: str, s3: Place) -> Bucket:
    return Bucket(s3.url.split("/")[2], s3_server)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", ["a/net.tfstate", "a/sub/app.tfstate", "env:/dev/a/net.tfstate", "env:/dev/other.tfstate"]),
        ("/a", ["a/net.tfstate", "a/sub/app.tfstate", "env:/dev/a/net.tfstate"]),
        ("/a/*.tfstate", ["a/net.tfstate", "env:/dev/a/net.tfstate"]),
        ("/a/net.tfstate", ["a/net.tfstate", "env:/dev/a/net.tfstate"]),
        ("/env:/dev/**", ["env:/dev/a/net.tfstate", "env:/dev/other.tfstate"]),
        ("/a/bare", ["a/bare"]),
        ("/a/ba?e", ["a/bare"]),
    ],
)
def test_a_url_means_the_states_below_it_with_those_of_their_workspaces(
    bucket: Bucket, pattern: str, expected: list[str]
) -> None:
    bucket.put("a/net.tfstate", "a/sub/app.tfstate", "a/bare", "env:/dev/a/net.tfstate", "env:/dev/other.tfstate")
    bucket.put("a/net.tfstate.tflock", "a/net.tfstate.backup", "a/notes.txt", "a/errored.tfstate", data=b"x")
    found = read(bucket.url(pattern))
    assert [one.failure for one in found if one.failure] == []
    assert sorted(one.location.removeprefix(f"s3://{bucket.name}/") for one in found) == expected
    assert {one.location for one in found if one.workspace == "dev"} == {
        f"s3://{bucket.name}/{key}" for key in expected if key.startswith("env:/dev")
    }


def test_below_a_slash_every_object_is_a_state_or_a_failure_but_for_the_records(bucket: Bucket) -> None:
    bucket.put("a/bare")
    bucket.put("a/notes.txt", "a/records/infra-0123456789/head.json", data=b"no state")
    config = Config(records=bucket.url("/a/records"))
    found = read(bucket.url("/a/"), config=config)
    assert [(one.location.rpartition("/")[2], bool(one.failure)) for one in found] == [
        ("bare", False),
        ("notes.txt", True),
    ]


def test_another_prefix_for_workspaces_has_to_be_said(bucket: Bucket) -> None:
    bucket.put("net.tfstate", "spaces/dev/net.tfstate")
    said = read(bucket.url("/net.tfstate", "&workspace_key_prefix=spaces"))
    assert [(one.workspace, one.location) for one in said] == [
        ("default", f"s3://{bucket.name}/net.tfstate"),
        ("dev", f"s3://{bucket.name}/spaces/dev/net.tfstate"),
    ]
    assert [one.workspace for one in read(bucket.url("/net.tfstate"))] == ["default"]


def test_a_state_on_a_later_page_of_the_list_is_read(bucket: Bucket) -> None:
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]  # over HTTP this would take a while
    for number in range(1_050):
        backend.put_object(bucket.name, f"many/{number}/notes.txt", b"")
    bucket.put("many/z/terraform.tfstate")
    (found,) = read(bucket.url("/many/**/terraform.tfstate"))
    assert found.snapshot is not None
