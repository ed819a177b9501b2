"""What the small files of a partition say of offsets that its log once had.

Each file that outlives its `.log` is a witness: it was written when the log reached that far. A
name cannot be damaged into a higher number, nor can an index that rises all along in such a way
that the offset and the position of its last entry lie behind the log's end: such a witness is
strong. A line of a checkpoint is
one where nothing contradicts it. What they prove together `missing_ranges` decides.

Source: Kafka LogManager (checkpoints), LeaderEpochFileCache, ProducerStateManager, AbstractIndex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import CorruptIndexError, KafkaLogError, RecordTooLargeError
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
    EpochEntry,
)
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    log_file_name,
    offset_index_file_name,
    producer_snapshot_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, parse_time_index
from kafkalog.format.transaction_index import (
    TRANSACTION_INDEX_ENTRY_BYTES,
    parse_transaction_index,
)
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import PartitionCheckpoints, PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.log.retention_facts import read_leader_epochs
from kafkalog.log.small_files import read_small_file, size_of


@dataclass(frozen=True, slots=True)
class Witness:
    """The log once had all offsets below `end_offset`, as the file `name` says. `is_strong`: that
    needs no other witness. `is_entry`: it is the last entry of an index, or of
    the leader epochs.
    """

    name: str
    end_offset: int
    is_strong: bool
    is_entry: bool = False

    def __str__(self) -> str:
        return f"{self.name} knows {self.end_offset}"


@dataclass(frozen=True, slots=True)
class DiskTraces:
    """`ends`: how far the log reached. `first_epoch_offset`: where the leader epochs begin, None
    without any. `log_start`: the line of the log start checkpoint. `closed_at`: where the log ended
    when its broker stopped in order, None where nothing tells.
    """

    is_clean_stop: bool
    log_start: int | None
    first_epoch_offset: int | None
    closed_at: int | None
    ends: tuple[Witness, ...]


def read_traces(
    partition: PartitionInventory,
    *,
    reads_indexes: bool = True,
    epochs: Sequence[EpochEntry] | None = None,
) -> DiskTraces:
    """What is left of a partition beside its `.log` files; a file that cannot be read shows
    nothing.

    The lines of a log dir's checkpoints are those of the live directory, as are leader epochs that
    a broker trims. `reads_indexes`: those of the last segment. `epochs`: the leader epochs, of a
    caller who has read them.
    """
    is_live = partition.kind is PartitionKind.LIVE
    is_stopped = is_clean_stop(partition.log_dir)
    if not is_live:
        epochs = ()
    elif epochs is None:
        epochs = _leader_epochs(partition)
    newest = max(partition.snapshot_offsets, default=None)
    # A stop in order writes one at the log's end; where that is gone an older one tells nothing.
    is_closing = newest is not None and newest >= partition.log_end_offset
    closed_at = newest if is_stopped and is_closing else None
    active = partition.active_segment
    ends = list(_of_checkpoints(partition, epochs, closed_at)) if is_live else []
    if newest is not None:
        # Its name alone is the witness: a broker wrote it when the log had come so far, whatever is
        # in it.
        ends.append(Witness(producer_snapshot_file_name(newest), newest, is_strong=True))
    for base_offset in partition.orphan_indexes:
        name = offset_index_file_name(base_offset)
        ends.append(Witness(name, base_offset, is_strong=True))
        ends += index_witnesses(partition.path, base_offset)
    if active is not None and reads_indexes:
        ends += index_witnesses(partition.path, active.base_offset, closed_at)
    return DiskTraces(
        is_clean_stop=is_stopped,
        log_start=partition.checkpoints.log_start if is_live else None,
        first_epoch_offset=epochs[0][1] if epochs else None,
        closed_at=closed_at,
        ends=tuple(ends),
    )


def all_agree(
    lines: PartitionCheckpoints,
    epochs: Sequence[EpochEntry],
    snapshot_offsets: Sequence[int],
    *,
    start: int,
    end: int,
) -> bool:
    """Whether a log that was never cleaned begins and ends where every line of a checkpoint, the
    leader epochs and the producer snapshots have it, and all of it is replicated.
    """
    return (
        lines.cleaner is None
        and lines.high_watermark == end
        and (lines.recovery_point is None or 0 <= lines.recovery_point <= end)
        and (lines.log_start == start if lines.log_start is not None else True)
        and (not epochs or (epochs[0][1] >= 0 and epochs[-1][1] <= end))
        and not (epochs and lines.log_start is None and epochs[0][1] < start)
        and max(snapshot_offsets, default=end) <= end
    )


def index_witnesses(
    directory: str, base_offset: int, closed_at: int | None = None
) -> Iterator[Witness]:
    """What the last entries of a segment's indexes say of its end; `closed_at` as in DiskTraces."""
    for name, end_offset, position in _last_entries(directory, base_offset):
        # An entry that leads behind the file's end was written when the file was longer. One that
        # leads into it says the same as the log itself.
        is_behind = position is not None and (
            position >= _size(Path(directory, log_file_name(base_offset))) > 0
        )
        is_strong = (
            is_behind
            and _fits(end_offset, closed_at)
            and _is_in_order(Path(directory, name), base_offset)
        )
        yield Witness(name, end_offset, is_strong, is_entry=True)


def _of_checkpoints(
    partition: PartitionInventory, epochs: Sequence[EpochEntry], closed_at: int | None
) -> Iterator[Witness]:
    points = partition.checkpoints
    said = {
        RECOVERY_POINT_FILE: points.recovery_point,
        HIGH_WATERMARK_FILE: points.high_watermark,
        CLEANER_OFFSET_FILE: points.cleaner,
        LEADER_EPOCH_CHECKPOINT_FILE: epochs[-1][1] if epochs else None,
    }
    for name, end_offset in said.items():
        if end_offset is not None:
            is_epoch = name == LEADER_EPOCH_CHECKPOINT_FILE
            yield Witness(name, end_offset, _fits(end_offset, closed_at), is_entry=is_epoch)


def _fits(end_offset: int, closed_at: int | None) -> bool:
    """A broker that stops in order writes a producer snapshot at the log's end."""
    return closed_at is None or end_offset <= closed_at


def _leader_epochs(partition: PartitionInventory) -> list[EpochEntry]:
    try:
        return read_leader_epochs(partition.path) or []
    except (OSError, KafkaLogError):
        return []


def _last_entries(directory: str, base_offset: int) -> Iterator[tuple[str, int, int | None]]:
    """(file, one past the offset of its last entry, the entry's position in the log)."""
    name = offset_index_file_name(base_offset)
    with suppress(OSError, CorruptIndexError):
        tail = read_index_tail(f"{directory}/{name}", OFFSET_INDEX_ENTRY_BYTES)
        index = parse_offset_index(tail.last_entry, base_offset)
        if len(index):
            yield name, index.last_offset + 1, int(index.positions[-1])
    name = time_index_file_name(base_offset)
    with suppress(OSError, CorruptIndexError):
        times = read_index_tail(f"{directory}/{name}", TIME_INDEX_ENTRY_BYTES).last_entry
        if any(times):
            yield name, parse_time_index(times, base_offset).last_offset + 1, None
    name = transaction_index_file_name(base_offset)
    with suppress(OSError, CorruptIndexError):
        path = f"{directory}/{name}"
        aborted = read_index_tail(path, TRANSACTION_INDEX_ENTRY_BYTES).last_entry
        for transaction in parse_transaction_index(aborted, base_offset):
            yield name, transaction.last_offset + 1, None


def _is_in_order(path: Path, base_offset: int) -> bool:
    """Whether all of an offset index rises: bytes that got between make a last entry of any value.
    Looked at only where the last entry lies behind the log's end.
    """
    try:
        data = read_small_file(path)
        parse_offset_index(data, base_offset)
    except (OSError, CorruptIndexError, RecordTooLargeError):
        return False
    return len(data) % OFFSET_INDEX_ENTRY_BYTES == 0


def _size(log: Path) -> int:
    return size_of(log) or 0
