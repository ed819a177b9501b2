"""What a check of one segment found, and the facts its neighbours are compared by.

A report is what a later run carries over for a segment that has not changed, so it holds all that
the checks of the whole partition need: they never open a `.log` again. Travels as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.checking.finding import Finding
from kafkalog.format.constants import MAX_BATCH_BYTES, NO_TIMESTAMP
from kafkalog.format.file_names import LogFileKind
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.producer_runs import Data
from kafkalog.remote.paths import ManifestPath, beside


@dataclass(frozen=True, slots=True)
class FileState(JsonFacts):
    """A file by its suffix, and what changes when it does."""

    suffix: str
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class SegmentTask(JsonFacts):
    """One segment to check: the path of its `.log`, who it and its indexes are, and the largest
    batch that is read. Equal tasks are the same segment, unchanged.
    """

    path: str
    base_offset: int
    files: tuple[FileState, ...]
    max_batch_bytes: int = MAX_BATCH_BYTES

    def to_json(self) -> dict[str, Any]:
        """Of a path behind a manifest all that opens it."""
        found = JsonFacts.to_json(self)
        if isinstance(self.path, ManifestPath):
            found["path"] = self.path.parts
        return found

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SegmentTask:
        """The value `to_json` was called on."""
        path = values["path"]
        if not isinstance(path, str):
            path = ManifestPath.of_parts(path)
        files = tuple(map(FileState.from_json, values["files"]))
        return cls(path, values["base_offset"], files, values["max_batch_bytes"])

    def beside(self, kind: LogFileKind) -> str:
        """The path of the segment's file of another kind."""
        return beside(self.path, kind)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the `.log` file."""
        return next((file.size for file in self.files if file.suffix == LogFileKind.LOG), 0)


@dataclass(frozen=True, slots=True)
class Hole(JsonFacts):
    """No batch has the offsets from `start_offset` to `end_offset` (excluded); `position` is that
    of the batch behind them.
    """

    start_offset: int
    end_offset: int
    position: int


@dataclass(frozen=True, slots=True)
class EpochRun(JsonFacts):
    """Consecutive batches of one leader epoch, by the first offset and the last."""

    epoch: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class ProducerSpan(JsonFacts):
    """A producer's first data batch in a segment, whether it is transactional, and the last."""

    producer_id: int
    first_epoch: int
    first_sequence: int
    first_offset: int
    first_position: int
    first_is_transactional: bool
    last_epoch: int
    last_sequence: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class FirstMarker(JsonFacts):
    """A producer's first marker in a segment: it ends what was open before."""

    producer_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class AbortedSpan(JsonFacts):
    """An ABORT marker. `first_offset`: of the transaction's data in this segment, -1 without;
    `may_begin_earlier`: no marker of the producer lies in front of it here; `has_records`: the data
    here has records.
    """

    producer_id: int
    first_offset: int
    marker_offset: int
    may_begin_earlier: bool
    has_records: bool


@dataclass(frozen=True, slots=True)
class OpenSpan(JsonFacts):
    """Transactional data at the end of a segment that no marker in it ends."""

    producer_id: int
    first_offset: int
    has_records: bool

    def data(self) -> Data:
        """As far as it is known here: where it begins, and whether it has records."""
        at = self.first_offset
        return Data(at, at, NO_TIMESTAMP, NO_TIMESTAMP, int(self.has_records), 1, 0)


@dataclass(frozen=True, slots=True)
class IndexEntry(JsonFacts):
    """An entry of the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class GroupSpan(JsonFacts):
    """Records that say the same of a group's type, see `messages.group_types.GroupEvent`: the
    offsets of the first and last, and where the batch of the first lies. group: a digest of its
    name.
    """

    group: str
    kind: str
    is_tombstone: bool
    removes: bool
    first_offset: int
    last_offset: int
    position: int


@dataclass(frozen=True, slots=True)
class SegmentReport(JsonFacts):
    """See the module's text. Offsets are -1 and timestamps -1 in a segment without batches.

    `tail`: how the file ends (whole, torn, zeros, damaged). `holes` are the first and last few of
    `holes_count`; `is_thinned`: batches with fewer records than offsets, or with marks of
    compaction. `index_entries_count` and its like are of genuine entries, -1 without a file;
    `…_padding` entries of zeros behind them.
    """

    task: SegmentTask
    findings: tuple[Finding, ...] = ()
    batches_count: int = 0
    records_count: int = 0
    first_offset: int = -1
    last_offset: int = -1
    max_timestamp_ms: int = -1
    largest_batch_bytes: int = 0
    largest_batch_position: int = 0
    valid_bytes: int = 0
    tail: str = "whole"
    holes: tuple[Hole, ...] = ()
    holes_count: int = 0
    is_thinned: bool = False
    epochs: tuple[EpochRun, ...] = ()
    producers: tuple[ProducerSpan, ...] = ()
    first_markers: tuple[FirstMarker, ...] = ()
    aborted: tuple[AbortedSpan, ...] = ()
    open_transactions: tuple[OpenSpan, ...] = ()
    groups: tuple[GroupSpan, ...] = ()
    transaction_index: tuple[IndexEntry, ...] = ()
    is_transaction_index_readable: bool = True
    offset_index_count: int = -1
    offset_index_padding: int = 0
    time_index_count: int = -1
    time_index_padding: int = 0
    time_index_last_ms: int = -1

    @property
    def next_offset(self) -> int:
        """One past the last batch; the base offset of a segment without batches."""
        return self.last_offset + 1 if self.batches_count else self.task.base_offset
