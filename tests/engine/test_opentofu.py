"""OpenTofu where it differs from Terraform, without either: streams, states, configuration files, features, words.

The streams are Terraform's recorded ones as the stand-in (`fixtures/stand_in_tofu.py`) turns them into tofu's.
"""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import stand_in_tofu
from tfguard.catalog.loader import load_catalog
from tfguard.engine import features
from tfguard.engine.arguments import change_request
from tfguard.engine.backend import locate_state
from tfguard.engine.configuration import configuration_files
from tfguard.engine.encrypted import EncryptedStates
from tfguard.engine.events import StreamReader, parse_line
from tfguard.engine.human import DestroyWords, question
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine, read_version
from tfguard.engine.planview import PlanWarnings
from tfguard.engine.printers import FileStreams, HumanPrinter, JsonPrinter
from tfguard.engine.process import Following, Launch, run_followed
from tfguard.engine.providers import literal_settings
from tfguard.engine.render import Renderer
from tfguard.engine.state import is_encrypted, parse_shown_state, parse_state, read_envelope, read_state_file
from tfguard.errors import EncryptedStateError, InputError, NoEngineError
from tfguard.model.engine import EngineInfo
from tfguard.model.event import EventKind
from tfguard.model.plan import Plan
from tfguard.model.state import StateSnapshot

CATALOG = load_catalog()
STREAMS = sorted((Path(__file__).parent / "data" / "streams").glob("*.jsonl"))
TOFU = EngineInfo("tofu", "1.12.0")
AWS = "registry.opentofu.org/hashicorp/aws"


def program(path: Path, text: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def tofu(folder: Path, text: str) -> InstalledEngine:
    """A tofu that answers everything as this script does."""
    return InstalledEngine(program(folder / "tofu", text), TOFU, {})


class Heard:
    """The user's stdout and stderr."""

    def __init__(self) -> None:
        self.stdout = self.stderr = ""

    def out(self, text: str) -> None:
        self.stdout += text

    def err(self, text: str) -> None:
        self.stderr += text


# Versions and features


@pytest.mark.parametrize(
    ("version", "release", "since_1_8"),
    [
        ("1.7.10", (1, 7, 10), False),
        ("1.8.0-rc1", (1, 8, 0), True),
        ("1.13.0-dev", (1, 13, 0), True),
        ("2", (2, 0, 0), True),
        ("", (0, 0, 0), False),
    ],
)
def test_a_candidate_counts_as_its_release(version: str, release: tuple[int, ...], since_1_8: bool) -> None:
    engine = EngineInfo("tofu", version)
    assert engine.release == release
    assert (engine.reads_tofu_files, engine.evaluates_early) == (since_1_8, since_1_8)
    terraform = EngineInfo("terraform", version)
    assert not (terraform.reads_tofu_files or terraform.evaluates_early)


def test_variables_stand_beside_a_plan_file_from_the_release_on_that_takes_them() -> None:
    engines = [("terraform", "1.10.1"), ("terraform", "1.10.2"), ("tofu", "1.10.9"), ("tofu", "1.11.0-beta1")]
    taken = [EngineInfo(*engine).takes_variables_with_a_plan for engine in engines]
    assert taken == [False, True, False, True]


@pytest.mark.parametrize("says", ["OpenTofu v1.6.0-alpha1", "OpenTofu v1.13.0-dev\non linux_amd64", "OpenTofu v1.9.0"])
def test_every_tofu_from_the_first_release_on_is_taken(tmp_path: Path, says: str) -> None:
    found = read_version(program(tmp_path / "tofu", f"echo '{says}'"), tmp_path)
    assert (found.info.name, f"OpenTofu v{found.info.version}") == ("tofu", says.partition("\n")[0])


def test_an_older_one_is_refused_with_a_line_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoEngineError, match=r"tofu 1\.5\.7 .* is too old: tfguard needs tofu 1\.6 or newer") as caught:
        read_version(program(tmp_path / "tofu", "echo OpenTofu v1.5.7"), tmp_path)
    assert caught.value.exit_code == 13


def test_tofu_is_asked_once_whether_it_tells_its_events_apart_and_terraform_never(tmp_path: Path) -> None:
    having = tofu(tmp_path, f"echo x >> {tmp_path}/asked; echo '  -json-into=out.json  Same output as -json'")
    assert features.has_json_into(having)
    assert features.has_json_into(having)
    assert (tmp_path / "asked").read_text() == "x\n"
    assert not features.has_json_into(InstalledEngine(having.binary, EngineInfo("terraform", "1.14.0"), {}))
    other = tmp_path / "other"
    other.mkdir()
    assert not features.has_json_into(tofu(other, "echo '  -json  Machine readable'; exit 1"))


# Streams


def in_tofus_form(stream: bytes) -> bytes:
    """A recorded stream as the stand-in passes it on."""
    beaten: set[str] = set()
    whole, newline, rest = stream.rpartition(b"\n")
    lines = [stand_in_tofu.event_of(line, beaten) for line in whole.decode().split("\n")]
    return "\n".join(line for line in lines if line is not None).encode() + newline + rest


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_of_tofus_is_read_and_shown_as_terraforms_is(path: Path) -> None:
    def told(stream: bytes) -> tuple[list[EventKind], str]:
        reader, renderer = StreamReader(), Renderer(color=False)
        events = [*reader.feed(stream), *reader.finish()]
        assert reader.counts.unknown == 0
        texts = [renderer.render(event) for event in events] + [renderer.finish()]
        kinds = [event.kind for event in events if event.kind is not EventKind.APPLY_PROGRESS]
        return kinds, "".join(text.stdout + text.stderr for text in texts)

    recorded = path.read_bytes()
    kinds, text = told(in_tofus_form(recorded))
    terraforms_kinds, terraforms_text = told(recorded)
    assert kinds == terraforms_kinds

    def words(text: str) -> list[str]:
        """Without heartbeats, of which tofu has fewer; a longer name may wrap a line elsewhere."""
        return " ".join(line for line in text.splitlines() if "elapsed]" not in line).split()

    assert words(text) == words(stand_in_tofu.spoken(terraforms_text))
    assert "Terraform" not in text


def test_the_streams_are_of_both_kinds() -> None:
    """The test above would say nothing if the stand-in changed nothing."""
    streams = [in_tofus_form(path.read_bytes()) for path in STREAMS]
    assert any(b'"@module":"tofu.ui"' in stream and b'"tofu":"1.12.0"' in stream for stream in streams)
    assert not any(b"terraform.ui" in stream for stream in streams)
    assert any(b"Please wait for OpenTofu" in stream for stream in streams)


def test_characters_that_terraform_escapes_come_as_they_are() -> None:
    line = stand_in_tofu.event_of('{"@message":"a \\u003c\\u0026\\u003e","type":"log"}', set())
    assert line is not None
    assert "<&>" in line
    assert parse_line(line.encode()).message == "a <&>"


def test_the_names_of_ephemeral_resources_messages_are_known() -> None:
    for type_, kind in (("started", EventKind.EPHEMERAL_START), ("complete", EventKind.EPHEMERAL_COMPLETE)):
        event = parse_line(json.dumps({"type": f"ephemeral_action_{type_}", "@message": "x: Opening..."}).encode())
        assert event.kind is kind
        assert Renderer(color=False).render(event).stdout == "x: Opening...\n"


def test_compact_warnings_name_the_product_that_the_stream_names() -> None:
    renderer = Renderer(color=False, compact_warnings=True)
    renderer.render(parse_line(b'{"type":"version","@message":"OpenTofu 1.9.0","tofu":"1.9.0"}'))
    renderer.render(parse_line(b'{"type":"diagnostic","diagnostic":{"severity":"warning","summary":"w"}}'))
    assert "run OpenTofu without -compact-warnings" in " ".join(renderer.finish().stdout.split())


@pytest.mark.parametrize("words", [["-auto-approve"], ["-destroy"], ["-refresh-only"]])
def test_the_question_names_the_product(words: list[str]) -> None:
    asked = question(change_request("apply", words), "prod", "OpenTofu")
    assert "OpenTofu will " in asked
    assert "Terraform" not in asked


def test_concise_output_tells_of_no_single_object() -> None:
    heard, reader = Heard(), StreamReader()
    request = change_request("apply", ["-concise", "-no-color"])
    printer = HumanPrinter(heard, request, Plan("1", ()), lambda *_: None, None)
    stream = next(path for path in STREAMS if path.stem.startswith("01-")).read_bytes()
    printer.show(stream, [*reader.feed(stream), *reader.finish()])
    printer.show(b"", ())
    assert "Apply complete!" in heard.stdout
    assert "Creating..." not in heard.stdout
    assert "Creation complete" not in heard.stdout


# The human form beside the events

DESTROYED = "\nApply complete! Resources: 0 added, 0 changed, 2 destroyed.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: Destroying...\n" + DESTROYED, "x: Destroying...\n\nDestroy complete! Resources: 2 destroyed.\n"),
        (DESTROYED + "\nOutputs:\n\no = 1\n", "\nDestroy complete! Resources: 2 destroyed.\n"),
        (
            f"\x1b[0m\x1b[1m\x1b[32m{DESTROYED}\x1b[0m\x1b[0m\x1b[1m\x1b[32m\nOutputs:\n\n\x1b[0mo = 1\n",
            "\x1b[0m\x1b[1m\x1b[32m\nDestroy complete! Resources: 2 destroyed.\n\x1b[0m",
        ),
        (
            "\nApply complete! Resources: 1 imported, 0 added, 0 changed, 2 destroyed, 1 forgotten.\n",
            "\nDestroy complete! Resources: 2 destroyed, 1 forgotten.\n",
        ),
        ("x (local-exec): Apply complete! Resources: 1 added\nx: Destruction\n", None),
        ("\nApply com", None),
        ("", None),
    ],
)
@given(cuts=st.lists(st.integers(0, 200), max_size=5))
def test_a_destroy_ends_with_its_own_words_however_the_output_is_cut(
    text: str, expected: str | None, cuts: list[int]
) -> None:
    words = DestroyWords()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    told = "".join(words.feed(text[start:end]) for start, end in pairwise(places))
    assert told + words.finish() == (text if expected is None else expected)


def test_a_line_without_its_end_passes_at_once() -> None:
    words = DestroyWords()
    assert words.feed("Releasing state lock...\nA question: ") == "Releasing state lock...\nA question: "


def test_the_file_that_the_user_named_goes_on_with_the_plans_stream_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    stream = b'{"type":"version","tofu":"1.12.0"}\n{"type":"planned_change"}\n{"type":"apply_start"}\n'
    events = [parse_line(line) for line in stream.splitlines()]
    JsonPrinter(FileStreams(path, begins=True), None, destroying=False).show(stream, events)
    assert path.read_bytes() == stream
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    JsonPrinter(FileStreams(path, begins=False), PlanWarnings(), destroying=False).show(stream, events)
    assert path.read_bytes() == stream + b'{"type":"apply_start"}\n'


def test_a_file_of_events_is_followed_from_its_start_though_the_engine_empties_it_first(tmp_path: Path) -> None:
    """It is private before the engine writes to it, and read to its last byte."""
    numbers = "for n in $(seq 2000); do echo $n; done"
    script = program(tmp_path / "tofu", f'stat -c %a "$1"; : > "$1"; {{ {numbers}; printf end; }} >> "$1"')
    path, told, out = tmp_path / "apply.events", bytearray(), bytearray()
    launch = Launch([str(script), str(path)], dict(os.environ), tmp_path, "apply", events=path)
    with SignalGate() as gate:
        ended = run_followed(launch, gate, Following(out.extend, out.extend, on_events=told.extend))
    assert (ended.exit_code, bytes(out)) == (0, b"600\n")
    assert bytes(told) == "".join(f"{number}\n" for number in range(1, 2001)).encode() + b"end"


# The command line


@pytest.mark.parametrize(
    ("words", "planned", "applied"),
    [
        (["-exclude=a.b"], True, False),
        (["-target-file=f"], True, False),
        (["-exclude-file", "f"], True, False),
        (["-concise"], True, True),
        (["-show-sensitive"], True, True),
        (["-deprecation=module:none"], True, True),
        (["-consolidate-warnings=false"], True, True),
        (["-consolidate-errors"], True, True),
        (["-suppress-forget-errors"], False, True),
        (["-json-into=f"], True, False),
    ],
)
def test_tofus_options_go_where_tofu_has_them(words: list[str], planned: bool, applied: bool) -> None:
    request = change_request("apply", words)
    assert (request.planning == tuple(words), request.applying == tuple(words)) == (planned, applied)
    assert request.plan_file is None


def test_a_file_for_the_events_is_kept_out_of_what_is_applied_with_a_plan_file_too() -> None:
    request = change_request("apply", ["-json-into", "f", "-concise", "my.plan"])
    assert (request.json_into, request.concise, request.plan_file) == ("f", True, "my.plan")
    assert request.applying == ("-concise",)


# Configuration files


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


def names(folder: Path, engine: EngineInfo | None) -> list[str]:
    return [path.name for path in configuration_files(folder, engine)]


def test_a_tofu_file_takes_the_place_of_its_terraform_twin_alone(tmp_path: Path) -> None:
    write(tmp_path, a__tf="", a__tofu="", b__tf="", a__tf__json="{}", c__tofu__json="{}", d__tfvars="", README="")
    (tmp_path / ".#a.tf").write_text("")
    assert names(tmp_path, TOFU) == ["a.tf.json", "a.tofu", "b.tf", "c.tofu.json"]
    for other in (None, EngineInfo("terraform", "1.14.0"), EngineInfo("tofu", "1.7.9")):
        assert names(tmp_path, other) == ["a.tf", "a.tf.json", "b.tf"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("backend.tofu", 'terraform {\n  backend "s3" {\n  }\n}\n'),
        ("backend.tofu.json", '{"terraform": {"backend": {"s3": {}}}}'),
    ],
)
def test_a_backend_in_a_tofu_file_is_a_backend_of_tofus_alone(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match="backend 's3' has not been set up"):
        locate_state(tmp_path, {}, engine=TOFU)
    assert locate_state(tmp_path, {}, engine=EngineInfo("terraform", "1.14.0")).stack.backend == "local"


def test_a_backend_that_tofu_does_not_read_is_none(tmp_path: Path) -> None:
    write(tmp_path, main__tf='terraform {\n  backend "s3" {\n  }\n}\n', main__tofu="")
    assert locate_state(tmp_path, {}, engine=TOFU).stack.backend == "local"


@pytest.mark.parametrize(
    ("files", "is_literal"),
    [
        ({"main__tofu": "region = var.x"}, True),
        ({"main__tofu": "region = upper(var.x)", "main__tf": "region = var.x"}, False),
        ({"main__tofu": "region = var.x", "main__tf": "region = upper(var.x)"}, True),
        ({"main__tofu": "region = var.x", "other__tf": "region = upper(var.x)"}, False),
        ({"main__tf__json": '{"provider": {"aws": [{"region": "${var.x}"}]}}'}, True),
        ({"main__tofu__json": '{"provider": {"aws": {"region": "${ var.x }"}}}'}, True),
        ({"main__tf__json": '{"provider": {"aws": {"region": "${upper(var.x)}"}}}'}, False),
        ({"main__tf__json": '{"provider": {"aws": {"region": "${var.x}-1"}}}'}, False),
        ({"main__tf": "region = var.x", "more__tf__json": '{"a": {"region": "${upper(var.x)}"}}'}, False),
        ({"main__tf": "region = var.x", "broken__tf__json": "{"}, True),
    ],
)
def test_a_setting_is_read_in_every_syntax_that_the_engine_reads(
    tmp_path: Path, files: dict[str, str], is_literal: bool
) -> None:
    write(tmp_path, **files)
    assert (("region", "x") in literal_settings(tmp_path, TOFU)) is is_literal


# States


def test_providers_of_tofus_registry_are_the_same_ones() -> None:
    for name in ("random", "null", "time", "tls"):
        assert CATALOG.state_only(f"registry.opentofu.org/hashicorp/{name}")
    assert CATALOG.state_only("terraform.io/builtin/terraform")
    assert not CATALOG.state_only(AWS)


def attributes(name: str) -> dict[str, object]:
    return {"name": name, "arn": f"arn:{len(name)}", "description": "x"}


STATE = {
    "version": 4,
    "serial": 7,
    "lineage": "l",
    "outputs": {"o": {"value": "v"}},
    "resources": [
        {
            "mode": "managed",
            "type": "aws_iam_role",
            "name": "app",
            "provider": f'provider["{AWS}"]',
            "instances": [
                {"index_key": 0, "attributes": attributes("a"), "status": "tainted"},
                {"index_key": 0, "attributes": attributes("b"), "deposed": "1a2b3c4d"},
            ],
        },
        {
            "module": 'module.m["k"]',
            "mode": "managed",
            "type": "aws_iam_role",
            "name": "inner",
            "provider": f'provider["{AWS}"]',
            "instances": [
                {
                    "attributes": attributes("hunter2"),
                    "sensitive_attributes": [[{"type": "get_attr", "value": "name"}]],
                }
            ],
        },
        {"mode": "data", "type": "aws_iam_role", "name": "read", "instances": [{"attributes": attributes("d")}]},
    ],
}


def shown_role(address: str, name: str, **more: object) -> dict[str, object]:
    """A role as `show -json` has it."""
    base = {"address": address, "mode": "managed", "type": "aws_iam_role", "provider_name": AWS}
    return {**base, "values": attributes(name), "sensitive_values": {}, **more}


SHOWN = {
    "format_version": "1.0",
    "terraform_version": "1.12.0",
    "values": {
        "outputs": {"o": {"value": "v"}},
        "root_module": {
            "resources": [
                shown_role("aws_iam_role.app[0]", "a", tainted=True),
                shown_role("aws_iam_role.app[0]", "b", deposed_key="1a2b3c4d"),
                shown_role("data.aws_iam_role.read", "d", mode="data"),
            ],
            "child_modules": [
                {
                    "address": 'module.m["k"]',
                    "resources": [
                        shown_role(
                            'module.m["k"].aws_iam_role.inner', "hunter2", sensitive_values={"name": True, "tags": {}}
                        )
                    ],
                }
            ],
        },
    },
}


def envelope(folder: Path) -> Path:
    path = folder / "errored.tfstate"
    path.write_text('{"serial":7,"lineage":"l","meta":{},"encrypted_data":"eA==","encryption_version":"v0"}')
    return path


def test_a_shown_state_is_the_same_as_the_state_but_for_the_provider_configuration() -> None:
    held = parse_state(json.dumps(STATE).encode(), "here", CATALOG)
    shown = parse_shown_state(json.dumps(SHOWN), StateSnapshot("l", 7), "here", CATALOG)
    assert (shown.lineage, shown.serial, shown.outputs) == (held.lineage, held.serial, held.outputs)
    for one, other in zip(shown.instances, held.instances, strict=True):
        assert (one.address, one.type, one.provider) == (other.address, other.type, other.provider)
        assert (one.identity, one.tainted, one.deposed) == (other.identity, other.tainted, other.deposed)
    assert "hunter2" not in repr(shown)


@pytest.mark.parametrize("output", ["", "{", "[]", "{}", '{"format_version": "1.2", "resource_changes": []}'])
def test_what_shows_no_state_is_an_error_and_never_an_empty_state(output: str) -> None:
    with pytest.raises(InputError, match="the state at here cannot be read"):
        parse_shown_state(output, StateSnapshot("l", 7), "here", CATALOG)


def test_a_state_that_holds_nothing_is_empty() -> None:
    assert parse_shown_state('{"format_version": "1.0"}', StateSnapshot("l", 7), "here", CATALOG).instances == ()


def test_of_an_encrypted_state_lineage_and_serial_are_known(tmp_path: Path) -> None:
    path = envelope(tmp_path)
    assert is_encrypted(path)
    assert read_envelope(path, CATALOG) == StateSnapshot("l", 7)
    with pytest.raises(EncryptedStateError, match="it is encrypted"):
        read_state_file(path, CATALOG)
    path.write_text(json.dumps(STATE))
    assert not is_encrypted(path)
    assert read_envelope(path, CATALOG) == parse_state(path.read_bytes(), "here", CATALOG)
    assert not is_encrypted(tmp_path / "none")


def test_an_encrypted_state_is_what_the_engine_says_it_is(tmp_path: Path) -> None:
    (tmp_path / "state").write_text(json.dumps(STATE))
    (tmp_path / "shown").write_text(json.dumps(SHOWN))
    engine = tofu(tmp_path, f'[ "$1" = show ] && exec cat {tmp_path}/shown; exec cat {tmp_path}/state')
    states = EncryptedStates(engine, tmp_path, CATALOG)
    assert states.of_backend("here") == parse_state(json.dumps(STATE).encode(), "here", CATALOG)
    assert len(states.in_file(envelope(tmp_path)).instances) == 3
    assert json.loads(states.in_clear(envelope(tmp_path))) == STATE


@pytest.mark.parametrize("script", ["echo 'Error: decryption failed' >&2; exit 1", "exit 0"])
def test_a_state_that_cannot_be_decrypted_is_an_error_that_says_so(tmp_path: Path, script: str) -> None:
    states, path = EncryptedStates(tofu(tmp_path, script), tmp_path, CATALOG), envelope(tmp_path)
    for read in (lambda: states.of_backend("here"), lambda: states.in_file(path), lambda: states.in_clear(path)):
        with pytest.raises(EncryptedStateError, match="is encrypted, and tofu cannot decrypt it") as caught:
            read()
        assert "TF_ENCRYPTION" in caught.value.advice


def test_terraform_is_not_asked_for_what_it_cannot_read(tmp_path: Path) -> None:
    engine = InstalledEngine(program(tmp_path / "terraform", "exit 9"), EngineInfo("terraform", "1.11.4"), {})
    with pytest.raises(EncryptedStateError, match="terraform cannot read such a one") as caught:
        EncryptedStates(engine, tmp_path, CATALOG).of_backend("here")
    assert "--engine" in caught.value.advice


def test_a_state_for_a_push_is_pulled_where_it_is_the_state_whatever_workspace_the_stack_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script pulls nothing unless it stands beside the file and is not sent elsewhere."""
    (tmp_path / "state").write_text(json.dumps(STATE))
    engine = tofu(
        tmp_path, f'[ -z "$TF_WORKSPACE$TF_DATA_DIR$TF_CLI_ARGS" ] && [ -f terraform.tfstate ] && cat {tmp_path}/state'
    )
    for name in ("TF_WORKSPACE", "TF_DATA_DIR", "TF_CLI_ARGS"):
        monkeypatch.setenv(name, "elsewhere")
    assert json.loads(EncryptedStates(engine, tmp_path, CATALOG).in_clear(envelope(tmp_path))) == STATE
