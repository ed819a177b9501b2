"""One snapshot file, read whole against its limit."""

from __future__ import annotations

from kafkalog.errors import CorruptSnapshotError
from kafkalog.format.limits import MAX_ZOOKEEPER_SNAPSHOT_BYTES
from kafkalog.format.zookeeper_snapshot import ZooKeeperSnapshot, parse_snapshot
from kafkalog.log.small_files import read_small_file
from kafkalog.zookeeper.data_dir import ZooKeeperFile


def read_snapshot(file: ZooKeeperFile) -> ZooKeeperSnapshot:
    """The snapshot; errors are those of `parse_snapshot`, and OSError's are a
    CorruptSnapshotError.
    """
    try:
        data = read_small_file(file.path, MAX_ZOOKEEPER_SNAPSHOT_BYTES)
    except OSError as error:
        raise CorruptSnapshotError(error.strerror or str(error), path=str(file.path)) from None
    return parse_snapshot(data, file.suffix, str(file.path))
