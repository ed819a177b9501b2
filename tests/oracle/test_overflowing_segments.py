"""A segment whose offsets do not fit its indexes: refused here by name; Kafka splits it, when its
cleaner or its loader after a crash meets it, and what it makes of it is cleaned as Kafka cleans it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.cleaner.recovery import recover_partition
from tests.conformance.rounds import batches
from tests.faults.logs import NAME, contents
from tests.faults.test_leftovers import segment_files
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.rounds import CompactCall, CompactFailedError, compact_with_kafkalog
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

NOW_MS = START_MS + 10_000
FAR = 2**31 + 10
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
CONFIG |= {"index.interval.bytes": "4096"}
SUFFIXES = (".log", ".index", ".timeindex")


@dataclass(frozen=True)
class Split:
    """A log dir with an overflowing segment, and the same after Kafka split it."""

    before: Path
    after: Path


def write_overflowing(log_dir: Path) -> Path:
    """Offsets 0 to 2 and FAR to FAR + 1 in one segment; more in the active one."""
    log = LogBuilder(log_dir, NAME)
    log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1")).batch(("c", "1"))
    log.segment(FAR, modified_ms=START_MS).batch(("a", "2")).batch(("d", "2"))
    path = log.segment().batch(("a", "3")).write()
    first, second = path / f"{0:020d}.log", path / f"{FAR:020d}.log"
    with first.open("ab") as file:
        file.write(second.read_bytes())
    for suffix in (*SUFFIXES, ".snapshot"):
        second.with_suffix(suffix).unlink(missing_ok=True)
    return path


@pytest.fixture
def split(log_dir: Path, kafka: Kafka) -> Split:
    before, after = log_dir / "before", log_dir / "after"
    write_overflowing(before)
    shutil.copytree(before, after)
    with pytest.raises(KafkaFailedError, match="LogCleaningAborted"):
        kafka.clean(after, NAME, now_ms=NOW_MS, config=CONFIG)
    return Split(before, after)


def call(log_dir: Path) -> CompactCall:
    return CompactCall(log_dir, "orders", 0, NOW_MS, CONFIG, None, 86_400_000, keyless=False)


def log_bytes(log_dir: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((log_dir / NAME).glob("*.log")))


def test_an_overflowing_segment_is_refused_by_name_where_kafka_splits_it(split: Split) -> None:
    before = contents(split.before)
    with pytest.raises(CompactFailedError, match=f"segment 0 spans offsets up to {FAR + 1}, more"):
        compact_with_kafkalog(call(split.before))
    assert contents(split.before) == before
    logs = sorted(int(path.stem) for path in (split.after / NAME).glob("*.log"))
    assert logs == [0, FAR, FAR + 2]


def test_a_split_keeps_every_byte_and_is_then_cleaned_as_kafka_cleans_it(
    split: Split, kafka: Kafka, log_dir: Path
) -> None:
    assert log_bytes(split.after) == log_bytes(split.before)
    assert len(batches(split.after / NAME)) == 5
    kafka.open_once(split.after, NAME, now_ms=NOW_MS, config=CONFIG)
    ours, kafkas = log_dir / "ours", log_dir / "kafkas"
    shutil.copytree(split.after, ours)
    shutil.copytree(split.after, kafkas)
    kafka.clean(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    compact_with_kafkalog(call(ours))
    differences = compare_log_dirs(
        ours, kafkas, NAME, source=split.after, kafka=kafka, index_interval_bytes=4096
    )
    assert not differences, "\n".join(map(str, differences))
    assert len(log_bytes(ours)) < len(log_bytes(split.after))


def test_the_loader_splits_as_well_when_it_recovers(
    split: Split, kafka: Kafka, log_dir: Path
) -> None:
    crashed = log_dir / "crashed"
    shutil.copytree(split.before, crashed)
    kafka.recover(crashed, NAME, now_ms=NOW_MS, config=CONFIG)
    assert log_bytes(crashed) == log_bytes(split.before)
    assert sorted(int(p.stem) for p in (crashed / NAME).glob("*.log")) == [0, FAR, FAR + 2]


# suffixes of the two new segments' files, and of the old one's
PHASES = [
    (".cleaned", ".cleaned", ""),
    (".cleaned", ".swap", ""),
    (".swap", ".swap", ""),
    (".swap", ".swap", ".deleted"),
    ("", ".swap", ".deleted"),
]


@pytest.mark.parametrize("phase", range(5))
def test_a_split_that_died_ends_where_kafkas_loader_ends_it(
    split: Split, kafka: Kafka, log_dir: Path, phase: int
) -> None:
    first, second, old = PHASES[phase]
    ours = log_dir / "ours"
    shutil.copytree(split.before, ours)
    for suffix in SUFFIXES:
        source = ours / NAME / f"{0:020d}{suffix}"
        if old:
            source.rename(source.with_name(source.name + old))
        for base, state in ((0, first), (FAR, second)):
            name = f"{base:020d}{suffix}"
            shutil.copy2(split.after / NAME / name, ours / NAME / f"{name}{state}")
    kafkas = log_dir / "kafkas"
    shutil.copytree(ours, kafkas)
    recover_partition(str(ours / NAME), LocalFiles())
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    assert segment_files(ours) == segment_files(kafkas)
    assert log_bytes(ours) == log_bytes(split.before)


def test_indexes_without_a_log_go_as_with_the_loader(kafka: Kafka, log_dir: Path) -> None:
    ours, kafkas = log_dir / "ours", log_dir / "kafkas"
    path = LogBuilder(ours, NAME).segment().batch(("a", "1")).segment().batch(("a", "2")).write()
    for suffix in (".index", ".timeindex", ".txnindex"):
        (path / f"{5:020d}{suffix}").write_bytes(b"")
    shutil.copytree(ours, kafkas)
    recover_partition(str(path), LocalFiles())
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    for log_dir_ in (ours, kafkas):
        assert not list((log_dir_ / NAME).glob(f"{5:020d}*"))
    assert segment_files(ours) == segment_files(kafkas)


def test_a_stale_log_start_line_is_raised_to_the_first_segment(kafka: Kafka, log_dir: Path) -> None:
    LogBuilder(log_dir, NAME).segment(40).batch(("a", "1")).log_start_offset(7).write()
    answer = kafka.open_once(log_dir, NAME, now_ms=NOW_MS, config=CONFIG)
    assert answer["logStartOffset"] == 40
