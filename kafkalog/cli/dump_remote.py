"""Segments in remote storage, dumped as those on the disk: those of a tiered partition, whose own
files follow, or all that a tree of remote storage has.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.cli.dump_log import dump_remote_segment
from kafkalog.cli.dump_options import DumpOptions
from kafkalog.cli.output import say, write_bytes
from kafkalog.errors import InvalidConfigError, KafkaLogError, RemoteStorageError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.remote_tree import open_logs
from kafkalog.reading.tiered_partition import with_remote
from kafkalog.remote.paths import RemoteStorage


def dump_remote(name: str, storage: RemoteStorage, options: DumpOptions) -> bool:
    """Print the segments in offset order; whether something is wrong with one. InvalidConfigError
    for a path that is no partition's directory, or no tree of the layout."""
    is_wrong = False

    def note(_: PartitionInventory, error: RemoteStorageError) -> None:
        nonlocal is_wrong
        is_wrong = True
        say(str(error))

    partitions: Iterable[PartitionInventory]
    if storage.is_tree:
        partitions = open_logs([name], storage, note=note)
    else:
        partitions = [with_remote(_one_partition(name), storage, note=note)]
    for partition in partitions:
        for segment in partition.segments:
            if segment.state != REMOTE:
                continue
            if not options.as_json:
                write_bytes(f"Dumping {segment.path}\n".encode())
            base_offset = segment.base_offset
            try:
                is_wrong |= dump_remote_segment(
                    segment.path, partition.topic_partition, base_offset, options
                )
            except (KafkaLogError, OSError) as error:
                say(str(error))
                is_wrong = True
    return is_wrong


def _one_partition(name: str) -> PartitionInventory:
    found = open_log_dir(name).partitions
    if len(found) != 1 or not found[0].is_whole:
        raise InvalidConfigError(
            "with --remote-dir the directory of one partition is dumped", path=name
        )
    return found[0]
