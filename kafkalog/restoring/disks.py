"""What the disks of a cluster's nodes say without any metadata: whose each log dir is, which copies
of which partitions lie there, how far each goes, which leader epochs and producer ids were used.

Only the last segment of a copy, its producer snapshots and `leader-epoch-checkpoint` are looked at.
What a producer has left in older segments and in no snapshot has expired: a broker has forgotten it
as well.

Source: Kafka LogManager, ProducerStateManager, LeaderEpochFileCache, CleanShutdownFileHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_leader_epoch_checkpoint
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE, parse_clean_shutdown
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, producer_snapshot_file_name
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, is_kraft
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, TRANSACTION_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir import expand_paths, open_log_dir
from kafkalog.log.log_dir_files import LogDirFiles, read_log_dir_files
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.replica import Replica, replica_facts
from kafkalog.restoring.copies import how_far

# A value of `__transaction_state` begins with its version, two bytes, and the producer id.
_PRODUCER_ID = slice(2, 10)


@dataclass(frozen=True, slots=True)
class NodeDir:
    """A log dir of a node. clean_epoch: the broker epoch of its clean shutdown, None without one
    that tells it; has_metadata: whether `__cluster_metadata-0` is there; was_migrated: whether it
    came from ZooKeeper, with the version of meta.properties that brokers wrote there.
    """

    path: str
    node_id: int
    cluster_id: str
    directory_id: str | None
    clean_epoch: int | None
    has_metadata: bool
    was_migrated: bool = False


@dataclass(frozen=True, slots=True)
class DiskCopy:
    """A live copy of a partition.

    end_offset: what a recovery keeps for sure; last_epoch: of its last record's leader, -1 without
    one: copies with the same one and the same end are equal. highest_epoch: of any leader or
    coordinator that left a trace; is_compacted: a cleaner has its checkpoint; has_remote: older
    segments are in remote storage.
    """

    name: TopicPartition
    topic_id: str | None
    node_id: int
    log_dir: str
    directory_id: str | None
    path: str
    start_offset: int
    end_offset: int
    last_epoch: int
    highest_epoch: int
    highest_producer_id: int
    size_in_bytes: int
    is_compacted: bool
    has_remote: bool


@dataclass(frozen=True, slots=True)
class Disks:
    """All of it. others: (path, kind) of directories that are no live partition's; problems: why
    something could not be read, which forbids a plan; inventory: what was found.
    """

    dirs: tuple[NodeDir, ...]
    copies: tuple[DiskCopy, ...]
    others: tuple[tuple[str, PartitionKind], ...]
    problems: tuple[str, ...]
    inventory: LogInventory

    @property
    def nodes(self) -> list[int]:
        """The nodes whose log dirs these are."""
        return sorted({each.node_id for each in self.dirs})


def read_disks(log_dirs: Sequence[str], max_batch_bytes: int) -> Disks:
    """What lies in these log dirs. InvalidConfigError for a path that is no KRaft node's log dir,
    and for log dirs of several clusters.
    """
    paths = dict.fromkeys(path.resolve() for path in expand_paths(log_dirs, reads_buckets=False))
    found = open_log_dir(*paths, reads_buckets=False)
    files = {str(path): read_log_dir_files(path) for path in paths}
    dirs = tuple(node_dir(each) for each in files.values())
    clusters = {each.cluster_id: each.path for each in dirs}
    if len(clusters) > 1:
        named = ", ".join(f"{path} of cluster {name}" for name, path in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")
    nodes = {each.path: each for each in dirs}
    problems = [*found.problems]
    copies: list[DiskCopy] = []
    for partition in found:
        if partition.kind is not PartitionKind.LIVE or _is_metadata(partition):
            continue
        try:
            node = nodes[partition.log_dir]
            copies.append(_copy(partition, node, files[partition.log_dir], max_batch_bytes))
            problems += partition.problems
        except (KafkaLogError, OSError) as error:
            problems.append(f"{partition.topic_partition}: {error}")
    others = ((p.path, p.kind) for p in found if p.kind is not PartitionKind.LIVE)
    return Disks(dirs, tuple(copies), tuple(others), tuple(dict.fromkeys(problems)), found)


def _is_metadata(partition: PartitionInventory) -> bool:
    return partition.topic_partition.topic == CLUSTER_METADATA_TOPIC


def node_dir(files: LogDirFiles) -> NodeDir:
    """Whose a log dir is; InvalidConfigError where its meta.properties does not tell.

    A broker that migrated from ZooKeeper keeps version 0 there (seen on 3.9.1); what a broker that
    never began to has no directory.id.
    """
    path, meta = files.path, files.meta
    if meta is None or meta.node_id is None or meta.cluster_id is None:
        why = "; ".join(files.problems) or "a log dir of a KRaft node has version=1"
        raise InvalidConfigError(
            f"{META_PROPERTIES_FILE} does not tell whose it is: {why}", path=str(path)
        )
    if not is_kraft(meta) and meta.directory_id is None:
        raise InvalidConfigError(
            f"{META_PROPERTIES_FILE} is that of a broker of ZooKeeper (version=0, no directory.id):"
            " its metadata is there; `kafkalog restore` takes its topics into a new cluster",
            path=str(path),
        )
    try:
        clean = parse_clean_shutdown(read_small_file(path / CLEAN_SHUTDOWN_FILE))
    except FileNotFoundError:
        clean = None
    return NodeDir(
        str(path), meta.node_id, meta.cluster_id, meta.directory_id, clean,
        (path / METADATA_DIR).is_dir(), was_migrated=not is_kraft(meta),
    )  # fmt: skip


def _copy(
    partition: PartitionInventory, node: NodeDir, files: LogDirFiles, max_batch_bytes: int
) -> DiskCopy:
    facts = replica_facts(Replica("", partition, node.cluster_id, node.node_id))
    name = partition.topic_partition
    last_epoch, end = how_far(facts)
    epochs, producers = zip((facts.last_epoch, -1), *_traces(partition), strict=True)
    if name.topic == TRANSACTION_TOPIC:
        producers = (*producers, _highest_of_coordinator(partition.path, max_batch_bytes))
    return DiskCopy(
        name,
        facts.topic_id,
        node.node_id,
        node.path,
        node.directory_id,
        partition.path,
        facts.log_start_offset,
        end,
        last_epoch,
        max(epochs),
        max(producers),
        partition.size_in_bytes,
        (name.topic, name.partition) in files.checkpoints[CLEANER_OFFSET_FILE],
        partition.has_remote_segments,
    )


def _traces(partition: PartitionInventory) -> Iterator[tuple[int, int]]:
    """(leader or coordinator epoch, producer id) that are on the disk, -1 for none."""
    path = Path(partition.path, LEADER_EPOCH_CHECKPOINT_FILE)
    try:
        entries = parse_leader_epoch_checkpoint(read_small_file(path), str(path))
        yield from ((epoch, -1) for epoch, _ in entries)
    except FileNotFoundError:
        pass
    newest = -1
    for offset in partition.snapshot_offsets:
        snapshot = Path(partition.path, producer_snapshot_file_name(offset))
        for entry in parse_producer_snapshot(read_small_file(snapshot), str(snapshot)):
            yield entry.coordinator_epoch, entry.producer_id
        newest = max(newest, offset)
    yield from _of_batches(partition, newest)


def _of_batches(partition: PartitionInventory, newest: int) -> Iterator[tuple[int, int]]:
    """Those of the batches that no snapshot covers, and of the last segment."""
    ends = [segment.base_offset for segment in partition.segments[1:]]
    for segment, end in zip(partition.segments, [*ends, None], strict=True):
        if end is not None and end <= newest:
            continue
        for scan in iterate_headers(segment.path):
            if scan.rows.size:
                rows = scan.rows
                yield int(rows["partition_leader_epoch"].max()), int(rows["producer_id"].max())


def _highest_of_coordinator(path: str, max_batch_bytes: int) -> int:
    """The highest producer id that a transactional id has."""
    # Imported late: reading records takes Arrow, and a fresh log dir has none.
    from kafkalog.reading.tables import read_records

    batches = read_records(path, columns="value", max_batch_bytes=max_batch_bytes)
    return max(
        (
            int.from_bytes(value[_PRODUCER_ID], "big", signed=True)
            for batch in batches
            for value in batch.column(0).to_pylist()
            if value is not None
        ),
        default=-1,
    )


def duplicates(copies: Iterable[DiskCopy]) -> Iterator[tuple[DiskCopy, DiskCopy]]:
    """Copies that one node has twice."""
    seen: dict[tuple[int, TopicPartition], DiskCopy] = {}
    for each in copies:
        first = seen.setdefault((each.node_id, each.name), each)
        if first is not each:
            yield first, each
