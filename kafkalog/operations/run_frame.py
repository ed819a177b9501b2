"""What the JSON documents of all runs have in common, and which partitions count in none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, DeletedFile
from kafkalog.log.topic_partition import (
    PartitionKind,
    TopicPartition,
    parse_partition_dir_name,
)
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.run_estimate import RunEstimate
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.runs.run_dir import command_for
from kafkalog.swap.replacement import held_bytes
from kafkalog.swap.scratch import Scratch

CANNOT_BE_UNDONE = (
    "files that are replaced or deleted are gone, as with a broker: this cannot be undone"
)

NOTHING_REPLACED = "nothing was replaced: there is nothing to undo"

Plan = TypeVar("Plan")
Result = TypeVar("Result")


# Without slots: a generic alias (CompactionRun) sets an attribute of what it makes.
@dataclass(frozen=True)
class Run(Generic[Plan, Result]):
    """What a run planned and did: one plan per selected partition, one result per plan that was
    carried out.

    recovered: interrupted cleanings it found, and what became of them; problems: what in the log
    dirs could not be read, what went wrong in the end, when the partitions were done; notes: where
    the settings of each log dir came from; faults: tracebacks of errors that only a fault of ours
    can raise, each under its partition's name; keeps_undo: what was replaced is kept for `undo`;
    output: where results went instead of into the log dirs; estimate: of compaction, how long it
    will take, and behind it took; run_dir: where it is kept, None by default.
    """

    run_id: str
    applied: bool
    plans: tuple[Plan, ...]
    results: tuple[Result, ...] = ()
    recovered: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    keeps_undo: bool = True
    output: str | None = None
    estimate: RunEstimate | None = None
    run_dir: str | None = None

    @property
    def is_carried_out(self) -> bool:
        """Whether it was more than a plan."""
        return self.applied or self.output is not None


def run_frame(
    run: Run[Any, Any], seconds: float, partitions: list[dict[str, Any]]
) -> dict[str, Any]:
    """The document of a run whose partitions are these."""
    return {
        "runId": run.run_id,
        "applied": run.applied,
        "notes": [*([undo_note(run)] if run.applied else []), *run.notes],
        "seconds": round(seconds, 3),
        "recovered": list(run.recovered),
        "problems": list(run.problems),
        "faults": list(run.faults),
        "partitions": partitions,
    }


def undo_note(run: Run[Any, Any]) -> str:
    """How to take an applied run back, or that there is no way."""
    if not run.keeps_undo:
        return CANNOT_BE_UNDONE
    if not _holds_replaced(run):
        return NOTHING_REPLACED
    return (
        f"replaced files are kept: {command_for('undo', run.run_id, run.run_dir)} puts them back, "
        f"{command_for('purge', run.run_id, run.run_dir)} frees their space"
    )


def removed_files(files: Sequence[DeletedFile]) -> dict[str, Any]:
    """The entries of a partition about what a broker marked `.deleted`, and the run removes."""
    return {
        "removedFiles": [{"name": file.name, "sizeInBytes": file.size_in_bytes} for file in files],
        "removedFileBytes": sum(file.size_in_bytes for file in files),
    }


def _holds_replaced(run: Run[Any, Any]) -> bool:
    """Whether anything can be put back: by the results, and on the disk where one ended midway."""
    if any(result.replaced is not None for result in run.results):
        return True
    if all(result.status not in (FAILED, REFUSED) for result in run.results):
        return False
    return any(held_bytes(Scratch(plan.path, run.run_id)) is not None for plan in run.plans)


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
