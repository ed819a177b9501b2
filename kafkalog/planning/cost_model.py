"""What compaction and audit cost: CPU, bytes, memory and tasks of so much work by so many workers.

Bytes, memory and tasks follow from how the work is done (`compaction_work`); seconds are sums of
these, each times a constant of the machine (`Rates`), which `tests/benchmarks/bench_cost_model.py`
fits and holds against whole runs. The page
docs/explanation/cost.md has it in words. Pure functions; units are bytes and seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.planning.compaction_work import (
    CompactionWork,
    Workers,
    bytes_again,
    bytes_cold,
    bytes_read,
    bytes_shuffled,
    bytes_spilled,
    entries_shuffled,
    entries_spilled,
    map_tasks,
    mergers_of,
    work_memory,
)

# What an audit holds of each partition and segment.
_AUDITED_PARTITION_BYTES = 9 * 1024
_AUDITED_SEGMENT_BYTES = 1536
# Bytes of a record that are read with its key: some lines of a processor's cache.
_NEAR_BYTES = 256
# Of a segment an audit reads the first and last batches and what lies beside it, of each header
# the page that it lies in.
_SEGMENT_READ_BYTES = 300 * 1024
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds of CPU of one core for one of what each name says; memory of a process but for its
    keys, or for what it has audited.

    start: a process, kernels loaded; segment: one that is read and goes; source_byte: read and
    checked once; again_byte: the same a second time; cold_byte: of a byte that is read what a disk
    takes more than the page cache; record: its key hashed, its mark looked up;
    near_byte: of a record's first 256, which come with its key; kept_byte: written and read back;
    entry: of the key map, through a disk and back; compared_record: `--verify deep`; codecs: a
    stored byte in or out, by the codec's number; task, shuffled_byte, first_job: Spark's own.
    wait_byte is no CPU: until a disk has taken a byte.
    """

    start: float
    partition: float
    segment: float
    source_byte: float
    again_byte: float
    cold_byte: float
    record: float
    near_byte: float
    kept_byte: float
    entry: float
    compared_record: float
    codecs: tuple[float, float, float, float, float]
    wait_byte: float
    task: float
    shuffled_byte: float
    first_job: float
    audit_start: float
    audited_partition: float
    audited_segment: float
    audited_batch: float
    base_bytes: float
    audit_base_bytes: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Of all workers together; memory of the largest. `seconds` is the time by the clock, without
    waiting for disks to read, which write as fast for all workers at once as for one.
    """

    seconds: float
    cpu_seconds: float
    bytes_read: int
    bytes_written: int
    bytes_spilled: int
    bytes_shuffled: int
    memory_bytes: int
    tasks: int


@dataclass(frozen=True, slots=True)
class _Stage:
    """Tasks that may run side by side; the CPU of all of them, and how long they wait for disks."""

    tasks: int
    cpu_seconds: float
    wait_seconds: float = 0.0

    def seconds(self, workers: int) -> float:
        """As many turns as it takes for all tasks to have had one."""
        each = (self.cpu_seconds + self.wait_seconds) / self.tasks
        return each * math.ceil(self.tasks / workers)


def compaction_cost(
    works: Sequence[CompactionWork], workers: Workers, rates: Rates, *, packs: int | None = None
) -> Cost:
    """Of a run over these partitions. `packs`: in how many tasks those are that are done within
    one; a task each without it.
    """
    within = [work for work in works if not work.across_tasks]
    across = [work for work in works if work.across_tasks]
    waits = [work.kept_bytes * rates.wait_byte for work in within]
    # What was written last may be in memory, if all of it can be.
    is_cold = sum(work.source_bytes for work in works) > workers.page_cache_bytes * workers.count
    alone = [_within_task_cpu(work, workers, rates, is_cold) for work in within]
    tasks = min(packs or len(within), len(within))
    cpu = sum(alone) + (rates.task * tasks if workers.on_spark else 0.0)
    # No better than evenly, and no sooner than the largest.
    longest = max((c + w for c, w in zip(alone, waits, strict=True)), default=0.0)
    seconds = max((cpu + sum(waits)) / max(min(workers.count, tasks), 1), longest)
    for work in across:
        stages = _stages(work, workers, rates, is_cold)
        tasks += sum(stage.tasks for stage in stages)
        cpu += sum(stage.cpu_seconds for stage in stages)
        seconds += sum(stage.seconds(workers.count) for stage in stages)
    start = rates.start + (rates.first_job if workers.on_spark else 0.0)
    return Cost(
        seconds=seconds + start,
        cpu_seconds=cpu + start,
        bytes_read=sum(bytes_read(work, workers) for work in works),
        bytes_written=sum(work.kept_bytes for work in works),
        bytes_spilled=sum(bytes_spilled(work, workers) for work in works),
        bytes_shuffled=sum(bytes_shuffled(work, workers) for work in across),
        memory_bytes=int(rates.base_bytes)
        + max((work_memory(work, workers) for work in works), default=0),
        tasks=tasks,
    )


def audit_cost(
    partitions: int, segments: int, batches: int, workers: Workers, rates: Rates
) -> Cost:
    """Of an audit by headers; one process puts its document together."""
    cpu = (
        partitions * rates.audited_partition
        + segments * rates.audited_segment
        + batches * rates.audited_batch
    )
    at_once = max(min(workers.count, partitions), 1)
    start = rates.audit_start + (rates.first_job if workers.on_spark else 0.0)
    return Cost(
        seconds=start + cpu / at_once,
        cpu_seconds=start + cpu,
        bytes_read=segments * _SEGMENT_READ_BYTES + batches * _PAGE_BYTES,
        bytes_written=0,
        bytes_spilled=0,
        bytes_shuffled=0,
        memory_bytes=int(rates.audit_base_bytes)
        + partitions * _AUDITED_PARTITION_BYTES
        + segments * _AUDITED_SEGMENT_BYTES,
        tasks=partitions,
    )


def _within_task_cpu(work: CompactionWork, workers: Workers, rates: Rates, is_cold: bool) -> float:
    # Windows of marks read all entries again, each of them.
    windows = max(math.ceil(work.records / workers.window_records), 1)
    entries = entries_spilled(work, workers) * (1 + windows) / 2
    return (
        rates.partition
        + _map_cpu(work, rates)
        + _rewrite_cpu(work, workers, rates)
        + entries * rates.entry
        + bytes_cold(work, workers, is_cold=is_cold) * rates.cold_byte
    )


def _map_cpu(work: CompactionWork, rates: Rates) -> float:
    """The first pass over the sources."""
    stored = work.source_bytes * (rates.source_byte + rates.codecs[work.codec])
    near = min(work.source_bytes, work.records * _NEAR_BYTES) * rates.near_byte
    return stored + work.records * rates.record + near + work.segments * rates.segment


def _rewrite_cpu(work: CompactionWork, workers: Workers, rates: Rates) -> float:
    compared = work.records * rates.compared_record if work.is_compared else 0.0
    kept = work.kept_bytes * (rates.kept_byte + rates.codecs[work.codec])
    again = bytes_again(work, workers) * (rates.again_byte + rates.codecs[work.codec])
    return again + kept + compared


def _stages(work: CompactionWork, workers: Workers, rates: Rates, is_cold: bool) -> list[_Stage]:
    """Map, merge, rewrite, swap: each waits for the one before."""
    # Sources are read in the first and in the third of them.
    cold = bytes_cold(work, workers, is_cold=is_cold) * rates.cold_byte / 2
    maps = map_tasks(work)
    mergers = mergers_of(work.records)
    windows = max(math.ceil(work.records / workers.window_records), 1)
    merging = entries_shuffled(work, workers) * (1 + windows) / 2 * rates.entry
    if workers.on_spark:
        merging += bytes_shuffled(work, workers) * rates.shuffled_byte
    task = rates.task if workers.on_spark else 0.0
    groups = max(work.groups, 1)
    return [
        _Stage(maps, _map_cpu(work, rates) + cold + maps * task),
        _Stage(mergers, merging + mergers * task),
        _Stage(
            groups,
            _rewrite_cpu(work, workers, rates) + cold + groups * task,
            work.kept_bytes * rates.wait_byte,
        ),
        _Stage(1, rates.partition + task),
    ]
