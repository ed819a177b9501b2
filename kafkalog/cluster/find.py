"""Which metadata log to read: of each cluster the one that goes furthest among the log dirs there
are. Members of a quorum have the same log, up to where each was when it stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.metadata_records import metadata_files, metadata_log_end


def metadata_directories(partitions: Iterable[PartitionInventory]) -> list[Path]:
    """A metadata partition of each cluster, in the order of their paths."""
    best: dict[str, tuple[tuple[int, int], str]] = {}
    for partition in partitions:
        is_live = partition.kind is PartitionKind.LIVE
        if not is_live or partition.topic_partition.topic != CLUSTER_METADATA_TOPIC:
            continue
        meta = read_log_dir_files(Path(partition.log_dir)).meta
        cluster = partition.log_dir if meta is None or meta.cluster_id is None else meta.cluster_id
        known = _knows(Path(partition.path))
        if cluster not in best or known > best[cluster][0]:
            best[cluster] = known, partition.path
    return sorted(Path(path) for _, path in best.values())


def _knows(directory: Path) -> tuple[int, int]:
    """(epoch, end offset) of the log or its newest snapshot."""
    try:
        segments, snapshots = metadata_files(directory)
        end, epoch = metadata_log_end(segments)
    except (KafkaLogError, OSError):
        return (-1, -1)
    return max([(epoch, end), *((each.epoch, each.end_offset) for each in snapshots[:1])])
