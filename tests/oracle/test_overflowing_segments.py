"""Segments whose offsets lie too far apart for their indexes: Kafka's cleaner splits one when it
comes to it and begins again, its loader when it recovers one; ours does the same in one run.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from tests.conformance.rounds import batches
from tests.operations.faults.logs import NAME
from tests.operations.faults.test_leftovers import segment_files
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.rebuilding import Case, rebuild_both, recover_with_kafkalog
from tests.oracle.rounds import CompactCall, compact_with_kafkalog
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

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
    joined(path, 0, FAR)
    return path


def joined(path: Path, *bases: int) -> None:
    """Make one segment of several, as old brokers left them."""
    first, *others = (path / f"{base:020d}.log" for base in bases)
    for other in others:
        for suffix in (".log", ".txnindex"):
            if other.with_suffix(suffix).exists():
                with first.with_suffix(suffix).open("ab") as file:
                    file.write(other.with_suffix(suffix).read_bytes())
        for suffix in (*SUFFIXES, ".txnindex", ".snapshot"):
            other.with_suffix(suffix).unlink(missing_ok=True)


def first_of_all(log_dir: Path) -> int:
    write_overflowing(log_dir)
    return 1


def between_others(log_dir: Path) -> int:
    """Small segments before and behind it, which merge with each other and with its parts."""
    log = LogBuilder(log_dir, NAME)
    for name in "abab":
        log.segment(modified_ms=START_MS).batch((name, "1"), (f"only {log.next_offset}", "1"))
    base = log.next_offset
    log.segment(modified_ms=START_MS + 1).batch(("a", "3"), ("c", "1"))
    log.segment(FAR, modified_ms=START_MS + 1).batch(("d", "1")).batch(("b", "3"))
    log.segment(modified_ms=START_MS + 2).batch(("e", "1")).segment().batch(("c", "2"))
    joined(log.write(), base, FAR)
    return 1


def twice(log_dir: Path) -> int:
    """Two of them, and one that spans three times as much as it may."""
    log = LogBuilder(log_dir, NAME)
    bases = [n * FAR for n in range(7)]
    for n, base in enumerate(bases):
        log.segment(base, modified_ms=START_MS + n).batch(("a", "1"), (f"only {n}", "1"))
        log.batch((f"also {n}", None))
    path = log.segment().batch(("b", "1")).write()
    joined(path, *bases[:2])
    joined(path, *bases[3:6])
    return 2


def without_need(log_dir: Path) -> int:
    """What lies too far away does not stay: nothing is split."""
    log = LogBuilder(log_dir, NAME)
    log.segment(modified_ms=START_MS).batch(("c", "1")).batch(("b", "1"))
    log.segment(FAR, modified_ms=START_MS).batch(("a", "2")).batch(("b", "2"))
    log.segment(modified_ms=START_MS).batch(("a", "3"), ("b", "3")).segment().batch(("x", "1"))
    joined(log.write(), 0, FAR)
    return 0


def far_from_its_name(log_dir: Path) -> int:
    """No batch is near the base: one new segment, with a name that fits."""
    log = LogBuilder(log_dir, NAME)
    log.segment(modified_ms=START_MS)
    log.segment(FAR, modified_ms=START_MS).batch(("a", "1")).batch(("b", "1"), ("a", "2"))
    path = log.segment().batch(("b", "2")).write()
    joined(path, 0, FAR)
    return 1


def compressed_and_legacy(log_dir: Path) -> int:
    log = LogBuilder(log_dir, NAME)
    log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1"), codec=CompressionType.GZIP)
    log.segment(FAR, modified_ms=START_MS)
    legacy = [Record(FAR + n, START_MS + n, b"%d" % (n % 2), b"v") for n in range(3)]
    log.raw(pack_legacy_entries(legacy, 1, codec=CompressionType.GZIP))
    log.next_offset = FAR + 3
    log.batch(("a", "2"), ("c", "2"), codec=CompressionType.ZSTD)
    joined(log.segment().batch(("a", "3")).write(), 0, FAR)
    return 1


SHAPES = {
    "first": first_of_all,
    "between others": between_others,
    "two of them": twice,
    "without need": without_need,
    "far from its name": far_from_its_name,
    "compressed and legacy": compressed_and_legacy,
}


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


def kafkas_tries(kafka: Kafka, log_dir: Path) -> int:
    """Clean until Kafka's cleaner comes through; how often it split a segment and gave up."""
    for tries in range(10):
        try:
            kafka.clean(log_dir, NAME, now_ms=NOW_MS, config=CONFIG)
        except KafkaFailedError as error:
            if "LogCleaningAborted" not in str(error):
                raise
        else:
            return tries
    raise AssertionError("Kafka does not come to an end")


def assert_same(ours: Path, kafkas: Path, source: Path, kafka: Kafka) -> None:
    differences = compare_log_dirs(
        ours, kafkas, NAME, source=source, kafka=kafka, index_interval_bytes=4096
    )
    assert not differences, "\n".join(map(str, differences))


def test_kafka_splits_and_gives_up_for_now(split: Split) -> None:
    logs = sorted(int(path.stem) for path in (split.after / NAME).glob("*.log"))
    assert logs == [0, FAR, FAR + 2]
    assert log_bytes(split.after) == log_bytes(split.before)
    assert len(batches(split.after / NAME)) == 5


@pytest.mark.parametrize("shape", SHAPES)
def test_one_run_ends_where_kafkas_tries_end(kafka: Kafka, log_dir: Path, shape: str) -> None:
    source, ours, kafkas = log_dir / "source", log_dir / "ours", log_dir / "kafkas"
    splits = SHAPES[shape](source)
    kafka.open_once(source, NAME, now_ms=NOW_MS, config=CONFIG)
    shutil.copytree(source, ours)
    shutil.copytree(source, kafkas)
    assert kafkas_tries(kafka, kafkas) == splits
    result = compact_with_kafkalog(call(ours))
    assert_same(ours, kafkas, source, kafka)
    assert result["segmentsSplit"] == splits
    assert len(log_bytes(ours)) < len(log_bytes(source))


def test_aborted_data_stays_unreadable_where_kafkas_split_forgets_it(
    kafka: Kafka, log_dir: Path
) -> None:
    """Kafka's new segments have no transaction index: what was aborted is then read as committed,
    and its next round keeps it. A fault of Kafka's that is not followed.
    """
    source, ours, kafkas = log_dir / "source", log_dir / "ours", log_dir / "kafkas"
    log = LogBuilder(source, NAME)
    log.segment(modified_ms=START_MS).batch(("a", "1"))
    log.batch(("aborted", "1"), producer_id=5, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 5)
    log.segment(FAR, modified_ms=START_MS).batch(("b", "1"))
    log.batch(("aborted", "2"), producer_id=5, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 5)
    log.batch(("c", "1"), producer_id=5)
    joined(log.segment().batch(("a", "2")).write(), 0, FAR)
    kafka.open_once(source, NAME, now_ms=NOW_MS, config=CONFIG)
    shutil.copytree(source, ours)
    shutil.copytree(source, kafkas)

    def read_committed(directory: Path, work: str) -> list[int]:
        copy = shutil.copytree(directory, log_dir / work)
        found = kafka.fetch(copy, NAME, now_ms=NOW_MS, config=CONFIG, offset=0)
        return [first_offset for _, first_offset in found["aborted"]]

    with pytest.raises(KafkaFailedError, match="LogCleaningAborted"):
        kafka.clean(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    assert not list((kafkas / NAME).glob("*.txnindex"))
    assert read_committed(source, "fetch-source") == [1, FAR + 1]
    assert read_committed(kafkas, "fetch-kafkas") == []
    kafkas_tries(kafka, kafkas)
    compact_with_kafkalog(call(ours))
    assert b"aborted" in {r.key for _, found in batches(kafkas / NAME) for r in found}
    kept = {r.key for _, found in batches(ours / NAME) for r in found if not r.key[:2] == b"\0\0"}
    assert kept == {b"a", b"b", b"c"}


@pytest.mark.parametrize("shape", SHAPES)
def test_recovering_splits_as_the_loader_does(kafka: Kafka, log_dir: Path, shape: str) -> None:
    source = log_dir / "source"
    SHAPES[shape](source)
    case = Case(source, NAME, NOW_MS, CONFIG, 86_400_000)
    before = log_bytes(source)
    code, said = recover_with_kafkalog(case, source)
    (partition,) = json.loads(said)["partitions"]
    assert (code, partition["status"]) == (1, "rebuild")
    assert {file["action"] for file in partition["files"]} == {"split"}
    found = rebuild_both(case, kafka, log_dir)
    assert not found, "\n".join(map(str, found))
    assert log_bytes(log_dir / "ours") == before


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
    resolve_interrupted_swap(str(ours / NAME), LocalFiles())
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    assert segment_files(ours) == segment_files(kafkas)
    assert log_bytes(ours) == log_bytes(split.before)


def test_indexes_without_a_log_go_as_with_the_loader(kafka: Kafka, log_dir: Path) -> None:
    """With what an interrupted cleaning left; where nothing was interrupted they stay, since what
    a run does not do it does not remove.
    """
    ours, kafkas = log_dir / "ours", log_dir / "kafkas"
    path = LogBuilder(ours, NAME).segment().batch(("a", "1")).segment().batch(("a", "2")).write()
    for suffix in (".index", ".timeindex", ".txnindex"):
        (path / f"{5:020d}{suffix}").write_bytes(b"")
    resolve_interrupted_swap(str(path), LocalFiles())
    assert len(list(path.glob(f"{5:020d}*"))) == 3
    (path / f"{0:020d}.log.cleaned").write_bytes(b"")
    shutil.copytree(ours, kafkas)
    resolve_interrupted_swap(str(path), LocalFiles())
    kafka.open_once(kafkas, NAME, now_ms=NOW_MS, config=CONFIG)
    for log_dir_ in (ours, kafkas):
        assert not list((log_dir_ / NAME).glob(f"{5:020d}*"))
    assert segment_files(ours) == segment_files(kafkas)


def test_a_stale_log_start_line_is_raised_to_the_first_segment(kafka: Kafka, log_dir: Path) -> None:
    LogBuilder(log_dir, NAME).segment(40).batch(("a", "1")).log_start_offset(7).write()
    answer = kafka.open_once(log_dir, NAME, now_ms=NOW_MS, config=CONFIG)
    assert answer["logStartOffset"] == 40
