"""Key maps with next to no memory, so that logs of a few records are spilled and split in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from kafkalog.cleaning import joined_sources
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.operations import across_tasks, compact_partition
from kafkalog.resources.memory import MemoryBudget, memory_budget


def small_budget(memory_bytes: int, max_batch_bytes: int = MAX_BATCH_BYTES) -> MemoryBudget:
    """A pool of two blocks a bucket, three keys held at once, windows of 16 records."""
    return replace(
        memory_budget(memory_bytes, max_batch_bytes),
        pool_bytes=0,
        kept_bytes=64,
        most_keys=3,
        window_records=16,
    )


@contextmanager
def small_budgets() -> Iterator[None]:
    """Within it every partition cleaned in this process has that budget, and is read segment by
    segment.
    """
    few_bytes = mock.patch.object(across_tasks, "_MAP_TASK_BYTES", 1500)
    with (
        mock.patch.object(compact_partition, "memory_budget", small_budget),
        mock.patch.object(across_tasks, "memory_budget", small_budget),
        mock.patch.object(joined_sources, "JOINED_BYTES", 0),
        few_bytes,
    ):
        yield
