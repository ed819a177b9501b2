"""Which segments Kafka's loader makes the indexes of anew: `retention_facts` asks their headers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.format.checkpoints import RECOVERY_POINT_FILE, pack_offset_checkpoint
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kafkalog.format.file_names import offset_index_file_name, transaction_index_file_name
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.retention_facts import repaired_segments
from tests.oracle.kafka import Kafka
from tests.support.log_builder import START_MS

pytestmark = pytest.mark.oracle

NAME, BASES, END = "orders-0", (0, 368, 736), 900
CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}
NOW_MS = START_MS + 10_000
# An entry that no rebuilding makes: a position of 0 for an offset above the base.
_MARK = struct.pack(">ii", 1, 0)
# An aborted transaction that ends below its segment.
_BELOW = struct.pack(">hqqqq", 0, 7, 1, 2, 3)


def marked(log_dir: Path, recovery_point: int | None, *, is_clean: bool) -> Path:
    """A copy of the sample whose indexes tell whether they were made anew."""
    disk = copy_sample("broker", log_dir / "disk")
    lines = {} if recovery_point is None else {("orders", 0): recovery_point}
    (disk / RECOVERY_POINT_FILE).write_bytes(pack_offset_checkpoint(lines))
    if not is_clean:
        (disk / CLEAN_SHUTDOWN_FILE).unlink()
    for base in BASES:
        (disk / NAME / offset_index_file_name(base)).write_bytes(_MARK)
    return disk


def check(kafka: Kafka, disk: Path, recovery_point: int | None, *, is_clean: bool) -> list[int]:
    """The segments that ours calls repaired, which are those that Kafka makes anew."""
    partition = reopen_partition(str(disk / NAME))
    assert partition is not None
    ours = [segment.base_offset for segment in repaired_segments(partition)]
    if is_clean:
        kafka.open_once(disk, NAME, now_ms=NOW_MS, config=CONFIG)
    else:
        point = recovery_point or 0
        kafka.recover(disk, NAME, now_ms=NOW_MS, config=CONFIG, recovery_point=point)
    indexes = {base: disk / NAME / offset_index_file_name(base) for base in BASES}
    assert ours == [base for base, path in indexes.items() if path.read_bytes() != _MARK]
    return ours


@pytest.mark.parametrize("point", [None, 0, 367, 368, 369, 735, 736, 737, 899, END, 5000])
def test_after_a_crash_those_from_the_recovery_point_on(
    kafka: Kafka, log_dir: Path, point: int | None
) -> None:
    """The active one always, the log's end as its recovery point or not."""
    repaired = check(kafka, marked(log_dir, point, is_clean=False), point, is_clean=False)
    assert repaired == [
        base for base in BASES if base >= max(b for b in BASES if b <= (point or 0))
    ]


@pytest.mark.parametrize("point", [None, 368, END])
def test_after_a_stop_in_order_none(kafka: Kafka, log_dir: Path, point: int | None) -> None:
    assert check(kafka, marked(log_dir, point, is_clean=True), point, is_clean=True) == []


def test_after_a_stop_in_order_those_whose_indexes_cannot_be_used(
    kafka: Kafka, log_dir: Path
) -> None:
    disk = marked(log_dir, END, is_clean=True)
    (disk / NAME / offset_index_file_name(0)).unlink()
    (disk / NAME / transaction_index_file_name(368)).write_bytes(_BELOW)
    assert check(kafka, disk, END, is_clean=True) == [0, 368]
