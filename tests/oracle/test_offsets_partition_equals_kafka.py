"""A partition of `__consumer_offsets`, commits over and over to the same keys: compacted by us and
by Kafka's cleaner to the same bytes. One of the size that large clusters have under `make soak`.
"""

from __future__ import annotations

import filecmp
from pathlib import Path

import numpy as np
import pytest

from kafkalog import read_view
from tests.benchmarks.bench_group_offsets import NOW_MS, PARTITION, write_commits
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import (
    CompactCall,
    compact_with_kafkalog,
    copy_log_dir,
    work_directory,
)

pytestmark = pytest.mark.oracle

TOPIC, _, NUMBER = PARTITION.rpartition("-")
EXPIRY_MS = 86_400_000
# The settings a broker creates the topic with; the small log has smaller segments.
CONFIG = {"cleanup.policy": "compact", "compression.type": "producer"}


@pytest.mark.parametrize(
    ("records", "keys", "segment_batches", "segment_bytes"),
    [
        pytest.param(120_000, 3000, 150, 2_000_000, id="small"),
        pytest.param(20_000_000, 50_000, 14_000, 104_857_600, id="2GiB", marks=pytest.mark.soak),
    ],
)
def test_an_offsets_partition_is_compacted_as_by_kafka(
    kafka: Kafka,
    monkeypatch: pytest.MonkeyPatch,
    records: int,
    keys: int,
    segment_batches: int,
    segment_bytes: int,
) -> None:
    monkeypatch.setattr("tests.oracle.kafka.CALL_TIMEOUT_S", 3600)
    config = {**CONFIG, "segment.bytes": str(segment_bytes)}
    with work_directory() as work:
        kafkas, ours = work / "kafka", work / "ours"
        latest = write_commits(kafkas, records, keys, segment_batches)
        kafka.recover(kafkas, PARTITION, now_ms=NOW_MS, config=config, producer_expiry_ms=EXPIRY_MS)
        copy_log_dir(kafkas, ours)
        before = size_of(ours)
        end = records // 60 * 60
        answer = kafka.clean(
            *(kafkas, PARTITION),
            now_ms=NOW_MS,
            config=config,
            high_watermark=end,
            producer_expiry_ms=EXPIRY_MS,
        )
        assert not answer["skipped"]
        compact_with_kafkalog(
            CompactCall(
                log_dir=ours,
                topic=TOPIC,
                partition=int(NUMBER),
                now_ms=NOW_MS,
                config=config,
                high_watermark=end,
                producer_expiry_ms=EXPIRY_MS,
                keyless=False,
            )
        )
        assert live_files(ours) == live_files(kafkas)
        for name in live_files(ours):
            assert filecmp.cmp(ours / PARTITION / name, kafkas / PARTITION / name, shallow=False), (
                name
            )
        assert size_of(ours) < before / 2
        found = read_view("latest_offset_commits", ours, columns=["offset"])["offset"].to_numpy()
        assert np.array_equal(np.sort(found), np.sort(latest[latest >= 0]))


def live_files(log_dir: Path) -> list[str]:
    """Names of the segments' files, those of the active one's log too."""
    kinds = (".log", ".index", ".timeindex")
    return sorted(p.name for p in (log_dir / PARTITION).iterdir() if p.suffix in kinds)


def size_of(log_dir: Path) -> int:
    """Bytes of the partition's segments."""
    return sum(path.stat().st_size for path in (log_dir / PARTITION).glob("*.log"))
