"""What brokers wrote into transactional, internal and ZooKeeper-era topics, cleaned by us and by
Kafka.

Of its own accord Kafka 4.3 compacts the first two internal topics; `__share_group_state`, which it
trims by DeleteRecords, is compacted here on the same terms.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES, copy_sample
from tests.conformance.rounds import aborted, batches, offsets
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import CompactCall, compact_with_kafkalog, work_directory

pytestmark = pytest.mark.oracle

DAY_MS = 86_400_000
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
CONFIG |= {"index.interval.bytes": "1024", "delete.retention.ms": str(DAY_MS)}
INTERNAL = ("__consumer_offsets", "__transaction_state")
PARTITIONS = [
    ("broker", "transactions-0"),
    *(("broker", f"{topic}-{number}") for topic in INTERNAL for number in range(3)),
    ("share", "__share_group_state-0"),
    ("zookeeper/broker-1", "compacted-0"),
    ("zookeeper/broker-2", "compacted-1"),
]


@pytest.mark.parametrize(("sample", "partition"), PARTITIONS)
def test_rounds_over_a_sample_equal_kafkas(kafka: Kafka, sample: str, partition: str) -> None:
    with work_directory() as work:
        base = work / "base"
        base.mkdir()
        copy = copy_sample(sample, work / "sample")
        shutil.move(copy / partition, base / partition)
        now_ms = _latest_ms(base / partition) + 1
        _roll(kafka, base / partition, now_ms)
        records = len(offsets(base / partition))
        for number in range(4):
            base = _round(kafka, base, partition, now_ms + number * (DAY_MS - 1))
        if partition == "transactions-0":
            # the markers of producers that wrote on are gone, with their entries
            assert 0 < len(aborted(base / partition)) < len(aborted(SAMPLES / "broker" / partition))
        if sample == "share":  # two groups on two partitions, and a few updates behind a snapshot
            assert 4 <= len(offsets(base / partition)) < records / 2


def _round(kafka: Kafka, base: Path, partition: str, now_ms: int) -> Path:
    """One more round over the whole log; Kafka's result, which ours equals."""
    (base / "cleaner-offset-checkpoint").unlink(missing_ok=True)
    expiry_ms = 5 * DAY_MS
    options = {"now_ms": now_ms, "config": CONFIG, "producer_expiry_ms": expiry_ms}
    kafka.open_once(base, partition, **options)  # type: ignore[arg-type]
    kafkas, ours = base.with_name(f"kafka-{now_ms}"), base.with_name(f"ours-{now_ms}")
    shutil.copytree(base, kafkas)
    shutil.copytree(base, ours)
    expected = kafka.clean(kafkas, partition, obey_ratio=True, **options)  # type: ignore[arg-type]
    topic, _, number = partition.rpartition("-")
    found = compact_with_kafkalog(
        CompactCall(
            log_dir=ours,
            topic=topic,
            partition=int(number),
            now_ms=now_ms,
            config=CONFIG,
            high_watermark=None,
            producer_expiry_ms=expiry_ms,
            keyless=True,  # some of what transactions wrote has none
        )
    )
    assert found["firstUncleanableOffset"] == expected["firstUncleanableOffset"]
    differences = compare_log_dirs(
        ours, kafkas, partition, source=base, kafka=kafka, index_interval_bytes=1024
    )
    assert not differences, "\n".join(map(str, differences))
    return kafkas


def _latest_ms(partition: Path) -> int:
    return max(
        (header.max_timestamp for header, _ in batches(partition)), default=1_700_000_000_000
    )


def _roll(kafka: Kafka, partition: Path, now_ms: int) -> None:
    kafka.write(partition, [{"roll": True}], now_ms=now_ms, config=CONFIG)
