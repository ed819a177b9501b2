"""All that replay producers and transactions, on the histories of
`tests.support.producer_histories`, whose table Kafka's loader was asked for: recovery, plans,
views, checks, offset commits, audit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog import read_view
from kafkalog.contents.log_contents import header_scan
from kafkalog.errors import CorruptRecordError
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.past_damage import FileRange
from kafkalog.log.recovered_producers import RecoveredProducers
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.reading.transaction_ends import read_transaction_ends
from tests.checking.running import findings
from tests.support.log_builder import LogBuilder
from tests.support.producer_histories import HISTORIES, NOW_MS, History

NEVER_MS = 2**31 - 1
DATA_KINDS = ("data", "txn", "no_records")

histories = pytest.mark.parametrize("history", HISTORIES.values(), ids=list(HISTORIES))


def opened(log: LogBuilder, *, with_snapshots: bool = False) -> PartitionInventory:
    if not with_snapshots:
        for path in log.path.glob("*.snapshot"):
            path.unlink()
    (partition,) = open_log_dir(log.path)
    return partition


def expected_open(history: History) -> dict[int, int]:
    """First offset of each transaction that has no end, by producer."""
    ends = {(producer_id, first) for producer_id, first, _, _ in history.ended}
    found: dict[int, int] = {}
    for offset, step in enumerate(step for step in history.steps if step.kind != "roll"):
        if step.kind in ("txn", "no_records") and step.of >= 0:
            found.setdefault(step.of, offset)
        elif step.kind in ("commit", "abort"):
            first = found.pop(step.of, -1)
            assert (step.of, first) in ends
    return found


@histories
def test_recovery_writes_what_a_loader_does(log_dir: Path, history: History) -> None:
    partition = opened(history.build(log_dir))
    replay = RecoveredProducers(0)
    aborted: list[AbortedTxn] = []

    def recover() -> None:
        for segment in partition.segments:
            replay.expire(NOW_MS, history.expiration_ms)
            for chunk in read_chunks(segment.path, chunk_bytes=1):
                aborted.extend(replay.apply(chunk, segment.path))

    if history.outside:
        with pytest.raises(CorruptRecordError, match="fails to load") as raised:
            recover()
        assert raised.value.offset == history.outside[0]
        return
    recover()
    assert list(replay.entries()) == history.entries()
    assert tuple(aborted) == history.aborted


@pytest.mark.parametrize("with_snapshots", [False, True])
@histories
def test_a_plan_knows_whom_a_loader_knows(
    log_dir: Path, history: History, with_snapshots: bool
) -> None:
    log = history.build(log_dir)
    is_expiring = history.expiration_ms < NEVER_MS
    if history.outside if with_snapshots else is_expiring:
        return  # a snapshot that is not Kafka's; without one nobody expires
    partition = opened(log, with_snapshots=with_snapshots)
    facts = scan_partition_facts(partition, now_ms=NOW_MS, expiration_ms=history.expiration_ms)
    start = max((at for at in partition.snapshot_offsets), default=0)
    told = history.ended if with_snapshots else history.ended_from_start()
    ended = [(first, at) for _, first, at, _ in told if first >= 0 and at >= start]
    assert list(facts.completed_transactions) == ended
    assert len(facts.problems) == len(history.outside)
    if history.outside:
        return
    known = {producer.producer_id: producer for producer in facts.active_producers}
    assert known.keys() == history.known.keys()
    for entry in history.entries():
        found = known[entry.producer_id]
        assert (found.epoch, found.last_timestamp_ms) == (entry.producer_epoch, entry.timestamp)
        assert (-1 if found.last_data_offset is None else found.last_data_offset) == (
            entry.last_offset
        )
        first = found.current_txn_first_offset
        assert (-1 if first is None else first) == entry.current_txn_first_offset


@histories
def test_views_tell_each_end(log_dir: Path, history: History) -> None:
    log = history.build(log_dir)
    rows = read_view("transactions", log.path).to_pylist()
    ended = [
        (r["producerId"], -1 if r["firstOffset"] is None else r["firstOffset"], r["markerOffset"])
        for r in rows
        if r["state"] != "open"
    ]
    assert ended == [each[:3] for each in history.ended_from_start()]
    assert [r["state"] == "aborted" for r in rows if r["state"] != "open"] == [
        is_abort for *_, is_abort in history.ended
    ]
    open_now = {r["producerId"]: r["firstOffset"] for r in rows if r["state"] == "open"}
    assert open_now == expected_open(history)
    producers = {r["producerId"]: r for r in read_view("producers", log.path).to_pylist()}
    for producer_id, known in history.known.items():
        if known.epoch >= 0:
            assert producers[producer_id]["producerEpoch"] == known.epoch
            assert producers[producer_id]["currentTxnFirstOffset"] == (
                known.open if known.open >= 0 else None
            )


@histories
def test_verify_says_what_a_loader_fails_on(log_dir: Path, history: History) -> None:
    log = history.build(log_dir)
    opened(log)
    found = findings(log_dir)
    left = [each.offset for each in found if each.kind == "transaction-left"]
    assert left == list(history.outside)
    others = {each.kind for each in found if each.severity.is_failure and "producer" in each.text}
    lawful = {
        "producer-epoch-order",
        "producer-fields",
        "snapshot-missing",
        "open-transaction-forgotten",
    }
    assert others <= {"transaction-left", *lawful}


@histories
def test_commits_count_from_their_marker_on(log_dir: Path, history: History) -> None:
    partition = opened(history.build(log_dir))
    ends = read_transaction_ends([FileRange.of(segment) for segment in partition.segments])
    if ends is None:
        assert not any(step.kind in ("txn", "no_records") for step in history.steps)
        return
    found = {
        (producer_id, at, is_abort)
        for producer_id, (offsets, aborts) in ends.by_producer.items()
        for at, is_abort in zip(offsets.tolist(), aborts.tolist(), strict=True)
    }
    assert found == {(p, at, is_abort) for p, _, at, is_abort in history.ended}


@pytest.mark.parametrize("most_rows", [1, 2, 1000])
@histories
def test_an_audit_counts_what_is_open_and_aborted(
    log_dir: Path, history: History, most_rows: int
) -> None:
    log = history.build(log_dir)
    sizes = [header.size_in_bytes for segment in log.segments for _, header in segment.batches]
    steps = [step for step in history.steps if step.kind != "roll"]
    partition = opened(log)
    scan = header_scan(partition, len(steps))
    for segment in partition.segments:
        for headers in iterate_headers(segment.path, most_rows=most_rows):
            scan.add(scan.scanned(headers.rows), is_active=segment.is_active)
    found = scan.finish()

    def transactional(producer_id: int, first: int, end: int) -> int:
        return sum(
            sizes[at]
            for at in range(first, end)
            if steps[at].of == producer_id and steps[at].kind in ("txn", "no_records")
        )

    aborted = sum(
        transactional(producer_id, first, at)
        for producer_id, first, at, is_abort in history.ended
        if is_abort and first >= 0
    )
    still_open = sum(
        transactional(producer_id, first, len(steps))
        for producer_id, first in expected_open(history).items()
    )
    assert (found.aborted_bytes, found.open_bytes) == (aborted, still_open)
    data = sum(size for size, step in zip(sizes, steps, strict=True) if step.kind in DATA_KINDS)
    assert found.committed_bytes == data - aborted - still_open
    assert found.bare_markers == sum(first < 0 for _, first, _, _ in history.ended)
