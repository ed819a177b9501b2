"""Offset checkpoints of a log dir, changed for some of its partitions.

Written as Kafka does: through a temporary file, synced, renamed. Lines of partitions that are no
longer in the log dir are dropped whenever a file is written. The cleaner's, the first dirty offset
of each compacted partition, comes last in a run: if the process dies before, the next round cleans
from the old offset again, which costs time and changes nothing else. The log start offset comes
before segments go.

Source: Kafka LogCleanerManager.updateCheckpoints, LogManager.checkpointLogStartOffsetsInDir.
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
    """Set where the next round of these (topic, partition)s begins; see `update_checkpoint`."""
    update_checkpoint(log_dir, CLEANER_OFFSET_FILE, offsets, files)


def update_checkpoint(
    log_dir: str,
    file_name: str,
    offsets: Mapping[tuple[str, int], int | None],
    files: LocalFiles,
) -> None:
    """Set the offset of these (topic, partition)s in one of the checkpoint files, or with None take
    their line out; keep the others. The caller holds the log dir's lock.

    CorruptCheckpointError if the file that is there cannot be understood: it is not replaced.
    """
    path = Path(log_dir) / file_name
    found: dict[tuple[str, int], int] = {}
    if path.exists():
        found = dict(parse_offset_checkpoint(path.read_bytes(), str(path)))
    if all(found.get(partition) == offset for partition, offset in offsets.items()):
        return
    hosted = _hosted(log_dir)
    known = {partition: offset for partition, offset in found.items() if partition in hosted}
    entries = {**known, **offsets}
    in_order = {key: offset for key, offset in sorted(entries.items()) if offset is not None}
    files.replace_contents(str(path), pack_offset_checkpoint(in_order), f"{path}.tmp")


def _hosted(log_dir: str) -> set[tuple[str, int]]:
    parsed = [parse_partition_dir_name(entry.name) for entry in Path(log_dir).iterdir()]
    return {
        (name.topic_partition.topic, name.topic_partition.partition)
        for name in parsed
        if name is not None and name.kind is PartitionKind.LIVE
    }
