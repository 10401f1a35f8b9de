"""Where the state lies, from the backend file and the workspace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfguard.engine.backend import StateLocation, locate_state, s3_state_key
from tfguard.errors import InputError, NotInitialisedError, UsageError
from tfguard.stores.s3_client import backend_client


def initialised(folder: Path, kind: str, config: dict[str, object], data: str = ".terraform") -> None:
    """Write the file that `init` leaves for a backend."""
    (folder / data).mkdir(parents=True, exist_ok=True)
    document = {"version": 3, "backend": {"type": kind, "config": config, "hash": 1}}
    (folder / data / "terraform.tfstate").write_text(json.dumps(document))


def located(folder: Path, state: str | None = None, **environ: str) -> StateLocation:
    return locate_state(folder, environ, state)


def test_without_a_backend_the_state_lies_in_the_folder(tmp_path: Path) -> None:
    assert located(tmp_path).path == tmp_path / "terraform.tfstate"
    assert located(tmp_path, TF_WORKSPACE="dev").path == tmp_path / "terraform.tfstate.d/dev/terraform.tfstate"


def test_a_local_backend_names_file_and_folder(tmp_path: Path) -> None:
    initialised(tmp_path, "local", {"path": "a/b.tfstate", "workspace_dir": "spaces"})
    assert located(tmp_path).path == tmp_path / "a/b.tfstate"
    assert located(tmp_path, TF_WORKSPACE="dev").path == tmp_path / "spaces/dev/terraform.tfstate"


def test_the_state_flag_wins_over_a_local_backend_and_over_a_workspace(tmp_path: Path) -> None:
    initialised(tmp_path, "local", {"path": None, "workspace_dir": None})
    assert located(tmp_path).path == tmp_path / "terraform.tfstate"
    assert located(tmp_path, "x.tfstate", TF_WORKSPACE="dev").path == tmp_path / "x.tfstate"


def test_the_selected_workspace_and_the_data_folder_are_read(tmp_path: Path) -> None:
    initialised(tmp_path, "s3", {"bucket": "b", "key": "k"}, data="data")
    (tmp_path / "data/environment").write_text("dev\n")
    assert located(tmp_path, TF_DATA_DIR="data").stack.location == "s3://b/env:/dev/k"
    assert located(tmp_path, TF_DATA_DIR="data", TF_WORKSPACE="default").stack.location == "s3://b/k"


@pytest.mark.parametrize(
    ("settings", "workspace", "key"),
    [
        ({"key": "k"}, "default", "k"),
        ({"key": "k"}, "dev", "env:/dev/k"),
        ({"key": "k", "workspace_key_prefix": "spaces"}, "dev", "spaces/dev/k"),
    ],
)
def test_the_key_of_a_workspace_in_s3(settings: dict[str, str], workspace: str, key: str) -> None:
    assert s3_state_key(settings, workspace) == key


def test_nested_blocks_and_lists_of_a_backend_are_flattened(tmp_path: Path) -> None:
    config = {
        "bucket": "b",
        "key": "k",
        "use_lockfile": True,
        "max_retries": 3,
        "profile": None,
        "endpoints": {"s3": "http://127.0.0.1:1"},
        "assume_role": [{"role_arn": "arn"}],
        "shared_credentials_files": ["/one", "/two"],
        "allowed_account_ids": [],
    }
    initialised(tmp_path, "s3", config)
    assert located(tmp_path).settings == {
        "bucket": "b",
        "key": "k",
        "use_lockfile": "true",
        "max_retries": "3",
        "endpoints.s3": "http://127.0.0.1:1",
        "assume_role.role_arn": "arn",
        "shared_credentials_files.0": "/one",
        "shared_credentials_files.1": "/two",
    }


def test_the_records_are_reached_with_the_credentials_file_that_the_backend_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "keys").write_text("[default]\naws_access_key_id = listed\naws_secret_access_key = x\n")
    config = {"bucket": "b", "key": "k", "region": "us-east-1", "shared_credentials_files": [str(tmp_path / "keys")]}
    initialised(tmp_path, "s3", config)
    client = backend_client(located(tmp_path).settings)
    assert client._request_signer._credentials.access_key == "listed"


def test_a_location_holds_no_credential(tmp_path: Path) -> None:
    initialised(tmp_path, "http", {"address": "https://user:hunter2@host/state?token=hunter2", "password": "hunter2"})
    found = located(tmp_path)
    assert found.stack.location == "http:https://host/state"
    assert "hunter2" not in repr(found)


def test_what_the_backend_file_leaves_to_the_environment_is_read_there(tmp_path: Path) -> None:
    initialised(tmp_path, "http", {"address": None})
    assert located(tmp_path, TF_HTTP_ADDRESS="http://host/a").stack.location == "http:http://host/a"


def test_the_pg_backend_takes_its_skip_settings_from_the_environment(tmp_path: Path) -> None:
    initialised(tmp_path, "pg", {"conn_str": "host=h", "skip_table_creation": None})
    assert located(tmp_path, PG_SKIP_TABLE_CREATION="true").settings["skip_table_creation"] == "true"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("main.tf", 'terraform {\n  backend "s3" {\n  }\n}\n', "s3"),
        ("main.tf", "terraform {\n  cloud {\n  }\n}\n", "cloud"),
        ("main.tf.json", '{"terraform": {"backend": {"gcs": {}}}}', "gcs"),
        ("main.tf.json", '{"terraform": [{"cloud": {}}]}', "cloud"),
        ("main.tf", 'terraform {\n  backend "local" {\n  }\n}\n', "local"),
    ],
)
def test_a_declared_backend_without_an_init_is_told(tmp_path: Path, name: str, text: str, kind: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"backend '{kind}'") as caught:
        located(tmp_path)
    assert "init" in caught.value.advice


def test_a_backend_in_a_comment_is_none(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('# backend "s3" {\n/*\n backend "s3" {\n*/\n// cloud {\n')
    assert located(tmp_path).stack.backend == "local"


@pytest.mark.parametrize("content", ["", "{", '{"version": 3'])
def test_a_damaged_backend_file_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform/terraform.tfstate").write_text(content)
    with pytest.raises(InputError, match="damaged"):
        located(tmp_path)


@pytest.mark.parametrize(
    ("kind", "config", "environ", "location"),
    [
        ("pg", {"conn_str": "postgres://u:hunter2@h:5/d?password=hunter2"}, {}, "pg:postgres://h:5/d"),
        ("pg", {"conn_str": "user=u password='a dbname=hunter2' dbname=d host=h"}, {}, "pg:d/h"),
        ("pg", {"conn_str": None}, {"PG_CONN_STR": "postgres://h/d", "PG_SCHEMA_NAME": "s"}, "pg:postgres://h/d/s"),
        ("pg", {"conn_str": r"host=h password=a\ dbname=hunter2 dbname=d"}, {}, "pg:h/d"),
        ("pg", {}, {"PGHOST": "h", "PGDATABASE": "d e", "PGPASSWORD": "hunter2"}, r"pg:h/d\ e"),
        ("gcs", {"bucket": "b", "prefix": "env=prod/app"}, {}, "gcs:b/env=prod/app"),
        ("kubernetes", {"secret_suffix": "s"}, {"KUBE_NAMESPACE": "n"}, "kubernetes:n/s"),
        ("remote", {"organization": "o", "workspaces": [{"name": None, "prefix": "app-"}]}, {}, "remote:o/app-"),
        ("cloud", {"workspaces": {"name": "w"}}, {"TF_CLOUD_ORGANIZATION": "o"}, "cloud:o/w"),
        ("oss", {"bucket": "b", "key": "k", "secret_key": "hunter2"}, {}, "oss:b/k"),
        ("of-the-future", {"bucket": "b", "key": "k", "token": "hunter2"}, {}, "of-the-future:b/k"),
    ],
)
def test_two_states_of_a_backend_never_share_a_name_and_no_name_holds_a_secret(
    tmp_path: Path, kind: str, config: dict[str, object], environ: dict[str, str], location: str
) -> None:
    initialised(tmp_path, kind, config)
    assert located(tmp_path, **environ).stack.location == location


def test_a_backend_that_was_not_set_up_has_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('terraform {\n  backend "s3" {\n  }\n}\n')
    with pytest.raises(NotInitialisedError):
        located(tmp_path)


def test_a_backend_block_counts_in_a_terraform_block_alone(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(
        'locals {\n  other = <<-EOT\n    terraform {\n      backend "s3" {\n      }\n    }\n  EOT\n}\n'
        'resource "x" "y" {\n  cloud {\n  }\n  backend "gcs" {\n  }\n}\nterraform {\n  required_version = ">= 1.5"\n}\n'
    )
    assert locate_state(tmp_path, {}).stack.backend == "local"
    (tmp_path / "b.tf").write_text('terraform {\n  backend "s3" {}\n}\n')
    with pytest.raises(NotInitialisedError, match="'s3'"):
        locate_state(tmp_path, {})


@pytest.mark.parametrize("name", ["a/b", "../../esc", "..", "ü", "a b"])
def test_a_workspace_that_the_engine_refuses_has_no_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="workspace"):
        locate_state(tmp_path, {"TF_WORKSPACE": name})


def test_a_state_has_one_place_whichever_way_leads_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = [
        locate_state(tmp_path / "real", {}),
        locate_state(tmp_path / "link", {}),
        locate_state(tmp_path / "real", {}, "sub/../terraform.tfstate"),
        locate_state(tmp_path / "real", {}, str(tmp_path / "link" / "terraform.tfstate")),
    ]
    assert {place.stack.location for place in places} == {str(tmp_path / "real" / "terraform.tfstate")}
