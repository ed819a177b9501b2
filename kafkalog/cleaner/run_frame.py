"""What the JSON documents of all runs have in common, and which partitions count in none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC
from kafkalog.log.topic_partition import (
    PartitionKind,
    TopicPartition,
    parse_partition_dir_name,
)
from kafkalog.planning.log_config import LogConfig

CANNOT_BE_UNDONE = (
    "files that are replaced or deleted are gone, as with a broker: this cannot be undone"
)


class Run(Protocol):
    """What every run has.

    recovered: interrupted cleanings it found, and what became of them; problems: what in the log
    dirs could not be read, what went wrong in the end, when the partitions were done; notes: where
    the settings of each log dir came from; faults: tracebacks of errors that only a fault of ours
    can raise, each under its partition's name.
    """

    @property
    def run_id(self) -> str: ...
    @property
    def applied(self) -> bool: ...
    @property
    def recovered(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def faults(self) -> tuple[str, ...]: ...


def run_frame(run: Run, seconds: float, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    """The document of a run whose partitions are these."""
    return {
        "runId": run.run_id,
        "applied": run.applied,
        "notes": [*([CANNOT_BE_UNDONE] if run.applied else []), *run.notes],
        "seconds": round(seconds, 3),
        "recovered": list(run.recovered),
        "problems": list(run.problems),
        "faults": list(run.faults),
        "partitions": partitions,
    }


def config_sources(config: LogConfig, kafka_version: str) -> dict[str, dict[str, str]]:
    """Every setting that the release has, and where its value came from."""
    known = LogConfig.keys(kafka_version)
    return {
        key: {"value": value, "source": config.source(key)}
        for key, value in config.to_properties().items()
        if key in known
    }


def is_never_changed(path: str, topic_partition: TopicPartition) -> bool:
    """Whether this directory is refused whatever is in it."""
    name = parse_partition_dir_name(Path(path).name)
    is_live = name is not None and name.kind is PartitionKind.LIVE
    return not is_live or topic_partition.topic == CLUSTER_METADATA_TOPIC
