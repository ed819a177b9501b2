"""Producers over the segments of a partition: sequences from one to the next, transactions against
the transaction indexes, and the state at the end of the log against the snapshot a broker loads.

Strategy: the reports' facts are replayed segment by segment, as a broker replays batches. A
snapshot knows more than the log (what compaction and retention took), so it is asked only for what
the log does show: a transaction with data and no marker is open, one with a marker behind its data
is not, and a producer's last batch is not newer than its entry.

Where a batch could not be read, what producers did is not known, and nothing is compared.

Source: Kafka ProducerStateManager, UnifiedLog.rebuildProducerState, TransactionIndex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.checking.finding import HIDING, Finding, FindingList
from kafkalog.checking.finding_kinds import Severity
from kafkalog.checking.partition_view import PartitionView
from kafkalog.checking.producer_track import is_repeated, say_outside, say_producer_order
from kafkalog.checking.segment import DAMAGED, GONE
from kafkalog.checking.segment_report import ProducerSpan, SegmentReport
from kafkalog.errors import KafkaLogError
from kafkalog.format.file_names import LogFileKind, producer_snapshot_file_name
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.log.producer_replay import ProducerReplay, ProducerSink
from kafkalog.log.producer_runs import Data
from kafkalog.log.producer_state import MAX_SNAPSHOT_BYTES, kept_snapshots, loadable_snapshots
from kafkalog.log.small_files import read_small_file


@dataclass(slots=True)
class _State:
    """The segments so far: last data batch and last marker by producer id, open transactions."""

    last: dict[int, ProducerSpan] = field(default_factory=dict)
    markers: dict[int, int] = field(default_factory=dict)
    replay: ProducerReplay = field(default_factory=lambda: ProducerReplay(ProducerSink()))

    @property
    def open(self) -> dict[int, Data]:
        """By producer id."""
        return self.replay.transactions


def check_producers(view: PartitionView) -> Iterator[Finding]:
    """What is wrong with the producers of a partition."""
    found = FindingList(view.partition.path)
    snapshots = _read_snapshots(view, found)
    if not any(map(_is_hidden, view.reports)):
        newest = max((at for at in snapshots if _is_loaded(view, at)), default=None)
        state = _State()
        for number, report in enumerate(view.reports):
            if newest == report.task.base_offset:
                _compare_snapshot(view, state, newest, snapshots[newest], found)
            _check_sequences(state, report, found)
            _check_left(state, report, found)
            _check_transaction_index(view, number, state, found)
            _replay(state, report)
        _check_stable_offsets(view, found)
        if newest is not None and newest == view.log_end_offset:
            _compare_snapshot(view, state, newest, snapshots[newest], found)
        if not kept_snapshots(view.partition) and view.is_replica and view.is_loaded_as_left:
            _check_no_snapshot(view, state, found)
    yield from found.findings()


def _is_loaded(view: PartitionView, snapshot_offset: int) -> bool:
    """After a crash the last segment is recovered, and a snapshot behind its base made anew."""
    return view.is_loaded_as_left or snapshot_offset <= view.reports[-1].task.base_offset


def _is_hidden(report: SegmentReport) -> bool:
    return report.tail in (GONE, DAMAGED) or any(f.kind in HIDING for f in report.findings)


def _replay(state: _State, report: SegmentReport) -> None:
    for producer in report.producers:
        state.last[producer.producer_id] = producer
    for marker in report.first_markers:
        state.markers[marker.producer_id] = marker.offset
    state.replay.join(
        (marker.producer_id for marker in report.first_markers),
        ((opened.producer_id, opened.data()) for opened in report.open_transactions),
    )


def _check_left(state: _State, report: SegmentReport, found: FindingList) -> None:
    """Producers that go on without the transaction which an earlier segment leaves open."""
    own = FindingList(report.task.path, report.task.base_offset)
    ends = {marker.producer_id: marker.offset for marker in report.first_markers}
    for producer in report.producers:
        opened = state.open.get(producer.producer_id)
        if opened is None or producer.first_is_transactional:
            continue
        if ends.get(producer.producer_id, producer.first_offset + 1) > producer.first_offset:
            say_outside(
                own,
                producer.producer_id,
                opened.first_offset,
                producer.first_offset,
                producer.first_position,
            )
    found.extend(own.findings())


def _check_sequences(state: _State, report: SegmentReport, found: FindingList) -> None:
    own = FindingList(report.task.path, report.task.base_offset)
    for producer in report.producers:
        before = state.last.get(producer.producer_id)
        if before is None:
            continue
        falls = producer.first_epoch < before.last_epoch
        again = producer.first_epoch == before.last_epoch and is_repeated(
            before.last_sequence, producer.first_sequence
        )
        if falls or again:
            say_producer_order(
                own,
                (producer.producer_id, producer.first_epoch, producer.first_sequence),
                (before.last_epoch, before.last_sequence, before.last_offset),
                position=producer.first_position,
                offset=producer.first_offset,
            )
    found.extend(own.findings())


# -- transaction indexes ---------------------------------------------------------------------------


def _check_transaction_index(
    view: PartitionView, number: int, state: _State, found: FindingList
) -> None:
    report = view.reports[number]
    if not report.is_transaction_index_readable:
        return
    log_start = view.partition.log_start_offset
    entries = {(e.producer_id, e.last_offset): e for e in report.transaction_index}
    own = FindingList(
        report.task.beside(LogFileKind.TRANSACTION_INDEX),
        report.task.base_offset,
    )
    severity = _severity(view, number)
    known = set()
    for span in report.aborted:
        first, has_records = span.first_offset, span.has_records
        # The marker may end a transaction that an earlier segment opened: then it begins there.
        earlier = state.open.get(span.producer_id) if span.may_begin_earlier else None
        if earlier is not None:
            first, has_records = earlier.first_offset, has_records or earlier.records > 0
        known.add((span.producer_id, span.marker_offset))
        entry = entries.get((span.producer_id, span.marker_offset))
        # No record is left that a reader would have to leave out, or none that can be read.
        if not has_records or span.marker_offset < log_start:
            continue
        if entry is None or entry.first_offset > first:
            said = "no entry" if entry is None else f"an entry from offset {entry.first_offset} on"
            own.add(
                "transaction-index-missing",
                f"producer {span.producer_id} aborted offsets {first} to {span.marker_offset}, "
                f"which has {said}",
                severity=severity,
                offset=first,
            )
    for key, entry in entries.items():
        if key not in known:
            own.add(
                "transaction-index-stale",
                f"the entry of producer {entry.producer_id} says it aborted offsets "
                f"{entry.first_offset} to {entry.last_offset}",
                severity=severity,
                offset=entry.last_offset,
            )
    found.extend(own.findings())


def _check_stable_offsets(view: PartitionView, found: FindingList) -> None:
    """A search ends at an entry whose last stable offset is past its range: a transaction that was
    open there, and is listed behind it, would be missed.
    """
    least = None
    for number in reversed(range(len(view.reports))):
        report = view.reports[number]
        for entry in reversed(report.transaction_index):
            if least is not None and entry.last_stable_offset > max(least, entry.first_offset):
                found.add(
                    "transaction-index-missing",
                    f"the entry of producer {entry.producer_id} has a last stable offset of "
                    f"{entry.last_stable_offset}, a later one begins at {least}",
                    severity=_severity(view, number),
                    path=report.task.beside(LogFileKind.TRANSACTION_INDEX),
                    offset=entry.last_offset,
                )
            least = entry.first_offset if least is None else min(least, entry.first_offset)


def _severity(view: PartitionView, number: int) -> Severity | None:
    """Of what the next start heals."""
    return Severity.INFO if view.is_rebuilt(number) else None


# -- snapshots -------------------------------------------------------------------------------------


def _read_snapshots(view: PartitionView, found: FindingList) -> dict[int, list[ProducerEntry]]:
    """The snapshots a broker may load that can be read, by offset; others are findings."""
    snapshots = {}
    for offset in loadable_snapshots(view.partition):
        path = Path(view.partition.path, producer_snapshot_file_name(offset))
        try:
            data = read_small_file(path, MAX_SNAPSHOT_BYTES)
            snapshots[offset] = parse_producer_snapshot(data, str(path))
        except FileNotFoundError:
            continue
        except (KafkaLogError, OSError) as error:
            found.add("snapshot-unreadable", str(error), path=str(path), offset=offset)
    return snapshots


def _compare_snapshot(
    view: PartitionView,
    state: _State,
    offset: int,
    entries: Sequence[ProducerEntry],
    found: FindingList,
) -> None:
    path = str(Path(view.partition.path, producer_snapshot_file_name(offset)))
    known = {entry.producer_id: entry for entry in entries}

    def say(producer_id: int, text: str) -> None:
        found.add("snapshot-disagrees", f"producer {producer_id}: {text}", path=path, offset=offset)

    for producer_id, opened in state.open.items():
        entry = known.get(producer_id)
        if entry is None or entry.current_txn_first_offset < 0:
            say(producer_id, f"its transaction of offset {opened.first_offset} is open in the log")
    for producer_id, entry in known.items():
        first = entry.current_txn_first_offset
        # A snapshot says more than the log where compaction or retention took batches; only what
        # the log contradicts is a finding.
        if 0 <= first < state.markers.get(producer_id, -1) and producer_id not in state.open:
            say(producer_id, f"its transaction of offset {first} has ended in the log")
        last = state.last.get(producer_id)
        is_newer = last is not None and last.last_offset > entry.last_offset
        if last is not None and is_newer and last.last_epoch >= entry.producer_epoch:
            say(
                producer_id,
                f"its last batch is at offset {entry.last_offset}, in the log {last.last_offset}",
            )


def _check_no_snapshot(view: PartitionView, state: _State, found: FindingList) -> None:
    for producer_id, opened in state.open.items():
        found.add(
            "open-transaction-forgotten",
            f"producer {producer_id}, open since offset {opened.first_offset}",
            offset=opened.first_offset,
        )
    if state.last and not state.open:
        found.add("snapshot-missing", f"{len(state.last)} producers wrote")
