"""A consumer's fetch without a broker: the batches from an offset on, as they lie in the file.

As for a broker it begins with the batch that holds the offset, or the next one behind a gap, ends
at the high watermark or last stable offset, at the end of that segment, and at `max_bytes`; the
first batch comes whatever its size. A broker cuts the last batch where the bytes end, and clients
pass over the rest; here only whole batches are given.

Source: Kafka LocalLog.read, LogSegment.read, UnifiedLog.read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.index_lookup import start_position, walk_headers
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.storage import open_file
from kafkalog.reading.data_loss import check_loss
from kafkalog.reading.lookups import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Partition,
    fetchable_end,
    high_watermark,
    last_stable_offset,
    opened,
    storage_of,
)
from kafkalog.reading.selection import PartitionSelection

# What a client asks for unless told otherwise (max.partition.fetch.bytes).
DEFAULT_MAX_BYTES = 1024 * 1024
# One answer is held in memory.
MOST_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer to a fetch. `records`: whole batches as on the disk; `next_offset`: where to fetch
    from next, the asked offset when there is nothing.

    `aborted_transactions` (read_committed only): as (producer id, first offset), what a client
    leaves out of the records.
    """

    records: bytes
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: tuple[tuple[int, int], ...] = ()


def fetch(
    topic_partition: Partition,
    offset: int,
    max_bytes: int = DEFAULT_MAX_BYTES,
    *,
    isolation_level: str = READ_UNCOMMITTED,
    fail_on_data_loss: bool = True,
    remote_dirs: str | Sequence[str] = (),
    remote_layout: str | None = None,
    remote_keys: Mapping[str, str] | None = None,
) -> Fetched:
    """The batches a broker's fetch from `offset` returns.

    `topic_partition` is a partition directory, or one of `open_log_dir`'s partitions; of a tiered
    one the segments below `remote_dirs` come first, as for `read_records`. Raises
    OffsetOutOfRangeError below the log start, above the log's end, and, unless
    `fail_on_data_loss` is off, where the offset is proven to be missing (`log.missing_ranges`; a
    broker goes on behind the gap without a word), InvalidConfigError for a
    `max_bytes` that is negative or above a GiB, CorruptRecordError and its kin where headers cannot
    be walked over. Checksums are the client's to check, as with a broker.
    """
    if not 0 <= max_bytes <= MOST_BYTES:
        raise InvalidConfigError(f"max_bytes {max_bytes}, it is from 0 to {MOST_BYTES}")
    partition = opened(topic_partition, storage_of(remote_dirs, remote_layout, remote_keys))
    if not partition.log_start_offset <= offset <= partition.log_end_offset:
        raise OffsetOutOfRangeError(
            f"the log has offsets {partition.log_start_offset} to {partition.log_end_offset}",
            path=partition.path,
            offset=offset,
        )
    # Consumers read up to the high watermark, with read_committed up to the last stable offset.
    end = fetchable_end(partition, isolation_level)
    records, next_offset, found_offset = b"", offset, MAX_INT64
    segments = _from_segment_of(partition, offset)
    # The first segment that has a batch at or behind the offset answers: after compaction or with
    # the segment's last offsets gone it may be a later one.
    for segment, following in zip_longest(segments, segments[1:]):
        if offset >= end:
            break
        end_offset = None if following is None else following.base_offset
        headers = walk_headers(segment, start_position(segment, offset) or 0, end_offset)
        found = _range(headers, offset, end, max_bytes)
        if found is not None:
            start, stop, next_offset, found_offset = found
            with open_file(segment.path) as file:
                records = file.read_bytes(start, stop - start)
            break
    # A broker answers with what comes next, silently. Whether what lies between was compacted away
    # or lost is asked here.
    if offset < found_offset:
        selection = PartitionSelection(fail_on_data_loss=fail_on_data_loss)
        check_loss(partition, selection, offset, found_offset)
    return Fetched(
        records,
        next_offset,
        high_watermark(partition),
        last_stable_offset(partition),
        partition.log_start_offset,
        _aborted(partition, offset, next_offset) if isolation_level == READ_COMMITTED else (),
    )


def _from_segment_of(partition: PartitionInventory, offset: int) -> tuple[SegmentInfo, ...]:
    """The segment of the offset, and those behind it."""
    below = sum(segment.base_offset <= offset for segment in partition.segments)
    return partition.segments[max(below - 1, 0) :]


def _range(
    headers: Iterable[NDArray[np.void]], offset: int, end: int, max_bytes: int
) -> tuple[int, int, int, int] | None:
    """(first byte, byte behind the last, offset behind the last, first offset) of the batches of an
    answer; None if the segment of these headers has none from `offset` on that lies below `end`."""
    start = stop = first_offset = -1
    next_offset = offset
    for rows in headers:
        wanted = rows[rows["last_offset"] >= offset]
        # A batch that holds the end, or lies behind it, is not readable yet.
        beyond = np.flatnonzero(wanted["last_offset"] >= end)
        readable = wanted[: beyond[0]] if beyond.size else wanted
        for row in readable:
            position, size_in_bytes = int(row["position"]), int(row["size_in_bytes"])
            if start < 0:
                start, stop = position, position
                first_offset = int(row["base_offset"])
            elif position + size_in_bytes - start > max_bytes:
                return start, stop, next_offset, first_offset
            stop, next_offset = position + size_in_bytes, int(row["last_offset"]) + 1
        if beyond.size:
            break
    return None if start < 0 else (start, stop, next_offset, first_offset)


def _aborted(partition: PartitionInventory, start: int, end: int) -> tuple[tuple[int, int], ...]:
    indexes = AbortedTransactions(partition.segments, partition.log_start_offset)
    found: list[AbortedTxn] = [] if indexes.is_empty else indexes.between(start, end)
    return tuple((txn.producer_id, txn.first_offset) for txn in found if txn.last_offset >= start)
