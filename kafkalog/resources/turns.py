"""Threads that work in turns and wait for the disk side by side.

Where the work of each is Python and system calls of some microseconds, threads that run at once
hand the interpreter's lock to each other at every call, which costs more than they gain. So one
works until it waits for the disk, and the next one goes on meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Turns:
    """`with` it a thread works: one at a time, but for those in `wait_aside`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()
        _of_thread.lock = self._lock

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _of_thread.lock = None
        self._lock.release()


class _OfThread(threading.local):
    """The lock that this thread holds while it works, if it works in turns."""

    lock: threading.Lock | None = None


_of_thread = _OfThread()


def wait_aside(
    call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """The call, which waits for something: others of the same `Turns` work meanwhile."""
    lock = _of_thread.lock
    if lock is None:
        return call(*args, **kwargs)
    lock.release()
    try:
        return call(*args, **kwargs)
    finally:
        lock.acquire()
