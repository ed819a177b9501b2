"""Legacy wrappers whose messages have another magic than the wrapper itself (KAFKA-4298: cleaners
of that time left such): read and cleaned as Kafka reads and cleans them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record
from tests.conformance.rounds import records
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import CompactCall, compact_with_kafkalog
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

NAME = "orders-0"
NOW_MS = START_MS + 10_000
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
CONFIG |= {"index.interval.bytes": "0"}
GZIP, SNAPPY, LZ4 = CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4
CREATE, APPEND = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
# codec and timestamp type of the wrapper, its magic, those of its messages
WRAPPERS = [
    (GZIP, CREATE, 1, (0, 0, 0)),
    (GZIP, APPEND, 1, (0, 0, 0)),
    (SNAPPY, CREATE, 1, (0, 1, 0)),
    (GZIP, APPEND, 1, (1, 0, 1)),
    (LZ4, CREATE, 1, (1, 1, 0)),
    (GZIP, CREATE, 0, (1, 1, 1)),
    (SNAPPY, CREATE, 0, (0, 1, 0)),
    (LZ4, CREATE, 0, (1, 0, 1)),
]


def wrapper(
    first: int,
    keys: str,
    codec: CompressionType,
    kind: TimestampType,
    magic: int,
    inner: Sequence[int],
) -> bytes:
    """Messages of these magics at `first` and the offsets behind it; the last of three has no
    value.
    """
    content = b"".join(
        pack_legacy_message(
            Record(
                n if magic else first + n,
                START_MS + 10 * first - n,
                key.encode(),
                None if n == 2 else b"value %d" % (first + n),
            ),
            inner_magic,
        )
        for n, (key, inner_magic) in enumerate(zip(keys, inner, strict=True))
    )
    outer = Record(
        first + len(inner) - 1, START_MS + 999, None, compress(codec, content, magic=magic)
    )
    return pack_legacy_message(outer, magic, codec=codec, timestamp_type=kind)


def write(log_dir: Path) -> Path:
    """All wrappers over keys that most of them share, some records superseded in each."""
    log = LogBuilder(log_dir, NAME, index_interval_bytes=0).segment(modified_ms=START_MS)
    for number, (codec, kind, magic, inner) in enumerate(WRAPPERS):
        keys = f"a{'bcdefghi'[number]}{'tuv'[number % 3]}"
        log.raw(wrapper(log.next_offset, keys, codec, kind, magic, inner))
        log.next_offset += 3
    return log.segment().batch(("active", "x")).write()


def test_they_are_cleaned_as_kafka_cleans_them(kafka: Kafka, log_dir: Path) -> None:
    source, ours, kafkas = log_dir / "source", log_dir / "ours", log_dir / "kafkas"
    write(source)
    kafka.recover(source, NAME, now_ms=NOW_MS, config=CONFIG)  # makes the first segment's indexes
    read = [r for b in kafka.dump(source / NAME)["segments"][0]["batches"] for r in b["records"]]
    assert len(read) == 3 * len(WRAPPERS)
    shutil.copytree(source, ours)
    shutil.copytree(source, kafkas)
    kafka.clean(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    compact_with_kafkalog(
        CompactCall(ours, "orders", 0, NOW_MS, CONFIG, None, 86_400_000, keyless=False)
    )
    differences = compare_log_dirs(
        ours, kafkas, NAME, source=source, kafka=kafka, index_interval_bytes=0
    )
    assert not differences, "\n".join(map(str, differences))
    kept = records(ours / NAME)
    assert [r.key for r in kept].count(b"a") == 1
    assert 3 < len(kept) < len(read), "some of them were superseded"
    assert -1 in {r.timestamp for r in kept}, "messages of magic 0 have no time"
