"""A restored partition beside the target's own files: in a directory of its own within the target's
partition directory, which a broker does not look at. Its indexes, producer snapshots, transaction
indexes and leader epochs are built as a broker's recovery builds them; nothing of the source's
small files is believed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.staged_copy import build_staged_copy
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.segments import Identity, write_segments
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import Scratch


@contextmanager
def staged(
    cut: LogCut,
    target: str,
    identity: Identity,
    task: tuple[str, LogConfig, int, int],
    files: LocalFiles,
) -> Iterator[PartitionInventory]:
    """The restored partition; gone at the end. task: run id, the topic's settings, the time, the
    limit of batches. Errors as of `write_segments`; LogChangedError where its files cannot be
    built.
    """
    live = Path(target)
    directory = Path(Scratch(target, task[0]).restoring, live.name)
    try:
        yield build_restored(cut, directory, _any_segment(live), identity, task, files)
    finally:
        files.remove_directory(str(directory.parent))


def build_restored(
    cut: LogCut,
    directory: Path,
    like: os.stat_result,
    identity: Identity,
    task: tuple[str, LogConfig, int, int],
    files: LocalFiles,
) -> PartitionInventory:
    """The partition in a new directory of its name, whose parent is taken for its log dir; files
    look like `like`. See `staged`.
    """
    run_id, config, now_ms, max_batch_bytes = task
    directory.mkdir(parents=True)
    topic, _, number = directory.name.rpartition("-")
    start = pack_offset_checkpoint({(topic, int(number)): cut.start_offset})
    (directory.parent / LOG_START_OFFSET_FILE).write_bytes(start)
    write_segments(cut, str(directory), like, identity, files, max_batch_bytes)
    return build_staged_copy(
        directory, config, now_ms, run_id, files, max_batch_bytes=max_batch_bytes
    )


def _any_segment(directory: Path) -> os.stat_result:
    """Whose the target's segments are."""
    return next(directory.glob("*.log"), directory).stat()
