"""Records of a time before 1970: where Kafka's cleaner fails an audit says so, and compaction says
that it goes further; where it does not, nobody says anything.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkalog.checking.finding import Finding
from kafkalog.format.constants import CompressionType
from kafkalog.format.record import Record
from tests.auditing.documents import audit
from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.rounds import CompactCall, compact_with_kafkalog
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

NAME = "orders-0"
NOW_MS = START_MS + 10_000
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
CONFIG |= {"index.interval.bytes": "4096"}
YEAR_1_MS = -62_135_596_800_000


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running


def record(offset: int, key: str, timestamp: int, value: str | None = "v") -> Record:
    return Record(offset, timestamp, key.encode(), None if value is None else value.encode())


def closed(built: LogBuilder) -> None:
    built.segment().batch(("active", "x")).write()


def log(log_dir: Path) -> LogBuilder:
    return LogBuilder(log_dir, NAME).segment(modified_ms=START_MS)


def all_of_them(log_dir: Path) -> None:
    """The header tells it."""
    built = log(log_dir).batch(record(0, "a", YEAR_1_MS), record(1, "b", YEAR_1_MS))
    closed(built.batch(("a", "2")))


def behind_a_good_one(log_dir: Path) -> None:
    """Only the records tell it."""
    built = log(log_dir).batch(record(0, "a", START_MS), record(1, "b", -2), record(2, "c", 5))
    closed(built.batch(("a", "2")))


def compressed(log_dir: Path) -> None:
    batch = record(0, "a", START_MS), record(1, "b", YEAR_1_MS)
    closed(log(log_dir).batch(*batch, codec=CompressionType.ZSTD).batch(("a", "2")))


def a_lone_tombstone(log_dir: Path) -> None:
    """It gets a delete horizon."""
    closed(log(log_dir).batch(record(0, "a", YEAR_1_MS, None)).batch(("b", "2")))


def one_record_a_batch(log_dir: Path) -> None:
    """Goes or stays as it is."""
    built = log(log_dir).batch(record(0, "a", YEAR_1_MS)).batch(record(1, "b", YEAR_1_MS))
    closed(built.batch(("a", "2")))


def no_time_at_all(log_dir: Path) -> None:
    """-1 is what a record without a time has."""
    built = log(log_dir).batch(record(0, "a", -1), record(1, "b", -1))
    closed(built.batch(("a", "2")))


# And the first offset of such a time.
FIRST_OFFSETS = {all_of_them: 0, behind_a_good_one: 1, compressed: 1, a_lone_tombstone: 0}
PASS = (one_record_a_batch, no_time_at_all)


@pytest.mark.parametrize("build", [*FIRST_OFFSETS, *PASS])
def test_what_is_said_is_what_kafkas_cleaner_does(
    kafka: Kafka, tmp_path: Path, build: Callable[[Path], None]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    build(ours)
    shutil.copytree(ours, theirs)
    found = _failures(ours)
    call = CompactCall(ours, "orders", 0, NOW_MS, CONFIG, None, 86_400_000, keyless=False)
    said = compact_with_kafkalog(call)["reason"]
    if build in PASS:
        kafka.clean(theirs, NAME, now_ms=NOW_MS, config=CONFIG)
        assert not found
        assert "goes further" not in said
        return
    with pytest.raises(KafkaFailedError, match="Invalid negative timestamp"):
        kafka.clean(theirs, NAME, now_ms=NOW_MS, config=CONFIG)
    (finding,) = found
    assert (finding.offset, finding.position) == (FIRST_OFFSETS[build], 0)
    assert "negative timestamps" in finding.text
    assert "goes further than a broker's cleaner" in said


def _failures(log_dir: Path) -> list[Finding]:
    config = [f"{key}={value}" for key, value in CONFIG.items()]
    run = audit(log_dir, now_ms=NOW_MS, config=config)
    return [finding for finding in run.findings if finding.kind == "cleaner-would-fail"]
