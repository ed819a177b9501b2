"""Groups of `__consumer_offsets` that change their type without a tombstone in between, with which
the load of the partition fails: see `messages.group_types`.

What a segment says of its groups is kept as a few facts each, so that the partition is judged
without reading it again: of records that say the same of a group one after the other the first and
the last. A digest stands for a group's name: facts are kept, with `--redact`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.segment_report import GroupSpan
from kafkalog.format.redaction import redacted_name
from kafkalog.kernels import commit_fields as kernel
from kafkalog.messages.coordinator_record import CoordinatorRecord
from kafkalog.messages.group_types import GroupEvent, GroupTypes, commit_event, group_event
from kafkalog.reading.consumer_offsets.commit_arrays import Bytes, Int64s, Spans

# Odd, so that no byte is lost to the sum; a period of them, for a name may be of any length.
_WEIGHTS = np.arange(1, 1022, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)


@dataclass(slots=True)
class _Run:
    """Records that say the same of a group, one after the other: what the first one says, where it
    is, and the offset of the last one.
    """

    event: GroupEvent
    first_offset: int
    position: int
    last_offset: int

    def span(self) -> GroupSpan:
        event = self.event
        return GroupSpan(
            redacted_name(event.group), event.kind, event.is_tombstone, event.removes,
            self.first_offset, self.last_offset, self.position,
        )  # fmt: skip


class GroupTrack:
    """What the records of one segment say of their groups, in order."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        # Group → its last one of `_runs`.
        self._last: dict[str, _Run] = {}

    @property
    def spans(self) -> tuple[GroupSpan, ...]:
        """In the order of the records."""
        return tuple(run.span() for run in self._runs)

    def add_record(self, record: CoordinatorRecord, offset: int, position: int) -> None:
        """The next record that is no commit."""
        event = group_event(record)
        if event is not None:
            self._add(event, offset, position)

    def add_commits(self, keys: Spans, fields: Int64s, offsets: Int64s, positions: Int64s) -> None:
        """The next records, by what `read_commits` says of them; only commits count, and of each
        group the first one, because the others say the same.
        """
        which = np.flatnonzero(fields[:, kernel.KIND] == kernel.COMMIT)
        if not which.size:
            return
        starts = fields[which, kernel.GROUP_START]
        for at in _firsts(keys.buf, starts, fields[which, kernel.GROUP_LENGTH]).tolist():
            r = int(which[at])
            start = int(starts[at])
            name = keys.buf[start : start + int(fields[r, kernel.GROUP_LENGTH])].tobytes()
            group = name.decode("utf-8", "replace")
            known = self._last.get(group)
            if known is not None and not known.event.is_tombstone:
                known.last_offset = int(offsets[r])
            else:
                self._add(commit_event(group), int(offsets[r]), int(positions[r]))

    def _add(self, event: GroupEvent, offset: int, position: int) -> None:
        known = self._last.get(event.group)
        if known is not None and _says_nothing_new(known.event, event):
            known.last_offset = offset
            return
        run = self._last[event.group] = _Run(event, offset, position, offset)
        self._runs.append(run)


def _firsts(buf: Bytes, starts: Int64s, lengths: Int64s) -> Int64s:
    """Where each distinct byte string comes first, in order. Strings of one length at a time are
    told apart by a weighted sum of their bytes, and looked at in full where two have the same sum.
    """
    found = []
    # With counts: without them numpy imports its masked arrays, to see whether this is one.
    for length in np.unique(lengths, return_counts=True)[0].tolist():
        own = np.flatnonzero(lengths == length)
        rows = buf[starts[own][:, None] + np.arange(length)]
        sums = rows @ _WEIGHTS[np.arange(length) % _WEIGHTS.size]
        _, first, which = np.unique(sums, return_index=True, return_inverse=True)
        if not (rows == rows[first[which]]).all():
            _, first = np.unique(rows, axis=0, return_index=True)
        found.append(own[first])
    return np.sort(np.concatenate(found))


def _says_nothing_new(before: GroupEvent, event: GroupEvent) -> bool:
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
