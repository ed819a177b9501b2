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

from kafkalog.errors import LogChangedError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, SOUND, RecoverTask
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
    run_id, config, now_ms, max_batch_bytes = task
    root = Path(Scratch(target, run_id).restoring)
    directory = root / live.name
    directory.mkdir(parents=True)
    try:
        topic, _, number = live.name.rpartition("-")
        start = pack_offset_checkpoint({(topic, int(number)): cut.start_offset})
        (root / LOG_START_OFFSET_FILE).write_bytes(start)
        like = _any_segment(live)
        write_segments(cut, str(directory), like, identity, files, max_batch_bytes)
        yield _built(directory, run_id, config, now_ms, max_batch_bytes, files)
    finally:
        files.remove_directory(str(root))


def _any_segment(directory: Path) -> os.stat_result:
    """Whose the target's segments are."""
    return next(directory.glob("*.log"), directory).stat()


def _built(
    directory: Path,
    run_id: str,
    config: LogConfig,
    now_ms: int,
    max_batch_bytes: int,
    files: LocalFiles,
) -> PartitionInventory:
    found = reopen_partition(str(directory))
    if found is None:
        raise LogChangedError("the restored copy cannot be read", path=str(directory))
    task = RecoverTask(
        found, config, now_ms, run_id, apply=True, lock_holder=os.getpid(), keeps_undo=False,
        max_batch_bytes=max_batch_bytes,
    )  # fmt: skip
    result = recover_partition(task, files)
    built = reopen_partition(str(directory))
    if result.status not in (DONE, SOUND) or built is None:
        raise LogChangedError(f"its indexes cannot be built: {result.reason}", path=str(directory))
    return built
