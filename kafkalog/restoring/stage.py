"""A restored partition beside the target's own files: in a directory of its own within the target's
partition directory, which a broker does not look at. Its indexes, producer snapshots, transaction
indexes and leader epochs are built as a broker's recovery builds them; nothing of the source's
small files is believed.

Each segment is read once when it is written, which builds its indexes and compares it with the
source, and forced to disk beside what comes next (`copied_log`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import LogChangedError, LogSegmentOffsetOverflowError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.recover_result import RecoverTask
from kafkalog.restoring.copied_log import CopyTask, copied_log
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.same_bytes import check_layout, is_compared_by_bytes
from kafkalog.restoring.segments import Identity, check_source
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Restored:
    """A staged copy, how many records it and the source both had, and what is to be said;
    next_dirty_offset: of one that was compacted, where a cleaner goes on.
    """

    log: PartitionInventory
    records: int
    note: str = ""
    next_dirty_offset: int | None = None


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
    the limit of batches; compacts: once both are equal. Errors as of `CopiedLog.build`,
    `check_source`, `check_equal` and `compacted`.
    """
    run_id, config, now_ms, max_batch_bytes = task
    directory.mkdir(parents=True)
    topic, _, number = directory.name.rpartition("-")
    start = pack_offset_checkpoint({(topic, int(number)): cut.start_offset})
    (directory.parent / LOG_START_OFFSET_FILE).write_bytes(start)
    by_bytes = is_compared_by_bytes(cut)
    is_read_again = compacts or not (by_bytes and identity.is_kept)
    copies = CopyTask(cut, str(directory), like, identity, files, max_batch_bytes, is_read_again)
    try:
        restored = _copied_and_built(copies, config, now_ms, run_id)
    except LogChangedError:
        if identity.is_kept:
            check_source(cut, max_batch_bytes)  # if it is that, it is said so
        raise
    records = cut.records
    if records is None or not by_bytes:
        # Imported late, as the others here: most restores need none of it, nor its kernels.
        from kafkalog.restoring.equal import check_equal

        records = check_equal(source, cut, restored, identity, max_batch_bytes)
    else:
        check_layout(cut, restored, identity)
    if not compacts:
        return Restored(restored, records)
    from kafkalog.restoring.compacted import compacted

    log, dirty, note = compacted(restored, cut.end_offset + len(cut.open), task, files)
    return Restored(log, records, note, dirty)


def _copied_and_built(
    copies: CopyTask, config: LogConfig, now_ms: int, run_id: str
) -> PartitionInventory:
    """The copy with all that lies beside its segments, on the disk."""
    path, limit = copies.directory, copies.max_batch_bytes
    with copied_log(copies) as log:
        log.copied(0)
        found = reopen_partition(path)
        if found is None or not found.segments:
            raise LogChangedError("the staged copy cannot be read", path=path)
        task = RecoverTask(
            found, config, now_ms, run_id, apply=True, lock_holder=os.getpid(), keeps_undo=False,
            max_batch_bytes=limit,
        )  # fmt: skip
        has_to_be_split = False
        try:
            log.build(task)
        except LogSegmentOffsetOverflowError:
            has_to_be_split = True
            for number in range(len(copies.cut.segments)):
                log.copied(number)
    copies.files.sync_directory(path)
    if has_to_be_split:
        from kafkalog.repair.staged_copy import build_staged_copy

        return build_staged_copy(
            Path(path), config, now_ms, run_id, copies.files, max_batch_bytes=limit
        )
    built = reopen_partition(path)
    if built is None or built.problems:
        problems = "cannot be read" if built is None else "; ".join(built.problems)
        raise LogChangedError(f"the staged copy: {problems}", path=path)
    return built


def _any_segment(directory: Path) -> os.stat_result:
    """Whose the target's segments are."""
    return next(directory.glob("*.log"), directory).stat()
