"""What the last audit kept of logs that nothing is wrong with, for who lists segments.

Of a directory that is still as the audit saw it (its digest, by `open_log_dir`) no file is opened.
None of the libraries that an audit's other files need is loaded for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkalog.auditing.sound_facts import KeptSegments, sound_directory
from kafkalog.code_digest import code_digest
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.kept_logs import LOGS_FILE, KeptLogs, read_kept_logs
from kafkalog.log.known_directory import KnownDirectory
from kafkalog.log.log_numbers import SegmentNumbers
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.runs.run_dir import list_runs

KIND = "audit"


class KeptDirectories(Mapping[str, KnownDirectory]):
    """Sound logs by the path of their directory."""

    def __init__(self, logs: KeptLogs) -> None:
        self._logs = logs

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._logs.paths)

    def __getitem__(self, path: str) -> KnownDirectory:
        place = self._logs.place(path)
        if place is None:
            raise KeyError(path)
        return sound_directory(self._logs, place, path)


def audit_scope(
    log_dirs: Iterable[str], topics: Iterable[str], topic_partitions: Iterable[TopicPartition]
) -> dict[str, Any]:
    """What an audit was asked for: runs of the same are comparable."""
    return {
        "logDirs": sorted(log_dirs),
        "topics": sorted(topics),
        "topicPartitions": sorted(map(str, topic_partitions)),
    }


def kept_directories(run_dir: Path, scope: Mapping[str, Any]) -> KeptDirectories | None:
    """Those of the newest finished audit of the same log dirs, of all topics or of the same; None
    without one of this version. OSError, CorruptKeptLogsError: its file is no good.
    """
    scopes = (scope, audit_scope(scope["logDirs"], (), ()))
    for run in reversed(list_runs(run_dir, with_file=LOGS_FILE)[0]):
        facts = run.facts
        is_own = facts.get("kind") == KIND and facts.get("options") in scopes
        if is_own and "finished" in facts:
            logs = read_kept_logs(run.path, code_digest())
            return KeptDirectories(logs) if logs else None
    return None


def kept_numbers(partition: PartitionInventory) -> dict[int, SegmentNumbers]:
    """What is kept of the live segments of a partition that was opened with KeptDirectories, by
    base offset; nothing of one that has changed.
    """
    if not isinstance(partition.segments, KeptSegments):
        return {}
    return {numbers.base_offset: numbers for numbers in partition.segments.numbers()}
