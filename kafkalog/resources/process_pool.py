"""Tasks to results in worker processes of this machine: what the command line uses in place of
Spark tasks.

Workers end with their driver, however that ends: one that lived on would wait for work for ever, or
go on to change a log dir that nobody holds the lock of. Being killed is nothing new to a task, its
partition is resolved by whoever looks next.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from kafkalog.code_digest import check_code_on_disk, code_on_disk

Task = TypeVar("Task")
Result = TypeVar("Result")

# prctl(2): the signal a process gets when the thread that made it ends. Python has no name for it,
# and a thread that waits for the driver's end in its place would wait for the interpreter's lock:
# a worker in the middle of a long call would go on to change a log dir without a lock.
_PR_SET_PDEATHSIG = 1


def in_processes(
    tasks: Sequence[Task],
    work: Callable[[Task], Result],
    workers: int,
    died: Callable[[Task], Result],
) -> Iterator[Result]:
    """Results in the order they come, tasks started in their order; in this process if one worker
    is enough.

    A worker that dies (killed, out of memory) fails the tasks that had no result yet, with the
    result `died` gives; the next run resolves what it left. Interrupted (Ctrl-C) or closed before
    its end, this kills the workers and begins no further task.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from map(work, tasks)
        return
    # With sockets, queues and logging, for who has work for several.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(
        workers,
        multiprocessing.get_context(start_method()),
        initializer=end_with_driver,
        initargs=(os.getpid(),),
    )
    try:
        run = partial(_on_same_code, code_on_disk(), work)
        waiting = {pool.submit(run, task): task for task in tasks}
        for future in as_completed(waiting):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield died(waiting[future])
    except BaseException:
        for process in list(pool._processes.values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def start_method() -> str:
    """fork: kernels are loaded once, before, and no thread runs yet that a child could miss. But
    where this process has asked a bucket: the client's threads would be missing in the child,
    which would wait for them for ever."""
    return "spawn" if "obstore" in sys.modules else "fork"


def _on_same_code(planned: str, work: Callable[[Task], Result], task: Task) -> Result:
    check_code_on_disk(planned)
    return work(task)


def end_with_driver(driver_pid: int) -> None:
    """In a worker: Ctrl-C is the driver's to handle, and the driver's end is the worker's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != driver_pid:
        os.kill(os.getpid(), signal.SIGKILL)  # it died before we asked to be told
