"""States of Terraform 0.11 (version 3), and what is left of them in version 4: read as the engine reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.engine.flatmap import unflattened
from tfguard.engine.queries import captured
from tfguard.engine.state import parse_any_state, parse_state, provider_key, read_state_file
from tfguard.errors import InputError
from tfguard.model.state import StateInstance, StateSnapshot

CATALOG = load_catalog()
PASSWORD = "hunter2-canary"


def held(kind: str, object_id: str, provider: str = "provider.aws", /, **attributes: str) -> dict[str, object]:
    primary = {
        "id": object_id,
        "attributes": {"id": object_id, **attributes},
        "meta": {"schema_version": "1"},
        "tainted": False,
    }
    return {"type": kind, "depends_on": [], "primary": primary, "deposed": [], "provider": provider}


def old_state(**changes: object) -> dict[str, object]:
    tainted = held("aws_instance", "i-1", "provider.aws.eu", **{"tags.%": "2", "tags.Name": "x", "tags.a.b/c": "y"})
    tainted["primary"] = {**tainted["primary"], "tainted": True}  # type: ignore[dict-item]
    tainted["deposed"] = [{"id": "i-0", "attributes": {"id": "i-0"}, "meta": {}, "tainted": False}]
    only_deposed = {**held("aws_instance", ""), "primary": None}
    only_deposed["deposed"] = [{"id": "i-7", "attributes": {"id": "i-7"}, "meta": {}, "tainted": True}]
    root = {
        "path": ["root"],
        "outputs": {"password": {"sensitive": True, "type": "string", "value": PASSWORD}},
        "resources": {
            "aws_instance.web.0": tainted,
            "aws_instance.web.1": held("aws_instance", "i-2", "provider.aws.eu"),
            "aws_instance.gone": only_deposed,
            "aws_iam_role.app": held("aws_iam_role", "app", "", name="app", arn="arn:aws:iam::123456789012:role/app"),
            "aws_iam_role.marked": held("aws_iam_role", PASSWORD, "aws.us", name=PASSWORD),
            "data.aws_ami.x": held("aws_ami", "ami-1"),
            "data.aws_ami.y.0": held("aws_ami", "ami-2"),
        },
        "depends_on": [],
    }
    inner = {
        "path": ["root", "net", "sub"],
        "outputs": {},
        "resources": {
            "aws_vpc.a": held("aws_vpc", "vpc-1", "module.net.provider.aws.eu"),
            "aws_vpc.b": held("aws_vpc", "vpc-2", "aws"),
        },
        "depends_on": [],
    }
    base = {"version": 3, "terraform_version": "0.11.14", "serial": 5, "lineage": "l", "modules": [root, inner]}
    return {**base, **changes}


def read(document: object) -> object:
    return parse_any_state(json.dumps(document).encode(), "here", CATALOG)


def test_every_object_is_read_with_its_address_as_later_engines_write_it() -> None:
    found = parse_any_state(json.dumps(old_state()).encode(), "here", CATALOG)
    assert (found.lineage, found.serial, found.outputs) == ("l", 5, ("password",))
    told = [(one.address, one.provider_key, one.tainted, one.deposed) for one in found.instances]
    assert told == [
        ("aws_instance.web[0]", "aws.eu", True, None),
        ("aws_instance.web[0]", "aws.eu", False, "00000001"),
        ("aws_instance.web[1]", "aws.eu", False, None),
        ("aws_instance.gone", "aws", True, "00000001"),
        ("aws_iam_role.app", "aws", False, None),
        ("aws_iam_role.marked", "aws.us", False, None),
        ("module.net.module.sub.aws_vpc.a", "module.net:aws.eu", False, None),
        ("module.net.module.sub.aws_vpc.b", "module.net.module.sub:aws", False, None),
    ]
    role = found.at("aws_iam_role.app")
    assert role is not None and dict(role.identity) == {"name": "app", "arn": "arn:aws:iam::123456789012:role/app"}
    assert PASSWORD in found.secrets


def test_the_engines_own_upgrade_of_the_same_state_says_the_same(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "terraform.tfstate").write_text(json.dumps(old_state()))
    upgraded = captured(engine, tmp_path, "state", "pull", offline=True)
    assert upgraded.exit_code == 0, upgraded.stderr
    assert "attributes_flat" in upgraded.stdout
    theirs = parse_state(upgraded.stdout.encode(), "here", CATALOG)
    ours = parse_any_state(json.dumps(old_state()).encode(), "here", CATALOG)

    def in_order(state: StateSnapshot) -> list[StateInstance]:
        return sorted(state.instances, key=lambda one: (one.address, one.deposed or ""))

    # Whether a deposed object was tainted the engine forgets.
    assert [replace(one, tainted=False) for one in in_order(ours)] == [
        replace(one, tainted=False) for one in in_order(theirs)
    ]
    assert [one.tainted for one in in_order(ours) if not one.deposed] == [
        one.tainted for one in in_order(theirs) if not one.deposed
    ]
    assert (ours.lineage, ours.serial, ours.outputs) == (theirs.lineage, theirs.serial, theirs.outputs)


def test_what_applies_reads_no_such_state(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_text(json.dumps(old_state()))
    with pytest.raises(InputError, match="it has version 3, not 4"):
        read_state_file(path, CATALOG)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"version": 2, "serial": 1, "modules": []}, "it has version 2, neither 3 nor 4"),
        ({"version": 1}, "it has version 1, neither 3 nor 4"),
        ({"version": 5, "lineage": "l", "resources": []}, "it has version 5, neither 3 nor 4"),
        ({"version": True}, "it has version True, neither 3 nor 4"),
        ({"lineage": "l"}, "it has no version"),
        ({"version": 3, "backend": {"type": "s3", "config": {}}}, "what `init` has noted of a backend"),
        ({"version": 3, "serial": 1}, "its modules is not what a state has there"),
        (old_state(serial="5"), "its serial is not"),
        (old_state(modules=[{"path": ["net"], "resources": {}}]), "its path of a module is not"),
        (old_state(modules=[{"path": ["root"], "resources": {"aws_vpc": {}}}]), "its name of a resource is not"),
        (old_state(modules=[{"path": ["root"], "resources": {"aws_vpc.a": []}}]), "its resources is not"),
        (old_state(modules=[{"path": ["root"], "resources": {"aws_vpc.a": {"primary": 1}}}]), "its primary is not"),
        (old_state(modules=[{"path": ["root"], "resources": {"aws_vpc.a": {"deposed": 1}}}]), "its deposed is not"),
        (old_state(modules=[{"path": ["root"]}]), "its resources is not"),
        (old_state(modules=[{"path": ["root"], "resources": {"aws_vpc.a": {"primary": None}}}]), "its primary is not"),
        (old_state(modules=[{"path": ["root"], "resources": {f"aws_vpc.a.{'9' * 5000}": {}}}]), "its name of a"),
    ],
)
def test_anything_else_is_an_error_that_names_it(document: object, why: str) -> None:
    with pytest.raises(InputError) as caught:
        read(document)
    assert why in caught.value.what


def test_a_cut_state_is_none() -> None:
    with pytest.raises(InputError, match="cut or not JSON"):
        parse_any_state(json.dumps(old_state()).encode()[:-20], "here", CATALOG)


def test_a_version_4_state_with_flat_attributes_is_known_by_them() -> None:
    instance = {"attributes_flat": {"id": "vpc-1", "tags.%": "0"}, "sensitive_attributes": []}
    resource = {"mode": "managed", "type": "aws_vpc", "name": "a", "provider": "provider.aws", "instances": [instance]}
    found = parse_state(json.dumps({"version": 4, "resources": [resource]}).encode(), "here", CATALOG)
    assert found.instances[0].identity["id"] == "vpc-1"
    assert found.instances[0].provider_key == "aws"


def test_a_provider_of_terraform_0_12_has_its_key() -> None:
    assert provider_key("provider.aws.eu") == ("registry.terraform.io/-/aws", "aws.eu")
    assert provider_key("module.a.provider.google-beta") == (
        "registry.terraform.io/-/google-beta",
        "module.a:google-beta",
    )


def test_flat_attributes_get_their_shape_back() -> None:
    flat = {
        "id": "i-1",
        "root.#": "1",
        "root.0.volume_id": "vol-1",
        "ebs.#": "11",
        **{f"ebs.{number}.id": str(number) for number in range(11)},
        "groups.#": "2",
        "groups.123": "a",
        "groups.9": "b",
        "tags.%": "1",
        "tags.kubernetes.io/x": "y",
        "empty.#": "0",
        "none.%": "0",
    }
    found = unflattened(flat)
    assert found["root"] == [{"volume_id": "vol-1"}]
    assert found["ebs"] == [{"id": str(number)} for number in range(11)]
    assert found["groups"] == ["b", "a"]
    assert (found["tags"], found["empty"], found["none"], found["id"]) == ({"kubernetes.io/x": "y"}, [], {}, "i-1")
