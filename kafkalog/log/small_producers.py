"""The producers that a broker would know of a small log, by bytes that are at hand; the same as
`producer_state` finds by the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptSnapshotError
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.log.producer_state import ProducerState, is_expired, kept_among


def last_times(
    snapshots: Mapping[int, bytes],
    base_offsets: Sequence[int],
    rows: Sequence[NDArray[np.void]],
    end_offset: int,
    *,
    now_ms: int,
    expiration_ms: int,
) -> list[int] | None:
    """When each of them wrote last, by producer id; None where one has, or had, a transaction.

    `snapshots`: all that there are, by offset; `rows`: BATCH_ROW[b] of the segments at
    `base_offsets`, the last one active, without gaps up to `end_offset`.
    """
    state = ProducerState(base_offsets[0])
    for offset in sorted(kept_among([*snapshots], base_offsets), reverse=True):
        if not base_offsets[0] < offset <= end_offset:
            continue
        try:
            entries = parse_producer_snapshot(snapshots[offset])
        except CorruptSnapshotError:
            continue
        known = [entry for entry in entries if not is_expired(entry, now_ms, expiration_ms)]
        state = ProducerState(offset, known)
        break
    for number, own in enumerate(rows):
        next_offset = int(own["last_offset"][-1]) + 1 if own.size else base_offsets[number]
        is_active = number == len(rows) - 1
        if (next_offset > state.next_offset or is_active) and (own["producer_id"] >= 0).any():
            state.apply(own)
        state.next_offset = max(state.next_offset, next_offset)
    producers = state.active_producers()
    is_open = any(producer.current_txn_first_offset is not None for producer in producers)
    if is_open or state.problems or state.completed_transactions:
        return None
    return [producer.last_timestamp_ms for producer in producers]
