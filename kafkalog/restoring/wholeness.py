"""Whether a source has all that its log had. A damaged batch is seen as it is read; this is about
what is not there: a segment whose only copy a killed cleaner left under another name, which a
broker's start would give back, and offsets of which no segment is left.

What `salvage` has left out was said by it: its copies are taken as they are.

Source: Kafka LogLoader.load, UnifiedLog.replaceSegments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import SWAP_SUFFIX, LogFileKind
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.missing_range import MissingPlace
from kafkalog.log.missing_ranges import missing_ranges
from kafkalog.log.remote_segments import REMOTE

_SWAPPED = f"{LogFileKind.LOG}{SWAP_SUFFIX}"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Wholeness:
    """why_not: why it cannot be taken, None where it can; lost: what somebody has to know of one
    that is taken: what a salvaged copy lacks, and records behind its end that were there once.
    """

    why_not: str | None
    lost: tuple[str, ...] = ()


def wholeness_of(source: PartitionInventory, end_offset: int = MAX_INT64) -> Wholeness:
    """Of a source up to `end_offset` (excluded); errors as of `missing_ranges`."""
    swap = _unfinished_swap(source)
    if swap is not None:
        return Wholeness(swap)
    start = source.log_start_offset
    has_remote = any(each.state == REMOTE for each in source.segments)
    if has_remote and source.segments[0].base_offset > start:
        return Wholeness(
            f"the log begins at offset {start}, and what is in remote storage at "
            f"{source.segments[0].base_offset}"
        )
    proven = [each for each in missing_ranges(source, start, end_offset) if each.is_proven]
    if not proven:
        return Wholeness(None)
    said = proven if _is_salvaged(source) else [e for e in proven if e.place is MissingPlace.END]
    gaps = [each for each in proven if each not in said]
    if not gaps:
        return Wholeness(None, tuple(f"the source has lost records: {each}" for each in said))
    shown = "; ".join(str(each) for each in gaps[:_SHOWN])
    more = f" and {len(gaps) - _SHOWN} more" if len(gaps) > _SHOWN else ""
    why = f"the source has a gap: {shown}{more}"
    if has_remote:
        return Wholeness(why)
    return Wholeness(
        f"{why}; where no other copy has them `kafkalog salvage` makes a copy of the rest, which "
        "can be restored"
    )


def _is_salvaged(source: PartitionInventory) -> bool:
    # Imported late, as it brings the cleaner's kernels with it, and few sources lack anything.
    from kafkalog.repair.salvage import MANIFEST_FILE

    return not source.is_remote_alone and Path(source.log_dir, MANIFEST_FILE).is_file()


def _unfinished_swap(source: PartitionInventory) -> str | None:
    """Old segments are renamed before the new one gets its name: in between nothing else has its
    records.
    """
    bases = {segment.base_offset for segment in source.segments if segment.state != REMOTE}
    left = [name for name in source.leftovers if name.endswith(_SWAPPED)]
    alone = [name for name in left if int(name.split(".")[0]) not in bases]
    if not alone:
        return None
    return (
        f"its broker, or a run, was killed while it replaced segments, and {alone[0]} is the only "
        f"copy of what is in it: `kafkalog recover {source.log_dir} --topic "
        f"{source.topic_partition.topic} --apply` finishes that, as the broker's start would"
    )
