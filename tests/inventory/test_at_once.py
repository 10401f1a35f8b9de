"""Many questions at once: the answers keep their order, and what waits keeps no process from ending."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tfguard.inventory.at_once import in_order


def test_the_answers_come_in_the_order_of_the_questions() -> None:
    assert list(in_order(lambda number: number * 2, range(100), 8)) == [number * 2 for number in range(100)]
    assert list(in_order(str, [], 8)) == []


def test_what_a_question_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda number: 1 // number, [1, 0, 1], 2))


def test_a_process_ends_though_questions_wait() -> None:
    program = """
import threading
from tfguard.inventory.at_once import in_order
began = threading.Event()
def ask(_):
    began.set()
    threading.Event().wait()
threading.Thread(target=lambda: list(in_order(ask, range(9), 2)), daemon=True).start()
began.wait()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
