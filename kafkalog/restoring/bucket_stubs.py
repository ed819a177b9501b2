"""What lies on the disks of a fresh cluster whose segments are in a bucket: of each partition an
empty segment where the copies end, with what a broker has to know of the log in front of it.

    TOPIC-N/<end>.log               empty, or ABORT markers of transactions that were open
    TOPIC-N/<end>.index .timeindex  empty: a broker that finds no clean stop makes them anew
    TOPIC-N/<end>.txnindex          the transactions that the markers abort
    TOPIC-N/<end>.snapshot          the producers, by the last segment's own snapshot
    TOPIC-N/leader-epoch-checkpoint    the epochs up to there, by which remote segments are found
    TOPIC-N/partition.metadata      the old topic id, which the objects are named by
    log-start-offset-checkpoint     where the log begins: without it a broker begins at the stub
    recovery-point-, replication-offset-checkpoint    the end

Source: Kafka LogLoader, ProducerStateManager.truncateAndReload, UnifiedLog, LeaderEpochFileCache;
KIP-405.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kafkalog.bucket.metadata_log import write_metadata_records
from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
)
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    log_file_name,
    offset_index_file_name,
    producer_snapshot_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.partition_metadata import pack_partition_metadata
from kafkalog.format.producer_snapshot import pack_producer_snapshot
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.format.transaction_index import AbortedTxn, pack_transaction_index
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.restoring.attach_facts import PlannedReplica
from kafkalog.restoring.bucket_plan import AttachedLog
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.metadata_place import MetadataPlace
from kafkalog.restoring.segments import Identity, abort_markers

# By log dir: the offsets of its three checkpoints.
_Ends = dict[str, dict[str, dict[tuple[str, int], int]]]


def stub_places(
    logs: Sequence[AttachedLog], replicas: Mapping[TopicPartition, Sequence[PlannedReplica]]
) -> Iterator[MetadataPlace]:
    """The partition directories of all replicas, which are alike."""
    for log in logs:
        files = _files(log)
        for each in replicas[TopicPartition(log.topic, log.partition)]:
            yield _place(each, TopicPartition(log.topic, log.partition), files)


def _place(
    replica: PlannedReplica, name: TopicPartition, files: Mapping[str, bytes]
) -> MetadataPlace:
    path = Path(str(replica.path))
    return MetadataPlace(str(path), str(path.parent), files, name)


def _files(log: AttachedLog) -> dict[str, bytes]:
    """By name, the `.log` last: without it a directory is no log."""
    base = log.end_offset
    files = {
        PARTITION_METADATA_FILE: pack_partition_metadata(log.topic_id),
        LEADER_EPOCH_CHECKPOINT_FILE: pack_leader_epoch_checkpoint(log.leader_epochs),
        producer_snapshot_file_name(base): pack_producer_snapshot(log.producers),
        offset_index_file_name(base): b"",
        time_index_file_name(base): b"",
    }
    if log.open:
        files[transaction_index_file_name(base)] = pack_transaction_index(_aborted(log))
    files[log_file_name(base)] = _markers(log)
    return files


def _markers(log: AttachedLog) -> bytes:
    cut = LogCut(
        log.start_offset, log.end_offset, log.end_offset, (), log.open,
        max((epoch for epoch, _ in log.leader_epochs), default=0), -1, log.largest_timestamp_ms,
    )  # fmt: skip
    return abort_markers(cut, Identity(is_kept=True)) if log.open else b""


def _aborted(log: AttachedLog) -> Iterator[AbortedTxn]:
    """Entries of the transaction index: once a marker is there the next transaction holds the last
    stable offset."""
    for number, each in enumerate(log.open):
        marker = log.end_offset + number
        is_last = number == len(log.open) - 1
        stable = marker + 1 if is_last else log.open[number + 1].first_offset
        yield AbortedTxn(each.producer_id, each.first_offset, marker, stable)


def metadata_places(
    records: Sequence[Sequence[tuple[int, bytes]]],
    topic_id: str,
    replicas: Mapping[TopicPartition, Sequence[PlannedReplica]],
) -> tuple[list[MetadataPlace], dict[TopicPartition, int]]:
    """The directories of `__remote_log_metadata`, and where each partition ends."""
    places: list[MetadataPlace] = []
    ends: dict[TopicPartition, int] = {}
    with TemporaryDirectory() as made:
        for each in write_metadata_records(Path(made), records):
            name = TopicPartition(REMOTE_LOG_TOPIC, each.number)
            ends[name] = each.records_count
            places += written_places(Path(each.path), topic_id, name, replicas[name])
    return places, ends


def written_places(
    directory: Path, topic_id: str, name: TopicPartition, replicas: Sequence[PlannedReplica]
) -> list[MetadataPlace]:
    """A partition on all its replicas, of files that were written elsewhere."""
    paths = sorted(directory.iterdir(), key=lambda p: (p.suffix == ".log", p.name))
    files = {path.name: path.read_bytes() for path in paths}
    files = {PARTITION_METADATA_FILE: pack_partition_metadata(topic_id), **files}
    return [_place(replica, name, files) for replica in replicas]


def log_dir_places(
    log_dirs: Sequence[str],
    logs: Sequence[AttachedLog],
    metadata_ends: Mapping[TopicPartition, int],
    replicas: Mapping[TopicPartition, Sequence[PlannedReplica]],
    bootstrap: Mapping[str, bytes],
) -> Iterator[MetadataPlace]:
    """The log dirs themselves: checkpoints, and bootstrap.checkpoint last."""
    files = (LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)
    offsets: _Ends = {log_dir: {name: {} for name in files} for log_dir in log_dirs}
    known = [(TopicPartition(log.topic, log.partition), log) for log in logs]
    for name, log in known:
        key = name.topic, name.partition
        for each in replicas[name]:
            own = offsets[str(Path(str(each.path)).parent)]
            own[LOG_START_OFFSET_FILE][key] = log.start_offset
            own[RECOVERY_POINT_FILE][key] = log.end_offset
            own[HIGH_WATERMARK_FILE][key] = log.next_offset
    for name, end in metadata_ends.items():
        for each in replicas[name]:
            own = offsets[str(Path(str(each.path)).parent)]
            own[RECOVERY_POINT_FILE][name.topic, name.partition] = end
            own[HIGH_WATERMARK_FILE][name.topic, name.partition] = end
    for log_dir in log_dirs:
        writes = {name: pack_offset_checkpoint(own) for name, own in offsets[log_dir].items()}
        yield MetadataPlace(log_dir, log_dir, {**writes, BOOTSTRAP_FILE: bootstrap[log_dir]})
