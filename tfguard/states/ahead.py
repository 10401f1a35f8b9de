"""Reading several states at a time: of a thousand in a bucket each is a call that waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tfguard.ports import KnownState

AT_ONCE = 8
"""So many are read at the same time, and so many at most are held in memory before they are taken."""


def read_ahead(reads: Iterable[Callable[[], KnownState]]) -> Iterator[KnownState]:
    """What these give, in their order. Whoever stops taking waits for none of the rest."""
    pool = ThreadPoolExecutor(AT_ONCE)
    begun: deque[Future[KnownState]] = deque()
    try:
        for read in reads:
            begun.append(pool.submit(read))
            if len(begun) == AT_ONCE:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
