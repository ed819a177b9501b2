"""Records of the coordinators' topics: which of them a broker's coordinator does not load.

Commits are looked at by a kernel, and only what it does not take for one is decoded record by
record; a partition of `__consumer_offsets` is nearly all commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import is_control
from kafkalog.batches.record_areas import RecordAreas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.checking.finding import FindingList
from kafkalog.checking.group_checks import GroupTrack
from kafkalog.errors import CorruptRecordError
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.kernels import commit_fields as kernel
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.messages.coordinator_loading import (
    COORDINATOR_TOPICS,
    LoadingProblem,
    load_record,
)
from kafkalog.messages.coordinator_record import CoordinatorRecord
from kafkalog.reading.consumer_offsets.commit_arrays import Spans, read_commits, span_at

_SOUND_COMMITS = (kernel.COMMIT, kernel.TOMBSTONE)


class CoordinatorChecks:
    """Of one segment; does nothing with those of other topics."""

    def __init__(self, path: str, found: FindingList) -> None:
        name = parse_partition_dir_name(Path(path).parent.name)
        topic = "" if name is None else name.topic_partition.topic
        self._topic = topic if topic in COORDINATOR_TOPICS else None
        self._found = found
        self.groups = GroupTrack()

    @property
    def reads_records(self) -> bool:
        """Whether there is anything to be checked."""
        return self._topic is not None

    def check(self, areas: RecordAreas) -> None:
        """The records of some batches."""
        if self._topic is None:
            return
        data = np.flatnonzero(~is_control(areas.rows) & (areas.rows["records_count"] > 0))
        if data.size:
            for part, spans in _decoded(_of(areas, data)):
                self._check(self._topic, part, spans)

    def _check(self, topic: str, areas: RecordAreas, spans: RecordSpans) -> None:
        keys = Spans(areas.buf, spans.key_starts, spans.key_lengths.astype(np.int64))
        values = Spans(areas.buf, spans.value_starts, spans.value_lengths.astype(np.int64))
        positions = areas.rows["position"].astype(np.int64)[spans.batch_indexes]
        which, fields, seen = np.arange(spans.n), None, 0
        if topic == OFFSETS_TOPIC:
            fields, _ = read_commits(keys, values)
            which = np.flatnonzero(~np.isin(fields[:, kernel.KIND], _SOUND_COMMITS))
        for r in [*which.tolist(), spans.n]:
            if fields is not None:
                between = slice(seen, r)
                self.groups.add_commits(
                    keys, fields[between], spans.offsets[between], positions[between]
                )
                seen = r
            if r < spans.n:
                loaded = load_record(topic, span_at(keys, r), span_at(values, r))
                self._note(loaded, int(spans.offsets[r]), int(positions[r]))

    def _note(self, loaded: CoordinatorRecord | LoadingProblem, offset: int, position: int) -> None:
        if isinstance(loaded, LoadingProblem):
            kind = "coordinator-record-unknown" if loaded.is_skipped else "coordinator-record"
            self._found.add(kind, loaded.reason, position=position, offset=offset)
        elif self._topic == OFFSETS_TOPIC:
            self.groups.add_record(loaded, offset, position)


def _of(areas: RecordAreas, which: NDArray[np.int64]) -> RecordAreas:
    return RecordAreas(areas.buf, areas.starts[which], areas.ends[which], areas.rows[which])


def _decoded(areas: RecordAreas) -> Iterator[tuple[RecordAreas, RecordSpans]]:
    """The spans of all batches together, or of each sound one where one is not; that is reported
    elsewhere.
    """
    try:
        yield areas, decode_spans(areas, areas.rows)
    except CorruptRecordError:
        for b in range(areas.rows.size if areas.rows.size > 1 else 0):
            yield from _decoded(_of(areas, np.array([b])))
