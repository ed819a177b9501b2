"""`kafkalog segments`: every segment below the log dirs, in the columns of the view `segments`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkalog.auditing.kept_directories import (
    KeptDirectories,
    audit_scope,
    kept_directories,
    kept_numbers,
)
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.columns.column import Column
from kafkalog.errors import CorruptKeptLogsError, RemoteStorageError, describe_error
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_numbers import SegmentNumbers
from kafkalog.log.selection import asked_for, select_partitions
from kafkalog.reading.log_views import SegmentTask, kept_row, segment_row, segment_tasks
from kafkalog.reading.views import view_columns
from kafkalog.remote.paths import RemoteStorage
from kafkalog.runs.run_dir import default_run_dir
from kafkalog.texts import format_timestamp

# Columns that say the same in nearly every row: left out of the table where they do.
_USUAL: dict[str, tuple[str | None, ...]] = {
    "kind": ("live",),
    "error": (None,),
    "indexState": ("whole", "empty"),
    "timeIndexState": ("whole", "empty"),
}

# Where all columns are too wide.
CHOSEN = (
    "topic", "partition", "baseOffset", "nextOffset", "recordsCount", "sizeInBytes",
    "largestTimestampMs", "isActive", "error", "kind",
)  # fmt: skip


def run(args: argparse.Namespace) -> ExitCode:
    """Print the segments; FINDINGS if something could not be read as a broker would."""
    storage = remote_storage(args)
    unread: list[str] = []
    inventory = _opened(args, storage, unread)
    problems = [*inventory.problems, *unread]
    partitions = select_partitions(inventory, args.topic, args.topic_partition)
    if storage.places:
        partitions = _with_remote(inventory, partitions, storage, problems)
    columns = view_columns("segments")
    rows = []
    for task, numbers in _with_kept(partitions):
        try:
            rows.append(_plain_row(task, numbers, columns))
        except (RemoteStorageError, OSError) as error:
            problems.append(describe_error(error, task.segment.path))
    for partition in partitions:
        said = (problem for problem in partition.problems if problem not in problems)
        problems.extend(f"{partition.path}: {problem}" for problem in said)
    if args.json:
        write_json({"segments": rows, "problems": problems})
    else:
        names = _table_columns([column.name for column in columns], rows)
        show_table(rows, names, chosen=CHOSEN, even_empty=True)
        for problem in problems:
            say(problem)
    has_findings = bool(problems) or any(row["error"] is not None for row in rows)
    return ExitCode.FINDINGS if has_findings else ExitCode.DONE


def _opened(args: argparse.Namespace, storage: RemoteStorage, problems: list[str]) -> LogInventory:
    if not storage.is_tree:
        # With segments in remote storage each row is made anew.
        return open_log_dir(*args.log_dir, known=None if storage.places else _kept(args))
    # Needs the kernels, as below.
    from kafkalog.log.remote_tree import open_logs

    return open_logs(
        args.log_dir,
        storage,
        accepts=asked_for(args.topic, args.topic_partition),
        note=lambda _, error: problems.append(str(error)),
    )


def _kept(args: argparse.Namespace) -> KeptDirectories | None:
    """What the last audit kept; a file of it that is no good is said, and stands for nothing."""
    run_dir = default_run_dir() if args.run_dir is None else Path(args.run_dir)
    try:
        return kept_directories(
            run_dir, audit_scope(args.log_dir, args.topic, args.topic_partition)
        )
    except (OSError, CorruptKeptLogsError) as error:
        say(f"nothing of the last audit is taken: {error}")
        return None


def _with_kept(
    partitions: Sequence[PartitionInventory],
) -> Iterator[tuple[SegmentTask, SegmentNumbers | None]]:
    for partition in partitions:
        kept = kept_numbers(partition)
        for task in segment_tasks([partition]):
            is_live = task.segment.state == "live"
            yield task, kept.get(task.segment.base_offset) if is_live else None


def _with_remote(
    inventory: LogInventory,
    partitions: Sequence[PartitionInventory],
    storage: RemoteStorage,
    problems: list[str],
) -> list[PartitionInventory]:
    """The partitions with their segments in remote storage; those that cannot be read are
    problems."""
    # Needs the kernels and Arrow, which a list of what is on the disk does without.
    from kafkalog.log.remote_segments import with_remote_segments
    from kafkalog.reading.remote_log_events import copy_states

    return with_remote_segments(
        partitions,
        storage,
        copy_states(inventory),
        note=lambda _, error: problems.append(str(error)),
    )


def _plain_row(
    task: SegmentTask, numbers: SegmentNumbers | None, columns: Sequence[Column]
) -> dict[str, Any]:
    """The view's row with its timestamp as text. Not by way of Arrow, which would import pandas."""
    kept = None if numbers is None else kept_row(task, numbers)
    row: dict[str, Any] = segment_row(task) if kept is None else kept
    row["modificationTime"] = format_timestamp(task.segment.modification_time_ms)
    return {column.name: row[column.name] for column in columns}


def _table_columns(names: list[str], rows: list[dict[str, Any]]) -> list[str]:
    return [
        name
        for name in names
        if name not in _USUAL or any(row[name] not in _USUAL[name] for row in rows)
    ]
