"""What a scratch folder is made of: the provider block, the engine's environment, and errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.catalog.loader import load_catalog
from tfguard.engine.cautious import more_cautious, why_spared, with_final_snapshot
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.scratch import ScratchDeletion, provider_block
from tfguard.engine.short_errors import errors_in_text, short_error
from tfguard.errors import InputError
from tfguard.model.engine import EngineInfo
from tfguard.model.failure import blocks_deletion, wants_final_snapshot
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Deletion, DeletionTarget

AWS = "registry.terraform.io/hashicorp/aws"


@pytest.mark.parametrize(
    ("settings", "block"),
    [
        ({}, {}),
        ({"region": "eu-west-1"}, {"region": "eu-west-1"}),
        ({"allowed_account_ids.1": "b", "allowed_account_ids.0": "a"}, {"allowed_account_ids": ["a", "b"]}),
        ({f"ids.{i}": str(i) for i in range(11)}, {"ids": [str(i) for i in range(11)]}),
        ({"endpoints.s3": "http://x", "endpoints.sts": "y"}, {"endpoints": {"s3": "http://x", "sts": "y"}}),
        (
            {"assume_role.role_arn": "r", "assume_role.policy_arns.0": "p"},
            {"assume_role": {"role_arn": "r", "policy_arns": ["p"]}},
        ),
        ({"assume_role.tags.a.b": "c", "assume_role.tags.1": "d"}, {"assume_role": {"tags": {"a.b": "c", "1": "d"}}}),
        ({"features.key_vault.purge": "true"}, {"features": {"key_vault": {"purge": "true"}}}),
        ({"assume_role": "old", "assume_role.role_arn": "r"}, {"assume_role": {"role_arn": "r"}}),
        ({"assume_role.role_arn": "r", "assume_role": "old"}, {"assume_role": {"role_arn": "r"}}),
    ],
)
def test_dotted_settings_become_lists_blocks_and_maps(settings: dict[str, str], block: dict[str, object]) -> None:
    assert provider_block(settings) == block


def flat(value: object, name: str = "") -> dict[str, str]:
    """Dotted names again."""
    if isinstance(value, str):
        return {name: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    return {inner: text for key, item in pairs for inner, text in flat(item, f"{name}.{key}".lstrip(".")).items()}


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
BLOCKS = st.recursive(
    st.text(max_size=5),
    lambda inner: st.lists(inner, min_size=1, max_size=12) | st.dictionaries(NAMES, inner, min_size=1, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, BLOCKS, max_size=4))
def test_every_setting_stands_in_the_block_where_it_was(block: dict[str, object]) -> None:
    assert flat(provider_block(flat(block))) == flat(block)
    if not any("labels" in name or "tags" in name for name in flat(block)):
        assert provider_block(flat(block)) == block


@pytest.mark.parametrize(
    ("kind", "attributes", "changed"),
    [
        ("aws_vpc", {"id": "vpc-1"}, {}),
        ("aws_s3_bucket", {"force_destroy": None}, {}),
        ("aws_s3_bucket", {"force_destroy": False}, {}),
        ("aws_s3_bucket", {"force_destroy": True}, {"force_destroy": False}),
        ("aws_secretsmanager_secret", {"recovery_window_in_days": None}, {"recovery_window_in_days": 30}),
        ("aws_secretsmanager_secret", {"recovery_window_in_days": 7}, {}),
        (
            "aws_db_instance",
            {"skip_final_snapshot": True, "delete_automated_backups": True},
            {"skip_final_snapshot": False, "delete_automated_backups": False},
        ),
        ("aws_iam_role", {"inline_policy": [], "managed_policy_arns": ["arn"]}, {"managed_policy_arns": []}),
        ("aws_eip", {"association_id": "eipassoc-1"}, {"association_id": ""}),
        ("aws_route_table_association", {"association_id": "x"}, {}),
        ("aws_internet_gateway", {"vpc_id": "vpc-1"}, {"vpc_id": ""}),
        ("aws_subnet", {"vpc_id": "vpc-1"}, {}),
        ("aws_dynamodb_table", {"replica": [{"region_name": "eu-west-1"}]}, {"replica": []}),
        ("aws_ssm_document", {"permissions": {"type": "Share", "account_ids": "1"}}, {"permissions": {}}),
        (
            "aws_spot_fleet_request",
            {"terminate_instances_with_expiration": True},
            {"terminate_instances_with_expiration": False},
        ),
    ],
)
def test_what_would_force_or_detach_is_taken_back(
    kind: str, attributes: dict[str, object], changed: dict[str, object]
) -> None:
    assert more_cautious(kind, attributes) == changed


@pytest.mark.parametrize(
    ("kind", "attributes", "why"),
    [
        ("google_compute_disk", {"users": ["https://compute/projects/p/zones/z/instances/vm"]}, "attached"),
        ("google_compute_disk", {"users": []}, None),
        ("google_compute_region_disk", {"users": ["vm"]}, "attached"),
        ("aws_instance", {"disable_api_termination": True}, "protected"),
        ("aws_instance", {"disable_api_termination": False}, None),
        ("aws_thing", {"users": ["vm"], "disable_api_termination": True}, None),
    ],
)
def test_what_keeps_an_object_is_told_where_no_state_holds_the_provider_back(
    kind: str, attributes: dict[str, object], why: str | None
) -> None:
    told = why_spared(kind, attributes)
    if why is None:
        assert told is None
    else:
        assert told is not None
        assert why in told[0]
        assert "hangs on it" not in told[1]


@pytest.mark.parametrize(
    ("summary", "detail", "shown"),
    [
        (
            "deleting S3 Bucket (b): operation error S3: DeleteBucket, https response error StatusCode: 409, "
            "RequestID: fveO, HostID: 9Gj/t1m+c=, api error BucketNotEmpty: The bucket is not empty",
            "",
            "deleting S3 Bucket (b): BucketNotEmpty: The bucket is not empty",
        ),
        (
            "deleting EC2 VPC (vpc-1)",
            "operation error EC2: DeleteVpc, exceeded maximum number of attempts, 25, https response error "
            "StatusCode: 400, RequestID: 1-2, api error DependencyViolation: it has dependencies\nmore",
            "deleting EC2 VPC (vpc-1): DependencyViolation: it has dependencies",
        ),
        ("deleting: InUse: in use\n\tstatus code: 400, request id: 12-ab", "", "deleting: InUse: in use"),
        ("Plain", "", "Plain"),
        ("Failed to query available packages", "\nCould not retrieve\nthe list", None),
        ("x" * 400, "", "x" * 299 + "…"),
    ],
)
def test_an_error_is_one_line_without_ids_of_requests(summary: str, detail: str, shown: str | None) -> None:
    assert short_error(summary, detail) == (shown or "Failed to query available packages: Could not retrieve")


def test_errors_without_json_are_told_apart_by_their_summaries() -> None:
    output = (
        "\nWarning: old\n\nIt is.\n\nError: first\n\n  with aws_vpc.orphan,\n  on main.tf.json line 3:\n\n"
        "one\ntwo\n\nmore\n\nError: second\n\n"
    )
    assert list(errors_in_text(output)) == [("first", "one two"), ("second", "")]


@pytest.mark.parametrize(
    ("text", "blocked"),
    [
        ("api error DependencyViolation: The vpc 'vpc-1' has dependencies", True),
        ("RequestID: a, DeleteConflict: Cannot delete entity", True),
        ("BucketNotEmpty: The bucket", True),
        ("InvalidGroup.InUse: there is a dependent object", True),
        ("ResourceInUseException: cluster has nodegroups", True),
        ("ClusterContainsServicesException: The Cluster", True),
        ("InvalidDBClusterStateFault: Cluster cannot be deleted", True),
        ("api error AccessDenied: not allowed", False),
        ("deleting S3 Bucket (BucketNotEmpty): api error AccessDenied: no", False),
        ("final_snapshot_identifier is required when skip_final_snapshot is false", False),
        ("", False),
    ],
)
def test_what_has_to_go_first_is_told_by_the_services_code(text: str, blocked: bool) -> None:
    assert blocks_deletion(text) is blocked


def refusing(folder: Path, words: str, settings: dict[str, str], environ: dict[str, str]) -> Deletion:
    """What comes of an import that an engine refuses with these words, having kept the environment it was given."""
    program, stack = folder / "terraform", folder / "stack"
    stack.mkdir()
    (stack / "keys").write_text("")
    program.write_text(f'#!/bin/sh\n[ "$2" = init ] && exit 0\nenv > {folder}/seen\necho "{words}" >&2\nexit 1\n')
    program.chmod(0o755)
    installed = InstalledEngine(program, EngineInfo("terraform", "1.11.4"), {})
    wanted = DeletionTarget("aws_vpc", "vpc-1", ProviderConfig("aws", AWS, settings))
    environ = {"PATH": "/usr/bin:/bin", **environ}
    with SignalGate() as gate:
        return ScratchDeletion(installed, stack, load_catalog(), environ, gate, wanted, folder / "x").prepare()


def test_an_error_that_quotes_a_credential_is_withheld(tmp_path: Path) -> None:
    done = refusing(tmp_path, "Error: bad key hunter2hunter2", {"secret_key": "hunter2hunter2"}, {})
    assert (done.found, done.blocked) == (None, False)
    assert "hunter2hunter2" not in done.errors[0]
    assert "withheld" in done.errors[0]


def test_a_credential_of_the_environment_is_withheld_too(tmp_path: Path) -> None:
    done = refusing(tmp_path, "Error: bad key hunter2hunter2", {}, {"AWS_SECRET_ACCESS_KEY": "hunter2hunter2"})
    assert "hunter2hunter2" not in done.errors[0]


def test_values_go_through_the_environment_which_has_nothing_of_the_stacks(tmp_path: Path) -> None:
    settings = {"region": "${eu}", "shared_credentials_files.0": "keys", "profile": "keys", "secret_key": "s3cr3t"}
    environ = {"AWS_CONFIG_FILE": "keys", "TF_WORKSPACE": "x", "TF_CLI_ARGS_import": "-x", "TF_VAR_own": "x"}
    done = refusing(tmp_path, "Error: no", settings, environ)
    assert done.errors == ("no",)
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    keys = str(tmp_path / "stack" / "keys")
    assert seen["AWS_CONFIG_FILE"] == keys
    given = {name: value for name, value in seen.items() if name.startswith("TF_")}
    assert sorted(given) == [f"TF_VAR_setting_{i}" for i in range(4)]
    assert set(given.values()) == {"${eu}", keys, "keys", "s3cr3t"}
    written = json.loads((tmp_path / "x" / "main.tf.json").read_text())
    assert written["provider"]["aws"]["shared_credentials_files"] == ["${var.setting_1}"]
    assert "s3cr3t" not in json.dumps(written)


@pytest.mark.parametrize(("place", "project"), [("app-prod", "app-prod"), ("organizations/1", "own"), (None, "own")])
def test_a_block_of_google_has_the_objects_own_project_and_nothing_that_a_scan_made_up(
    tmp_path: Path, place: str | None, project: str
) -> None:
    key = json.dumps({"private_key": "x" * 5000})
    settings = {
        "project": "own", "credentials": key, "scopes.0": "s", "batching.enable_batching": "false",
        "default_labels.a": "b", "only_project": "true", "projects.0": "app-*", "organization": "1",
    }  # fmt: skip
    source = "registry.terraform.io/hashicorp/google-beta"
    wanted = DeletionTarget("google_pubsub_topic", "x", ProviderConfig("google-beta", source, settings), place)
    (tmp_path / "stack").mkdir()
    installed = InstalledEngine(Path("/bin/false"), EngineInfo("terraform", "1.11.4"), {})
    with SignalGate() as gate:
        folder = ScratchDeletion(installed, tmp_path / "stack", load_catalog(), {}, gate, wanted, tmp_path / "x")
        assert folder.prepare().found is None
    given = folder._settings()
    assert given["project"] == project and given["credentials"] == key
    written = json.loads((tmp_path / "x" / "main.tf.json").read_text())["provider"]["google-beta"]
    assert sorted(written) == ["batching", "credentials", "project", "scopes"]
    assert isinstance(written["scopes"], list) and list(written["batching"]) == ["enable_batching"]


def test_several_errors_never_say_that_there_is_no_object(tmp_path: Path) -> None:
    words = "Error: Cannot import non-existent remote object\n\nError: other"
    done = refusing(tmp_path, words, {}, {})
    assert (done.found, len(done.errors)) == (None, 2)


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        refusing(tmp_path, "Error: no", {}, {})


def test_a_last_snapshot_is_named_where_the_type_can_have_one() -> None:
    named = {"final_snapshot_identifier": "last"}
    assert with_final_snapshot({"final_snapshot_identifier": None, "skip_final_snapshot": True}, "last") == named
    assert with_final_snapshot({"final_snapshot_name": None}, "last") == {"final_snapshot_name": "last"}
    assert with_final_snapshot({"name": "one"}, "last") == {}


@pytest.mark.parametrize(
    "said",
    [
        "final_snapshot_identifier is required when skip_final_snapshot is false",
        "RDS Cluster final_snapshot_identifier is required when skip_final_snapshot is false",
        "Neptune Cluster FinalSnapshotIdentifier is required when a final snapshot is required",
    ],
)
def test_a_database_that_wants_a_last_snapshot_is_told_from_one_that_something_hangs_on(said: str) -> None:
    assert wants_final_snapshot(said)
    assert not wants_final_snapshot("InvalidDBInstanceState: one is not available")
