"""Offsets that are not here end a read, or what is there is read and the range is said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkalog import fetch, open_log_dir, read_batches, read_records
from kafkalog.errors import KafkaLogError, OffsetOutOfRangeError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.scan import plan_scan
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.tables import read_view
from tests.support.log_builder import START_MS, LogBuilder

NAME = TopicPartition("orders", 0)
SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
Reader = Callable[..., Any]


@pytest.fixture
def lossy(log_dir: Path) -> Path:
    """Ten segments of four offsets; the one at 16 is gone."""
    log = LogBuilder(log_dir)
    for _ in range(10):
        log.segment().batch(("a", "1"), ("b", "2"), producer_id=7).batch(("c", "3"), ("d", "4"))
    log.write()
    for path in log.path.glob(f"{16:020d}.*"):
        path.unlink()
    return log.path


def offsets(path: Path, **options: Any) -> list[int]:
    table = read_records(path, columns=["offset"], **options).read_all()
    return [offset for offset in table["offset"].to_pylist() if offset is not None]


HERE = [offset for offset in range(40) if not 16 <= offset < 20]
READERS: dict[str, Reader] = {
    "records": lambda path, **options: read_records(path, **options).read_all(),
    "batches": read_batches,
    "transactions": partial(read_view, "transactions"),
    "producers": partial(read_view, "producers"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("level", ["log dir", "partition directory", "a glob of directories"])
def test_every_view_ends_or_says_it_once(
    lossy: Path, name: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = {"log dir": lossy.parent, "partition directory": lossy}.get(level, f"{lossy.parent}/or*")
    read = READERS[name]
    with pytest.raises(OffsetOutOfRangeError, match="offsets 16 to 19 are not here") as raised:
        read(path)
    assert (raised.value.offset, raised.value.path) == (16, str(lossy / f"{20:020d}.log"))
    for options in (
        {"mode": "PERMISSIVE"},
        {"mode": "DROPMALFORMED"},
        {"fail_on_data_loss": False},
    ):
        caplog.clear()
        read(path, **options)
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert "offsets 16 to 19 are not here: a segment ends at 16" in warnings[0]


def test_what_is_there_is_read(lossy: Path) -> None:
    assert offsets(lossy, fail_on_data_loss=False) == HERE
    assert offsets(lossy, mode="PERMISSIVE") == HERE


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"starting_offsets": {NAME: 20}}, range(20, 40)),
        ({"ending_offsets": {NAME: 16}}, range(16)),
        ({"starting_timestamp": START_MS + 22}, range(22, 40)),
        ({"ending_timestamp": START_MS + 10}, range(10)),
    ],
)
def test_reads_of_other_offsets_are_not_concerned(
    lossy: Path, options: dict[str, Any], expected: range
) -> None:
    assert offsets(lossy, **options) == list(expected)


@pytest.mark.parametrize(
    "options",
    [
        {"starting_offsets": {NAME: 19}},
        {"ending_offsets": {NAME: 17}},
        {"starting_timestamp": START_MS + 17},  # the first record there is at 20
        {"starting_timestamp": START_MS + 20},
        {"ending_timestamp": START_MS + 17},
        {"ending_offsets": "highWatermark"},
        {"read_committed": True},
    ],
)
def test_reads_that_may_want_them_are(lossy: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="offsets 16 to 19"):
        offsets(lossy, **options)
    assert not set(offsets(lossy, **options, fail_on_data_loss=False)) - set(HERE)


def test_single_files_are_not_judged(lossy: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert offsets(lossy / f"{12:020d}.log") == [12, 13, 14, 15]
    assert offsets(f"{lossy}/*.log") == HERE  # type: ignore[arg-type]
    selection = PartitionSelection(file_glob="*")
    assert plan_scan("records", open_log_dir(lossy), selection)
    assert not caplog.records


def test_the_end_is_missing_for_whoever_reads_up_to_it(lossy: Path) -> None:
    for path in lossy.glob(f"{36:020d}.*"):
        path.unlink()
    for path in lossy.glob(f"{40:020d}.*"):
        path.unlink()
    start = {NAME: 20}
    for options in ({}, {"read_committed": True}, {"ending_offsets": "highWatermark"}):
        with pytest.raises(OffsetOutOfRangeError, match=r"offsets 36 to 39.*recovery-point") as e:
            offsets(lossy, starting_offsets=start, **options)
        assert e.value.position is not None
    assert offsets(lossy, starting_offsets=start, ending_offsets={NAME: 36}) == [*range(20, 36)]


def test_a_fetch_does_not_go_over_a_gap(lossy: Path) -> None:
    first = fetch(lossy, 12)
    assert first.next_offset == 16
    for offset in (16, 18):
        with pytest.raises(OffsetOutOfRangeError, match="offsets 16 to 19"):
            fetch(lossy, offset)
    assert fetch(lossy, 16, fail_on_data_loss=False).next_offset == 24
    assert fetch(lossy, 20).next_offset == 24


def test_a_directory_without_any_log_stops_no_other(log_dir: Path) -> None:
    whole = LogBuilder(log_dir, "orders-1").batch(("a", "1")).write()
    gone = LogBuilder(log_dir, "orders-0").batch(("a", "1"), ("b", "2")).write()
    (gone / f"{0:020d}.log").unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 1 are not here: there is no seg"):
        offsets(log_dir)
    assert offsets(log_dir, mode="PERMISSIVE") == [0]
    assert offsets(whole) == [0]
    for view in ("transactions", "segments", "partitions", "latest_offset_commits"):
        read_view(view, log_dir, mode="PERMISSIVE")
    # A partition that never had a record has no trace of one either.
    for path in (*gone.iterdir(), log_dir / "recovery-point-offset-checkpoint"):
        path.unlink()
    (log_dir / "replication-offset-checkpoint").unlink()
    assert offsets(log_dir) == [0]


def test_a_missing_object_of_a_tiered_log(log_dir: Path) -> None:
    """325 of 400 records were read without a word."""
    remote = SAMPLES / "tiered" / "remote"
    copies = log_dir / "remote" / "kafka-tiered-storage"
    (source,) = (remote / "kafka-tiered-storage").iterdir()
    (copies / source.name).mkdir(parents=True)
    objects = sorted(source.glob("*.log"))
    for path in objects:
        (copies / source.name / path.name).symlink_to(path)
    read = partial(offsets, SAMPLES / "tiered" / "data", topics=["tiered"])
    assert len(read(remote_dirs=[str(log_dir / "remote")])) == 400
    (copies / source.name / objects[1].name).unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 76 to 152 are not here"):
        read(remote_dirs=[str(log_dir / "remote")])
    (copies / source.name / objects[-1].name).unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 76 to 152 are not here"):
        read(remote_dirs=[str(log_dir / "remote")])
    (copies / source.name / objects[0].name).unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 152 are not here"):
        read(remote_dirs=[str(log_dir / "remote")])


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("", "layout of this remote storage is not any that is read"),
        # of another topic, of which nobody wants anything
        ("some/prefix/orders-AAAAAAAAAAAAAAAAAAAAAA/0", "offsets 0 to 381 are not here"),
    ],
)
def test_remote_storage_without_the_log_is_refused(log_dir: Path, layout: str, words: str) -> None:
    (log_dir / layout).mkdir(parents=True, exist_ok=True)
    with pytest.raises(KafkaLogError, match=words):
        offsets(SAMPLES / "tiered" / "data", topics=["tiered"], remote_dirs=[str(log_dir)])
