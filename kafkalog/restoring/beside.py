"""Work beside the main thread, for a log that is large: what is copied, what the disk is waited
for, and what is read once more, need not be waited for before the next step. A small log has no
thread: each of its steps comes after the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

# A thread costs less than a tenth of what it saves from here on.
THREADS_FROM_BYTES = 64 * 1024 * 1024

Work = Callable[[], None]
# Has work done; what it gives waits until that is done, and raises its error.
Thread = Callable[[Work], Work]


@contextmanager
def beside(size_in_bytes: int) -> Iterator[Thread]:
    """Gives a function that has work done in its order, by a thread of its own where the log has so
    many bytes. At the end all of it is done; the first error of it is raised. Where the body
    raises, what has not begun is left out.
    """
    if size_in_bytes < THREADS_FROM_BYTES:
        yield _at_once
        return
    with ThreadPoolExecutor(1, "kafkalog-restore") as thread:
        begun: list[Future[None]] = []

        def begin(work: Work) -> Work:
            begun.append(thread.submit(work))
            return begun[-1].result

        try:
            yield begin
            for each in begun:
                each.result()
        finally:
            thread.shutdown(wait=True, cancel_futures=True)


def _at_once(work: Work) -> Work:
    work()
    return lambda: None
