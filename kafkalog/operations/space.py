"""Whether the disks have room for what a run may write, looked at before anything is written.

Until a partition is swapped its new files lie beside the old ones (`peak_bytes`, a bound: new
segments only ever shrink). With `--no-undo` that space is free again after each partition; what is
kept for undo stays, so the partitions of one disk add up. The room that the file system reserves
for root does not count.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.texts import format_bytes


def refuse_without_space(
    plans: Sequence[CompactionPlan],
    *,
    keeps_undo: bool,
    swap_per_group: bool = False,
    output: str | None = None,
) -> tuple[CompactionPlan, ...]:
    """The plans, those refused for which their disk has no room; in the order they are in. With
    `output` all new files go to its disk and stay there.

    A log dir whose file system does not tell is not judged here.
    """
    left: dict[int, int] = {}
    judged = []
    for plan in plans:
        if plan.status != CLEAN:
            judged.append(plan)
            continue
        try:
            place = plan.log_dir if output is None else _existing(output)
            device = Path(place).stat().st_dev
            if device not in left:
                left[device] = free_bytes(place)
        except OSError:
            judged.append(plan)
            continue
        needed = plan.peak_bytes
        if swap_per_group and not keeps_undo:
            needed = plan.peak_bytes_per_group
        if needed > left[device]:
            reason = _reason(plan, needed, left[device], keeps_undo=keeps_undo)
            if output is not None:
                reason = f"no space: the new files may take {needed} bytes, the disk of {output} "
                reason += f"has {left[device]}"
            judged.append(plan.refused(reason))
            continue
        left[device] -= needed if keeps_undo else 0
        judged.append(plan)
    return tuple(judged)


def free_bytes(directory: str) -> int:
    """What the file system of a directory has room for."""
    stat = os.statvfs(directory)
    return stat.f_bavail * stat.f_frsize


def _existing(path: str) -> str:
    """The directory, or the nearest one above it that is there."""
    place = Path(path).absolute()
    return str(next(each for each in (place, *place.parents) if each.is_dir()))


def _reason(plan: CompactionPlan, needed: int, left: int, *, keeps_undo: bool) -> str:
    reason = (
        f"no space: the new files may take {needed} bytes "
        f"({format_bytes(needed)}) beside the old, the disk has {left}"
    )
    if plan.peak_bytes_per_group < needed:
        reason += f" (--swap-per-group --no-undo needs {plan.peak_bytes_per_group})"
    if keeps_undo:
        reason += ", without what partitions before it keep for undo: --no-undo keeps nothing"
    return reason
