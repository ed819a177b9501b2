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
from kafkalog.auditing.compaction_verdict import NOT_COMPACTED
from kafkalog.auditing.sound_partitions import UNCLEANABLE, SoundGroup, SoundPartition
from kafkalog.auditing.sound_sections import older_records
from kafkalog.checking.finding import Finding
from kafkalog.planning.retention_forecast import NEVER

Row = dict[str, Any]
_STEP = "  "
_BOOLS = ("false", "true")
_NOT_COMPACTED, _UNCLEANABLE = f'"{NOT_COMPACTED}"', f'"{UNCLEANABLE}"'


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
    texts: Callable[[SoundGroup, str, Sequence[Row]], Callable[[SoundPartition], str]],
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
        yield own(each)


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: int.__repr__,
    type(None): lambda _: "null",
}


def finding_texts(
    make: Callable[[Finding], Row], findings: Sequence[Finding], newline: str
) -> Iterator[str]:
    """Rows `findings`, each of texts, numbers and nothing: of whatever partitions."""
    template = ""
    for finding in findings:
        row = make(finding)
        template = template or _template(row, newline)
        yield template % tuple([_TEXTS[type(value)](value) for value in row.values()])


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
) -> Callable[[SoundPartition], str]:
    template = _template(rows[0], newline)
    # The first three say whose the segment is: they are filled in once a log.
    name_end = len("%s".join(template.split("%s", 3)[:3])) + len("%s")
    whose, template = template[:name_end], template[name_end:]
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
    ends, between = group.ends, f",{newline}"

    def text(each: SoundPartition) -> str:
        # Several as one text: who writes them asks for each.
        own = (whose % _named(each)).replace("%", "%%") + template
        rows = numbers[ends[each.number] : ends[each.number + 1]]
        return between.join([own % row for row in rows])

    return text


def partition_texts(
    make: Callable[[AuditedPartition], Sequence[Row]],
    partitions: Sequence[AuditedPartition],
    newline: str,
) -> Iterator[Row | str]:
    """Rows `partitions`."""
    return _rows(partitions, make, _partitions_of, newline)


def _partitions_of(
    group: SoundGroup, newline: str, rows: Sequence[Row]
) -> Callable[[SoundPartition], str]:
    template, columns = _template(rows[0], newline), group.columns
    due_ms, firsts = group.due.due_ms, columns.firsts
    later = np.where(due_ms > group.at.now_ms, due_ms, np.iinfo(np.int64).max)
    next_due = np.minimum.reduceat(later, firsts)
    next_due = np.where(columns.any_segment(due_ms > group.at.now_ms), next_due, NEVER)
    starts = columns.log_column("log_start_offset").tolist()
    numbers = list(
        zip(
            group.bytes_of_kinds.sum(axis=1).tolist(),
            columns.counts.tolist(),
            np.add.reduceat(columns.column("records_count"), firsts).tolist(),
            [f'"{status}"' for status in group.statuses],
            map(encode_basestring, group.reasons),
            np.add.reduceat(np.where(group.is_due, group.due.sizes, 0), firsts).tolist(),
            np.add.reduceat(group.is_due.astype(np.int64), firsts).tolist(),
            next_due.tolist(),
            map(encode_basestring, group.not_compacted),
            starts,
            group.verdicts,
            strict=True,
        )
    )

    def text(each: SoundPartition) -> str:
        size, segments, records, status, reason, due, due_count, next_ms, why, start, verdict = (
            numbers[each.number]
        )
        end = each.log_end_offset
        return template % (
            *_named(each), f'"{each.kind}"', encode_basestring(each.path),
            size, segments, records, each.log_start_offset, end, end, end,
            status, reason, due, due_count, next_ms, '""', 0,
            _NOT_COMPACTED, why, start, verdict.active_base, _UNCLEANABLE, 0, verdict.all_bytes,
            verdict.closed_bytes, verdict.cleanable_ratio,
            _BOOLS[group.must_compact(verdict, each.config.max_compaction_lag_ms)],
            NEVER, NEVER, verdict.dirty_since_ms, "false", "null",
        )  # fmt: skip

    return text


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
) -> Callable[[SoundPartition], str]:
    template = _template(rows[0], newline)
    names = {"topic": "%s", "partition": "%s", "logDir": "%s"}
    own: dict[str, list[int]] = {
        key: group.columns.log_column(name).tolist() for key, name in _OF_EACH.items()
    }
    own["readableBeyondPolicyRecords"] = older_records(group)
    # What no log of this kind differs in stands in the template.
    places = {**names, **dict.fromkeys(own, "%s"), **_NO_RECORDS}
    template %= tuple(places[key] for key in rows[0])
    numbers = list(zip(*(own[key] for key in rows[0] if key in own), strict=True))

    def text(each: SoundPartition) -> str:
        log_dir, topic, partition = _named(each)
        return template % (topic, partition, log_dir, *numbers[each.number])

    return text
