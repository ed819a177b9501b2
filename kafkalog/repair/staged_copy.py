"""A copy of a partition that lies beside the live one, with its segments only: what a recovery
builds is built for it, before it takes the live one's place.
"""

from __future__ import annotations

import os
from pathlib import Path

from kafkalog.errors import LogChangedError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, SOUND, RecoverTask
from kafkalog.swap.local_files import LocalFiles


def build_staged_copy(
    directory: Path,
    config: LogConfig,
    now_ms: int,
    run_id: str,
    files: LocalFiles,
    *,
    max_batch_bytes: int,
) -> PartitionInventory:
    """The copy with indexes, producer snapshots, transaction indexes and leader epochs.
    LogChangedError where it cannot be read or they cannot be built.
    """
    found = reopen_partition(str(directory))
    if found is None:
        raise LogChangedError("the staged copy cannot be read", path=str(directory))
    task = RecoverTask(
        found, config, now_ms, run_id, apply=True, lock_holder=os.getpid(), keeps_undo=False,
        max_batch_bytes=max_batch_bytes,
    )  # fmt: skip
    result = recover_partition(task, files)
    built = reopen_partition(str(directory))
    if result.status not in (DONE, SOUND) or built is None:
        raise LogChangedError(f"its indexes cannot be built: {result.reason}", path=str(directory))
    return built
