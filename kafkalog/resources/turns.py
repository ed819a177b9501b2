"""Threads that work in turns and wait for the disk side by side.

Where the work of each is Python and system calls of some microseconds, threads that run at once
hand the interpreter's lock to each other at every call, which costs more than they gain. So one
works until it waits for the disk, and the next one goes on meanwhile; where the last wait was over
at once (files in memory, a disk that does not wait) it keeps its turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


# A wait that is shorter than this costs less than two changes of turns.
_SHORT_S = 50e-6


class Turns:
    """`with` it a thread works: one at a time, but for those in `wait_aside`. `begin_others` is
    called behind each long wait: before the first there is nothing for others to do.
    """

    def __init__(self, begin_others: Callable[[], None] = lambda: None) -> None:
        self._begin_others = begin_others
        self._lock = threading.Lock()
        self._last_wait_s = _SHORT_S

    def __enter__(self) -> None:
        self._lock.acquire()
        _of_thread.turns = self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _of_thread.turns = None
        self._lock.release()

    def wait(
        self, call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The call, while others have their turns unless it will be short."""
        is_long, began_s = self._last_wait_s >= _SHORT_S, time.perf_counter()
        if is_long:
            self._lock.release()
        try:
            return call(*args, **kwargs)
        finally:
            self._last_wait_s = time.perf_counter() - began_s
            if self._last_wait_s >= _SHORT_S:
                self._begin_others()
            if is_long:
                self._lock.acquire()


class _OfThread(threading.local):
    """What this thread works in turns of, if it does."""

    turns: Turns | None = None


_of_thread = _OfThread()


def wait_aside(
    call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """The call, which waits for something: others of the same `Turns` work meanwhile."""
    turns = _of_thread.turns
    return call(*args, **kwargs) if turns is None else turns.wait(call, *args, **kwargs)
