"""The root of a log dir: what a broker reads before it loads any log. Log dirs against each other:
`node_checks`.

Source: Kafka LogManager.loadLogs, BootstrapDirectory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkalog.checking.checkpoint_problems import checkpoint_severity
from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.given_log_dir import GivenLogDir
from kafkalog.checking.metadata_checks import check_bootstrap
from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kafkalog.format.file_names import REMOTE_INDEX_CACHE_DIR
from kafkalog.log.listing import Entry, entries_in, is_directory, is_directory_entry
from kafkalog.log.metadata_records import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.topic_partition import parse_partition_dir_name

# Checkpoints with a line of every log that a broker has had open for a while.
_OF_EVERY_LOG = (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)
_MOST_NAMES = 5


def check_log_dir(log_dir: GivenLogDir, given: Sequence[GivenLogDir]) -> Iterator[Finding]:
    """The root of one log dir, one of those `given`. OSError if it cannot be listed."""
    found = FindingList(str(log_dir.path))
    for entry in sorted(entries_in(log_dir.path), key=lambda entry: entry.name):
        if is_directory_entry(entry) and _is_foreign(entry):
            path = str(log_dir.path / entry.name)
            found.add("foreign-directory", "its name is no partition's", path=path)
    for problem in log_dir.files.problems:
        path, _, text = problem.partition(": ")
        severity = checkpoint_severity(path, text)
        found.add("checkpoint-unreadable", text, path=path, severity=severity)
    if is_directory(log_dir.path / METADATA_DIR):
        found.extend(check_bootstrap(log_dir.path / BOOTSTRAP_FILE))
    of_node = [each.path for each in given if each.node == log_dir.node]
    found.extend(_missing_partitions(log_dir, of_node))
    yield from found.findings()


def _is_foreign(entry: Entry) -> bool:
    if entry.name == CLEAN_SHUTDOWN_FILE:
        return bool(entries_in(entry.path))  # an empty one is deleted as the file would be
    return not parse_partition_dir_name(entry.name) and entry.name != REMOTE_INDEX_CACHE_DIR


def _missing_partitions(log_dir: GivenLogDir, of_node: Sequence[Path]) -> Iterator[Finding]:
    """What the cluster has in this log dir, by its id, and is in none of its node."""
    cluster, meta = log_dir.cluster, log_dir.meta
    if cluster is None or cluster.problems or meta is None or meta.directory_id is None:
        return
    found = FindingList(str(log_dir.path))
    unknown = []
    for name, topic in cluster.topics.items():
        for number, directories in topic.directories.items():
            path = log_dir.path / f"{name}-{number}"
            if meta.directory_id not in directories:
                continue
            if any(is_directory(each / path.name) for each in of_node):
                continue
            lines = (log_dir.files.checkpoints[file] for file in _OF_EVERY_LOG)
            if any((name, number) in entries for entries in lines):
                text = "cluster and checkpoints have it in this log dir"
                found.add("partition-missing", text, path=str(path))
            else:
                unknown.append(path.name)
    if unknown:
        more = ", …" if len(unknown) > _MOST_NAMES else ""
        found.add(
            "partition-missing",
            f"{len(unknown)} that the cluster has in this log dir and its checkpoints have not: "
            f"{', '.join(unknown[:_MOST_NAMES])}{more}",
            severity=Severity.WARNING,
        )
    yield from found.findings()
