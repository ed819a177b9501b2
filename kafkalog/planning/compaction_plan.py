"""The plan of one partition's compaction: what will be done, and why not more.

A plan is a value: frozen, picklable, printable (`explain`), and JSON both ways. It is made from
facts by `compaction.plan_compaction` and is valid as long as the partition's token is what the plan
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalog.log.header_facts import ActiveProducer
from kafkalog.log.inventory import DeletedFile, JsonFacts, SegmentInfo, TopicPartition
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED
from kafkalog.texts import format_bytes, format_count

# A plan's status beside those of `statuses`.
CLEAN = "clean"  # will be cleaned

# How the key map is made: by the task that does everything else, too, or by many that shuffle.
WITHIN_TASK = "within-task"
ACROSS_TASKS = "across-tasks"
STRATEGIES = (WITHIN_TASK, ACROSS_TASKS)


def describe_deleted_files(files: Sequence[DeletedFile]) -> str:
    """What is said of a broker's `.deleted` files that a plan removes; empty for none."""
    if not files:
        return ""
    size = format_bytes(sum(file.size_in_bytes for file in files))
    return f"; {len(files)} files that a broker left as .deleted go as well ({size})"


@dataclass(frozen=True, slots=True)
class SegmentGroup(JsonFacts):
    """Consecutive segments rewritten into one, which gets the base offset of the first."""

    base_offset: int
    sources: tuple[SegmentInfo, ...]

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the source `.log` files: a bound for the output's, which only ever shrinks (but
        for recompression).
        """
        return sum(segment.size_in_bytes for segment in self.sources)

    @property
    def file_bytes(self) -> int:
        """The same with the indexes."""
        return sum(
            segment.size_in_bytes + segment.offset_index_bytes + segment.time_index_bytes
            for segment in self.sources
        )


@dataclass(frozen=True, slots=True)
class CompactionPlan(JsonFacts):
    """Offsets, bytes and reasons of one partition's round, as the spec's chapter 1 names them.

    `end_offset` is the uncleanable offset rounded down to a segment's base: the round's end
    (excluded) and the next checkpoint. `high_watermark` is the one in force, None if unknown.
    `checkpoint_reset` is the offset to write into the cleaner checkpoint even if nothing is
    cleaned, because the one there is outside the log; None if it is sound. `peak_bytes` is the disk
    space the new files may take beside the old ones. `groups` is empty unless status is `clean` or
    `left`.
    `map_entries` is how many keys a broker's bounded map would hold, None for no bound.
    `source_records`: of each of `sources`, at most. `strategy`: how the key map is made.
    `deleted_files`: those that a broker marked `.deleted` and left; they go with the sources.
    `codecs`: the numbers of those that batches of the sources are compressed with.
    `replicated_end_offset`: tombstones and markers from here on stay, since some replica has not
    got them; None where they go by time alone, as a broker's cleaner has it.
    """

    topic_partition: TopicPartition
    path: str
    log_dir: str
    status: str
    reason: str
    first_dirty_offset: int
    first_uncleanable_offset: int
    uncleanable_reason: str
    end_offset: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    clean_bytes: int
    cleanable_bytes: int
    cleanable_ratio: float
    must_compact: bool
    checkpoint_reset: int | None
    groups: tuple[SegmentGroup, ...]
    now_ms: int
    kafka_version: str
    config: LogConfig
    active_producers: tuple[ActiveProducer, ...]
    token: str
    peak_bytes: int
    leftovers: tuple[str, ...]
    map_entries: int | None = None
    source_records: tuple[int, ...] = ()
    has_transactions: bool = False
    strategy: str = WITHIN_TASK
    deleted_files: tuple[DeletedFile, ...] = ()
    replicated_end_offset: int | None = None
    codecs: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[SegmentInfo, ...]:
        """The source segments of all groups in offset order."""
        return tuple(segment for group in self.groups for segment in group.sources)

    @property
    def source_bytes(self) -> int:
        """Bytes of the `.log` files the round reads."""
        return sum(group.size_in_bytes for group in self.groups)

    @property
    def peak_bytes_per_group(self) -> int:
        """What `peak_bytes` is where each group is swapped in before the next one is written, and
        what it replaced is not kept.
        """
        return max((group.file_bytes for group in self.groups), default=0)

    @property
    def retained_end_offset(self) -> int | None:
        """A batch whose last offset + 1 is this one is kept, if only empty (KAFKA-17076).

        Up to 4.3 the round's end; from 4.4 the high watermark (KAFKA-20452).
        """
        newer = parse_kafka_version(self.kafka_version) >= (4, 4)
        return self.high_watermark if newer else self.end_offset

    @property
    def record_limit(self) -> int | None:
        """The largest record that a broker's cleaner decompresses, None where there is no limit
        (before 4.4).
        """
        newer = parse_kafka_version(self.kafka_version) >= (4, 4)
        return self.config.max_decompressed_message_bytes if newer else None

    def refused(self, reason: str) -> CompactionPlan:
        """The same facts, and nothing to be done."""
        return replace(
            self,
            status=REFUSED,
            reason=reason,
            groups=(),
            checkpoint_reset=None,
            peak_bytes=0,
            deleted_files=(),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from kafkalog.planning.plan_html import compaction_plan_html

        return compaction_plan_html(self)

    def explain(self) -> str:
        """One line for people."""
        if self.status != CLEAN:
            return f"{self.topic_partition}: {self.status}: {self.reason}"
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return (
            f"{self.topic_partition}: {format_count(len(self.sources), 'segment')} into "
            f"{len(self.groups)}, "
            f"dirty {self.cleanable_ratio:.1%} of {format_bytes(total_bytes)}, "
            f"offsets {self.first_dirty_offset} to {self.end_offset} (end excluded), "
            f"then {self.uncleanable_reason}; {self.strategy}; {self.reason}"
            f"{describe_deleted_files(self.deleted_files)}"
        )
