"""The topics of a log dir by name, for commands that say settings which nobody else says."""

from __future__ import annotations

from pathlib import Path

from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC
from kafkalog.log.log_dir import open_log_dir


def topics_of(log_dir: Path | str) -> tuple[str, ...]:
    """All of them, but for the cluster's metadata."""
    names = {partition.topic_partition.topic for partition in open_log_dir(str(log_dir))}
    return tuple(sorted(names - {CLUSTER_METADATA_TOPIC}))


def topic_words(log_dir: Path | str) -> list[str]:
    """The same as options of a command."""
    return [f"--topic={topic}" for topic in topics_of(log_dir)]
