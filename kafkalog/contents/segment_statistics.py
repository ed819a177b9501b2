"""What one walk over the batch headers of a segment tells an audit.

Everything is a plain number: statistics of an unchanged segment are kept from run to run and
travel between processes. Nothing is decompressed and no CRC is checked; a record's own timestamp is
not looked at, so smallest timestamps are those that headers tell (see `log.segment_facts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.log.header_facts import SegmentFacts
from kafkalog.log.header_sums import HeaderSums
from kafkalog.log.inventory import JsonFacts, SegmentInfo
from kafkalog.log.segment_headers import HeaderScan

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class FileBytes(JsonFacts):
    """Sizes of the files beside one `.log`, as the directory has them."""

    indexes: int = 0
    time_index: int = 0
    snapshot: int = 0


@dataclass(frozen=True, slots=True)
class SegmentStatistics(JsonFacts):
    """One live segment; bytes and ms, -1 for "none".

    `next_offset` is one past the last batch. `largest_timestamp_offset`: the last offset of the
    first batch with the largest timestamp. `bytes_by_codec`: of its batches. `first_bad_position`:
    where the walk could not go on, or found offsets out of order; `bad_batches` is 1 then, as what
    lies behind is not counted. `bad_control`, `…_position`, `…_stops_cleaner`: see SegmentFacts.
    `indexed_timestamp_ms`: the last time index entry's, by which a
    broker goes that stopped cleanly. `records_count` leaves out the content of legacy wrappers,
    which headers do not tell. `padded_time_index_bytes`: zeros behind its last entry.
    """

    base_offset: int
    next_offset: int
    path: str
    is_active: bool
    size_in_bytes: int
    valid_bytes: int
    batches_count: int
    records_count: int
    smallest_timestamp_ms: int
    largest_timestamp_ms: int
    largest_timestamp_offset: int
    largest_timestamp_position: int
    first_timestamp_ms: int
    indexed_timestamp_ms: int
    modification_time_ms: int
    bytes_by_codec: Mapping[str, int]
    transactional_bytes: int
    control_batches: int
    control_bytes: int
    bad_batches: int
    first_bad_position: int
    bad_reason: str
    bad_control: str
    bad_control_position: int
    bad_control_stops_cleaner: bool
    index_bytes: int
    padded_time_index_bytes: int

    @property
    def effective_timestamp_ms(self) -> int:
        """The largest timestamp of its records, else the file's modification time."""
        return (
            self.modification_time_ms
            if self.largest_timestamp_ms < 0
            else self.largest_timestamp_ms
        )


_CUT = "the bytes behind the last whole batch are no batch, and other segments follow"


@dataclass(slots=True)
class StatisticsBuilder(JsonFacts):
    """Adds up the scans of one segment, which may come in several; kept from run to run."""

    bytes_by_codec: dict[str, int] = field(default_factory=dict)
    transactional_bytes: int = 0
    control_batches: int = 0
    control_bytes: int = 0
    largest_timestamp_ms: int = NO_TIMESTAMP
    largest_timestamp_offset: int = -1
    largest_timestamp_position: int = -1

    def add(self, scan: HeaderScan, sums: HeaderSums | None) -> None:
        """Count the batches of a scan, whose sums these are."""
        if sums is None:
            return
        for codec, size in sums.codec_bytes.items():
            name = CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"codec {codec}"
            self.bytes_by_codec[name] = self.bytes_by_codec.get(name, 0) + size
        self.transactional_bytes += sums.transactional_bytes
        self.control_batches += sums.control_batches
        self.control_bytes += sums.control_bytes
        if sums.largest_timestamp_ms > self.largest_timestamp_ms:
            self.largest_timestamp_ms = sums.largest_timestamp_ms
            row = scan.rows[sums.largest_at]
            self.largest_timestamp_offset = int(row["last_offset"])
            self.largest_timestamp_position = int(row["position"])

    def build(
        self, segment: SegmentInfo, facts: SegmentFacts, files: FileBytes
    ) -> SegmentStatistics:
        """The statistics, with what else is known of the segment."""
        corrupt_position = -1 if facts.corrupt_position is None else facts.corrupt_position
        is_cut = bool(facts.trailing_bytes) and not segment.is_active and facts.corrupt is None
        return SegmentStatistics(
            base_offset=segment.base_offset,
            next_offset=facts.next_offset,
            path=segment.path,
            is_active=segment.is_active,
            size_in_bytes=segment.size_in_bytes,
            valid_bytes=facts.valid_bytes,
            batches_count=facts.batches_count,
            records_count=facts.records_count,
            smallest_timestamp_ms=facts.min_timestamp_ms,
            largest_timestamp_ms=self.largest_timestamp_ms,
            largest_timestamp_offset=self.largest_timestamp_offset,
            largest_timestamp_position=self.largest_timestamp_position,
            first_timestamp_ms=-1
            if facts.first_batch_max_timestamp_ms is None
            else facts.first_batch_max_timestamp_ms,
            indexed_timestamp_ms=segment.largest_timestamp_ms,
            modification_time_ms=segment.modification_time_ms,
            bytes_by_codec=self.bytes_by_codec,
            transactional_bytes=self.transactional_bytes,
            control_batches=self.control_batches,
            control_bytes=self.control_bytes,
            bad_batches=int(facts.corrupt is not None or is_cut),
            first_bad_position=facts.valid_bytes if is_cut else corrupt_position,
            bad_reason=facts.corrupt or (_CUT if is_cut else ""),
            bad_control=facts.bad_control or "",
            bad_control_position=-1
            if facts.bad_control_position is None
            else facts.bad_control_position,
            bad_control_stops_cleaner=facts.bad_control_stops_cleaner,
            index_bytes=files.indexes,
            padded_time_index_bytes=max(files.time_index - segment.time_index_bytes, 0),
        )
