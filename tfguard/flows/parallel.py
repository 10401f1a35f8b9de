"""Doing the same for many things at a time, in a way that an interrupt ends at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

from tfguard.model.scan import Progress

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8
_PATIENCE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Parallel:
    """`go_on` raises when the user has had enough; `tell` is told how far it is."""

    go_on: Callable[[], None]
    tell: Callable[[Progress], None]

    def results(self, phase: str, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The results of `work`, in the order of `items`. Raises what `work` or `go_on` raises."""
        if not items:
            return []
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            futures = [pool.submit(work, item) for item in items]
            waiting: set[Future[R]] = set(futures)
            while waiting:
                self.go_on()
                _, waiting = wait(waiting, _PATIENCE_SECONDS, FIRST_COMPLETED)
                self.tell(Progress(phase, len(futures) - len(waiting), len(futures)))
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def as_they_come(items: Iterable[T], go_on: Callable[[], None]) -> Iterator[T]:
    """The items, taken by a thread of its own: `go_on`, which raises when the user has had enough, waits for none.

    The thread ends with the items, or with the process: what it waits for may never come. Raises what `items` raises.
    """
    taken: Queue[Future[T] | None] = Queue(1)
    closed = Event()
    Thread(target=_take, args=(items, taken, closed), daemon=True).start()
    try:
        while True:
            go_on()
            try:
                one = taken.get(timeout=_PATIENCE_SECONDS)
            except Empty:
                continue
            if one is None:
                return
            yield one.result()
    finally:
        closed.set()


def _take(items: Iterable[T], taken: Queue[Future[T] | None], closed: Event) -> None:
    """Hand over each item, or the error that there is instead, and None at the end, until nobody waits any more."""
    source = iter(items)
    while not closed.is_set():
        one: Future[T] = Future()
        try:
            one.set_result(next(source))
        except StopIteration:
            return _hand_over(None, taken, closed)
        except BaseException as error:  # noqa: BLE001 (it is raised again where it is waited for)
            one.set_exception(error)
            return _hand_over(one, taken, closed)
        _hand_over(one, taken, closed)
    return None


def _hand_over(one: Future[T] | None, taken: Queue[Future[T] | None], closed: Event) -> None:
    while not closed.is_set():
        with suppress(Full):
            return taken.put(one, timeout=_PATIENCE_SECONDS)
    return None
