"""Records above `max.decompressed.message.bytes`: a 4.4 broker's cleaner gives a partition up over
one, and so do we; everything else it cleans, and so do we, with the same result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record, pack_record
from kafkalog.format.varint import parse_varint
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.rounds import (
    CompactCall,
    CompactFailedError,
    compact_with_kafkalog,
    play_and_keep_failed,
)
from tests.oracle.scripts import CODECS, random_scenario
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

pytestmark = pytest.mark.oracle

NAME = "orders-0"
NOW_MS = START_MS + 10_000
KEY = "max.decompressed.message.bytes"
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
CONFIG |= {"index.interval.bytes": "4096"}
GZIP, NONE = CompressionType.GZIP, CompressionType.NONE
LARGE = ("large", "v" * 500, ((b"header", b"h" * 20),))
SEEDS = range(9_100, 9_112)


@pytest.fixture(scope="module")
def kafka_4_4() -> Iterator[Kafka]:
    with Kafka("4.4") as running:
        yield running


def body_bytes(offset_delta: int, timestamp_delta: int) -> int:
    """What stands in front of LARGE as the record's length."""
    key, value, headers = LARGE
    record = Record(offset_delta, timestamp_delta, key.encode(), value.encode(), headers)
    return parse_varint(pack_record(record, 0, 0))[0]


def log(log_dir: Path) -> LogBuilder:
    return LogBuilder(log_dir, NAME).segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1"))


def closed(built: LogBuilder) -> None:
    built.batch(("a", "2")).segment().batch(("active", "x")).write()


def compressed(log_dir: Path) -> int:
    closed(log(log_dir).batch(("c", "1"), LARGE, ("a", "9"), codec=CompressionType.ZSTD))
    return body_bytes(1, 1)


def before_the_first_dirty_offset(log_dir: Path) -> int:
    """Read by the second pass alone."""
    built = log(log_dir).batch(LARGE, codec=GZIP).segment(modified_ms=START_MS)
    closed(built.cleaner_offset(3))
    return body_bytes(0, 0)


def uncompressed(log_dir: Path) -> int:
    """Not held to any limit."""
    closed(log(log_dir).batch(("c", "1"), LARGE))
    return 2**20


def aborted(log_dir: Path) -> int:
    """Goes without being read."""
    built = log(log_dir)
    built.batch(LARGE, codec=GZIP, producer_id=5, is_transactional=True)
    built.marker(ControlRecordType.ABORT, 5)
    built.batch(("c", "1"), producer_id=5)
    closed(built)
    return 2**20


def aborted_and_last_of_its_producer(log_dir: Path) -> int:
    """Kept as an empty batch, for which its records are read."""
    built = log(log_dir)
    built.batch(LARGE, codec=GZIP, producer_id=5, is_transactional=True)
    built.marker(ControlRecordType.ABORT, 5)
    closed(built)
    return body_bytes(0, 0)


def in_a_wrapper(magic: int) -> Callable[[Path], int]:
    def write(log_dir: Path) -> int:
        built = log(log_dir)
        start = built.next_offset
        records = [
            Record(start, START_MS, b"c", b"1"),
            Record(start + 1, START_MS, b"large", b"v" * 500),
        ]
        built.raw(pack_legacy_entries(records, magic, codec=GZIP))
        built.next_offset = start + 2
        closed(built)
        return 505 + (14 if magic == 0 else 22)

    return write


CASES = {
    "compressed": compressed,
    "before the first dirty offset": before_the_first_dirty_offset,
    "uncompressed": uncompressed,
    "aborted": aborted,
    "aborted, last of its producer": aborted_and_last_of_its_producer,
    "magic 0": in_a_wrapper(0),
    "magic 1": in_a_wrapper(1),
}
NEVER_READ = {"uncompressed", "aborted"}


def call(log_dir: Path, limit: int, version: str = "4.4") -> CompactCall:
    config = {**CONFIG, KEY: str(limit)}
    return CompactCall(
        log_dir, "orders", 0, NOW_MS, config, None, 86_400_000, keyless=False, kafka_version=version
    )


@pytest.mark.parametrize("case", CASES)
def test_the_limit_is_kafkas_to_the_byte(kafka_4_4: Kafka, log_dir: Path, case: str) -> None:
    source = log_dir / "source"
    limit = CASES[case](source)
    small = 100 if case in NEVER_READ else limit
    kafka_4_4.open_once(source, NAME, now_ms=NOW_MS, config={**CONFIG, KEY: str(small)})
    ours, kafkas = log_dir / "ours", log_dir / "kafkas"
    shutil.copytree(source, ours)
    shutil.copytree(source, kafkas)
    kafka_4_4.clean(kafkas, NAME, now_ms=NOW_MS, config={**CONFIG, KEY: str(small)})
    compact_with_kafkalog(call(ours, small))
    assert not compare_log_dirs(
        ours, kafkas, NAME, source=source, kafka=kafka_4_4, index_interval_bytes=4096
    )
    if case in NEVER_READ:
        return
    given_up = Path(shutil.copytree(source, log_dir / "given-up"))
    with pytest.raises(KafkaFailedError, match="InvalidRecordException"):
        kafka_4_4.clean(given_up, NAME, now_ms=NOW_MS, config={**CONFIG, KEY: str(limit - 1)})
    files = {path: path.read_bytes() for path in (source / NAME).iterdir()}
    what = f"record of {limit} bytes is larger than {KEY} {limit - 1} lets"
    with pytest.raises(CompactFailedError, match=what):
        compact_with_kafkalog(call(source, limit - 1))
    assert {path: path.read_bytes() for path in (source / NAME).iterdir()} == files


@pytest.mark.parametrize("version", ["4.1", "4.2", "4.3"])
def test_older_brokers_have_no_such_setting(log_dir: Path, version: str) -> None:
    compressed(log_dir)
    with pytest.raises(CompactFailedError, match=f"(?s)code 2: .*unknown setting {KEY}: Kafka"):
        compact_with_kafkalog(call(log_dir, 10, version))


def test_random_logs_are_cleaned_or_given_up_as_kafka_does(kafka_4_4: Kafka) -> None:
    outcomes = []
    for seed in SEEDS:
        scenario = random_scenario(
            seed,
            codec=CODECS[1:][seed % 4],
            transactional=seed % 3 == 0,
            legacy=seed % 3 == 1,
        )
        scenario.config[KEY] = str(40 + 17 * (seed % 5) ** 2)
        outcomes.append(play_and_keep_failed(scenario, kafka_4_4, compact_with_kafkalog))
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome.kafka_failures for outcome in outcomes) > 1
    assert sum(outcome.cleaned for outcome in outcomes) > 1
