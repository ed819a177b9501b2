"""In which order a run takes its partitions, and how far `--max-bytes` lets it go.

Without a limit everything is cleaned and only the last to end counts, so the largest start first.
With one the dirtiest go first, as Kafka's cleaner picks them: by cleanable ratio, where a partition
that must be compacted for its age competes like any other.

The bytes of a partition are those of the `.log` files its round reads: all segments below the
round's end, the part that is clean already included, since a round writes the log anew from its
first segment. A partition whose bytes would pass the limit ends the run; only the first is always
taken, for a limit below the size of one partition would never let anything be done.

Source: Kafka LogCleanerManager.grabFilthiestCompactedLog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.statuses import LEFT


def largest_first(plans: Sequence[CompactionPlan]) -> list[CompactionPlan]:
    """The last task to start should be a small one."""
    return sorted(plans, key=lambda plan: -plan.source_bytes)


def dirtiest_first(plans: Sequence[CompactionPlan]) -> list[CompactionPlan]:
    """Kafka's order; of two as dirty the one with more cleanable bytes first."""
    return sorted(plans, key=lambda plan: (-plan.cleanable_ratio, -plan.cleanable_bytes, plan.path))


def limit_bytes(
    plans: Sequence[CompactionPlan], max_bytes: int | None
) -> tuple[CompactionPlan, ...]:
    """The same plans in the same order; those of status `clean` that a run of so many bytes does
    not come to have status `left`, and say why.
    """
    if max_bytes is None:
        return tuple(plans)
    taken = taken_bytes = 0
    left: dict[str, CompactionPlan] = {}
    for plan in dirtiest_first([plan for plan in plans if plan.status == CLEAN]):
        # Once one is left all behind it are, even smaller ones that would fit: the order is by
        # dirt, and a cleaner one is not to overtake.
        if left or (taken and taken_bytes + plan.source_bytes > max_bytes):
            reason = (
                f"left for the next run: --max-bytes {max_bytes} ends this one after "
                f"{taken_bytes} bytes of {taken} dirtier"
            )
            left[plan.path] = replace(plan, status=LEFT, reason=reason)
        else:
            taken, taken_bytes = taken + 1, taken_bytes + plan.source_bytes
    return tuple(left.get(plan.path, plan) for plan in plans)
