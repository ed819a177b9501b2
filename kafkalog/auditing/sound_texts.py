"""Rows of an audit's document as JSON text, of sound logs (`sound_partitions`) made of columns.

A text is that of the row's own object, whose numbers are replaced: the first row of a group is made
as an object, and its text with a place for each value serves for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.sound_partitions import UNCLEANABLE, SoundGroup, SoundPartition
from kafkalog.auditing.sound_sections import older_records
from kafkalog.planning.retention_forecast import NEVER

Row = dict[str, Any]
_STEP = "  "
_BOOLS = ("false", "true")


def _template(row: Mapping[str, Any], newline: str) -> str:
    """The text of an object, with `%s` for each value that is none itself."""
    inner = newline + _STEP
    fields = [
        f"{inner}{encode_basestring(key).replace('%', '%%')}: "
        + (_template(value, inner) if isinstance(value, Mapping) else "%s")
        for key, value in row.items()
    ]
    return f"{{{','.join(fields)}{newline}}}"


def _rows(
    partitions: Iterable[AuditedPartition],
    make: Callable[[AuditedPartition], Sequence[Row]],
    texts: Callable[[SoundGroup, str, Sequence[Row]], Callable[[SoundPartition], Iterable[str]]],
    newline: str,
) -> Iterator[Row | str]:
    """The rows of each partition: as one text of each sound one, by what `texts` makes of a group
    and of the rows of its first."""
    group, own = None, None
    for each in partitions:
        if not isinstance(each, SoundPartition):
            yield from make(each)
            continue
        if each.group is not group or own is None:
            group = each.group
            own = texts(group, newline, make(each.whole))
        # Several of a partition as one text: who writes them asks for each.
        yield f",{newline}".join(own(each))


def _named(each: SoundPartition) -> tuple[str, str, int]:
    return encode_basestring(each.log_dir), encode_basestring(each.topic), each.partition


def segment_texts(
    make: Callable[[AuditedPartition], Sequence[Row]],
    partitions: Sequence[AuditedPartition],
    newline: str,
) -> Iterator[Row | str]:
    """Rows `segments`."""
    return _rows(partitions, make, _segments_of, newline)


def _segments_of(
    group: SoundGroup, newline: str, rows: Sequence[Row]
) -> Callable[[SoundPartition], Iterable[str]]:
    template = _template(rows[0], newline)
    columns, due = group.columns, group.due
    numbers = list(
        zip(
            columns.column("base_offset").tolist(),
            columns.column("next_offset").tolist(),
            due.sizes.tolist(),
            columns.column("records_count").tolist(),
            columns.column("min_timestamp_ms").tolist(),
            columns.column("largest_timestamp_ms").tolist(),
            [_BOOLS[is_active] for is_active in columns.active_flags.tolist()],
            due.due_ms.tolist(),
            [f'"{rule}"' for rule in group.rules],
            ['""'] * len(due.sizes),
            strict=True,
        )
    )
    ends = group.ends

    def texts(each: SoundPartition) -> Iterator[str]:
        name = _named(each)
        for row in numbers[ends[each.number] : ends[each.number + 1]]:
            yield template % (*name, *row)

    return texts


def partition_texts(
    make: Callable[[AuditedPartition], Sequence[Row]],
    partitions: Sequence[AuditedPartition],
    newline: str,
) -> Iterator[Row | str]:
    """Rows `partitions`."""
    return _rows(partitions, make, _partitions_of, newline)


def _partitions_of(
    group: SoundGroup, newline: str, rows: Sequence[Row]
) -> Callable[[SoundPartition], Iterable[str]]:
    template, columns = _template(rows[0], newline), group.columns
    due_ms = group.due.due_ms
    later = np.where(due_ms > group.at.now_ms, due_ms, np.iinfo(np.int64).max)
    next_due = np.minimum.reduceat(later, columns.firsts)
    next_due = np.where(columns.any_segment(due_ms > group.at.now_ms), next_due, NEVER)
    due_counts = np.add.reduceat(group.is_due.astype(np.int64), columns.firsts).tolist()
    sums, next_due_ms, starts = group.sums(), next_due.tolist(), columns.log_column(
        "log_start_offset"
    ).tolist()  # fmt: skip

    def texts(each: SoundPartition) -> Iterator[str]:
        number, own = each.number, sums[each.number]
        verdict = each.compaction
        end = each.log_end_offset
        yield template % (
            *_named(each),
            f'"{each.kind}"',
            encode_basestring(each.path),
            sum(own.bytes_by_kind),
            own.segments,
            own.records,
            each.log_start_offset,
            end,
            end,
            end,
            f'"{group.statuses[number]}"',
            encode_basestring(group.reasons[number]),
            own.due_bytes,
            due_counts[number],
            next_due_ms[number],
            '""',
            0,
            f'"{verdict.status}"',
            encode_basestring(verdict.reason),
            starts[number],
            verdict.first_uncleanable_offset,
            f'"{UNCLEANABLE}"',
            0,
            verdict.dirty_bytes,
            verdict.cleanable_bytes,
            verdict.cleanable_ratio,
            _BOOLS[verdict.must_compact],
            NEVER,
            NEVER,
            verdict.dirty_since_ms,
            "false",
            "null",
        )

    return texts


def contents_texts(
    make: Callable[[AuditedPartition], Sequence[Row]],
    partitions: Sequence[AuditedPartition],
    newline: str,
) -> Iterator[Row | str]:
    """Rows `contents`."""
    return _rows(partitions, make, _contents_of, newline)


# What stands in the columns of what records tell, which were not read, and of what such logs have
# none of.
_NO_RECORDS = {
    "tombstones": "null", "tombstonesWithHorizon": "null", "horizonBatches": 0,
    "nextTombstoneMs": -1, "stuckTombstones": 0, "stuckTombstoneBatches": 0, "markers": 0,
    "stuckMarkers": 0, "emptyValues": "null", "nullTextValues": "null", "fakeTombstones": "null",
    "keylessRecords": "null", "abortedBytes": 0, "openBytes": 0, "markerBytes": 0,
    "distinctKeys": "null", "distinctKeysError": "null", "compactionGainBytes": "null",
    "compactionGainError": "null",
}  # fmt: skip
_OF_EACH = {
    "committedBytes": "committed_bytes", "oldestTimestampMs": "oldest_timestamp_ms",
    "newestTimestampMs": "newest_timestamp_ms",
}  # fmt: skip


def _contents_of(
    group: SoundGroup, newline: str, rows: Sequence[Row]
) -> Callable[[SoundPartition], Iterable[str]]:
    template = _template(rows[0], newline)
    own: dict[str, list[int]] = {
        key: group.columns.log_column(name).tolist() for key, name in _OF_EACH.items()
    }
    own["readableBeyondPolicyRecords"] = older_records(group)

    def texts(each: SoundPartition) -> Iterator[str]:
        log_dir, topic, partition = _named(each)
        values = {"topic": topic, "partition": partition, "logDir": log_dir, **_NO_RECORDS}
        values |= {key: column[each.number] for key, column in own.items()}
        yield template % tuple(values[key] for key in rows[0])

    return texts
