"""Leader epochs: those of the batches from segment to segment, and the checkpoint against them.

No checksum covers the epoch of a batch, but every broker wrote it where it lies: what the batches
say is believed, and nothing is inferred from a checkpoint that they contradict. An epoch without
any batch is no contradiction: its leader wrote nothing, or compaction took it all. A checkpoint
that begins above the log and agrees from there on is what is left when records were deleted and the
line of the log start is gone. A broker that moves the log start, for whatever reason, cuts the
epochs there at once and writes the line within a minute: a line above the first epoch is no
broker's.

A broker repairs what contradicts itself (the later line stays), drops what begins past the log's
end, and keeps the rest as it is, after a crash too.

Source: Kafka LeaderEpochFileCache, LogLoader; seen with 4.3.1 (tests/oracle).
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from kafkalog.checking.finding import FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.partition_view import PartitionView
from kafkalog.checking.segment import DAMAGED
from kafkalog.checking.segment_report import EpochRun, SegmentReport
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    EpochEntry,
    leader_epoch_lines,
    rising_leader_epochs,
)
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.log.small_files import read_small_file

_Runs = list[tuple[SegmentReport, EpochRun]]


def check_leader_epochs(view: PartitionView, found: FindingList) -> None:
    """What is wrong with the leader epochs of a replica."""
    _check_batches(view, found)
    path = Path(view.partition.path, LEADER_EPOCH_CHECKPOINT_FILE)
    runs = [(report, run) for report in view.reports for run in report.epochs]
    try:
        lines = leader_epoch_lines(read_small_file(path), str(path))
    except FileNotFoundError:
        if runs:
            _add_missing(view, "it is not there", str(path), found)
        return
    except (KafkaLogError, OSError) as error:
        found.add("leader-epochs-unreadable", str(error), path=str(path))
        return
    if not lines:
        if runs:
            _add_missing(view, "it is empty", str(path), found)
        return
    entries = rising_leader_epochs(lines)
    is_right = _is_rising(lines, entries, str(path), found)
    is_right &= _is_within(view, entries, str(path), found)
    is_right &= _agrees(view, entries, runs, found)
    if is_right and runs:
        _check_log_start(view, entries, runs, found)


def _add_missing(view: PartitionView, text: str, path: str, found: FindingList) -> None:
    """Where all segments are recovered at the next start, their batches tell the epochs again."""
    is_made_anew = not view.is_loaded_as_left and all(
        map(view.is_rebuilt, range(len(view.reports)))
    )
    severity = Severity.INFO if is_made_anew else None
    found.add("leader-epochs-missing", text, path=path, severity=severity)


def _check_batches(view: PartitionView, found: FindingList) -> None:
    for before, after in zip(view.reports, view.reports[1:], strict=False):
        if before.epochs and after.epochs and after.epochs[0].epoch < before.epochs[-1].epoch:
            found.add(
                "leader-epoch-order",
                f"leader epoch {after.epochs[0].epoch} after {before.epochs[-1].epoch}",
                path=after.task.path,
                offset=after.epochs[0].first_offset,
            )


def _is_rising(
    lines: list[EpochEntry], entries: list[EpochEntry], path: str, found: FindingList
) -> bool:
    if lines == entries:
        return True
    dropped = ", ".join(
        f"{epoch} from {start}" for epoch, start in lines if (epoch, start) not in entries
    )
    left = ", ".join(f"{epoch} from {start}" for epoch, start in entries)
    found.add(
        "leader-epochs-not-rising",
        f"a broker drops {dropped or 'a line that comes twice'}, and keeps {left}",
        path=path,
    )
    return False


def _is_within(
    view: PartitionView, entries: list[EpochEntry], path: str, found: FindingList
) -> bool:
    if any(report.tail == DAMAGED for report in view.reports[-1:]):
        return True  # where it ends nobody can tell
    end = view.log_end_offset
    beyond = [(epoch, start) for epoch, start in entries if start > end]
    for epoch, start in beyond[:1]:
        found.add(
            "leader-epochs-beyond-end",
            f"epoch {epoch} begins at offset {start}, the log ends at {end}",
            path=path,
            offset=start,
        )
    return not beyond


def _agrees(
    view: PartitionView, entries: list[EpochEntry], runs: _Runs, found: FindingList
) -> bool:
    log_start = view.partition.log_start_offset
    starts = [start for _, start in entries]
    is_right = True
    for report, run in runs:
        inside = starts[
            bisect_right(starts, run.first_offset) : bisect_right(starts, run.last_offset)
        ]
        for offset in (run.first_offset, *inside, run.last_offset):
            said = _epoch_at(entries, starts, offset)
            if 0 <= said != run.epoch and offset >= log_start:
                found.add(
                    "leader-epochs-disagree",
                    f"it says {said}, the batch {run.epoch}",
                    path=report.task.path,
                    offset=offset,
                )
                is_right = False
                break
    return is_right


def _check_log_start(
    view: PartitionView, entries: list[EpochEntry], runs: _Runs, found: FindingList
) -> None:
    path = str(Path(view.partition.path, LEADER_EPOCH_CHECKPOINT_FILE))
    begins = entries[0][1]
    effective = max(runs[0][1].first_offset, view.partition.log_start_offset)
    line = view.partition.checkpoints.log_start
    if line is not None and max(begins, runs[0][1].first_offset) < line <= view.log_end_offset:
        found.add(
            "log-start-ahead",
            f"{LOG_START_OFFSET_FILE} says {line}, the leader epochs begin at {begins}, the batches"
            f" at {runs[0][1].first_offset}",
            offset=line,
        )
    # A line below the first batch is none: a file that was cut can have one.
    if begins <= effective or (line is not None and line >= runs[0][1].first_offset):
        return
    if begins > runs[-1][1].last_offset:
        found.add(
            "leader-epochs-disagree",
            f"it begins at offset {begins}, and no batch is there; the batches before it have "
            f"epochs up to {runs[-1][1].epoch}",
            path=path,
            offset=begins,
        )
        return
    found.add(
        "log-start-lost",
        f"the log begins at {effective}, the leader epochs at {begins}",
        path=path,
        offset=effective,
    )


def _epoch_at(entries: list[EpochEntry], starts: list[int], offset: int) -> int:
    """The epoch of an offset by the checkpoint, -1 below its first entry."""
    at = bisect_right(starts, offset) - 1
    return entries[at][0] if at >= 0 else -1
