"""Questions to a store that do not wait for each other's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# A question is an answer's wait and little else; a store refuses who asks for too much at once.
AT_ONCE = 8


def side_by_side(call: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The answers in the order of the items; the first one that raises is raised, and what is not
    begun by then is not asked."""
    wanted = list(items)
    if len(wanted) < 2:
        return [call(item) for item in wanted]
    # With logging and queues, for who asks a store.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(AT_ONCE, len(wanted))) as threads:
        coming = [threads.submit(call, item) for item in wanted]
        try:
            return [each.result() for each in coming]
        except BaseException:
            for each in coming:
                each.cancel()
            raise
