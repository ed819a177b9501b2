"""A restored partition compacted on the way, before it is put in place: the same plan and the same
steps as those of `compact`, over the staged copy. What was compared with the source is the copy
before that; the cleaner's own checks follow.

The last segment stays as it is, as with a broker, which never cleans the active one.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from kafkalog.errors import LogChangedError, LogCleaningRefusedError
from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.planning.compaction_plan import CLEAN, WITHIN_TASK
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.kafka_version import DEFAULT_KAFKA_VERSION
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.plan_by_settings import PlanInputs, compaction_by_settings
from kafkalog.planning.policy_evidence import PolicyStanding
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.swap.interrupted_swap import clear_run
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import Scratch


def compacted(
    staged: PartitionInventory,
    end_offset: int,
    task: tuple[str, LogConfig, int, int],
    files: LocalFiles,
) -> tuple[PartitionInventory, int | None, str]:
    """The staged copy, whose log dir is its own, once it is compacted by these settings; where the
    next cleaning begins; or why nothing of it was. task: as of `build_restored`.
    LogCleaningRefusedError, LogChangedError where it cannot be.
    """
    run_id, config, now_ms, max_batch_bytes = task
    path = staged.path
    name = staged.topic_partition
    marks = pack_offset_checkpoint({(name.topic, name.partition): end_offset})
    Path(staged.log_dir, HIGH_WATERMARK_FILE).write_bytes(marks)
    log = _opened(path)
    # Asked for now: how much of it is dirty does not count.
    own = replace(config, min_cleanable_dirty_ratio=0.0)
    facts = scan_partition_facts(log, now_ms=now_ms, expiration_ms=config.producer_id_expiration_ms)
    inputs = PlanInputs(
        log,
        ResolvedConfig(own, is_local=True, in_force=own, standing=PolicyStanding.IN_FORCE),
        facts,
        now_ms,
        None,
        DEFAULT_KAFKA_VERSION,
    )
    plan = compaction_by_settings(inputs, strategy=WITHIN_TASK)
    if plan.status == REFUSED:
        raise LogCleaningRefusedError(f"it cannot be compacted: {plan.reason}", path=path)
    if plan.status != CLEAN:
        return log, None, f"nothing was compacted: {plan.reason}"
    run = CleanRun(run_id, os.getpid(), keeps_undo=False, max_batch_bytes=max_batch_bytes)
    result = clean_partition(plan, run, files)
    if result.status == REFUSED:
        raise LogCleaningRefusedError(f"it cannot be compacted: {result.reason}", path=path)
    if result.status == FAILED:
        raise LogChangedError(f"it cannot be compacted: {result.reason}", path=path)
    clear_run(Scratch(path, run_id), files)
    return _opened(path), result.next_dirty_offset, ""


def _opened(path: str) -> PartitionInventory:
    found = reopen_partition(path)
    if found is None:
        raise LogChangedError("the staged copy cannot be read", path=path)
    return found
