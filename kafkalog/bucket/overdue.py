"""Segments in remote storage that retention or the log start let go, and that are still there.

A leader goes through them from the oldest on, and stops at the first that stays. One that went
overdue only just now says nothing: what is counted was due `--min-age` ago, by time and by size; of
the log start nobody knows when it rose. A limit counts where something says it: Kafka's default
alone may be another one in the broker's own file.

Source: Kafka RemoteLogManager.RLMExpirationTask, RemoteLogRetentionHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkalog.bucket.finding import BucketFinding
from kafkalog.bucket.ranges import LocalLog, in_order
from kafkalog.checking.finding_kind import Severity
from kafkalog.planning.log_config import LogConfig
from kafkalog.reading.remote_copies import SegmentCopy
from kafkalog.texts import format_setting_bytes, format_setting_ms, format_timestamp

_FORGOTTEN = "retention-overdue"


def check_retention(
    copies: Sequence[SegmentCopy],
    local: LocalLog,
    config: LogConfig,
    *,
    due_before_ms: int,
    is_default_known: bool,
) -> BucketFinding | None:
    """Of one partition. `copies`: all that were ever begun; `due_before_ms`: what came due later
    may still be deleted in time; `is_default_known`: the broker's file was given."""
    own = [copy for _, _, copy in in_order([copy for copy in copies if copy.is_finished])]
    rules: list[str] = []
    count = 0
    for rule, taken in (
        (f"the log start {local.log_start}", _by_start(own, local)),
        (_ms_rule(config), _by_time(own, config, due_before_ms, is_default_known)),
        (_bytes_rule(config), _by_size(own, config, due_before_ms, is_default_known)),
    ):
        if taken:
            rules.append(f"{taken} by {rule}")
            count = max(count, taken)
    if not count:
        return None
    first, going = own[0], own[:count]
    largest = max(copy.max_timestamp_ms for copy in going)
    newest = f"; their newest record is of {format_timestamp(largest)}" if largest >= 0 else ""
    return BucketFinding(
        _FORGOTTEN,
        Severity.WARNING,
        f"segments of offsets {first.start_offset} to {going[-1].end_offset}: {', '.join(rules)}"
        f"{newest}",
        f"{first.topic}-{first.partition}",
        first.topic,
        first.partition,
        first.topic_id,
        first.segment_id if count == 1 else None,
        first.start_offset,
        segments=count,
        size_in_bytes=sum(max(copy.size_in_bytes, 0) for copy in going),
    )


def _by_start(own: Sequence[SegmentCopy], local: LocalLog) -> int:
    if local.log_start is None:
        return 0
    ends = [copy.end_offset for copy in own if copy.end_offset is not None]
    return _leading(end < local.log_start for end in ends)


def _by_time(
    own: Sequence[SegmentCopy], config: LogConfig, due_before_ms: int, is_default_known: bool
) -> int:
    if config.retention_ms < 0 or not _is_said(config, "retention.ms", is_default_known):
        return 0
    limit = due_before_ms - config.retention_ms
    return _leading(0 <= copy.max_timestamp_ms < limit for copy in own)


def _by_size(
    own: Sequence[SegmentCopy], config: LogConfig, due_before_ms: int, is_default_known: bool
) -> int:
    """Bytes that are on the disks alone, or were copied since, are left out: the excess is at
    least this."""
    if config.retention_bytes < 0 or not _is_said(config, "retention.bytes", is_default_known):
        return 0
    excess = -config.retention_bytes
    excess += sum(max(c.size_in_bytes, 0) for c in own if c.changed_ms < due_before_ms)
    count = 0
    for copy in own:
        excess -= max(copy.size_in_bytes, 0)
        if excess < 0:
            break
        count += 1
    return count


def _leading(flags: Iterable[bool]) -> int:
    """How many are true in front of the first that is not."""
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count


def _is_said(config: LogConfig, key: str, is_default_known: bool) -> bool:
    return is_default_known or key in config.sources


def _ms_rule(config: LogConfig) -> str:
    return f"retention.ms {format_setting_ms(config.retention_ms)}"


def _bytes_rule(config: LogConfig) -> str:
    return f"retention.bytes {format_setting_bytes(config.retention_bytes)}"
