"""Groups of `__consumer_offsets` that change their type without a tombstone in between, with which
the load of the partition fails: see `messages.group_types`.

What a segment says of its groups is kept as a few facts each, so that the partition is judged
without reading it again: of records that say the same of a group one after the other the first and
the last. A digest stands for a group's name: facts are kept, with `--redact`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.segment_report import GroupSpan
from kafkalog.format.redaction import redacted_name
from kafkalog.kernels import commit_fields as kernel
from kafkalog.messages.coordinator_record import CoordinatorRecord
from kafkalog.messages.group_types import GroupEvent, GroupTypes, commit_event, group_event
from kafkalog.reading.consumer_offsets.commit_arrays import Int64s, Spans
from kafkalog.reading.consumer_offsets.commit_columns import field_texts


class GroupTrack:
    """What the records of one segment say of their groups, in order."""

    def __init__(self) -> None:
        self._spans: list[GroupSpan] = []
        # Group → the place in `_spans` of the last one.
        self._last: dict[str, int] = {}

    @property
    def spans(self) -> tuple[GroupSpan, ...]:
        """In the order of the records."""
        return tuple(self._spans)

    def add_record(self, record: CoordinatorRecord, offset: int, position: int) -> None:
        """The next record that is no commit."""
        event = group_event(record)
        if event is not None:
            self._add(event, offset, position)

    def add_commits(self, keys: Spans, fields: Int64s, offsets: Int64s, positions: Int64s) -> None:
        """The next records, by what `read_commits` says of them; only commits count."""
        which = np.flatnonzero(fields[:, kernel.KIND] == kernel.COMMIT)
        if not which.size:
            return
        names = field_texts(keys, fields[which], kernel.GROUP_START, kernel.GROUP_LENGTH)
        encoded = names.dictionary_encode()
        _, first = np.unique(encoded.indices.to_numpy(), return_index=True)
        for group, at in zip(encoded.dictionary.to_pylist(), which[first].tolist(), strict=True):
            self._add(commit_event(group), int(offsets[at]), int(positions[at]))

    def _add(self, event: GroupEvent, offset: int, position: int) -> None:
        known = self._last.get(event.group)
        before = None if known is None else self._spans[known]
        if before is not None and known is not None and _says_nothing_new(before, event):
            self._spans[known] = replace(before, last_offset=offset)
            return
        self._last[event.group] = len(self._spans)
        self._spans.append(
            GroupSpan(
                redacted_name(event.group),
                event.kind,
                event.is_tombstone,
                event.removes,
                offset,
                offset,
                position,
            )
        )


def _says_nothing_new(before: GroupSpan, event: GroupEvent) -> bool:
    """A commit in a group that is there; a record, or a tombstone that removes no group, in one of
    its type.
    """
    is_there = not before.is_tombstone
    if not event.kind:
        return is_there
    same = before.kind == event.kind
    if same and before.is_tombstone == event.is_tombstone and before.removes == event.removes:
        return True
    return same and is_there and event.is_tombstone and not event.removes


def check_group_types(
    segments: Iterable[tuple[str, int, Sequence[GroupSpan]]], log_start_offset: int
) -> Iterator[Finding]:
    """segments: path of the `.log`, base offset, and what its records say of their groups, in
    order. At most one finding, because the load ends there.
    """
    types = GroupTypes()
    for path, base_offset, spans in segments:
        for span in spans:
            if span.last_offset < log_start_offset:
                continue
            event = GroupEvent(span.group, span.kind, span.is_tombstone, span.removes)
            problem = types.replay(event)
            if problem is not None:
                found = FindingList(path, base_offset)
                found.add(
                    "coordinator-record", problem, position=span.position, offset=span.first_offset
                )
                yield from found.findings()
                return
