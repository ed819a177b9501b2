"""What the batch headers of a partition tell: of each segment, and of the producers that a broker
still remembers.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.log.json_facts import JsonFacts


@dataclass(frozen=True, slots=True)
class SegmentFacts(JsonFacts):
    """What the batch headers of one segment tell; see `segment_facts.scan_segment_facts`.

    Timestamps are -1 where no batch has one, offsets None in a segment without batches. `corrupt`
    says what is wrong at `corrupt_position`; the counts then cover the batches before it.
    `bad_control` says why a broker cannot go on with the control batch at `bad_control_position`:
    its cleaner too with `bad_control_stops_cleaner`, else its loader after a crash.
    """

    base_offset: int
    batches_count: int
    records_count: int
    first_offset: int | None
    last_offset: int | None
    min_timestamp_ms: int
    max_timestamp_ms: int
    first_batch_max_timestamp_ms: int | None
    has_transactional: bool
    has_control: bool
    has_producer_ids: bool
    magics: tuple[int, ...]
    codecs: tuple[int, ...]
    largest_batch_bytes: int
    valid_bytes: int
    trailing_bytes: int
    unsupported_magic: bool = False
    corrupt: str | None = None
    corrupt_position: int | None = None
    bad_control: str | None = None
    bad_control_position: int | None = None
    bad_control_stops_cleaner: bool = False

    @property
    def next_offset(self) -> int:
        """One past the last batch; the base offset of a segment without batches."""
        return self.base_offset if self.last_offset is None else self.last_offset + 1


@dataclass(frozen=True, slots=True)
class ActiveProducer(JsonFacts):
    """A producer a broker still remembers; its last batch outlives its records.

    `last_data_offset` is None when only the epoch is known (the last thing it did was to have its
    epoch raised by a marker).
    """

    producer_id: int
    epoch: int
    last_data_offset: int | None
    last_timestamp_ms: int
    current_txn_first_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionFacts(JsonFacts):
    """What had to be read from the files of a partition to plan.

    For compaction one SegmentFacts a live segment, and the producer state at the end; `problems`
    says why that could not be built. For retention the segments a broker would repair on load;
    `problems` says what else cannot be read.

    `completed_transactions`: (first offset, marker's offset) of those that ended in the replay.
    `batches_at`: (first offset of an open transaction or the log start, base of the first batch
    there or behind it), which differ where cleaning took the batch. `compaction_mark`: what in the
    first batches of the log only compaction leaves, in words.
    """

    segments: tuple[SegmentFacts, ...]
    active_producers: tuple[ActiveProducer, ...] = ()
    completed_transactions: tuple[tuple[int, int], ...] = ()
    batches_at: tuple[tuple[int, int], ...] = ()
    problems: tuple[str, ...] = ()
    compaction_mark: str | None = None

    def with_segments(self, segments: tuple[SegmentFacts, ...]) -> PartitionFacts:
        """The same with these segments."""
        return PartitionFacts(
            segments,
            self.active_producers,
            self.completed_transactions,
            self.batches_at,
            self.problems,
            self.compaction_mark,
        )

    def first_unstable_offset(
        self, high_watermark: int | None, log_start_offset: int = 0
    ) -> int | None:
        """Where the earliest transaction begins that is open, or whose marker is not below the high
        watermark yet: the base of the first batch at or behind its first offset or the log start.
        None if there is none.
        """
        starts = [
            producer.current_txn_first_offset
            for producer in self.active_producers
            if producer.current_txn_first_offset is not None
        ]
        if high_watermark is not None:
            starts += [
                first
                for first, marker_offset in self.completed_transactions
                if marker_offset >= high_watermark
            ]
        if not starts:
            return None
        # The cleaner stops at a batch, not within one, and cleaning may have taken the batch that a
        # transaction began with: `batches_at` has where the next one starts.
        offset = max(min(starts), log_start_offset)
        return dict(self.batches_at).get(offset, offset)
