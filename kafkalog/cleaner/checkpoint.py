"""The cleaner's checkpoint of a log dir: the first dirty offset of each compacted partition.

Written last, as Kafka does: through a temporary file, synced, renamed. Lines of partitions that are
no longer in the log dir are dropped whenever it is written. If the process dies before, the next
round cleans from the old offset again, which costs time and changes nothing else.

Source: Kafka LogCleanerManager.updateCheckpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name


def update_cleaner_checkpoint(
    log_dir: str, offsets: Mapping[tuple[str, int], int], files: LocalFiles
) -> None:
    """Set the offset of these (topic, partition)s, keep the others. The caller holds the log dir's
    lock.

    CorruptCheckpointError if the file that is there cannot be understood: it is not replaced.
    """
    if not offsets:
        return
    path = Path(log_dir) / CLEANER_OFFSET_FILE
    entries: dict[tuple[str, int], int] = {}
    if path.exists():
        entries = dict(parse_offset_checkpoint(path.read_bytes(), str(path)))
    hosted = _hosted(log_dir)
    entries = {partition: offset for partition, offset in entries.items() if partition in hosted}
    entries.update(offsets)
    in_order = dict(sorted(entries.items()))
    files.replace_contents(str(path), pack_offset_checkpoint(in_order), f"{path}.tmp")


def _hosted(log_dir: str) -> set[tuple[str, int]]:
    parsed = [parse_partition_dir_name(entry.name) for entry in Path(log_dir).iterdir()]
    return {
        (name.topic_partition.topic, name.topic_partition.partition)
        for name in parsed
        if name is not None and name.kind is PartitionKind.LIVE
    }
