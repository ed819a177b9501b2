"""Groups and how far they are behind, by a bounded read of `__consumer_offsets`.

Where the topic's partitions have no more than `MOST_BYTES` together, all of them are read and this
is what the coordinator has. Of larger ones the end of each is, from an entry of its offset index
on: groups that commit are in it, others may not be. `kafkalog lag` reads everything.

The log end is the high watermark of `replication-offset-checkpoint`, as for consumers; a commit
within a transaction counts when its marker is there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.index_tail import read_index_tail
from kafkalog.overview.batches import KeyValue, iterate_batches, keys_and_values, read_bytes
from kafkalog.overview.disk import Partition

MOST_BYTES = 1024 * 1024
_COMMIT_TYPES = (0, 1)
_ENTRY = struct.Struct(">ii")

Commits = dict[tuple[str, str, int], int]
Ends = Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class GroupLag:
    """One group: partitions it has committed for, and records behind in those whose end is known;
    unknown: partitions whose end is not on these disks.
    """

    group: str
    topics: tuple[str, ...]
    partitions: int
    lag: int
    unknown: int

    def named(self, group: str) -> GroupLag:
        """The same under another name."""
        return replace(self, group=group)


@dataclass(slots=True)
class Groups:
    """total_bytes of the offsets topic here, of which read_bytes were read; problems: what could
    not be read to its end, of which damaged are those of bytes that are no batch or record.
    """

    groups: Sequence[GroupLag] = ()
    total_bytes: int = 0
    read_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return self.read_bytes >= self.total_bytes and not self.problems


@dataclass(slots=True)
class _Coordinator:
    """The last record of each key, of commits and of what else tells a group."""

    commits: Commits = field(default_factory=dict)
    others: dict[bytes, str] = field(default_factory=dict)
    pending: dict[int, list[KeyValue]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None) -> None:
        if key is None or len(key) < 2:
            return
        kind = int.from_bytes(key[:2], "big", signed=True)
        group, at = _text(key, 2)
        if kind not in _COMMIT_TYPES:
            if value is None:
                self.others.pop(key, None)
            else:
                self.others[key] = group
            return
        topic, at = _text(key, at)
        commit = group, topic, int.from_bytes(key[at : at + 4], "big", signed=True)
        if value is None:
            self.commits.pop(commit, None)
        elif len(value) >= 10:
            # in every version the offset stands first, behind the version
            self.commits[commit] = int.from_bytes(value[2:10], "big", signed=True)


def read_groups(partitions: Iterable[Partition], ends: Ends) -> Groups:
    """What the offsets topic among these partitions tells, the group furthest behind first."""
    own = [p for p in partitions if p.is_live and p.topic == OFFSETS_TOPIC and p.log_bytes]
    found = Groups(total_bytes=sum(partition.log_bytes for partition in own))
    coordinator = _Coordinator()
    share = None if found.total_bytes <= MOST_BYTES else MOST_BYTES // len(own)
    for partition in own:
        for path, start, size in _ranges(partition, share):
            try:
                data = read_bytes(path, size, start)
                found.read_bytes += len(data)
                _replay(data, path, coordinator)
            except (OSError, KafkaLogError) as error:
                found.problems.append(str(error))
                if isinstance(error, CorruptRecordError):
                    found.damaged.append(str(error))
    found.groups = _lags(coordinator, ends)
    return found


def _ranges(partition: Partition, share: int | None) -> Iterator[tuple[str, int, int]]:
    """(path, start, bytes) to read of one partition: all of it, or the end of its last segment."""
    if share is not None:
        path = partition.log_path(partition.last_base)
        start = _start_within(path, partition.last_bytes, share)
        if start is not None:
            yield path, start, min(partition.last_bytes - start, share)
        return
    for base, size in partition.logs:
        yield partition.log_path(base), 0, size


def _start_within(path: str, size: int, share: int) -> int | None:
    """Where a batch begins no more than `share` bytes before the end; None where nothing tells."""
    if size <= share:
        return 0
    index = path.removesuffix(".log") + ".index"
    try:
        valid = read_index_tail(index, OFFSET_INDEX_ENTRY_BYTES).valid_bytes
        # entries are some 4 KiB of log apart
        first = max(0, valid - OFFSET_INDEX_ENTRY_BYTES * (share // 1024))
        entries = read_bytes(index, valid - first, first)
    except OSError:
        return None
    whole = entries[: len(entries) // OFFSET_INDEX_ENTRY_BYTES * OFFSET_INDEX_ENTRY_BYTES]
    positions = (position for _, position in _ENTRY.iter_unpack(whole))
    return next((p for p in positions if size - share <= p < size), None)


def _replay(data: bytes, path: str, coordinator: _Coordinator) -> None:
    for header, payload in iterate_batches(data, path, max_bytes=MOST_BYTES):
        for key, value in keys_and_values(payload, header.records_count):
            if header.is_control:
                held = coordinator.pending.pop(header.producer_id, [])
                if parse_control_type(key, path=path) is ControlRecordType.COMMIT:
                    for of_transaction in held:
                        coordinator.take(*of_transaction)
            elif header.is_transactional:
                coordinator.pending.setdefault(header.producer_id, []).append((key, value))
            else:
                coordinator.take(key, value)


def _lags(coordinator: _Coordinator, ends: Ends) -> list[GroupLag]:
    by_group: dict[str, list[tuple[str, int | None]]] = {
        name: [] for name in coordinator.others.values()
    }
    for (group, topic, number), offset in coordinator.commits.items():
        end = ends.get((topic, number))
        behind = None if end is None else max(0, end - offset)
        by_group.setdefault(group, []).append((topic, behind))
    found = [
        GroupLag(
            group,
            tuple(sorted({topic for topic, _ in committed})),
            len(committed),
            sum(behind or 0 for _, behind in committed),
            sum(behind is None for _, behind in committed),
        )
        for group, committed in by_group.items()
    ]
    return sorted(found, key=lambda g: (-g.lag, g.group))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A string of the classic encoding."""
    size = int.from_bytes(data[at : at + 2], "big", signed=True)
    end = at + 2 + max(size, 0)
    return data[at + 2 : end].decode("utf-8", "replace"), end
