"""A log of which nothing is dirty, cleaned once more: the same as Kafka's cleaner makes of it where
its checkpoint has no line.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.format.control_record import ControlRecordType
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import CompactCall, compact_with_kafkalog
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

NAME = "orders-0"
DAY_MS = 86_400_000
CONFIG = {"cleanup.policy": "compact", "index.interval.bytes": "4096"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running


def call(log_dir: Path, now_ms: int) -> CompactCall:
    return CompactCall(log_dir, "orders", 0, now_ms, CONFIG, None, 1, keyless=False)


def test_a_round_of_a_clean_log_is_kafkas_without_a_checkpoint(
    kafka: Kafka, tmp_path: Path
) -> None:
    """Of three rounds each takes more: values and markers, tombstones, what is left of them."""
    ours, kafkas, source = tmp_path / "ours", tmp_path / "kafkas", tmp_path / "source"
    built = LogBuilder(ours, NAME).segment(modified_ms=START_MS)
    built.batch(("a", "1"), ("b", "1")).batch(("a", None), ("c", "1")).batch(("d", None))
    built.batch(("e", "1"), producer_id=7, is_transactional=True)
    built.marker(ControlRecordType.COMMIT, 7).batch(("e", "2"))
    built.segment(modified_ms=START_MS).batch(("f", "active")).write()
    kafka.open_once(ours, NAME, now_ms=START_MS, config=CONFIG)
    shutil.copytree(ours, kafkas)
    records = []
    for days in (0, 2, 4):
        now_ms = START_MS + 1000 + days * DAY_MS
        shutil.copytree(ours, source)
        (kafkas / CLEANER_OFFSET_FILE).unlink(missing_ok=True)
        kafka.clean(kafkas, NAME, now_ms=now_ms, config=CONFIG, producer_expiry_ms=1)
        told = compact_with_kafkalog(call(ours, now_ms), "--force", "nothing-dirty")
        records.append(told["recordsRetained"])
        assert not compare_log_dirs(
            ours, kafkas, NAME, source=source, kafka=kafka, index_interval_bytes=4096
        )
        shutil.rmtree(source)
    assert records[0] > records[1]
    told = compact_with_kafkalog(call(ours, START_MS + 9 * DAY_MS))
    assert told["status"] == "skip"
    assert "nothing to clean" in told["reason"]
