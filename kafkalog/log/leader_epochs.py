"""The leader epochs a broker knows after it recovered a log: those of its checkpoint, and the ones
that batches behind them begin.

Source: Kafka LogSegment.recover, LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checkpoints import EpochEntry
from kafkalog.format.constants import MAGIC_VALUE_V2, NO_PARTITION_LEADER_EPOCH


class LeaderEpochReplay:
    """(epoch, start offset) in rising order, fed with batches in offset order."""

    def __init__(self, entries: Iterable[EpochEntry]) -> None:
        self._entries = list(entries)

    def apply(self, rows: NDArray[np.void]) -> None:
        """A batch of magic 2 whose epoch is above all before begins it at its base offset."""
        epochs = rows["partition_leader_epoch"].astype(np.int64)
        epochs[rows["magic"] < MAGIC_VALUE_V2] = NO_PARTITION_LEADER_EPOCH
        latest = self._entries[-1][0] if self._entries else NO_PARTITION_LEADER_EPOCH
        # The highest epoch in front of each batch: only a batch above it begins a new one.
        before = np.maximum.accumulate(np.concatenate([[latest], epochs]))[:-1]
        for b in np.flatnonzero(epochs > before).tolist():
            start_offset = int(rows["base_offset"][b])
            # An epoch that begins at or above this batch was never written here: the checkpoint is
            # of another history of the log.
            while self._entries and self._entries[-1][1] >= start_offset:
                self._entries.pop()
            self._entries.append((int(epochs[b]), start_offset))

    def entries(self, log_start_offset: int, log_end_offset: int) -> list[EpochEntry]:
        """Those of the log between its checkpointed start and its end."""
        found = [entry for entry in self._entries if entry[1] < log_end_offset]
        # Of the epochs that begin at or below the log start the last one is in force there.
        begun = [epoch for epoch, start_offset in found if start_offset <= log_start_offset]
        later = [entry for entry in found if entry[1] > log_start_offset]
        return [(begun[-1], log_start_offset), *later] if begun else later
