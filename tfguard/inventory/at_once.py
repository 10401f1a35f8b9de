"""Several streams of listings read at once, with no more in memory than one of each and a few that wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

from tfguard.model.inventory import Listing

_PATIENCE_SECONDS = 0.2

Task = Callable[[], Iterator[Listing]]

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def at_once(tasks: Iterable[Task], workers: int) -> Iterator[Listing]:
    """The listings of all tasks as they come, in no order; so many of the tasks run at once, in threads of their own.

    Raises what a task raises. Whoever stops reading ends the tasks before their next listing.
    """
    waiting = deque(tasks)
    answers: Queue[Listing | BaseException | None] = Queue(2 * workers)
    closed = Event()

    def tell(answer: Listing | BaseException | None) -> bool:
        while not closed.is_set():
            try:
                answers.put(answer, timeout=_PATIENCE_SECONDS)
                return True
            except Full:
                continue
        return False

    def work() -> None:
        try:
            while not closed.is_set():
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                for listing in task():
                    if not tell(listing):
                        return
        except BaseException as error:  # noqa: BLE001 (handed on to whoever reads)
            tell(error)
        finally:
            tell(None)

    left = min(workers, len(waiting))
    for _ in range(left):
        Thread(target=work, daemon=True, name="tfguard-google").start()
    try:
        while left:
            answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                left -= 1
            else:
                yield answer
    finally:
        closed.set()


def in_order(ask: Callable[[_Asked], _Answer], asked: Iterable[_Asked], workers: int) -> Iterator[_Answer]:
    """The answer to each of these, in their order; so many are asked at once. Raises what `ask` raises.

    Its threads keep no process from ending, as those of an executor do with all that waits.
    """
    waiting = deque(enumerate(asked))
    answers: Queue[tuple[int, _Answer | BaseException]] = Queue()
    closed = Event()

    def work() -> None:
        while not closed.is_set():
            try:
                number, one = waiting.popleft()
            except IndexError:
                return
            try:
                answers.put((number, ask(one)))
            except BaseException as error:  # noqa: BLE001 (handed on to whoever reads)
                answers.put((number, error))

    count = len(waiting)
    for _ in range(min(workers, count)):
        Thread(target=work, daemon=True, name="tfguard-google").start()
    told: dict[int, _Answer | BaseException] = {}
    try:
        for number in range(count):
            while number not in told:
                place, answer = answers.get()
                told[place] = answer
            answer = told.pop(number)
            if isinstance(answer, BaseException):
                raise answer
            yield answer
    finally:
        closed.set()
