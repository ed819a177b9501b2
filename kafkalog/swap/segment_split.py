"""Split a segment whose offsets lie too far apart for its indexes: the same batches, byte for byte,
in several segments that begin with their own first batch.

Logs of old brokers have such segments (KAFKA-6264). Kafka's cleaner splits one when what stays of
it does not fit into one segment, its loader when it recovers one. The swap is that of a cleaning
(swap.py), with several new segments for one old. Unlike Kafka's, the new segments share out the
entries of the transaction index: without them aborted data would become readable.

Source: Kafka LocalLog.splitOverflowedSegment, LogSegment.appendFromFile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import extend_file_checksum
from kafkalog.batches.record_areas import complete_rows
from kafkalog.cleaning.checked_chunks import CLEANER_CHUNK_BYTES, check_checksums
from kafkalog.cleaning.finished_group import fingerprint
from kafkalog.cleaning.new_files import owner_of
from kafkalog.cleaning.output_segment import OutputFile, OutputSegment
from kafkalog.cleaning.rebuilt_batches import RebuiltBatches
from kafkalog.cleaning.verify import verify_index, verify_segment
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.constants import MAX_INT32
from kafkalog.format.file_names import CLEANED_SUFFIX, LogFileKind, log_file_name
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.planning.log_config import LogConfig
from kafkalog.swap.file_facts import facts_of, file_facts
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.merged_replacement import merged
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.replacement import (
    Replacement,
    SwapGroup,
    SwappedFiles,
    begin_replacement,
    end_replacement,
    read_earlier,
)
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.steps import swap_steps
from kafkalog.swap.swap import SEGMENT_KINDS, existing_files, remove_snapshots, take_steps

_NOTHING_REBUILT = RebuiltBatches(0)


@dataclass(frozen=True, slots=True)
class Splitting:
    """What splitting needs to know of the attempt it is a part of. `check` raises if files or lock
    are not what they were any more; it is called right before the swap. `blank` is the attempt's
    record, in which nothing is replaced yet.
    """

    scratch: Scratch
    attempt_id: str
    config: LogConfig
    files: LocalFiles
    buffers: ChunkBuffers
    check: Callable[[], object]
    blank: Replacement


def split_segment(segment: SegmentInfo, splitting: Splitting) -> None:
    """Put segments that fit in place of one that does not. What it raises left the log as it was,
    unless the swap had begun.

    CorruptRecordError for a batch whose checksum is wrong; LogCleaningRefusedError for bytes behind
    the last batch, over which a broker fails as well.
    """
    pieces: list[OutputSegment] = []
    try:
        # Batches keep their bytes and checksums: only their place in a file changes.
        checksum = _write_pieces(segment, splitting, pieces)
        outputs = _close_and_verify(segment, splitting, pieces)
    except Exception:
        for name in _names(pieces):
            splitting.files.remove(splitting.scratch.output(splitting.attempt_id, name))
        raise
    finally:
        for piece in pieces:
            piece.abandon()
    with locked_partition(splitting.scratch):
        # Behind the lock and right before the swap: until here others might have changed the
        # partition.
        splitting.check()
        _swap(segment, splitting, pieces, outputs, checksum)


def _close_and_verify(
    segment: SegmentInfo, splitting: Splitting, pieces: list[OutputSegment]
) -> list[list[OutputFile]]:
    """The files of each new segment, under scratch names."""
    _share_aborted_transactions(segment, pieces)
    owner = owner_of(segment.path)
    outputs = [piece.close(owner, segment.modification_time_ms) for piece in pieces]
    for piece, (log, *indexes) in zip(pieces, outputs, strict=True):
        verify_segment(log, piece.written_rows, _NOTHING_REBUILT, splitting.buffers)
        for index in indexes:
            verify_index(index)
    return outputs


def _names(pieces: list[OutputSegment]) -> list[str]:
    return [f"{piece.base_offset:020d}{kind}" for piece in pieces for kind in SEGMENT_KINDS]


def _write_pieces(segment: SegmentInfo, splitting: Splitting, pieces: list[OutputSegment]) -> int:
    """Write the new segments' batches; `pieces` has those that were begun. The CRC-32C of the old
    `.log`.
    """
    checksum, arena = 0, Arena()
    reader = read_chunks(segment.path, chunk_bytes=CLEANER_CHUNK_BYTES, buffers=splitting.buffers)
    for chunk in reader:
        check_checksums(chunk, segment.path)
        every = np.ones(chunk.rows.size, np.bool_)
        checksum = extend_file_checksum(checksum, chunk.buf, chunk.rows, every)
        complete = complete_rows(chunk.buf, chunk.position, chunk.rows, arena, path=segment.path)
        first = 0
        while first < chunk.rows.size:
            last_offsets = chunk.rows["last_offset"][first:]
            # A new piece where an offset lies further from the base than 32 bits, as Kafka splits.
            if not pieces or last_offsets[0] - pieces[-1].base_offset > MAX_INT32:
                base_offset = int(complete["base_offset"][first])
                pieces.append(_new_piece(base_offset, splitting))
            # At least one: a batch spans no more than a segment may.
            fits = max(1, int(np.count_nonzero(last_offsets - pieces[-1].base_offset <= MAX_INT32)))
            _append(pieces[-1], chunk, slice(first, first + fits))
            first += fits
    if reader.trailing_bytes:
        raise LogCleaningRefusedError(
            f"{reader.trailing_bytes} bytes after the last whole batch of a segment that must be "
            "split: a broker fails over them as well",
            path=segment.path,
            position=reader.valid_bytes,
        )
    return checksum


def _new_piece(base_offset: int, splitting: Splitting) -> OutputSegment:
    names = [f"{base_offset:020d}{kind}" for kind in SEGMENT_KINDS]
    paths = {name: splitting.scratch.output(splitting.attempt_id, name) for name in names}
    return OutputSegment(base_offset, splitting.config, splitting.files, paths)


def _append(piece: OutputSegment, chunk: Chunk, which: slice) -> None:
    rows: NDArray[np.void] = chunk.rows[which].copy()
    start = int(rows["position"][0])
    end = int(rows["position"][-1] + rows["size_in_bytes"][-1])
    rows["position"] += piece.position - start
    piece.append([chunk.buf[start - chunk.position : end - chunk.position].data], rows)


def _share_aborted_transactions(segment: SegmentInfo, pieces: list[OutputSegment]) -> None:
    """An entry belongs to the segment that holds its marker."""
    # Kafka's split writes no transaction index for the parts, and what was aborted is then read as
    # committed: here the entries are shared out.
    known = AbortedTransactions([segment], 0).of_segment(segment)
    ends = [piece.base_offset for piece in pieces[1:]]
    for piece, end in zip(pieces, [*ends, None], strict=True):
        piece.aborted_transactions = [
            entry
            for entry in known
            if entry.last_offset >= piece.base_offset and (end is None or entry.last_offset < end)
        ]


def _swap(
    segment: SegmentInfo,
    splitting: Splitting,
    pieces: list[OutputSegment],
    outputs: list[list[OutputFile]],
    checksum: int,
) -> None:
    """The first new segment replaces the old one, the others nothing."""
    scratch, files = splitting.scratch, splitting.files
    directory = scratch.directory
    old = segment.base_offset
    # To a recovery each piece is a group of its own. Only the first has the old segment as its
    # source: the others replace nothing that was there.
    groups = [
        SwapGroup(
            piece.base_offset,
            (old,) if number == 0 else (piece.base_offset,),
            fingerprint(piece.written_rows.blocks()),
        )
        for number, piece in enumerate(pieces)
    ]
    replaced = list(existing_files(directory, [old], SEGMENT_KINDS))
    # A producer snapshot belongs to the base of a segment. If the first piece begins later than the
    # old segment did, nothing begins at the old base any more.
    snapshots = [] if any(piece.base_offset == old for piece in pieces) else [old]
    gone = existing_files(directory, snapshots, (LogFileKind.PRODUCER_SNAPSHOT,))
    swapped = SwappedFiles(
        kept=facts_of(directory, [*replaced, *gone], {log_file_name(old): checksum}),
        made=tuple(
            file_facts(output.path, output.name, output.checksum)
            for made in outputs
            for output in made
        ),
    )
    new = replace(splitting.blank, groups=tuple(groups), swapped=(swapped,))
    record = merged(read_earlier(scratch), new)
    last_first = [output for made in reversed(outputs) for output in made]
    cleaned = [(each.path, path_in(directory, each.name + CLEANED_SUFFIX)) for each in last_first]
    begin_replacement(scratch, record, files, cleaned)
    end_offset = pieces[-1].next_offset
    steps = swap_steps([output.name for output in last_first], replaced, end_offset)
    take_steps(directory, steps, files)
    remove_snapshots(directory, [old], files)
    end_replacement(scratch, record, files)
