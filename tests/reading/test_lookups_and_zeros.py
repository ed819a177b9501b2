"""Lookups by time where zeros stand for lost records at the end of a closed segment: who bears no
loss is told, instead of getting the next record there is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkalog
from kafkalog.errors import CorruptRecordError
from kafkalog.reading.lookups import MAX_TIMESTAMP, list_offsets, offset_for_leader_epoch
from tests.support.log_builder import START_MS, LogBuilder


@pytest.fixture
def zeroed(tmp_path: Path) -> Path:
    """Two segments of three batches, a second apart; the first one's last batch is zeros."""
    log = LogBuilder(tmp_path, "orders-0", index_interval_bytes=150)
    for number in range(6):
        if number % 3 == 0:
            log.segment()
        log.batch((f"k{number}", "v"), timestamp=START_MS + 1000 * number)
    path = log.write()
    first = path / "00000000000000000000.log"
    data, start = first.read_bytes(), log.segments[0].batches[2][0]
    first.write_bytes(data[:start] + bytes(len(data) - start))
    return path


def test_a_lookup_does_not_step_over_zeros(zeroed: Path) -> None:
    assert list_offsets(zeroed, START_MS + 1000).offset == 1  # type: ignore[union-attr]
    for timestamp in (START_MS + 2000, START_MS + 3000, MAX_TIMESTAMP):
        with pytest.raises(CorruptRecordError, match="zero bytes up to the end"):
            list_offsets(zeroed, timestamp)
    (zeroed / "leader-epoch-checkpoint").unlink()
    with pytest.raises(CorruptRecordError, match="zero bytes up to the end"):
        offset_for_leader_epoch(zeroed, 0)


def test_a_read_from_a_time_on_bears_zeros_as_its_mode_says(zeroed: Path) -> None:
    since = START_MS + 2000
    with pytest.raises(CorruptRecordError, match="zero bytes up to the end"):
        kafkalog.read_records(zeroed, starting_timestamp=since).read_all()
    table = kafkalog.read_records(zeroed, starting_timestamp=since, mode="PERMISSIVE").read_all()
    assert table["offset"].to_pylist() == [3, 4, 5]


def test_zeros_behind_all_records_are_no_loss(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0").segment().batch(("k", "v"), timestamp=START_MS)
    path = log.segment().batch(("k", "v"), timestamp=START_MS + 1000).write()
    first = path / "00000000000000000000.log"
    first.write_bytes(first.read_bytes() + bytes(100))
    assert list_offsets(path, START_MS + 1).offset == 1  # type: ignore[union-attr]
