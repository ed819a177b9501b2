"""A restored partition beside the target's own files: in a directory of its own within the target's
partition directory, which a broker does not look at. Its indexes, producer snapshots, transaction
indexes and leader epochs are built as a broker's recovery builds them; nothing of the source's
small files is believed.

Each segment is compared with the source once it is written, and forced to disk, both beside what
comes next: the segments behind it, and the pass that builds their indexes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.staged_copy import build_staged_copy
from kafkalog.restoring.beside import beside
from kafkalog.restoring.compacted import compacted
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.equal import check_equal
from kafkalog.restoring.same_bytes import check_layout, check_segment, is_compared_by_bytes
from kafkalog.restoring.segments import Identity, write_segments
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Restored:
    """A staged copy, how many records it and the source both had, and what is to be said."""

    log: PartitionInventory
    records: int
    note: str = ""


@contextmanager
def staged(
    source: PartitionInventory,
    cut: LogCut,
    target: str,
    identity: Identity,
    task: tuple[str, LogConfig, int, int],
    files: LocalFiles,
    *,
    compacts: bool,
) -> Iterator[Restored]:
    """The restored partition, as of `build_restored`; gone at the end."""
    live = Path(target)
    directory = Path(Scratch(target, task[0]).restoring, live.name)
    try:
        yield build_restored(
            source, cut, directory, _any_segment(live), identity, task, files, compacts=compacts
        )
    finally:
        files.remove_directory(str(directory.parent))


def build_restored(
    source: PartitionInventory,
    cut: LogCut,
    directory: Path,
    like: os.stat_result,
    identity: Identity,
    task: tuple[str, LogConfig, int, int],
    files: LocalFiles,
    *,
    compacts: bool,
) -> Restored:
    """The partition in a new directory of its name, whose parent is taken for its log dir; files
    look like `like`. task: run id, the topic's settings, the time,
    the limit of batches; compacts: once both are equal. Errors as of `write_segments`,
    `check_segment`, `check_equal` and `compacted`; LogChangedError where its files cannot be built.
    """
    run_id, config, now_ms, max_batch_bytes = task
    directory.mkdir(parents=True)
    topic, _, number = directory.name.rpartition("-")
    start = pack_offset_checkpoint({(topic, int(number)): cut.start_offset})
    (directory.parent / LOG_START_OFFSET_FILE).write_bytes(start)
    size, by_bytes = cut.size_in_bytes, is_compared_by_bytes(cut)
    with beside(size) as sync, beside(size) as check:
        written = write_segments(cut, str(directory), like, identity, files, max_batch_bytes)
        for n, path in enumerate(written):
            sync(partial(_sync, path, files))
            if by_bytes:
                check(partial(check_segment, cut, n, path, identity, max_batch_bytes))
        files.sync_directory(str(directory))
        restored = build_staged_copy(
            directory, config, now_ms, run_id, files, max_batch_bytes=max_batch_bytes
        )
    records = cut.records
    if records is None or not by_bytes:
        records = check_equal(source, cut, restored, identity, max_batch_bytes)
    else:
        check_layout(cut, restored, identity)
    if not compacts:
        return Restored(restored, records)
    log, note = compacted(restored, cut.end_offset + len(cut.open), task, files)
    return Restored(log, records, note)


def _sync(path: str, files: LocalFiles) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        files.sync_file(fd)
    finally:
        os.close(fd)


def _any_segment(directory: Path) -> os.stat_result:
    """Whose the target's segments are."""
    return next(directory.glob("*.log"), directory).stat()
