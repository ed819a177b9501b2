"""Consumers get from the restored log what they get from the source up to the cut: the same
offsets, keys, values, headers and timestamps, and in `read_committed` the same records left out.

Both logs are read record by record, as `comparing` reads replicas, hashed under a secret that is
drawn for the run. Each record has to be there: `comparing` goes by meaning, and passes what a
cleaner may have taken. Producer ids and markers that were added are all that may differ; of the
transactions that were aborted at the cut `read_committed` gets nothing, as before, and what lay
behind the source's last stable offset.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kafkalog.comparing.record_stream import RecordStream
from kafkalog.errors import LogChangedError
from kafkalog.kernels.record_facts import CONTROL, HIDDEN, RECORD_FACT
from kafkalog.log.inventory import PartitionInventory
from kafkalog.replicas.hash_key import SECRET_BYTES
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.segments import Identity
from kafkalog.restoring.source import lacks_indexes

Facts = NDArray[np.void]
_SAME = ("offset", "key_first", "key_second", "record")


def check_equal(
    source: PartitionInventory,
    cut: LogCut,
    restored: PartitionInventory,
    identity: Identity,
    max_batch_bytes: int,
) -> int:
    """How many records both have. LogChangedError where they differ, or the source cannot be read;
    OSError as from reading.
    """
    # Without transaction indexes a reader takes what was aborted for committed: markers tell.
    hides = not lacks_indexes(source)
    secret = np.frombuffer(secrets.token_bytes(SECRET_BYTES), np.uint64)
    streams = [
        RecordStream(source, cut.end_offset, secret, max_batch_bytes),
        RecordStream(restored, cut.end_offset + len(cut.open), secret, max_batch_bytes),
    ]
    count = 0
    rows = [_data(stream, cut.end_offset) for stream in streams]
    for before, after in _aligned(*rows):
        _check_rows(_as_cut(before, cut), after, restored.path, hides=hides)
        if (identity.producer_ids(before["producer_id"]) != after["producer_id"]).any():
            raise LogChangedError("other producers than in the source", path=restored.path)
        count += before.size
    for stream in streams:
        for damage in stream.corrupt:
            if damage.start_offset < cut.end_offset:
                raise LogChangedError(
                    f"offsets {damage.start_offset} to {damage.end_offset - 1} cannot be read: "
                    f"{damage.reason}",
                    path=damage.path,
                    position=damage.position,
                )
    return count


def _data(stream: RecordStream, end_offset: int) -> Iterator[Facts]:
    """Rows below the cut, without control records."""
    for facts in stream:
        kept = facts[facts["offset"] < end_offset]
        yield kept[(kept["flags"] & CONTROL) == 0]
        if kept.size < facts.size:
            return


def _aligned(left: Iterator[Facts], right: Iterator[Facts]) -> Iterator[tuple[Facts, Facts]]:
    """Pieces of the same length of both; what one has more of comes last, with nothing beside."""
    nothing = np.empty(0, RECORD_FACT)
    before, after = nothing, nothing
    while True:
        before = _filled(before, left)
        after = _filled(after, right)
        length = min(before.size, after.size)
        if not length:
            if before.size or after.size:
                yield before, after
            return
        yield before[:length], after[:length]
        before, after = before[length:], after[length:]


def _filled(rest: Facts, stream: Iterator[Facts]) -> Facts:
    """What is left of a piece, or the next one that is not empty."""
    while not rest.size:
        piece = next(stream, None)
        if piece is None:
            break
        rest = piece
    return rest


def _as_cut(rows: Facts, cut: LogCut) -> Facts:
    """The rows as they are once transactions that are open at the cut are aborted."""
    if not cut.open:
        return rows
    rows = rows.copy()
    for each in cut.open:
        its = (rows["producer_id"] == each.producer_id) & (rows["offset"] >= each.first_offset)
        rows["flags"][its] |= np.uint32(HIDDEN)
    return rows


def _check_rows(before: Facts, after: Facts, path: str, *, hides: bool) -> None:
    if before.size != after.size:
        rows, where = (before, "source") if before.size else (after, "restored log")
        offset = int(rows["offset"][0])
        raise LogChangedError(f"offset {offset} is in the {where} only", path=path, offset=offset)
    differs = np.zeros(before.size, np.bool_)
    for name in _SAME:
        differs |= before[name] != after[name]
    if hides:
        differs |= (before["flags"] & HIDDEN) != (after["flags"] & HIDDEN)
    if differs.any():
        offset = int(before["offset"][int(np.argmax(differs))])
        raise LogChangedError(
            "the restored record, or whether read_committed consumers get it, differs from the "
            "source's",
            path=path,
            offset=offset,
        )
