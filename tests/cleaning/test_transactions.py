"""CleanedTransactionMetadata against a plain reading of its rules, and against a batch's bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.cleaning.transactions import (
    CleanedTransactionMetadata,
    expired_horizons,
)
from kafkalog.errors import CorruptRecordError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.segment_file import Chunk
from tests.batches.logs import rows_of
from tests.support.packing import pack_marker_batch
from tests.support.reference.transactions import Seen, kept_entries, nothing_left

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT
KINDS = (None, None, "ABORT", "COMMIT", "empty", "LEADER_CHANGE")

batches = st.lists(st.tuples(st.integers(1, 2), st.sampled_from(KINDS)), max_size=12).map(
    lambda pairs: [Seen(pid, 2 * n + 1, kind) for n, (pid, kind) in enumerate(pairs)]
)
transactions = st.lists(
    st.builds(AbortedTxn, st.integers(1, 2), st.integers(0, 20), st.integers(0, 99), st.just(0)),
    max_size=4,
    unique_by=lambda entry: (entry.producer_id, entry.first_offset),
)


def play(seen: list[Seen], known: list[AbortedTxn]) -> tuple[list[bool], list[AbortedTxn]]:
    metadata = CleanedTransactionMetadata()
    metadata.add_aborted(known)
    found = []
    for batch in seen:
        if batch.kind is None:
            found.append(metadata.on_data(batch.producer_id, batch.last_offset))
        else:
            kind = None if batch.kind == "empty" else ControlRecordType[batch.kind]
            found.append(metadata.on_marker(batch.producer_id, batch.last_offset, kind))
    return found, metadata.take_kept_entries()


@given(batches, transactions)
@settings(max_examples=400)
def test_what_is_discardable_is_what_a_plain_reading_finds(
    seen: list[Seen], known: list[AbortedTxn]
) -> None:
    assert play(seen, known) == (nothing_left(seen, known), kept_entries(seen, known))


def test_aborted_data_is_discardable_and_holds_its_marker_and_entry() -> None:
    entry = AbortedTxn(1, 0, 4, 5)
    seen = [Seen(1, 1, None), Seen(1, 3, None), Seen(1, 4, "ABORT"), Seen(1, 5, None)]
    assert play(seen, [entry]) == ([True, True, False, False], [entry])


def test_an_entry_known_twice_counts_once() -> None:
    metadata = CleanedTransactionMetadata()
    for _ in range(2):  # two segments of a round find the transaction that spans them
        metadata.add_aborted([AbortedTxn(1, 0, 4, 5)])
    assert metadata.on_data(1, 1)
    assert not metadata.on_marker(1, 4, ABORT)
    assert not metadata.on_data(1, 5)
    assert metadata.take_kept_entries() == [AbortedTxn(1, 0, 4, 5)]


def test_kept_entries_are_given_once_and_the_transactions_go_on() -> None:
    metadata = CleanedTransactionMetadata()
    metadata.add_aborted([AbortedTxn(1, 0, 4, 5), AbortedTxn(2, 1, 9, 10)])
    assert metadata.on_data(1, 0)
    assert metadata.on_data(2, 1)
    metadata.on_marker(1, 4, ABORT)
    assert metadata.take_kept_entries() == [AbortedTxn(1, 0, 4, 5)]
    assert metadata.take_kept_entries() == []
    assert not metadata.on_marker(2, 9, ABORT)  # its data was in the group before
    assert metadata.take_kept_entries() == [AbortedTxn(2, 1, 9, 10)]


def test_only_transactional_and_control_batches_are_asked_about() -> None:
    log = b"".join(
        [
            pack_batch([Record(0, 0, b"k", b"v")], producer_id=1, is_transactional=True),
            pack_batch([Record(1, 0, b"k", b"v")], producer_id=1),  # not in the transaction
            pack_marker_batch(ABORT, 2, 0, producer_id=1, producer_epoch=0, coordinator_epoch=0),
            pack_marker_batch(COMMIT, 3, 0, producer_id=2, producer_epoch=0, coordinator_epoch=0),
            pack_batch([Record(4, 0, b"k", b"v")], producer_id=2, is_transactional=True),
            pack_marker_batch(COMMIT, 5, 0, producer_id=2, producer_epoch=0, coordinator_epoch=0),
        ]
    )
    metadata = CleanedTransactionMetadata()
    metadata.add_aborted([AbortedTxn(1, 0, 2, 3)])
    chunk = Chunk(np.frombuffer(log, np.uint8), 0, rows_of(log))
    found = metadata.discardable(chunk, "x.log").tolist()
    assert found == [True, False, False, True, False, False]


@pytest.mark.parametrize("key", [None, b"\0\0\0", b"\xff\xff\0\0"])
def test_a_marker_that_cannot_be_understood_is_named_with_its_place(key: bytes | None) -> None:
    first = pack_batch([Record(0, 0, b"k", b"v")])
    log = first + pack_batch([Record(7, 0, key, b"")], is_control=True, producer_id=1)
    chunk = Chunk(np.frombuffer(log, np.uint8), 0, rows_of(log))
    with pytest.raises(CorruptRecordError, match="control record key") as caught:
        CleanedTransactionMetadata().discardable(chunk, "x.log")
    error = caught.value
    assert (error.path, error.position, error.offset) == ("x.log", len(first), 7)


def test_a_horizon_has_expired_at_its_very_time() -> None:
    log = b"".join(
        pack_batch([Record(n, 50, b"k", b"v")], delete_horizon_ms=horizon)
        for n, horizon in enumerate((99, 100, 101, None))
    )
    assert expired_horizons(rows_of(log), 100).tolist() == [True, True, False, False]
