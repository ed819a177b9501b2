"""What an audit is asked for, and what a task of it needs to know: values that travel to any
process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.cleaner.run_request import RunOptions, RunRequest, run_options_of
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.config_sources import ResolvedConfig


@dataclass(frozen=True, slots=True)
class AuditRequest(RunRequest):
    """What to audit and by whose settings; see RunRequest."""


def audit_request(log_dirs: Sequence[str], options: RunOptions) -> AuditRequest:
    """The request these options make; InvalidConfigError for settings Kafka would refuse."""
    return AuditRequest(**run_options_of(log_dirs, options))


@dataclass(frozen=True, slots=True)
class AuditTask:
    """One partition directory, and what is known of it from elsewhere.

    `resolved`: the topic's settings and whether they may be relied on. `assumed_high_watermark`:
    the option's, for logs whose checkpoint does not tell.
    """

    partition: PartitionInventory
    resolved: ResolvedConfig
    now_ms: int
    kafka_version: str
    assumed_high_watermark: int | None = None
