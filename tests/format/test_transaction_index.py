"""The transaction index; items 82 and 83 with tests/log/test_aborted_transactions.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.copy_samples import SAMPLES
from kafkalog.errors import CorruptIndexError
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.transaction_index import (
    AbortedTxn,
    pack_transaction_index,
    parse_transaction_index,
)
from tests.support.reference.batches import parse_batches

# producer 7 aborted what it began at offset 1; the marker is at 258, nothing older was open
ENTRY = AbortedTxn(7, 1, 258, 259)
VECTOR = bytes.fromhex("00000000000000000007000000000000000100000000000001020000000000000103")
longs = st.integers(-(2**63), 2**63 - 1)
entries = st.lists(
    st.tuples(longs, longs, st.integers(0, 2**62), longs), unique_by=lambda entry: entry[2]
).map(lambda rows: [AbortedTxn(*row) for row in sorted(rows, key=lambda row: row[2])])


def test_an_entry_is_34_bytes_as_specified() -> None:
    assert pack_transaction_index([ENTRY]) == VECTOR
    assert parse_transaction_index(VECTOR, 0) == [ENTRY]


@given(entries)
def test_index_round_trip(wanted: list[AbortedTxn]) -> None:
    data = pack_transaction_index(wanted)
    assert len(data) == 34 * len(wanted)
    assert parse_transaction_index(data, 0) == wanted


def test_no_bytes_are_no_entries() -> None:
    assert parse_transaction_index(b"", 0) == []
    assert pack_transaction_index([]) == b""


@pytest.mark.parametrize("extra", [1, 33])
def test_less_than_an_entry_at_the_end_is_ignored(extra: int) -> None:
    assert parse_transaction_index(VECTOR + b"\xff" * extra, 0) == [ENTRY]


@pytest.mark.parametrize(
    ("change", "base_offset", "position", "words"),
    [
        (lambda data: b"\x00\x01" + data[2:], 0, 0, "version 1, known is 0"),
        (lambda data: b"\x80\x00" + data[2:], 0, 0, "version -32768, known is 0"),
        (lambda data: data, 259, 0, "marker offset 258 is below 259"),
        (lambda data: data + data, 0, 34, "marker offset 258 is below 259"),
        (
            lambda data: data + pack_transaction_index([AbortedTxn(8, 0, 200, 0)]),
            0,
            34,
            "marker offset 200 is below 259",
        ),
    ],
    ids=["version", "negative version", "below the base", "the same marker", "an earlier marker"],
)
def test_markers_rise_from_the_base_on(
    change: Callable[[bytes], bytes], base_offset: int, position: int, words: str
) -> None:
    with pytest.raises(CorruptIndexError, match=words) as caught:
        parse_transaction_index(change(VECTOR), base_offset, "t-0/x.txnindex")
    assert (caught.value.path, caught.value.position) == ("t-0/x.txnindex", position)


def test_a_marker_at_the_base_is_sound() -> None:
    assert parse_transaction_index(VECTOR, 258) == [ENTRY]


@given(st.binary(max_size=120))
def test_garbage_is_an_index_or_corrupt(data: bytes) -> None:
    try:
        found = parse_transaction_index(data, 0)
    except CorruptIndexError:
        return
    assert len(found) == len(data) // 34


def test_a_brokers_index_names_its_abort_markers() -> None:
    paths = sorted((SAMPLES / "broker" / "transactions-0").glob("*.txnindex"))
    assert paths
    for path in paths:
        found = parse_transaction_index(path.read_bytes(), int(path.stem), str(path))
        markers = [
            (header.producer_id, header.last_offset)
            for _, header, records in parse_batches(path.with_suffix(".log").read_bytes())
            if header.is_control and _is_abort(records[0].key)
        ]
        assert [(entry.producer_id, entry.last_offset) for entry in found] == markers
        assert all(entry.first_offset < entry.last_offset for entry in found)


def _is_abort(key: bytes | None) -> bool:
    return parse_control_type(key) == ControlRecordType.ABORT


def test_the_sample_is_not_empty() -> None:
    sizes = [path.stat().st_size for path in _sample_indexes()]
    assert sum(sizes) >= 34


def _sample_indexes() -> list[Path]:
    return list((SAMPLES / "broker" / "transactions-0").glob("*.txnindex"))
