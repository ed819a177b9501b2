"""Whether the time of a run may be one at which records are old.

With a time far ahead (a year that is mistyped, microseconds) all that a log holds is past its time:
retention deletes it, compaction takes all tombstones. So a time counts that is not later than what
tells of the present: this machine's clock, and when the partition's files were written. Timestamps
of records do not tell: clients choose them, and wrong ones lie ahead.
"""

from __future__ import annotations

from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.force_rules import FORCE_CLOCK_DIFFERS
from kafkalog.texts import format_timestamp

_DAY_MS = 86_400_000
# What the clocks of two machines, or a date in two time zones, may differ.
_MOST_AHEAD_MS = 2 * _DAY_MS


def why_time_is_ahead(
    partition: PartitionInventory, now_ms: int, clock_ms: int | None
) -> str | None:
    """Why nothing may be deleted by this time; None where it may. `clock_ms`: this machine's clock
    when it was asked, None where a caller makes a plan of its own and answers for the time.
    """
    # No file has to tell where the clock does.
    if clock_ms is None or now_ms - clock_ms <= _MOST_AHEAD_MS:
        return None
    written_ms = max((s.modification_time_ms for s in partition.segments), default=clock_ms)
    latest_ms = max(clock_ms, written_ms)
    if now_ms - latest_ms <= _MOST_AHEAD_MS:
        return None
    days = (now_ms - latest_ms) / _DAY_MS
    return (
        f"the time of the run, {format_timestamp(now_ms)}, lies {days:.0f} days ahead of this "
        f"machine's clock and of the newest segment file, {format_timestamp(latest_ms)}: by it "
        f"records are older than they are; to go on nevertheless: --force {FORCE_CLOCK_DIFFERS}"
    )
