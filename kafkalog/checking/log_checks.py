"""The log as a whole: segments against each other, against the checkpoints and the settings; its
leader epochs are checked in `epoch_checks`, offsets that are not here in `missing_checks`.

Offsets may be missing only where compaction took them. It never goes past the cleaner's checkpoint,
and never touches a topic that is not compacted; a topic whose settings are not known counts as one
if its batches show it.

What the next start heals (an index that is made anew, a tail that is cut) is a finding of severity
info.

Source: Kafka LogLoader, LocalLog, LogCleaner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kafkalog.checking.epoch_checks import check_leader_epochs
from kafkalog.checking.finding import HIDING, Finding, FindingList
from kafkalog.checking.finding_kinds import Severity
from kafkalog.checking.group_checks import check_group_types
from kafkalog.checking.missing_checks import check_missing
from kafkalog.checking.partition_view import PartitionView
from kafkalog.checking.segment import DAMAGED, GONE, TORN, ZEROS
from kafkalog.checking.segment_report import Hole, SegmentReport
from kafkalog.errors import KafkaLogError
from kafkalog.format.file_names import LogFileKind
from kafkalog.kernels.status import NEED_MORE
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error

_OF_RECORDS_LOADED = ("coordinator-record", "coordinator-record-unknown")
_OFFSET_INDEX = "offset-index-disagrees"
_OF_INDEXES = ("offset-index-", "time-index-", "transaction-index-")


def check_log(view: PartitionView) -> Iterator[Finding]:
    """What is wrong with a partition's log, its segments' own findings included."""
    found = FindingList(view.partition.path)
    for number, report in enumerate(view.reports):
        yield from _own_findings(view, number)
        yield from _segment_state(view, number)
        if report.tail == GONE:
            return  # neighbours cannot be compared
    if not any(finding.kind in HIDING for report in view.reports for finding in report.findings):
        segments = ((r.task.path, r.task.base_offset, r.groups) for r in view.reports)
        yield from check_group_types(segments, view.partition.log_start_offset)
    _check_holes(view, found)
    check_missing(view, found)
    if view.is_replica:
        _check_log_start(view, found)
        check_leader_epochs(view, found)
    yield from found.findings()


def _own_findings(view: PartitionView, number: int) -> Iterator[Finding]:
    """What the segment's own report says; of an index that is made anew as info."""
    is_rebuilt = view.is_rebuilt(number)
    for finding in view.reports[number].findings:
        if finding.kind in _OF_RECORDS_LOADED and not _is_loaded(view, finding):
            continue
        of_index = finding.kind.startswith(_OF_INDEXES)
        if is_rebuilt and of_index and finding.kind != "transaction-index-unreadable":
            text = f"{finding.text}; made anew at the next start"
            yield replace(finding, severity=Severity.INFO, text=text)
        elif finding.kind == _OFFSET_INDEX and number == len(view.reports) - 1:
            # A broker takes the log's end from the last entry.
            yield replace(finding, severity=Severity.ERROR)
        else:
            yield finding


def _is_loaded(view: PartitionView, finding: Finding) -> bool:
    """Whether a coordinator comes to the record: it begins at the log start."""
    return finding.offset is None or finding.offset >= view.partition.log_start_offset


def _behind_tail(report: SegmentReport) -> str | None:
    """What says that the log does not end with this torn tail; None if nothing does."""
    task = report.task
    tail = Tail(report.valid_bytes, task.size_in_bytes, NEED_MORE, report.next_offset - 1)
    try:
        error = tail_error(task.path, tail, SegmentEnds(task.base_offset, None, is_last=True))
    except (KafkaLogError, OSError):  # it changed meanwhile
        return None
    return None if error is None else error.reason


def _segment_state(view: PartitionView, number: int) -> Iterator[Finding]:
    """What depends on how the broker stopped, and on whether the segment is the last one."""
    report = view.reports[number]
    found = FindingList(report.task.path, report.task.base_offset)
    is_active = number == len(view.reports) - 1
    is_rebuilt = view.is_rebuilt(number)
    heals = Severity.INFO if is_rebuilt else None
    if report.tail in (TORN, ZEROS):
        trailing = report.task.size_in_bytes - report.valid_bytes
        # A running broker is in the middle of an append, a stopped one was.
        severity = Severity.INFO if is_active and not view.is_loaded_as_left else None
        kind = "torn-tail" if report.tail == TORN else "zero-tail"
        text = f"{trailing} bytes behind the last whole batch"
        follows = _behind_tail(report) if is_active and report.tail == TORN else None
        if follows is not None:
            # A length is wrong: what a start cuts off are records.
            severity, text = None, f"{text}: {follows}"
        found.add(
            kind, text, severity=severity, position=report.valid_bytes, offset=report.next_offset,
        )  # fmt: skip
    _check_index_files(view, report, found, heals, is_active=is_active)
    limit = view.config.segment_bytes if view.config is not None else None
    if limit is not None and report.largest_batch_bytes > limit:
        found.add(
            "batch-too-large",
            f"{report.largest_batch_bytes} bytes, segment.bytes is {limit}",
            position=report.largest_batch_position,
        )
    yield from found.findings()


def _check_index_files(
    view: PartitionView,
    report: SegmentReport,
    found: FindingList,
    heals: Severity | None,
    *,
    is_active: bool,
) -> None:
    index = report.task.beside(LogFileKind.OFFSET_INDEX)
    time_index = report.task.beside(LogFileKind.TIME_INDEX)
    if report.tail == GONE:
        return
    if report.offset_index_count < 0:
        found.add("offset-index-missing", "it is made anew at the next start", path=index)
    elif report.time_index_count < 0 and report.max_timestamp_ms >= 0:
        found.add(
            "time-index-missing", f"the largest timestamp is {report.max_timestamp_ms}",
            severity=heals, path=time_index,
        )  # fmt: skip
    # The files of an open segment are preallocated, as long as a broker runs.
    is_open = is_active and not view.is_loaded_as_left
    if report.offset_index_padding and not is_open:
        found.add(
            "offset-index-padded", f"{report.offset_index_padding} entries of zeros",
            severity=heals, path=index,
        )  # fmt: skip
    if report.time_index_padding and not is_open:
        found.add(
            "time-index-padded", f"{report.time_index_padding} entries of zeros",
            severity=heals, path=time_index,
        )  # fmt: skip
    is_short = 0 <= report.time_index_count and (
        report.time_index_last_ms < report.max_timestamp_ms and report.tail != DAMAGED
    )
    if is_short and not is_open and not report.time_index_padding:
        found.add(
            "time-index-short",
            f"its last timestamp is {report.time_index_last_ms}, the largest of the batches "
            f"{report.max_timestamp_ms}",
            severity=heals, path=time_index,
        )  # fmt: skip


# -- offsets ---------------------------------------------------------------------------------------


def _check_holes(view: PartitionView, found: FindingList) -> None:
    dense = view.first_dense_offset
    for before, after in zip(view.reports, view.reports[1:], strict=False):
        base = after.task.base_offset
        if before.next_offset > base:
            found.add(
                "segment-overlap",
                f"offsets up to {before.next_offset - 1}, the next segment begins at {base}",
                path=before.task.path,
                offset=base,
            )
    for report in view.reports:
        for hole in report.holes:
            if _is_wrong(hole, dense):
                found.add(
                    "offset-gap",
                    f"offsets {hole.start_offset} to {hole.end_offset - 1}",
                    path=report.task.path,
                    position=hole.position,
                    offset=hole.start_offset,
                )


def _is_wrong(hole: Hole, dense: int | None) -> bool:
    return dense is not None and hole.end_offset > max(hole.start_offset, dense)


def _check_log_start(view: PartitionView, found: FindingList) -> None:
    log_start = view.partition.checkpoints.log_start
    if log_start is not None and log_start > view.log_end_offset:
        found.add(
            "log-start-beyond-end",
            f"the log start is {log_start}, the log ends at {view.log_end_offset}",
            offset=log_start,
        )
