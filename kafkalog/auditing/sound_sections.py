"""Sums of an audit's document over the columns of sound logs (`sound_partitions`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.auditing.sound_columns import forecast
from kafkalog.auditing.sound_partitions import SoundGroup, SoundPartition
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.log_numbers import I64s
from kafkalog.planning.retention_forecast import NEVER

# A place of a group that is not asked for.
_NOT_ASKED = -1


def _topics(group: SoundGroup, own: Sequence[SoundPartition]) -> tuple[list[str], I64s]:
    """The topics of these logs, and of each log of the group which it is of."""
    places: dict[str, int] = {}
    topics = np.full(len(group.columns), _NOT_ASKED, np.int64)
    for each in own:
        topics[each.number] = places.setdefault(each.topic, len(places))
    return list(places), topics


def _summed(
    topics: I64s, keys: I64s, columns: Sequence[I64s]
) -> Iterator[tuple[int, int, list[int]]]:
    """(topic, key, the sums of each column) over rows of the same topic and key."""
    pairs, rows = np.unique(np.stack([topics, keys]), axis=1, return_inverse=True)
    sums = np.zeros((len(columns), pairs.shape[1]), np.int64)
    for sum_, column in zip(sums, columns, strict=True):
        np.add.at(sum_, rows.reshape(-1), column)
    for topic, key, *own in zip(*pairs.tolist(), *sums.tolist(), strict=True):
        yield topic, key, own


def sound_timeline(
    group: SoundGroup, own: Sequence[SoundPartition], day_ms: int
) -> Iterator[tuple[str, int, int, int]]:
    """(topic, day, bytes, segments) of what goes."""
    names, topics = _topics(group, own)
    due, of_segments = group.due, group.columns.each(topics)
    goes = (of_segments != _NOT_ASKED) & (due.due_ms != NEVER)
    days = np.maximum(due.due_ms[goes], group.at.now_ms) // day_ms * day_ms
    sizes = due.sizes[goes]
    for topic, day, (size, count) in _summed(of_segments[goes], days, (sizes, np.ones_like(sizes))):
        yield names[topic], day, size, count


def sound_ages(
    group: SoundGroup, own: Sequence[SoundPartition], edges_ms: Sequence[int], no_time: int
) -> Iterator[tuple[str, int, list[int]]]:
    """(topic, number of the last edge at or below the age, -1 for one in the future, `no_time`
    without a time; bytes in closed segments, in the active one, records).
    """
    names, topics = _topics(group, own)
    of_slices = np.repeat(topics, group.columns.slice_counts)
    asked, times = of_slices != _NOT_ASKED, group.columns.slice_column("to_ms")
    ages = group.at.now_ms - np.maximum(times, 0)
    buckets = np.searchsorted(np.array(edges_ms, np.int64), ages, side="right") - 1
    buckets = np.where(times < 0, no_time, buckets)[asked]
    sums = [
        group.columns.slice_column(name)[asked]
        for name in ("closed_bytes", "active_bytes", "records")
    ]
    for topic, bucket, own_sums in _summed(of_slices[asked], buckets, sums):
        yield names[topic], bucket, own_sums


def older_records(group: SoundGroup) -> list[int]:
    """Of each log the records that are older than retention.ms for certain."""
    columns, retention = group.columns, group.at.retention_ms
    limits = np.repeat(group.at.now_ms - retention, columns.slice_counts)
    limits = np.where(np.repeat(retention, columns.slice_counts) < 0, 0, limits)
    times = group.columns.slice_column("to_ms")
    records = np.where((times >= 0) & (times < limits), group.columns.slice_column("records"), 0)
    found = np.zeros(len(columns), np.int64)
    np.add.at(found, np.repeat(np.arange(len(found)), columns.slice_counts), records)
    older: list[int] = found.tolist()
    return older


def is_still(group: SoundGroup, window_ms: int) -> list[bool]:
    """Of which logs no time says that something arrived so short ago."""
    now_ms, to_ms = group.at.now_ms, group.columns.slice_column("to_ms")
    came = (
        (group.columns.slice_column("from_ms") >= 0)
        & (to_ms <= now_ms)
        & (to_ms > now_ms - window_ms)
    )
    found = np.ones(len(group.columns), np.bool_)
    found[np.repeat(np.arange(len(found)), group.columns.slice_counts)[came]] = False
    still: list[bool] = found.tolist()
    return still


def kept_by_time(
    group: SoundGroup, retention_ms: I64s, times_ms: Sequence[int]
) -> tuple[list[tuple[I64s, I64s]], NDArray[np.bool_]]:
    """(bytes, records) of each log that are left at each time, where time alone deletes after so
    long; and for which logs that is certain.
    """
    columns, due = group.columns, group.due
    own = forecast(columns, replace(group.at, retention_ms=retention_ms)).due_ms
    limits = np.maximum(columns.each(retention_ms), 0)
    is_certain = ~columns.any_segment(due.timestamps_ms > MAX_INT64 - limits - 1)
    records, kept = columns.column("records_count"), []
    for at_ms in times_ms:
        stays = (own == NEVER) | (own > at_ms)
        kept.append(
            (
                np.add.reduceat(np.where(stays, due.sizes, 0), columns.firsts),
                np.add.reduceat(np.where(stays, records, 0), columns.firsts),
            )
        )
    return kept, is_certain


def by_topic(
    group: SoundGroup, own: Sequence[SoundPartition], columns: Sequence[I64s]
) -> Iterator[tuple[str, list[int]]]:
    """Sums over these logs of columns with a number a log."""
    names, topics = _topics(group, own)
    asked = topics != _NOT_ASKED
    keys = np.zeros_like(topics)
    for topic, _, sums in _summed(topics[asked], keys[asked], [c[asked] for c in columns]):
        yield names[topic], sums
