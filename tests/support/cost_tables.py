"""What compaction and audit of so many bytes take, by the cost model: the tables of
docs/explanation/cost.md.
"""

from __future__ import annotations

import math

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.planning.compaction_work import CompactionWork, Workers
from kafkalog.planning.cost_model import Cost, audit_cost, compaction_cost
from kafkalog.planning.reference_rates import REFERENCE
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, usual_budget
from kafkalog.texts import format_bytes

GIB, TIB = 1 << 30, 1 << 40
# What the tables take for granted; the page says so.
RECORD_BYTES, BATCH_BYTES, SEGMENT_BYTES, PARTITION_BYTES = 127, 16 * 1024, GIB, 64 * GIB
# Bytes, and workers on one host or on many.
SIZES = (
    (GIB, 1, False),
    (32 * GIB, 1, False),
    (32 * GIB, 2, False),
    (TIB, 16, True),
    (10 * TIB, 80, True),
    (100 * TIB, 80, True),
    (100 * TIB, 400, True),
)
RECORDS_PER_KEY = (4, 1)
# Of each host; of a cluster eight workers share it.
PAGE_CACHE_BYTES, WORKERS_OF_A_HOST = 16 * GIB, 8


def cost_tables() -> dict[str, list[str]]:
    """By the name of its block."""
    return {"cost of compaction": _compaction(), "cost of an audit": _audit()}


def workers_of(count: int, *, on_spark: bool) -> Workers:
    """With the default memory."""
    budget = usual_budget(DEFAULT_MEMORY_BYTES, MAX_BATCH_BYTES, on_spark=on_spark)
    return Workers(
        count,
        budget.pool_bytes,
        budget.finished_bytes,
        budget.window_records,
        on_spark=on_spark,
        page_cache_bytes=PAGE_CACHE_BYTES / min(count, WORKERS_OF_A_HOST),
    )


def works_of(size: int, records_per_key: int, *, across_tasks: bool) -> list[CompactionWork]:
    """Partitions of so many bytes in all."""
    partitions = max(size // PARTITION_BYTES, 1)
    source = size // partitions
    records = source // RECORD_BYTES
    segments = max(source // SEGMENT_BYTES, 1)
    keys = records // records_per_key
    work = CompactionWork(
        source_bytes=source,
        records=records,
        dirty_records=records,
        keys=keys if records_per_key > 1 else 2**62,
        kept_bytes=source // records_per_key,
        segments=segments,
        groups=segments,
        across_tasks=across_tasks,
    )
    return [work] * partitions


def _compaction() -> list[str]:
    rows = [
        "| N bytes | K keys | W workers | time | CPU | read | written | spilled | memory of each |"
        " tasks | time across tasks | shuffled | tasks |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for size, count, on_spark in SIZES:
        for records_per_key in RECORDS_PER_KEY:
            workers = workers_of(count, on_spark=on_spark)
            works = works_of(size, records_per_key, across_tasks=False)
            within = compaction_cost(works, workers, REFERENCE)
            cells = [*_head(size, records_per_key, workers), *_within(within)]
            if works[0].segments > 1 and count > 1:
                works = works_of(size, records_per_key, across_tasks=True)
                across = compaction_cost(works, workers, REFERENCE)
                cells += [_time(across.seconds), _bytes(across.bytes_shuffled), f"{across.tasks:,}"]
            else:
                cells += ["–"] * 3
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def _head(size: int, records_per_key: int, workers: Workers) -> list[str]:
    keys = _number(size // RECORD_BYTES // records_per_key)
    hosts = f"{workers.count}, Spark" if workers.on_spark else str(workers.count)
    return [_bytes(size), keys, hosts]


def _within(cost: Cost) -> list[str]:
    return [
        _time(cost.seconds),
        _time(cost.cpu_seconds),
        _bytes(cost.bytes_read),
        _bytes(cost.bytes_written),
        _bytes(cost.bytes_spilled),
        _bytes(cost.memory_bytes),
        f"{cost.tasks:,}",
    ]


def _audit() -> list[str]:
    rows = ["| N bytes | W workers | time | CPU | read | memory of the driver |"]
    rows.append("|---|---|---|---|---|---|")
    for size, count, on_spark in SIZES:
        partitions = max(size // PARTITION_BYTES, 1)
        cost = audit_cost(
            partitions, size // SEGMENT_BYTES, size // BATCH_BYTES,
            workers_of(count, on_spark=on_spark), REFERENCE,
        )  # fmt: skip
        rows.append(
            f"| {_bytes(size)} | {count}{', Spark' if on_spark else ''} | {_time(cost.seconds)} | "
            f"{_time(cost.cpu_seconds)} | {_bytes(cost.bytes_read)} | {_bytes(cost.memory_bytes)} |"
        )
    return rows


def _bytes(size: int) -> str:
    return format_bytes(size) if size else "0"


def _number(count: int) -> str:
    """With two digits, as 270 M."""
    for name, unit in (("G", 10**9), ("M", 10**6)):
        if count >= unit:
            return f"{_rounded(count / unit)} {name}"
    return str(count)


def _time(seconds: float) -> str:
    """With two digits."""
    for name, unit in (("h", 3600), ("min", 60)):
        if seconds >= 2 * unit:
            return f"{_rounded(seconds / unit)} {name}"
    return f"{_rounded(seconds)} s"


def _rounded(value: float) -> str:
    digits = max(1 - math.floor(math.log10(value)), 0) if value > 0 else 0
    return f"{round(value, 1 - math.floor(math.log10(value))):,.{digits}f}" if value > 0 else "0"
