"""Tiered partitions: remote and local segments are the log that consumers of the broker read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data.copy_samples import SAMPLES, copy_sample
from kafkalog import open_log_dir, read_records
from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.following import end_offsets, first_offsets, plan_between
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.scan import read_task
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.view_reader import ScanNeeds
from kafkalog.reading.views import select_columns
from tests.support.log_builder import LogBuilder

TIERED = SAMPLES / "tiered"
CONSUMED = TIERED / "consumed.json"
COLUMNS = ["offset", "timestampMs", "key", "value"]


def consumed(level: str) -> list[list[Any]]:
    rows: list[list[Any]] = json.loads(CONSUMED.read_text())[level]
    return rows


def rows(table: pa.Table) -> list[list[Any]]:
    return [
        [row["offset"], row["timestampMs"], row["key"].decode(), row["value"].decode()]
        for row in table.to_pylist()
    ]


def read(data: Path, remote: Path, **options: Any) -> list[list[Any]]:
    found = read_records(
        data, topics=["tiered"], columns=COLUMNS, remote_dirs=[str(remote)], **options
    )
    return rows(found.read_all())


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_tiered_partition_reads_as_by_a_consumer(level: str) -> None:
    expected = consumed(level)
    found = read(TIERED / "data", TIERED / "remote", read_committed=level == "read_committed")
    assert found == expected
    assert found[0][0] == 0
    (partition,) = (p for p in open_log_dir(TIERED / "data") if p.topic_partition.topic == "tiered")
    assert partition.segments[0].base_offset > len(expected) / 2  # the rest is remote


def test_without_the_store_only_what_is_local_is_read() -> None:
    options = {"topics": ["tiered"], "columns": COLUMNS}
    with pytest.raises(OffsetOutOfRangeError, match=r"offsets 0 to 381 are not here.*remoteDir"):
        read_records(TIERED / "data", **options)
    local = rows(read_records(TIERED / "data", **options, fail_on_data_loss=False).read_all())
    assert 0 < len(local) < len(consumed("read_uncommitted")) / 2


def test_offsets_and_times_are_found_in_remote_segments() -> None:
    expected = consumed("read_uncommitted")
    name = TopicPartition("tiered", 0)
    middle = len(expected) // 3
    offset, timestamp = expected[middle][:2]
    found = read(TIERED / "data", TIERED / "remote", starting_offsets={name: offset})
    assert found == expected[middle:]
    by_time = read(TIERED / "data", TIERED / "remote", starting_timestamp=timestamp)
    first = next(i for i, row in enumerate(expected) if row[1] >= timestamp)
    assert by_time == expected[first:]
    with pytest.raises(OffsetOutOfRangeError):
        read_records(TIERED / "data", topics=["tiered"], starting_offsets={name: offset})


def test_a_stream_begins_in_the_store() -> None:
    selection = PartitionSelection(
        topics=frozenset({"tiered"}), remote_dirs=(str(TIERED / "remote"),)
    )
    paths = [str(TIERED / "data")]
    start, end = first_offsets(paths, selection), end_offsets(paths, selection)
    assert start == {"tiered": {"0": 0}}
    request = ReadRequest.of(select_columns("records", COLUMNS))
    tasks = plan_between(paths, selection, start, end, ScanNeeds())
    batches = [batch for task in tasks for batch in read_task(task, request)]
    assert rows(pa.Table.from_batches(batches)) == consumed("read_uncommitted")


def test_a_store_without_indexes_and_ids_of_segments_and_copies_twice(tmp_path: Path) -> None:
    """Another store's objects under plain names, an upload cut short, a segment over the next."""
    log_dir = copy_sample("tiered", tmp_path / "copy") / "data"
    store = tmp_path / "objects"
    (source,) = (TIERED / "remote" / "kafka-tiered-storage").glob("tiered-0-*")
    target = store / source.name
    target.mkdir(parents=True)
    logs = sorted(source.glob("*.log"))
    for log in logs:
        shutil.copy(log, target / f"{log.name[:20]}.log")
    cut = target / f"{logs[1].name[:20]}-{'A' * 22}.log"
    cut.write_bytes(logs[1].read_bytes()[:100])
    longer = target / f"{logs[2].name[:20]}.log"
    longer.write_bytes(logs[2].read_bytes() + logs[3].read_bytes())
    assert read(log_dir, store) == consumed("read_uncommitted")


def test_the_topic_id_tells_whose_segments_they_are(log_dir: Path, tmp_path: Path) -> None:
    for directory, value in ((log_dir, "local"), (tmp_path / "a", "a"), (tmp_path / "b", "b")):
        directory.mkdir(exist_ok=True)
        log = LogBuilder(directory, "orders-0")
        if value == "local":
            log.segment(1)
        log.batch(("k", value)).write()
    store = tmp_path / "store"
    for name in ("a", "b"):
        shutil.copytree(tmp_path / name / "orders-0", store / f"orders-0-{name * 22}")
    metadata = log_dir / "orders-0" / "partition.metadata"
    for topic_id in ("a" * 22, "b" * 22):
        metadata.write_text(f"version: 0\ntopic_id: {topic_id}\n")
        found = read_records(log_dir, columns=["value"], remote_dirs=[str(store)]).read_all()
        assert found["value"].to_pylist() == [topic_id[:1].encode(), b"local"]
    metadata.unlink()
    with pytest.raises(InvalidConfigError, match=r"topic id is not known.*orders-0-aaa"):
        read_records(log_dir, remote_dirs=[str(store)])
    with pytest.raises(InvalidConfigError, match="remote storage is a directory"):
        read_records(log_dir, remote_dirs=[str(store / "nowhere")])
