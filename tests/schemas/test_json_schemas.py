"""The published JSON Schemas are what the code says, and fit what it writes, reads and prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from values import EVERY_DOCUMENT, VALUES

from scripts.schema_files import FOLDER, differences, write
from tfguard.errors import ConfigError
from tfguard.schemas.blueprint_file import parse_blueprint
from tfguard.schemas.document import Document
from tfguard.schemas.published import file_name, schemas
from tfguard.schemas.records import HEAD, INTENT

DATA = Path(__file__).parent / "data"
CASES = st.sampled_from(EVERY_DOCUMENT).flatmap(lambda document: st.tuples(st.just(document), VALUES[document]))


def validator(name: str) -> Draft202012Validator:
    """What checks a document against the published schema in this file."""
    return Draft202012Validator(json.loads((FOLDER / name).read_text()), format_checker=FormatChecker(["date-time"]))


VALIDATORS = {path.name: validator(path.name) for path in FOLDER.glob("*.schema.json")}


def check(document: Any) -> None:
    """Check a document against the schema that it names."""
    name, _, version = document["schema"].partition("/v")
    VALIDATORS[file_name(name, int(version))].validate(document)


def test_the_published_schemas_are_what_the_code_says() -> None:
    assert differences() == []


def test_a_schema_that_is_missing_or_other_or_of_nothing_is_told(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "head.v1.schema.json").write_text("{}")
    (tmp_path / "journal.v1.schema.json").unlink()
    (tmp_path / "stray.v1.schema.json").write_text("{}")
    assert differences(tmp_path) == [
        "disposition.v1.schema.json is missing",
        "intent.v1.schema.json is missing",
        "journal.v1.schema.json is missing",
        "stray.v1.schema.json is of no document",
        "head.v1.schema.json is not what the code says: run scripts/schemas",
    ]


@pytest.mark.parametrize("name", sorted(VALIDATORS))
def test_every_schema_is_one_of_draft_2020_12(name: str) -> None:
    schema = VALIDATORS[name].schema
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "additionalProperties" not in schema or name.startswith(("config.", "blueprint-file."))


@settings(max_examples=200)
@given(CASES)
def test_whatever_the_record_can_hold_fits_its_schema(case: tuple[Document[Any], Any]) -> None:
    document, value = case
    VALIDATORS[file_name(document.name, document.version)].validate(json.loads(document.encode(value)))


@settings(max_examples=200)
@given(CASES, st.data())
def test_a_document_without_a_field_that_must_be_there_fits_no_schema_and_cannot_be_read(
    case: tuple[Document[Any], Any], data: Any
) -> None:
    document, value = case
    name = file_name(document.name, document.version)
    raw = json.loads(document.encode(value))
    del raw[data.draw(st.sampled_from(schemas()[name]["required"]))]  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        VALIDATORS[name].validate(raw)
    with pytest.raises(Exception, match="cannot be read as a record"):
        document.read(raw, "here")


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.json*")), ids=lambda path: str(path.relative_to(DATA)))
def test_what_every_earlier_tfguard_wrote_fits_the_schema_that_it_names(path: Path) -> None:
    if path.suffix == ".json":
        check(json.loads(path.read_text()))
        return
    for line in map(json.loads, path.read_text().splitlines()):
        if "schema" in line:
            check(line)
        else:
            VALIDATORS[f"journal.v{line['v']}.schema.json"].validate(line)


def test_fields_that_a_later_tfguard_adds_fit_the_schema() -> None:
    check({"schema": HEAD.schema, "added_later": {"x": 1}})


def test_a_value_of_another_type_fits_no_schema() -> None:
    for wrong in ({"revision": "3"}, {"open_operations": [1]}, {"lease": {}}, {"current": 1}):
        with pytest.raises(ValidationError):
            check({"schema": HEAD.schema} | wrong)
    with pytest.raises(ValidationError):
        VALIDATORS[file_name(INTENT.name, INTENT.version)].validate({"schema": "tfguard.intent/v1"})


CONFIG = """\
engine: tofu
records: s3://bucket/prefix
on_gap: block
owner:
cost_owner: 1042
retention: {default: 14d, max: 90d}
consistency_grace: 2m
providers:
  aws.eu: {region: eu-west-1, skip_region_validation: true}
scan:
  stacks: ["infra/**"]
  aws: {accounts: [{id: 123456789012, role: "arn:aws:iam::123456789012:role/scan"}], types: ["*"]}
  ignore: [{type: aws_cloudwatch_log_group, name: "/aws/lambda/*", reason: "made by the service"}]
"""


@pytest.mark.parametrize("text", [CONFIG, "", "engine: terraform\n"])
def test_a_configuration_that_is_read_fits_its_schema(text: str) -> None:
    VALIDATORS["config.v1.schema.json"].validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "recordz: x",
        "on_gap: maybe",
        "consistency_grace: soon",
        "scan: {aws: {account: []}}",
        "scan: {ignore: [{type: x}]}",
        "providers: [aws]",
    ],
)
def test_a_configuration_that_is_refused_fits_no_schema(text: str) -> None:
    with pytest.raises(ValidationError):
        VALIDATORS["config.v1.schema.json"].validate(yaml.safe_load(text))


def _blueprint(**changed: object) -> dict[str, object]:
    steps = {
        "db": {"stack": "stacks/db", "vars": {"size": 5, "name": "x", "open": True, "zones": ["a"]}, "stateful": True},
        "fill": {
            "run": ["./fill.sh"],
            "needs": ["db"],
            "owned_by": "db",
            "timeout": "5m",
            "compensate": {"run": ["./x"]},
        },
    }
    probe = {"name": "page", "http": "https://x", "expect": 200, "within": "2m"}
    inputs = {"size": {"type": "number", "default": 5}, "key": {"sensitive": True}}
    whole = {
        "name": "web",
        "steps": steps,
        "inputs": inputs,
        "owner": None,
        "parallel": 2,
        "ready": {"probes": [probe]},
    }
    return {"apiVersion": "tfguard/v1", "kind": "Blueprint", **whole, **changed}


def test_a_blueprint_that_is_read_fits_its_schema() -> None:
    text = yaml.safe_dump(_blueprint())
    parse_blueprint(text)
    VALIDATORS["blueprint-file.v1.schema.json"].validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "changed",
    [
        {"owners": "me"},
        {"name": 12},
        {"kind": "Stack"},
        {"apiVersion": "tfguard/v2"},
        {"parallel": "many"},
        {"repair_within": "soon"},
        {"steps": {"a": {"stack": "x", "need": ["b"]}}},
        {"steps": {"a": {"stack": "x", "on_failure": "explode"}}},
        {"steps": {"a": {"run": "./x.sh"}}},
        {"steps": {"a": {"run": ["./x.sh"], "environment": {"PORT": 80}}}},
        {"inputs": {"a": {"type": "list"}}},
        {"inputs": {"a": {"sensitive": "very"}}},
        {"ready": {"probes": [{"ping": "x"}]}},
    ],
)
def test_a_blueprint_that_is_refused_for_its_form_fits_no_schema(changed: dict[str, object]) -> None:
    text = yaml.safe_dump(_blueprint(**changed))
    with pytest.raises(ConfigError):
        parse_blueprint(text)
    with pytest.raises(ValidationError):
        VALIDATORS["blueprint-file.v1.schema.json"].validate(yaml.safe_load(text))


def test_an_empty_file_is_no_blueprint() -> None:
    with pytest.raises(ConfigError):
        parse_blueprint("")
    with pytest.raises(ValidationError):
        VALIDATORS["blueprint-file.v1.schema.json"].validate(None)
