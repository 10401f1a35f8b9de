"""List the shards of a scan at once. Whatever a worker suffers, each type of each shard is answered, if with a gap."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from tfguard.errors import InputError, InterruptedRunError
from tfguard.model.inventory import Gap, Listing, Scope
from tfguard.model.scan import Shard
from tfguard.ports import Inventory

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

MakeInventory = Callable[[], Inventory]
Done = Callable[[Shard], None]

_THREADS = 12
_PATIENCE_SECONDS = 0.2
_CONNECT_SECONDS = 15
_DIED = "the process that listed it died"


def list_shard(inventory: Inventory, shard: Shard) -> Iterator[Listing]:
    """The listing of each type of a shard, one for each account of a wide one. A defect in a listing is a gap too, and
    never ends the scan."""
    answered: set[str] = set()
    reason = "it was not answered"
    try:
        for listing in inventory.list_many(shard.types, shard.provider, shard.region):
            answered.add(listing.type)
            yield listing
    except Exception as error:  # noqa: BLE001 (its words may quote a credential)
        reason = f"the listing failed ({type(error).__name__})"
        if shard.wide:  # nobody knows of which accounts there is no answer yet
            answered.clear()
    yield from _without_answer(shard, reason, answered)


def _without_answer(shard: Shard, reason: str, answered: set[str] | None = None) -> Iterator[Listing]:
    scope = Scope(shard.cloud, shard.account, shard.region or "global", shard.provider.key)
    for name in shard.types:
        if name not in (answered or ()):
            yield Listing(name, scope, gap=Gap(f"{scope} {name}", reason))


def _interrupted() -> InterruptedRunError:
    return InterruptedRunError("interrupted while listing; nothing was changed", "run the command again")


class ThreadLister:
    """Lists with threads that share one inventory. Implements `ports.ShardLister`.

    The threads do not hold the end of the process up: a list call may take its time to answer.
    """

    def __init__(self, inventory: Inventory, stop: Callable[[], bool], workers: int | None = None) -> None:
        self._inventory = inventory
        self._stop = stop
        self._workers = workers or _THREADS

    def list(self, shards: Sequence[Shard], done: Done) -> Iterator[Listing]:
        """Each listing as it comes in. Raises `InterruptedRunError` when `stop` says so."""
        waiting = deque(shards)
        # Bounded: whoever judges the listings need not hold all of them at once.
        answers: Queue[Listing | Shard] = Queue(2 * self._workers)
        closed = Event()
        for _ in range(min(self._workers, len(shards))):
            Thread(target=self._work, args=(waiting, answers, closed), daemon=True, name="tfguard-list").start()
        left = len(shards)
        try:
            while left:
                if self._stop():
                    raise _interrupted()
                try:
                    answer = answers.get(timeout=_PATIENCE_SECONDS)
                except Empty:
                    continue
                if isinstance(answer, Shard):
                    left -= 1
                    done(answer)
                else:
                    yield answer
        finally:
            closed.set()

    def _work(self, waiting: deque[Shard], answers: Queue[Listing | Shard], closed: Event) -> None:
        def tell(answer: Listing | Shard) -> bool:
            while not closed.is_set():
                try:
                    answers.put(answer, timeout=_PATIENCE_SECONDS)
                    return True
                except Full:
                    continue
            return False

        while True:
            try:
                shard = waiting.popleft()
            except IndexError:
                return
            if not all(tell(listing) for listing in list_shard(self._inventory, shard)) or not tell(shard):
                return


class ProcessLister:
    """Lists with processes, each with an inventory of its own. Implements `ports.ShardLister`.

    `make` makes that inventory; it is called by name in the process. Of the shards that were being listed when a
    process died each is tried once more, by itself, so that one of them takes no other along.
    """

    def __init__(self, make: MakeInventory, stop: Callable[[], bool], workers: int | None = None) -> None:
        self._make = make
        self._stop = stop
        self._workers = workers or os.cpu_count() or 1

    def list(self, shards: Sequence[Shard], done: Done) -> Iterator[Listing]:
        """Each listing as it comes in. Raises `InterruptedRunError` when `stop` says so."""
        waiting, suspects = deque(shards), deque[Shard]()
        while waiting:
            suspects += yield from self._round(waiting, self._workers, done)
        for shard in suspects:
            if (yield from self._round(deque([shard]), 1, done)):
                yield from _without_answer(shard, _DIED)
                done(shard)

    def _round(self, waiting: deque[Shard], workers: int, done: Done) -> Generator[Listing, None, Sequence[Shard]]:
        """List with new processes until all is done, or one of them dies: then the shards that may be the reason."""
        others = set(multiprocessing.active_children())
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers, len(waiting)), context, initializer=_begin_worker)
        running: dict[Future[Sequence[Listing]], Shard] = {}
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    shard = waiting.popleft()
                    try:
                        running[pool.submit(list_remotely, self._make, shard)] = shard
                    except BrokenProcessPool:
                        return [shard, *running.values()]
                finished, _ = wait(running, _PATIENCE_SECONDS, FIRST_COMPLETED)
                if self._stop():
                    raise _interrupted()
                dead: deque[Shard] = deque()
                for future in finished:
                    shard = running.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        dead.append(shard)
                        continue
                    yield from _answered(future, shard)
                    done(shard)
                if dead:
                    return [*dead, *running.values()]
            return []
        finally:
            if running:
                _end(set(multiprocessing.active_children()) - others)
            pool.shutdown(wait=True, cancel_futures=True)


def _end(processes: set[BaseProcess]) -> None:
    """End the processes of a pool that nobody waits for any more; each may be in the middle of a list call."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_PATIENCE_SECONDS)


def _begin_worker() -> None:
    """A terminal's Ctrl-C reaches the worker as well, and it is tfguard that decides; without it nobody listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_made: dict[MakeInventory, Inventory] = {}
_making = Lock()


def list_remotely(make: MakeInventory, shard: Shard) -> Sequence[Listing]:
    """The listings of a shard, in a worker that keeps the inventory which it has made once."""
    with _making:
        if make not in _made:
            _made[make] = make()
    return list(list_shard(_made[make], shard))


def _answered(future: Any, shard: Shard) -> Iterator[Listing]:
    """What a worker has answered; a gap for each type where it could not."""
    try:
        answers: Sequence[Listing] = future.result()
    except Exception as error:  # noqa: BLE001 (whatever a worker, or the way to it, could not do)
        yield from _without_answer(shard, f"its worker failed ({type(error).__name__})")
    else:
        yield from answers


class DaskLister:
    """Lists with the workers of a Dask cluster, on which tfguard is installed. Implements `ports.ShardLister`.

    `address` is HOST:PORT of the scheduler. The shards carry the settings of their provider configurations there.
    """

    def __init__(self, address: str, make: MakeInventory, stop: Callable[[], bool]) -> None:
        self._address = address
        self._make = make
        self._stop = stop

    def list(self, shards: Sequence[Shard], done: Done) -> Iterator[Listing]:
        """Each listing as it comes in. Raises `InterruptedRunError`, and `InputError` where no scheduler answers."""
        from distributed import Client

        try:
            client = Client(f"tcp://{self._address}", timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {self._address} ({type(error).__name__})",
                "start one (`dask scheduler`), or use --executor threads",
            ) from error
        try:
            running = {client.submit(list_remotely, self._make, shard, pure=False): shard for shard in shards}
            while running:
                if self._stop():
                    client.cancel(list(running))
                    raise _interrupted()
                finished = [future for future in running if future.done()]
                for future in finished:
                    shard = running.pop(future)
                    yield from _answered(future, shard)
                    done(shard)
                    future.release()
                if not finished:
                    time.sleep(_PATIENCE_SECONDS / 4)
        finally:
            client.close()
