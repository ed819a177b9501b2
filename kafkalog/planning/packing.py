"""Many small things as few tasks of about the same bytes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# A task reads this much, and there are at least so many of them, to keep a small cluster busy.
TASK_BYTES = 512 * 1024 * 1024
MIN_TASKS = 16


def pack_evenly(
    items: Sequence[Item],
    size_of: Callable[[Item], int],
    *,
    task_bytes: int = TASK_BYTES,
    min_tasks: int = MIN_TASKS,
) -> list[tuple[Item, ...]]:
    """All items in packs of about the same bytes, the largest pack and in it the largest item
    first. As many packs as there are `task_bytes` in all, at least `min_tasks`, none of them empty.
    """
    sizes = [size_of(item) for item in items]
    count = pack_count(sizes, task_bytes=task_bytes, min_tasks=min_tasks)
    packs: list[list[Item]] = [[] for _ in range(count)]
    # Largest item first, each into the pack that has the least; an item without bytes counts, too.
    least = [(0, number) for number in range(count)]
    for item in sorted(items, key=lambda item: -size_of(item)):
        size, number = heapq.heappop(least)
        packs[number].append(item)
        heapq.heappush(least, (size + max(size_of(item), 1), number))
    ordered = sorted(least, key=lambda pack: (-pack[0], pack[1]))
    return [tuple(packs[number]) for _, number in ordered]


def pack_count(sizes: Sequence[int], *, task_bytes: int, min_tasks: int) -> int:
    """In how many packs items of these sizes come."""
    return min(len(sizes), max(min_tasks, -(-sum(sizes) // task_bytes)))
