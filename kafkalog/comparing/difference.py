"""One thing in which copies differ, and what each choice of a leader would lose."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.checking.finding_kind import Severity
from kafkalog.comparing.compare_kinds import COMPARE_KIND
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Difference(JsonFacts):
    """`kind` is an id of `compare_kinds`. offset: of the record, or the first one of a range that
    ends with last_offset; records, size_in_bytes: in it, where they are known. wrong, right: names
    of copies; is_proven: whether `text` is a proof of that. key: base64 of the record's, None where
    it has none or none was asked for; key_hash: of digests, hex digits of its hash. more: how many
    like it in the partition are not listed.
    """

    kind: str
    topic_partition: TopicPartition
    offset: int
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    is_proven: bool
    text: str
    last_offset: int | None = None
    records: int | None = None
    size_in_bytes: int | None = None
    producer_id: int | None = None
    key: str | None = None
    key_hash: str | None = None
    path: str | None = None
    position: int | None = None
    more: int = 0

    @property
    def severity(self) -> Severity:
        """Its kind's."""
        return COMPARE_KIND[self.kind].severity

    @property
    def order(self) -> tuple[object, ...]:
        """By partition, then by offset."""
        return (
            self.topic_partition.topic,
            self.topic_partition.partition,
            self.offset,
            self.kind,
            self.wrong,
        )


@dataclass(frozen=True, slots=True)
class ReplicaResult(JsonFacts):
    """A copy, when all of it was compared. behind: records and bytes that others have behind its
    end; lost: of what any copy has, what is gone if this one leads; wrong: differences in which it
    is not right.
    """

    name: str
    place: str
    node_id: int | None
    directory_id: str | None
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    cleaned_end_offset: int
    leader_epochs: tuple[tuple[int, int], ...]
    records: int
    size_in_bytes: int
    behind_records: int
    behind_bytes: int
    lost_records: int
    lost_bytes: int
    wrong: int


@dataclass(frozen=True, slots=True)
class ComparedPartition(JsonFacts):
    """A partition. status: `compared`, `single` (one copy is there), `failed`. best: the copy to
    start from: the one that loses least as the leader, and of those the one that is right most.
    """

    topic_partition: TopicPartition
    status: str
    reason: str = ""
    replicas: tuple[ReplicaResult, ...] = ()
    best: str | None = None
    differences: tuple[Difference, ...] = ()
