"""Many small items of work shared by this process and forks of it: a plan for each of a thousand
partitions, which one process after the other would make while others wait.

What is shared is only read, so a fork that dies changes nothing: its share is done here. An error
that `work` raises in a fork is raised here as well, by doing the share again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, TypeVar, cast

from kafkalog.resources import process_pool

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

# To fork a process that has everything loaded, and to end it, costs as much as some 20 small
# partitions.
LEAST_ITEMS = 64


def in_shares(
    work: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item], processes: int
) -> list[Result]:
    """`work` of all items, a result each, in their order: this process takes every n-th item, and
    forks of it the others. All of them here where there are few, or where nothing may be forked.
    """
    count = min(processes, len(items) // LEAST_ITEMS)
    if count < 2 or process_pool.start_method() != "fork":
        return list(work(items))
    shares = [items[first::count] for first in range(count)]
    forks = [_Fork(work, share) for share in shares[1:]]
    try:
        done = [work(shares[0]), *(fork.results() for fork in forks)]
    finally:
        for fork in forks:
            fork.end()
    # Shares are as long as each other, or one longer.
    turns = zip_longest(*done, fillvalue=_NOTHING)
    return [cast(Result, each) for each in chain.from_iterable(turns) if each is not _NOTHING]


_NOTHING = object()


class _Fork:
    """A process that does one share."""

    def __init__(
        self, work: Callable[[Sequence[Item]], Sequence[Result]], share: Sequence[Item]
    ) -> None:
        # With sockets and temporary files, for who has that many items.
        import multiprocessing

        self._again = partial(work, share)
        self._coming, sender = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        self._process: BaseProcess = context.Process(
            target=_do_share, args=(work, share, sender, os.getpid()), daemon=True
        )
        self._process.start()
        sender.close()  # the fork has it: its end is seen as the end of the pipe

    def results(self) -> Sequence[object]:
        """A result for each item of the share."""
        try:
            results: Sequence[object] = self._coming.recv()
        except EOFError:
            return self._again()
        return results

    def end(self) -> None:
        """Whatever it is at."""
        self._coming.close()
        self._process.kill()
        self._process.join()


def _do_share(
    work: Callable[[Sequence[Item]], Sequence[Result]],
    share: Sequence[Item],
    sender: Connection,
    driver_pid: int,
) -> None:
    process_pool.end_with_driver(driver_pid)
    try:
        results = list(work(share))
    except Exception:
        return  # the end of the pipe tells, and what it was is raised where the share is done again
    sender.send(results)
