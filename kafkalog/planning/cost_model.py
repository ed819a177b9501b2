"""What compaction and audit cost: CPU, bytes, memory and tasks of so much work by so many workers.

Bytes, memory and tasks follow from how the work is done, and are exact but for what keys are drawn
like; seconds are sums of these, each times a constant of the machine (`Rates`), which
`tests/benchmarks/bench_cost_model.py` fits and holds against whole runs. The page
docs/explanation/cost.md has it in words. Pure functions; units are bytes and seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# An entry of the key map, and the room a key takes with its places of the table
# (`cleaning.run_map`).
ENTRY_BYTES = 24
_POOL_BYTES_PER_KEY = 32
# Of a record that is compared, on disk (`cleaning.survivor_keys`).
_COMPARED_BYTES = 16
_RUN_RECORDS = 16 * 1024 * 1024
# Records of a window for each byte of flags that stays in memory (`resources.memory`).
_WINDOW_PER_KEPT = 32
# Flags and marks of a record, compressed, both ways (`cleaning.shuffle_rows`).
_FLAG_BYTES_SHUFFLED = 0.5
# Of `operations.across_tasks`.
_MAP_TASK_BYTES = 128 * 1024 * 1024
_RECORDS_PER_MERGER = 8 * 1024 * 1024
_MOST_MERGERS = 256
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

    start: a process, kernels loaded; segment: one that is read and goes; source_byte: read twice,
    checked; record: its key hashed, its mark looked up; near_byte: of a record's first 256, which
    come with its key; kept_byte: written and read back; entry: of the key map, through a disk and
    back; compared_record: `--verify deep`; codecs: a stored byte in or out, by the codec's number;
    task, shuffled_byte, first_job: Spark's own. wait_byte is no CPU: until a disk has taken a byte.
    """

    start: float
    partition: float
    segment: float
    source_byte: float
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
class Workers:
    """Who does the work: `count` processes, or Spark tasks at once; the bytes a process may hold,
    of them those of the key map; how many records' marks it merges at once (`resources.memory`).
    """

    count: int
    pool_bytes: int
    window_records: int
    on_spark: bool = False


@dataclass(frozen=True, slots=True)
class CompactionWork:
    """One partition: bytes of the `.log` files read, records in them, dirty ones among these,
    distinct keys of those, bytes that stay; the segments that are read and written; the codec's
    number; whether its keys travel between tasks, whether each record is compared, and whether its
    batches are so small that their headers are found by reading everything (`log.segment_headers`).
    """

    source_bytes: int
    records: int
    dirty_records: int
    keys: int
    kept_bytes: int
    segments: int
    groups: int
    codec: int = 0
    across_tasks: bool = False
    is_compared: bool = False
    is_scanned_whole: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """Of all workers together; memory of the largest. `seconds` is the time by the clock, of files
    in the page cache, on disks that write as fast for all workers at once as for one.
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
    alone = [_within_task_cpu(work, workers, rates) for work in within]
    tasks = min(packs or len(within), len(within))
    cpu = sum(alone) + (rates.task * tasks if workers.on_spark else 0.0)
    # No better than evenly, and no sooner than the largest.
    longest = max((c + w for c, w in zip(alone, waits, strict=True)), default=0.0)
    seconds = max((cpu + sum(waits)) / max(min(workers.count, tasks), 1), longest)
    for work in across:
        stages = _stages(work, workers, rates)
        tasks += sum(stage.tasks for stage in stages)
        cpu += sum(stage.cpu_seconds for stage in stages)
        seconds += sum(stage.seconds(workers.count) for stage in stages)
    start = rates.start + (rates.first_job if workers.on_spark else 0.0)
    return Cost(
        seconds=seconds + start,
        cpu_seconds=cpu + start,
        bytes_read=sum(_bytes_read(work) for work in works),
        bytes_written=sum(work.kept_bytes for work in works),
        bytes_spilled=sum(_spilled(work, workers) for work in works),
        bytes_shuffled=sum(_shuffled(work, workers) for work in across),
        memory_bytes=max(
            (_memory(work, workers, rates) for work in works), default=int(rates.base_bytes)
        ),
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


def distinct_keys(records: float, keys: float) -> float:
    """How many different ones so many records have, drawn evenly from so many keys."""
    if keys <= 0 or records <= 0:
        return 0.0
    return min(records, -keys * math.expm1(-records / keys))


def _within_task_cpu(work: CompactionWork, workers: Workers, rates: Rates) -> float:
    # Windows of marks read all entries again, each of them.
    windows = max(math.ceil(work.records / workers.window_records), 1)
    entries = _entries(work, workers) * (1 + windows) / 2
    return (
        rates.partition + _map_cpu(work, rates) + _rewrite_cpu(work, rates) + entries * rates.entry
    )


def _map_cpu(work: CompactionWork, rates: Rates) -> float:
    """The first pass: half of what the bytes, records and segments of the sources cost."""
    stored = work.source_bytes * (rates.source_byte + rates.codecs[work.codec])
    near = min(work.source_bytes, work.records * _NEAR_BYTES) * rates.near_byte
    return (stored + work.records * rates.record + near + work.segments * rates.segment) / 2


def _rewrite_cpu(work: CompactionWork, rates: Rates) -> float:
    compared = work.records * rates.compared_record if work.is_compared else 0.0
    kept = work.kept_bytes * (rates.kept_byte + rates.codecs[work.codec])
    return _map_cpu(work, rates) + kept + compared


def _stages(work: CompactionWork, workers: Workers, rates: Rates) -> list[_Stage]:
    """Map, merge, rewrite, swap: each waits for the one before."""
    maps = max(min(work.segments, -(-work.source_bytes // _MAP_TASK_BYTES)), 1)
    mergers = mergers_of(work.records)
    windows = max(math.ceil(work.records / workers.window_records), 1)
    merging = _entries_shuffled(work, workers) * (1 + windows) / 2 * rates.entry
    if workers.on_spark:
        merging += _shuffled(work, workers) * rates.shuffled_byte
    task = rates.task if workers.on_spark else 0.0
    groups = max(work.groups, 1)
    return [
        _Stage(maps, _map_cpu(work, rates) + maps * task),
        _Stage(mergers, merging + mergers * task),
        _Stage(
            groups, _rewrite_cpu(work, rates) + groups * task, work.kept_bytes * rates.wait_byte
        ),
        _Stage(1, rates.partition + task),
    ]


def mergers_of(records: int) -> int:
    """The tasks that share the buckets of a key map made across tasks."""
    return min(max(2, -(-records // _RECORDS_PER_MERGER)), _MOST_MERGERS)


def _bytes_read(work: CompactionWork) -> int:
    """Sources twice and new files once; with every record compared the sources twice more and the
    new files once. Before that headers, which are next to nothing or everything.
    """
    times = 2 if work.is_compared else 1
    scanned = work.source_bytes if work.is_scanned_whole else 0
    return times * (2 * work.source_bytes + work.kept_bytes) + scanned


def _most_keys(workers: Workers) -> float:
    """Keys of a run: dirty ones, and records that are only looked up."""
    return workers.pool_bytes / _POOL_BYTES_PER_KEY


def _records_of(distinct: float, keys: float) -> float:
    """How many records, drawn evenly from so many keys, have so many different ones."""
    return math.inf if keys <= distinct else -keys * math.log1p(-distinct / keys)


def _entries_of_runs(work: CompactionWork, workers: Workers, most_records: float) -> float:
    """Entries that runs of up to so many records leave: each run's distinct dirty keys once, and
    all records that are only looked up.
    """
    dirty = min(work.dirty_records, work.records)
    run_records = min(_records_of(_most_keys(workers), work.keys), most_records)
    left, found = float(dirty), 0.0
    whole = int(left // run_records)
    found += whole * distinct_keys(run_records, work.keys)
    found += distinct_keys(left - whole * run_records, work.keys)
    return found + work.records - dirty


def _keys_at_once(work: CompactionWork, workers: Workers) -> float:
    """What the map has of a run at the most."""
    dirty = min(work.dirty_records, work.records)
    looked_up = min(work.records - dirty, _RUN_RECORDS)
    held = distinct_keys(min(dirty, _RUN_RECORDS), work.keys)
    return min(held + looked_up, _most_keys(workers))


def _entries(work: CompactionWork, workers: Workers) -> float:
    """Entries that go to disk: none where one run holds all."""
    has_room = _keys_at_once(work, workers) < _most_keys(workers)
    if has_room and work.records <= _RUN_RECORDS:
        return 0.0
    return _entries_of_runs(work, workers, _RUN_RECORDS)


def _entries_shuffled(work: CompactionWork, workers: Workers) -> float:
    """A run ends with its task, too."""
    maps = max(min(work.segments, -(-work.source_bytes // _MAP_TASK_BYTES)), 1)
    per_task = max(work.records / maps, 1.0)
    return _entries_of_runs(work, workers, min(_RUN_RECORDS, per_task))


def _spilled(work: CompactionWork, workers: Workers) -> int:
    """Entries, and a byte of flags a record; of one that is compared its hash and number."""
    if work.across_tasks:
        return int(_entries_shuffled(work, workers) * ENTRY_BYTES)
    flags = work.records if work.records > workers.window_records // _WINDOW_PER_KEPT else 0
    compared = work.records * _COMPARED_BYTES if work.is_compared else 0
    return int(_entries(work, workers) * ENTRY_BYTES + flags + compared)


def _shuffled(work: CompactionWork, workers: Workers) -> int:
    entries = _entries_shuffled(work, workers)
    return int(entries * ENTRY_BYTES + work.records * _FLAG_BYTES_SHUFFLED)


def _memory(work: CompactionWork, workers: Workers, rates: Rates) -> int:
    if work.is_compared:
        return int(rates.base_bytes) + workers.pool_bytes
    return int(rates.base_bytes + _keys_at_once(work, workers) * _POOL_BYTES_PER_KEY)
