"""How a file beside a segment differs from what a rebuild gives, in words; None if it does not.

Kafka trusts the length of an index, so zeros behind the entries (a preallocated index after a
crash) are a difference as well. A producer snapshot may know more than the log still tells, about
producers whose batches compaction or retention took: such a one is better than a rebuilt one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from kafkalog.errors import CorruptSnapshotError, RecordTooLargeError
from kafkalog.format.file_names import LogFileKind
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES
from kafkalog.format.transaction_index import TRANSACTION_INDEX_ENTRY_BYTES
from kafkalog.log.producer_state import MAX_SNAPSHOT_BYTES
from kafkalog.log.small_files import read_small_file

MISSING = "missing"
_PIECE_BYTES = 1024 * 1024

_ENTRIES = {
    LogFileKind.OFFSET_INDEX: (OFFSET_INDEX_ENTRY_BYTES, struct.Struct(">ii")),
    LogFileKind.TIME_INDEX: (TIME_INDEX_ENTRY_BYTES, struct.Struct(">qi")),
    LogFileKind.TRANSACTION_INDEX: (TRANSACTION_INDEX_ENTRY_BYTES, struct.Struct(">hqqqq")),
}


def index_difference(path: str, wanted: bytes, kind: LogFileKind) -> str | None:
    """What is wrong with the index at `path`. A transaction index without entries need not be."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None if kind is LogFileKind.TRANSACTION_INDEX and not wanted else MISSING
    with os.fdopen(fd, "rb") as file:
        # No more is read into memory than is wanted: behind it there may be 10 MiB of preallocated
        # zeros, or anything, of which only the length and whether it is zeros is asked.
        found = file.read(len(wanted))
        rest, only_zeros = 0, True
        while piece := file.read(_PIECE_BYTES):
            rest += len(piece)
            only_zeros = only_zeros and not any(piece)
    if found == wanted and not rest:
        return None
    entry_bytes, entry = _ENTRIES[kind]
    due = f"{len(wanted) // entry_bytes} entries are due"
    if found == wanted and only_zeros:
        return f"{rest} zero bytes behind its entries, {due}"
    if (len(found) + rest) % entry_bytes:
        return f"{len(found) + rest} bytes, not a multiple of {entry_bytes}; {due}"
    if wanted.startswith(found):
        return f"{(len(found) + rest) // entry_bytes} entries, {due}"
    # The first entry that differs is named, with both sides.
    for number in range(len(wanted) // entry_bytes):
        at = number * entry_bytes
        if len(found) < at + entry_bytes:
            break
        if found[at : at + entry_bytes] != wanted[at : at + entry_bytes]:
            one, other = entry.unpack_from(found, at), entry.unpack_from(wanted, at)
            return f"entry {number} is {one}, due is {other}; {due}"
    return f"{(len(found) + rest) // entry_bytes} entries, {due}"


def snapshot_difference(path: str, wanted: Sequence[ProducerEntry], end_offset: int) -> str | None:
    """What the snapshot at `path` lacks of the entries that a rebuild gives for `end_offset`."""
    try:
        found = parse_producer_snapshot(read_small_file(Path(path), MAX_SNAPSHOT_BYTES), path=path)
    except FileNotFoundError:
        return MISSING
    except (CorruptSnapshotError, RecordTooLargeError) as error:
        return error.reason
    by_id = {entry.producer_id: entry for entry in found}
    # Producers that the log does not show any more are no difference: their batches may have gone
    # with compaction. An open transaction is one: it would hold the last stable offset back for
    # ever.
    if stray := sorted(by_id.keys() - {entry.producer_id for entry in wanted}):
        open_ones = [i for i in stray if by_id[i].current_txn_first_offset >= 0]
        if open_ones:
            return f"an open transaction of producer {open_ones[0]} that the log does not have"
    for entry in wanted:
        other = by_id.get(entry.producer_id)
        if other is None:
            return f"no entry of producer {entry.producer_id}"
        if not _covers(other, entry, end_offset):
            return f"producer {entry.producer_id} is {_shown(other)}, due is {_shown(entry)}"
    return None


def _covers(found: ProducerEntry, rebuilt: ProducerEntry, end_offset: int) -> bool:
    """Equal, or of a batch behind it that the log does not have any more."""
    if found == rebuilt:
        return True
    return (
        found.current_txn_first_offset == rebuilt.current_txn_first_offset
        and rebuilt.last_offset < found.last_offset < end_offset
        and found.producer_epoch >= rebuilt.producer_epoch
    )


def _shown(entry: ProducerEntry) -> str:
    return (
        f"(epoch {entry.producer_epoch}, sequence {entry.last_sequence}, offset "
        f"{entry.last_offset}, transaction {entry.current_txn_first_offset}, coordinator epoch "
        f"{entry.coordinator_epoch}, time {entry.timestamp})"
    )
