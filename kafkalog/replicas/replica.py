"""What the small files say of one copy of a partition, before its records are read.

Source: Kafka UnifiedLog, LeaderEpochFileCache, ProducerStateManager.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import (
    EpochEntry,
    parse_leader_epoch_checkpoint,
)
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, producer_snapshot_file_name
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.leader_epochs import LeaderEpochReplay
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.log_end import log_end


@dataclass(frozen=True, slots=True)
class OpenProducers(JsonFacts):
    """A producer snapshot: the ids of the producers that had a transaction open at its offset, each
    with that transaction's first offset.
    """

    offset: int
    open: tuple[tuple[int, int], ...]

    def has_open(self, producer_id: int) -> bool:
        """Whether the producer was in a transaction there."""
        return any(each == producer_id for each, _ in self.open)


@dataclass(frozen=True, slots=True)
class ReplicaFacts(JsonFacts):
    """A copy of a partition. `name`: its node, as findings call it; `place`: the directory or the
    file it was read from. Ends: see `log_end`; `high_watermark`, `cleaner_offset`: None without a
    line in the checkpoint. `leader_epochs`: (epoch, start offset), rising.
    """

    name: str
    place: str
    log_dir: str
    topic_partition: TopicPartition
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    sound_end_offset: int
    high_watermark: int | None
    cleaner_offset: int | None
    leader_epochs: tuple[tuple[int, int], ...]
    snapshots: tuple[OpenProducers, ...]
    size_in_bytes: int
    problems: tuple[str, ...] = ()

    @property
    def last_epoch(self) -> int:
        """The epoch of its latest leader, -1 if none is known."""
        return self.leader_epochs[-1][0] if self.leader_epochs else -1

    @property
    def cleaned_end_offset(self) -> int:
        """How far the checkpoint says its cleaner came; 0 without a line."""
        return min(self.cleaner_offset or 0, self.log_end_offset)


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy that lies on this host: what was found there, and whose it is."""

    name: str
    partition: PartitionInventory
    cluster_id: str | None
    node_id: int | None

    @property
    def where(self) -> str:
        """What it is called where its node does not tell."""
        return self.partition.log_dir

    def named(self, name: str) -> Replica:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def key(self) -> tuple[object, ...]:
        """What it is told from others by."""
        return (Path(self.partition.path).resolve(),)

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name."""
        return self.partition.topic_partition

    @property
    def place(self) -> str:
        """Its directory."""
        return self.partition.path

    @property
    def topic_id(self) -> str | None:
        """By its partition.metadata."""
        return self.partition.topic_id

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be relied on."""
        return self.partition.problems

    @property
    def size_in_bytes(self) -> int:
        """Bytes to read."""
        return self.partition.size_in_bytes


def replica_facts(replica: Replica) -> ReplicaFacts:
    """What is known of it without its records. OSError, LogChangedError as from reading headers."""
    own = replica.partition
    end = log_end(own)
    return ReplicaFacts(
        name=replica.name,
        place=own.path,
        log_dir=own.log_dir,
        topic_partition=own.topic_partition,
        cluster_id=replica.cluster_id,
        node_id=replica.node_id,
        directory_id=own.directory_id,
        topic_id=own.topic_id,
        log_start_offset=own.log_start_offset,
        log_end_offset=end.offset,
        sound_end_offset=end.sound_offset,
        high_watermark=own.checkpoints.high_watermark,
        cleaner_offset=own.checkpoints.cleaner,
        leader_epochs=tuple(_leader_epochs(own, end.offset)),
        snapshots=tuple(_snapshots(own)),
        size_in_bytes=own.size_in_bytes,
        problems=own.problems,
    )


def _leader_epochs(partition: PartitionInventory, log_end_offset: int) -> list[EpochEntry]:
    """Those of the checkpoint, without what lies behind the log's end, which a broker drops; of a
    log without one, those that its batches begin.
    """
    path = Path(partition.path, LEADER_EPOCH_CHECKPOINT_FILE)
    try:
        entries = parse_leader_epoch_checkpoint(read_small_file(path), str(path))
    except (OSError, KafkaLogError):
        entries = []
    # One that begins at the end has no record yet, and is a leader's all the same.
    known = [entry for entry in entries if entry[1] <= log_end_offset]
    if known:
        return known
    replay = LeaderEpochReplay(())
    for segment in partition.segments:
        for scan in iterate_headers(segment.path):
            replay.apply(scan.rows)
    return replay.entries(partition.log_start_offset, log_end_offset)


def _snapshots(partition: PartitionInventory) -> list[OpenProducers]:
    """What the producer snapshots say is open; one that cannot be read says nothing."""
    found = []
    for offset in sorted(partition.snapshot_offsets):
        path = Path(partition.path, producer_snapshot_file_name(offset))
        try:
            entries = parse_producer_snapshot(read_small_file(path), str(path))
        except (OSError, KafkaLogError):
            continue
        open_ones = tuple(
            (entry.producer_id, entry.current_txn_first_offset)
            for entry in entries
            if entry.current_txn_first_offset >= 0
        )
        found.append(OpenProducers(offset, open_ones))
    return found
