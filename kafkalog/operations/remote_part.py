"""The part of a retention plan that is about remote storage.

Kafka's default of a week is no reason to delete there either, and nothing goes by a time that is
ahead of the clock.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import RemoteLog, plan_remote_retention
from kafkalog.planning.retention_plan import RetentionPlan


def with_remote_part(
    plan: RetentionPlan, log: RemoteLog | None, why_not_at_this_time: str | None
) -> RetentionPlan:
    """The plan of a tiered partition with what its leader's next pass does in remote storage.
    `log`: None where that is not known."""
    if log is None:
        return plan
    config = plan.config
    if config.source("retention.ms") == LogConfig.DEFAULT:
        config = replace(config, retention_ms=-1)
    remote = plan_remote_retention(log, config, plan.now_ms)
    watermark = plan.high_watermark
    is_beyond = watermark is not None and remote.log_start_offset > watermark
    if remote.deleted and (why_not_at_this_time or is_beyond):
        return plan  # a broker never moves the log start past the high watermark
    return replace(plan, remote=remote)


def with_remote_start(plan: RetentionPlan) -> RetentionPlan:
    """The plan with the log start that its remote part comes to."""
    if plan.remote is None:
        return plan
    return replace(plan, log_start_offset=max(plan.log_start_offset, plan.remote.log_start_offset))
