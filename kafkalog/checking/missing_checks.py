"""Offsets that the log once had and that are not here, as findings; `log.missing_ranges` knows
them.
"""

from __future__ import annotations

from pathlib import Path

from kafkalog.checking.finding import FindingList
from kafkalog.checking.finding_kinds import Severity
from kafkalog.checking.partition_view import PartitionView
from kafkalog.errors import KafkaLogError
from kafkalog.log.metadata_records import metadata_files
from kafkalog.log.missing_range import MissingCause, MissingPlace, MissingRange
from kafkalog.log.missing_ranges import missing_ranges

MISSING_KINDS = {
    MissingPlace.START: "first-segments-missing",
    MissingPlace.MIDDLE: "segment-missing",
    MissingPlace.END: "log-end-lost",
}
_SEVERITIES = {
    MissingCause.LOST: Severity.ERROR,
    MissingCause.REMOTE: Severity.INFO,
    MissingCause.CLEANING: Severity.WARNING,
    MissingCause.STALE: Severity.INFO,
    MissingCause.DOUBTFUL: Severity.WARNING,
}


def check_missing(view: PartitionView, found: FindingList) -> None:
    """Note what is missing. Damage is a finding of the segment that has it, and of a log that looks
    compacted a gap is nothing to tell.
    """
    try:
        ranges = missing_ranges(view.partition)
    except (KafkaLogError, OSError) as error:
        found.add("segment-changed", str(error))
        return
    covered = _covered_by_snapshots(view)
    for missing in ranges:
        if missing.end_offset <= covered:
            continue
        severity = _SEVERITIES.get(missing.cause)
        if severity is Severity.ERROR and missing.is_contradicted:
            # It was lost before, if it was: a start takes nothing away.
            severity = Severity.WARNING
        if severity is not None:
            found.add(
                MISSING_KINDS[missing.place], f"{missing}{_set_aside(view, missing)}",
                severity=severity, path=missing.path, offset=missing.start_offset,
            )  # fmt: skip


def _covered_by_snapshots(view: PartitionView) -> int:
    """The offset below which a snapshot of the cluster's metadata has all that its log had."""
    if not view.is_metadata_log:
        return 0
    _, snapshots = metadata_files(Path(view.partition.path))
    return max((snapshot.end_offset for snapshot in snapshots), default=0)


def _set_aside(view: PartitionView, missing: MissingRange) -> str:
    """The segments that wait for deletion and may have what is missing."""
    there = [
        Path(segment.path).name
        for segment in view.partition.other_segments
        if missing.start_offset <= segment.base_offset < missing.end_offset
    ]
    return f"; {', '.join(there)} may have them" if there else ""
