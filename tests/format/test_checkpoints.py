from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.checkpoints import (
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)

topics = st.from_regex(r"[A-Za-z0-9._-]{1,30}", fullmatch=True)


@given(st.dictionaries(st.tuples(topics, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1)))
def test_offset_checkpoint_round_trip(entries: dict[tuple[str, int], int]) -> None:
    assert parse_offset_checkpoint(pack_offset_checkpoint(entries)) == entries


def test_offset_checkpoint_has_kafkas_bytes() -> None:
    packed = pack_offset_checkpoint({("orders", 0): 881204, ("a-b.c", 11): 17})
    assert packed == b"0\n2\norders 0 881204\na-b.c 11 17\n"
    assert pack_offset_checkpoint({}) == b"0\n0\n"


@pytest.mark.parametrize("data", [b"", b"0", b"0\n", b"0\n0", b"0\n0\n", b"+0\r\n0\r\n"])
def test_checkpoint_without_entries_is_empty(data: bytes) -> None:
    assert parse_offset_checkpoint(data) == {}
    assert parse_leader_epoch_checkpoint(data) == []


@pytest.mark.parametrize(
    "data",
    [
        b"0\n1\norders 0 5",
        b"0\r\n1\r\norders 0 5\r\n",
        b"0\r1\rorders 0 5\r",
        b"0\n1\norders \t 0   5\n",
        b"0\n1\norders 0 5 \t\n",
        b"0\n1\norders +0 05\n",
    ],
)
def test_line_ends_and_blanks_that_kafka_accepts_are_accepted(data: bytes) -> None:
    assert parse_offset_checkpoint(data) == {("orders", 0): 5}


def test_last_of_two_entries_counts() -> None:
    assert parse_offset_checkpoint(b"0\n2\na 0 5\na 0 3\n") == {("a", 0): 3}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\n", "line 1: '' is no number"),
        (b"1\n0\n", "line 1: version 1, not 0"),
        (b"x\n0\n", "line 1: 'x' is no number"),
        (b" 0\n0\n", "line 1: ' 0' is no number"),
        (b"0\nx\n", "line 2: 'x' is no number"),
        (b"0\n2\na 0 5\n", "line 2: 2 entries are announced, 1 are there"),
        (b"0\n1\na 0 5\nb 0 5\n", "line 2: 1 entries are announced, 2 are there"),
        (b"0\n1\na 0 5\n\n", "line 4: '' does not have 3 fields"),
        (b"0\n1\n a 0 5\n", "line 3: ' a 0 5' does not have 3 fields"),
        (b"0\n1\na 0\n", "line 3: 'a 0' does not have 3 fields"),
        (b"0\n1\na 0 5 6\n", "line 3: 'a 0 5 6' does not have 3 fields"),
        (b"0\n1\na b c 0 5\n", "line 3"),
        (b"0\n1\na x 5\n", "line 3: 'x' is no number"),
        (b"0\n1\na 0 5x\n", "line 3: '5x' is no number"),
        (b"0\n1\na 0 1_000\n", "line 3: '1_000' is no number"),
        (b"0\n1\na 2147483648 5\n", "line 3: '2147483648' is no number"),
        (b"0\n1\na 0 9223372036854775808\n", "line 3: '9223372036854775808' is no number"),
        (b"0\n1\na 0 " + b"9" * 5000 + b"\n", r"line 3: '9+\.\.\.' is no number"),
        (b"0\n1\n\x00\xff\xfe\n", "line 3"),
    ],
)
def test_malformed_checkpoint_names_the_line(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        parse_offset_checkpoint(data, "d/cleaner-offset-checkpoint")
    assert caught.value.path == "d/cleaner-offset-checkpoint"


@given(st.binary(max_size=80), st.binary(max_size=20))
def test_garbage_is_parsed_or_corrupt(garbage: bytes, entry: bytes) -> None:
    for data in (garbage, b"0\n1\n" + entry):
        with contextlib.suppress(CorruptCheckpointError):
            parse_offset_checkpoint(data)
        with contextlib.suppress(CorruptCheckpointError):
            parse_leader_epoch_checkpoint(data)


# -- leader epochs -------------------------------------------------------------------------------


def epochs_file(*entries: tuple[int, int]) -> bytes:
    return pack_leader_epoch_checkpoint(entries)


def test_leader_epochs_have_kafkas_bytes() -> None:
    assert epochs_file((0, 0), (5, 881204)) == b"0\n2\n0 0\n5 881204\n"
    assert parse_leader_epoch_checkpoint(b"0\n2\n0 0\n5 881204\n") == [(0, 0), (5, 881204)]


@pytest.mark.parametrize(
    ("entries", "loaded"),
    [
        ([(0, 0), (2, 10), (2, 20)], [(0, 0), (2, 10)]),  # same epoch, higher start: ignored
        ([(0, 0), (2, 10), (2, 5)], [(0, 0), (2, 5)]),  # same epoch, lower start: replaced
        ([(0, 0), (3, 10), (2, 20)], [(0, 0), (2, 20)]),  # epoch goes back
        ([(0, 0), (2, 10), (3, 10)], [(0, 0), (3, 10)]),  # start does not rise
        ([(0, 0), (2, 10), (3, 30), (4, 5)], [(0, 0), (4, 5)]),
        ([(5, 50), (1, 3)], [(1, 3)]),
    ],
)
def test_epochs_out_of_order_repair_themselves_as_in_kafka(
    entries: list[tuple[int, int]], loaded: list[tuple[int, int]]
) -> None:
    assert parse_leader_epoch_checkpoint(epochs_file(*entries)) == loaded


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=12))
def test_loaded_epochs_and_offsets_always_rise(entries: list[tuple[int, int]]) -> None:
    loaded = parse_leader_epoch_checkpoint(epochs_file(*entries))
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(loaded))
    assert parse_leader_epoch_checkpoint(epochs_file(*loaded)) == loaded


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_epoch_or_start_is_corrupt(entry: tuple[int, int]) -> None:
    with pytest.raises(CorruptCheckpointError, match="line 3: epoch"):
        parse_leader_epoch_checkpoint(epochs_file(entry))
