"""Work through a graph: each node once those that it waits for are done, a bounded number at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

_LOOK_SECONDS = 0.2


def work_through(
    waits_for: Mapping[str, Collection[str]],
    work: Callable[[str], bool],
    *,
    at_once: int,
    may_start: Callable[[], bool],
    stop_at_failure: bool = False,
) -> frozenset[str]:
    """The nodes whose `work` said that they are done; `waits_for` tells by node what has to be done before.

    Where `work` says no, or `may_start` does, nothing that is waiting is begun; with `stop_at_failure` nothing at all
    is begun any more. What runs is waited for, whatever happens. `may_start` is asked again and again, also while
    nothing can be begun. Raises what `work` raises, when everything has ended.
    """
    left = {name: set(before) for name, before in waits_for.items()}
    behind: dict[str, list[str]] = {name: [] for name in left}
    for name, before in left.items():
        for other in before:
            behind[other].append(name)
    free = [name for name, before in left.items() if not before]
    done: set[str] = set()
    running: dict[Future[bool], str] = {}
    failed = False
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            going_on = may_start() and not failed
            while going_on and free and len(running) < at_once:
                name = free.pop(0)
                running[pool.submit(work, name)] = name
            if not running:
                return frozenset(done)
            ended, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
            for future in ended:
                name = running.pop(future)
                try:
                    is_done = future.result()
                except BaseException:
                    wait(running)
                    raise
                if not is_done:
                    failed = failed or stop_at_failure
                    continue
                done.add(name)
                for other in behind[name]:
                    left[other].discard(name)
                    if not left[other]:
                        free.append(other)
