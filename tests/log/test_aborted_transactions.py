"""Which aborted transactions touch a range (spec item 82: TransactionIndex.collectAbortedTxns)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptIndexError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.transaction_index import (
    AbortedTxn,
    pack_transaction_index,
    parse_transaction_index,
)
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.log_dir import open_log_dir
from tests.support.log_builder import LogBuilder

ABORT = ControlRecordType.ABORT
# Kafka's own example: (producer, first, last, last stable)
KAFKAS = [
    AbortedTxn(0, 0, 10, 11),
    AbortedTxn(1, 5, 15, 13),
    AbortedTxn(2, 18, 35, 25),
    AbortedTxn(3, 32, 50, 40),
]


def _index(
    log_dir: Path, entries: dict[int, list[AbortedTxn]], log_start: int = 0
) -> AbortedTransactions:
    """Empty segments with these transaction indexes, and an active one at 1000."""
    log = LogBuilder(log_dir)
    for base in (*sorted(entries), 1000):
        log.segment(base)
        log.segments[-1].aborted = bytearray(pack_transaction_index(entries.get(base, [])))
    log.write()
    (partition,) = open_log_dir(log.path).partitions
    return AbortedTransactions(partition.segments, log_start)


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [(0, 100, 4), (0, 32, 3), (0, 35, 4), (10, 35, 4), (11, 35, 4), (20, 41, 4)],
)
def test_entries_that_begin_below_the_end_are_found(
    log_dir: Path, start: int, end: int, count: int
) -> None:
    assert _index(log_dir, {0: KAFKAS}).between(start, end) == KAFKAS[:count]


def test_the_search_stops_at_the_first_last_stable_offset_past_the_end(log_dir: Path) -> None:
    late = AbortedTxn(4, 2, 60, 61)  # it begins below the end, but no index can say so after 40
    index = _index(log_dir, {0: KAFKAS, 55: [late]})
    assert index.between(0, 40) == KAFKAS
    assert index.between(0, 41) == [*KAFKAS, late]


def test_later_segments_tell_of_transactions_of_earlier_ones(log_dir: Path) -> None:
    spanning = AbortedTxn(1, 3, 205, 206)
    index = _index(log_dir, {0: [], 100: [], 200: [spanning]})
    assert index.between(0, 100) == [spanning]
    assert index.between(100, 200) == [spanning]


def test_earlier_segments_are_not_read(log_dir: Path) -> None:
    index = _index(log_dir, {0: KAFKAS, 60: [AbortedTxn(9, 61, 70, 71)]})
    assert [entry.producer_id for entry in index.between(60, 100)] == [9]
    assert [entry.producer_id for entry in index.between(59, 100)] == [0, 1, 2, 3, 9]


def test_transactions_that_ended_below_the_log_start_are_left_out(log_dir: Path) -> None:
    index = _index(log_dir, {0: KAFKAS}, log_start=15)
    assert [entry.producer_id for entry in index.between(0, 100)] == [1, 2, 3]


def test_a_start_below_all_segments_finds_nothing(log_dir: Path) -> None:
    index = _index(log_dir, {100: [AbortedTxn(1, 101, 105, 106)]})
    assert index.between(99, 200) == []
    assert len(index.between(100, 200)) == 1


def test_logs_without_an_index_have_none(log_dir: Path) -> None:
    index = _index(log_dir, {0: []})
    assert index.is_empty
    assert index.between(0, 2000) == []
    assert not _index(log_dir / "other", {0: KAFKAS}).is_empty


def test_a_damaged_index_is_named(log_dir: Path) -> None:
    index = _index(log_dir, {0: [KAFKAS[1], KAFKAS[0]]})
    with pytest.raises(CorruptIndexError, match="marker offset 10 is below 16") as caught:
        index.between(0, 100)
    assert caught.value.path is not None
    assert caught.value.path.endswith(f"{0:020d}.txnindex")


operations = st.lists(
    st.tuples(st.sampled_from(["data", "abort", "commit", "roll"]), st.integers(1, 3)),
    min_size=1,
    max_size=40,
)


@given(operations, st.integers(0, 40), st.integers(0, 40))
def test_no_aborted_transaction_of_the_range_is_missed(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[tuple[str, int]],
    start: int,
    length: int,
) -> None:
    log = LogBuilder(tmp_path_factory.mktemp("log")).segment()
    for what, producer_id in script:
        if what == "data":
            log.batch(("k", "v"), producer_id=producer_id, is_transactional=True)
        elif what == "roll":
            if log.next_offset > log.segments[-1].base_offset:
                log.segment()
        else:
            log.marker(ABORT if what == "abort" else ControlRecordType.COMMIT, producer_id)
    log.write()
    every = [
        entry
        for segment in log.segments
        for entry in parse_transaction_index(segment.aborted, segment.base_offset)
    ]
    (partition,) = open_log_dir(log.path).partitions
    found = AbortedTransactions(partition.segments, 0).between(start, start + length)
    wanted = [e for e in every if e.first_offset < start + length and e.last_offset >= start]
    assert set(wanted) <= set(found) <= {e for e in every if e.first_offset < start + length}
