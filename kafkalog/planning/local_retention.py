"""What the local segments of a tiered topic go by: limits of their own, and what is uploaded.

Source: Kafka UnifiedLog.deleteOldSegments, UnifiedLog.updateHighestOffsetInRemoteStorage,
RemoteLogManager.RLMCopyTask; KIP-405.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from kafkalog.planning.log_config import LogConfig

# local.retention.ms and .bytes: as retention.ms and .bytes.
_AS_TOTAL = -2


def is_tiered(config: LogConfig) -> bool:
    """Whether local segments go by the local limits, and only when they are uploaded."""
    return config.remote_storage_enable and not config.remote_log_copy_disable


def local_config(config: LogConfig) -> LogConfig:
    """The settings that local segments go by: of a tiered topic local.retention, which at -2 is
    retention itself; an empty cleanup.policy deletes them as well.

    Source: Kafka UnifiedLog.localRetentionMs, localRetentionSize, deleteOldSegments; KIP-405.
    """
    if not is_tiered(config):
        return config
    local_ms, local_bytes = config.local_retention_ms, config.local_retention_bytes
    return replace(
        config,
        cleanup_policy=config.cleanup_policy or ("delete",),
        retention_ms=config.retention_ms if local_ms == _AS_TOTAL else local_ms,
        retention_bytes=config.retention_bytes if local_bytes == _AS_TOTAL else local_bytes,
    )


def time_limit_key(config: LogConfig) -> str:
    """The setting that says how long local segments stay."""
    is_own = is_tiered(config) and config.local_retention_ms != _AS_TOTAL
    return "local.retention.ms" if is_own else "retention.ms"


def highest_uploaded(
    own_epochs: Iterable[tuple[int, int]],
    copies: Iterable[tuple[int, Iterable[tuple[int, int]]]],
) -> int:
    """The last offset of a log that is in remote storage, -1 for nothing. `own_epochs`: (leader
    epoch, first offset) of the log; `copies`: of each finished one the last offset and its leader
    epochs.

    A copy counts as far as its last epoch goes in this log: a leader that was replaced may have
    uploaded records that nobody has any more.
    """
    epochs = sorted(own_epochs)
    ends = {epoch: start - 1 for (epoch, _), (_, start) in pairwise(epochs)}
    known = dict(epochs)
    highest = -1
    for end, leader_epochs in copies:
        last = max((epoch for epoch, _ in leader_epochs), default=None)
        if last is not None and last in known:
            highest = max(highest, min(end, ends.get(last, end)))
    return highest
