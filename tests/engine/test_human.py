"""The engine's questions, and the plan's output without the closing note about its file."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfguard.engine.arguments import change_request
from tfguard.engine.human import PlanTrailer, error_text, question
from tfguard.model.request import ChangeRequest

RULE = "─" * 77
PLAIN_NOTE = (
    f"\n{RULE}\n\nSaved the plan to: p\n\nTo perform exactly these actions, run the following command to apply:\n"
    '    terraform apply "p"\n'
)
COLOUR_NOTE = f"\x1b[90m\n{RULE}\x1b[0m\n\nSaved the plan to: p\n\nTo perform exactly these actions\n"
PLAN = "Terraform will perform the following actions:\n\n  + create\n\nPlan: 1 to add, 0 to change, 0 to destroy.\n"
COLOURS = r"(?:\x1b\[[0-9;]*m)*"
WORDS = f"\n\n{COLOURS}Saved the plan to:"
NOTE = re.compile(f"^(?P<blank>{COLOURS}\n)?{COLOURS}─+{COLOURS}{WORDS}|^(?P<ended>{COLOURS})\n{WORDS}", re.MULTILINE)


def without_note(text: str) -> str:
    """The whole text up to the note, by a rule of its own."""
    found = NOTE.search(text)
    if found is None:
        return text
    colours = re.findall(r"\x1b\[[0-9;]*m", found["blank"] or "")
    return text[: found.start()] + (found["ended"] or "".join(colours[:-1]))


def shown(chunks: list[str]) -> str:
    """What gets through."""
    trailer = PlanTrailer()
    return "".join([*(trailer.feed(chunk) for chunk in chunks), trailer.finish()])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
@pytest.mark.parametrize(
    ("plan", "note"),
    [
        (PLAN, PLAIN_NOTE),
        (PLAN, COLOUR_NOTE),
        (PLAN + "\x1b[0m", COLOUR_NOTE),
        (PLAN, "\n\n\nSaved the plan to: p\n"),
        (PLAN + "\x1b[0m", "\n\n\nSaved the plan to: p\n"),
    ],
    ids=["plain", "colour", "end of a colour", "no width", "end of a colour and no width"],
)
def test_the_plan_comes_through_and_the_note_does_not(plan: str, note: str, size: int) -> None:
    text = plan + note
    assert shown([text[at : at + size] for at in range(0, len(text), size)]) == plan


@pytest.mark.parametrize(
    "text",
    [
        PLAN,
        PLAN + f"\n{RULE}\n\nNote: You didn't use the -out option to save this plan\n",
        f"\n{RULE}\n\nTerraform used the selected providers\n",
        f"\n{RULE}\n",
        "no line end",
        "Saved the plan to: a heredoc says so\n",
        f"x {RULE}\n\nSaved the plan to: p\n",
        "",
    ],
)
def test_everything_else_comes_through_unchanged(text: str) -> None:
    assert shown(list(text)) == shown([text]) == text


PIECES = st.sampled_from(
    [
        "\n",
        "\n",
        RULE,
        "───",
        "──",
        "─",
        "\x1b[90m",
        "\x1b[0m",
        "\x1b",
        "[0m",
        "Saved the plan to: p",
        "Saved",
        " the plan to:",
        "text",
        " ",
        "  Enter a value: ",
        PLAIN_NOTE,
        COLOUR_NOTE,
    ]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=12), st.data())
def test_for_any_text_in_any_chunks_the_output_is_the_text_without_the_note(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert shown(chunks) == without_note(text)


@pytest.mark.parametrize(
    "prompt",
    [
        "var.name\n  The name\n\n  Enter a value: ",
        "\x1b[1mvar.name\x1b[0m\n  \x1b[1mEnter a value:\x1b[0m ",
        "Do you want to migrate? ",
        f"\n{RULE}\n\n  Enter a value: ",
        "\n\n> ",
    ],
)
def test_a_question_without_a_line_end_is_seen_at_once(prompt: str) -> None:
    assert PlanTrailer().feed(prompt) == prompt
    slow = PlanTrailer()
    assert "".join(slow.feed(char) for char in prompt) == prompt


def test_a_line_whose_start_was_seen_is_never_taken_for_the_note() -> None:
    trailer = PlanTrailer()
    assert trailer.feed("a question? ") == "a question? "
    rest = f"{RULE}\n\nSaved the plan to: p\n"
    assert trailer.feed(rest) + trailer.finish() == rest


def request(*flags: str, color: bool = False) -> ChangeRequest:
    """An apply with these flags."""
    return change_request("apply", [*flags, *([] if color else ["-no-color"])])


@pytest.mark.parametrize(
    ("asked", "workspace", "product", "text"),
    [
        (
            request(),
            "default",
            "Terraform",
            "\nDo you want to perform these actions?\n  Terraform will perform the actions described above.\n"
            "  Only 'yes' will be accepted to approve.\n\n  Enter a value: ",
        ),
        (
            request(),
            "dev",
            "OpenTofu",
            '\nDo you want to perform these actions in workspace "dev"?\n'
            "  OpenTofu will perform the actions described above.\n"
            "  Only 'yes' will be accepted to approve.\n\n  Enter a value: ",
        ),
        (
            request("-destroy"),
            "default",
            "Terraform",
            "\nDo you really want to destroy all resources?\n"
            "  Terraform will destroy all your managed infrastructure, as shown above.\n"
            "  There is no undo. Only 'yes' will be accepted to confirm.\n\n  Enter a value: ",
        ),
        (
            request("-destroy"),
            "dev",
            "Terraform",
            '\nDo you really want to destroy all resources in workspace "dev"?\n'
            "  Terraform will destroy all your managed infrastructure, as shown above.\n"
            "  There is no undo. Only 'yes' will be accepted to confirm.\n\n  Enter a value: ",
        ),
        (
            request("-refresh-only"),
            "default",
            "Terraform",
            "\nWould you like to update the Terraform state to reflect these detected changes?\n"
            "  Terraform will write these changes to the state without modifying any real infrastructure.\n"
            "  There is no undo. Only 'yes' will be accepted to confirm.\n\n  Enter a value: ",
        ),
        (
            request("-refresh-only"),
            "dev",
            "OpenTofu",
            '\nWould you like to update the OpenTofu state for "dev" to reflect these detected changes?\n'
            "  OpenTofu will write these changes to the state without modifying any real infrastructure.\n"
            "  There is no undo. Only 'yes' will be accepted to confirm.\n\n  Enter a value: ",
        ),
    ],
)
def test_the_question_is_the_engines_word_for_word(
    asked: ChangeRequest, workspace: str, product: str, text: str
) -> None:
    assert question(asked, workspace, product) == text


def test_a_coloured_question_has_the_same_words() -> None:
    for flags in ([], ["-destroy"], ["-refresh-only"]):
        coloured = question(request(*flags, color=True), "dev", "Terraform")
        assert "\x1b[1m" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == question(request(*flags), "dev", "Terraform")


def test_an_error_is_framed_as_the_engine_frames_it() -> None:
    assert error_text("it failed", color=False) == "\nError: it failed\n\n"
    bare = re.sub(r"\x1b\[[0-9;]*m", "", error_text("it failed", color=True))
    assert bare == "╷\n│ Error: it failed\n│ \n│ \n╵\n"
