"""The work of a compaction: what of it is read, written, spilled and shuffled, and held in memory.

These follow from how the work is done, and are exact but for what keys are drawn like. The page
docs/explanation/cost.md has it in words. Pure functions; units are bytes.
"""

from __future__ import annotations

import math
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
# What comparing records takes besides.
_COMPARING_BYTES = 96 * 1024 * 1024
# Of a log that is no larger whatever looks at its headers reads everything.
_SMALL_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work: `count` processes, or Spark tasks at once; of the bytes a process may
    hold those of the key map, and of these the ones that output may have which is ready before its
    turn; how many records' marks it merges at once (`resources.memory`). `page_cache_bytes`: its
    part of what a host can keep of files in memory.
    """

    count: int
    pool_bytes: int
    finished_bytes: int
    window_records: int
    on_spark: bool = False
    page_cache_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class CompactionWork:
    """One partition: bytes of the `.log` files read, records in them, dirty ones among these,
    distinct keys of those, bytes that stay; the segments that are read and written; the codec's
    number; whether its keys travel between tasks, whether each record is compared, whether its
    batches are so small that their headers are found by reading everything (`log.segment_headers`),
    and whether nothing of it is in the page cache when the run begins.
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
    is_cold: bool = False


def distinct_keys(records: float, keys: float) -> float:
    """How many different ones so many records have, drawn evenly from so many keys."""
    if keys <= 0 or records <= 0:
        return 0.0
    return min(records, -keys * math.expm1(-records / keys))


def map_tasks(work: CompactionWork) -> int:
    """Of a key map made across tasks."""
    return max(min(work.segments, -(-work.source_bytes // _MAP_TASK_BYTES)), 1)


def mergers_of(records: int) -> int:
    """The tasks that share the buckets of a key map made across tasks."""
    return min(max(2, -(-records // _RECORDS_PER_MERGER)), _MOST_MERGERS)


def bytes_again(work: CompactionWork, workers: Workers) -> float:
    """Of the sources: they are gone over from the end, and what becomes of a part is made at once
    if there is room for it until its turn. Most of what stays lies at the end, so where there is
    not room for all it is the end that is read again (`cleaning.reverse_pass`).
    """
    if work.across_tasks:
        return float(work.source_bytes)
    free = workers.pool_bytes - _keys_at_once(work, workers) * _POOL_BYTES_PER_KEY
    room = max(min(free, workers.finished_bytes), 0.0)
    if room >= work.kept_bytes:
        return 0.0
    staying = distinct_keys(work.records, work.keys) * (1 - room / work.kept_bytes)
    # As many records, counted from the end, as have so many different keys.
    return work.source_bytes * min(_records_of(staying, work.keys) / max(work.records, 1), 1.0)


def bytes_read(work: CompactionWork, workers: Workers) -> int:
    """Sources once or twice and new files once; with every record compared the sources twice more
    and the new files once. Before that headers, which are next to nothing or everything.
    """
    compared = 2 * work.source_bytes + work.kept_bytes if work.is_compared else 0
    is_scanned = work.is_scanned_whole or work.source_bytes <= _SMALL_BYTES
    scanned = work.source_bytes if is_scanned else 0
    once = work.source_bytes + work.kept_bytes
    return once + int(bytes_again(work, workers)) + compared + scanned


def bytes_cold(work: CompactionWork, workers: Workers, *, is_cold: bool) -> float:
    """Of what is read, what comes from a disk: sources the first time where they `is_cold`; and
    where sources, new files and entries are more than the page cache has room for, all that
    is read again. For a system gives up first what was not read for the longest time, which in a
    log that is read in its order, and again in its order, is what comes next.
    """
    entries = entries_shuffled if work.across_tasks else entries_spilled
    beside = work.kept_bytes + entries(work, workers) * ENTRY_BYTES
    cold = float(work.source_bytes) if is_cold or work.is_cold else 0.0
    if work.source_bytes + beside > workers.page_cache_bytes:
        compared = 2 * work.source_bytes if work.is_compared else 0
        cold += bytes_again(work, workers) + compared + beside
    return cold


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


def entries_spilled(work: CompactionWork, workers: Workers) -> float:
    """Entries that go to disk: none where one run holds all."""
    has_room = _keys_at_once(work, workers) < _most_keys(workers)
    if has_room and work.records <= _RUN_RECORDS:
        return 0.0
    return _entries_of_runs(work, workers, _RUN_RECORDS)


def entries_shuffled(work: CompactionWork, workers: Workers) -> float:
    """A run ends with its task, too."""
    per_task = max(work.records / map_tasks(work), 1.0)
    return _entries_of_runs(work, workers, min(_RUN_RECORDS, per_task))


def bytes_spilled(work: CompactionWork, workers: Workers) -> int:
    """Entries, and a byte of flags a record; of one that is compared its hash and number."""
    if work.across_tasks:
        return int(entries_shuffled(work, workers) * ENTRY_BYTES)
    flags = work.records if work.records > workers.window_records // _WINDOW_PER_KEPT else 0
    compared = work.records * _COMPARED_BYTES if work.is_compared else 0
    return int(entries_spilled(work, workers) * ENTRY_BYTES + flags + compared)


def bytes_shuffled(work: CompactionWork, workers: Workers) -> int:
    entries = entries_shuffled(work, workers)
    return int(entries * ENTRY_BYTES + work.records * _FLAG_BYTES_SHUFFLED)


def work_memory(work: CompactionWork, workers: Workers) -> int:
    """Beyond that of a process."""
    compared = _COMPARING_BYTES if work.is_compared else 0
    keys = _keys_at_once(work, workers) * _POOL_BYTES_PER_KEY
    finished = 0 if work.across_tasks else min(work.kept_bytes, workers.finished_bytes)
    return int(min(keys + finished + compared, workers.pool_bytes))
