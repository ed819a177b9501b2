"""Whether the target's disks have room for what a restore writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkalog.operations.space import free_bytes
from kafkalog.planning.statuses import REFUSED
from kafkalog.restoring.plan import RestorePlan

# Indexes and snapshots of a log: a few thousandths of it; more where batches are tiny.
_BESIDE = 1.02


def needed_bytes(plan: RestorePlan) -> int:
    """Bytes that a plan writes."""
    # Compacted it may lie there twice for a while.
    return 0 if plan.cut is None else int(plan.cut.size_in_bytes * _BESIDE) * (1 + plan.compacts)


def refuse_without_space(
    plans: Iterable[RestorePlan], left: dict[int, int] | None = None
) -> Iterator[RestorePlan]:
    """The plans, those refused for which their disk has no room. left: bytes by device, of plans
    that go on with those before.
    """
    left = {} if left is None else left
    for plan in plans:
        if plan.status == REFUSED or plan.cut is None:
            yield plan
            continue
        device = Path(plan.log_dir).stat().st_dev
        if device not in left:
            left[device] = free_bytes(plan.log_dir)
        needed = needed_bytes(plan)
        if needed > left[device]:
            yield plan.refused(
                f"no space: it takes {needed} bytes, the disk of {plan.log_dir} has {left[device]} "
                "left"
            )
            continue
        left[device] -= needed
        yield plan
