"""From where on something is a finding, for the audit and for the overview alike: pure rules, whose
import loads neither kernels nor Arrow.
"""

from __future__ import annotations

from collections.abc import Collection

# A broker looks every few minutes; this long it may have been busy, and clocks differ by less.
GRACE_MS = 3_600_000
# From so many on, if they are so small on average: a topic of a month that rolls every hour.
MANY_SEGMENTS, SMALL_SEGMENT_BYTES = 500, 1024 * 1024

# From 2001 to 2128 in seconds; as ms from 12 January to 27 February 1970, before there was Kafka.
SECONDS_MS = range(10**9, 5 * 10**9)


def is_in_seconds(timestamp_ms: int) -> bool:
    """Whether a timestamp is one of seconds, not of ms."""
    return timestamp_ms in SECONDS_MS


def depends_on_time(policy: Collection[str], retention_ms: int, compaction_lag_ms: int) -> bool:
    """Whether a record's timestamp keeps anything: from deletion, or with a lag from compaction."""
    return ("delete" in policy and retention_ms >= 0) or (
        "compact" in policy and compaction_lag_ms > 0
    )


def latest_sound_ms(now_ms: int, after_max_ms: int) -> int:
    """The latest timestamp that is not one of the future; `after_max_ms` is
    message.timestamp.after.max.ms, by which a broker refuses what it is sent.
    """
    return now_ms + min(after_max_ms, GRACE_MS)
