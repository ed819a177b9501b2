"""Views segments and partitions against what the builder knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkalog.reading import log_views
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.scan import open_paths, plan_scan, read_task
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.views import default_columns, select_columns
from tests.support.log_builder import META, START_MS, TOPIC_ID, LogBuilder


def rows(view: str, path: Path, names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    columns = select_columns(view, names or default_columns(view))
    inventory, named = open_paths([path])
    tasks = plan_scan(view, inventory, PartitionSelection().naming(named))
    request = ReadRequest.of(columns)
    batches = [batch for task in tasks for batch in read_task(task, request)]
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def test_segment_row_tells_what_is_in_the_file(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment(modified_ms=START_MS + 500)
    log.batch(("a", "1"), ("b", "2")).batch(("c", "3"), timestamp=START_MS + 70)
    log.segment().batch(("d", "4")).torn(30)
    path = log.write()
    (path / f"{0:020}.log.deleted").write_bytes(b"")
    first, deleted, active = rows("segments", path)
    assert first.pop("modificationTime").timestamp() * 1000 == START_MS + 500
    assert first == {
        "topic": "orders",
        "partition": 0,
        "baseOffset": 0,
        "nextOffset": 3,
        "recordsCount": 3,
        "batchesCount": 2,
        "sizeInBytes": len(log.segments[0].log),
        "largestTimestampMs": START_MS + 70,
        "smallestTimestampMs": START_MS,
        "isActive": False,
        "state": "live",
        "indexSize": 0,
        "timeIndexSize": 12,
        "txnIndexSize": 0,
        "hasSnapshot": False,
        "validBytes": len(log.segments[0].log),
        "trailingBytes": 0,
        "error": None,
        "indexState": "empty",
        "timeIndexState": "whole",
        "kind": "live",
        "path": str(path / f"{0:020}.log"),
    }
    assert (deleted["state"], deleted["recordsCount"], deleted["nextOffset"]) == ("deleted", 0, 0)
    assert deleted["largestTimestampMs"] is None
    assert (deleted["indexState"], deleted["timeIndexState"]) == ("missing", "missing")
    assert (active["isActive"], active["hasSnapshot"], active["trailingBytes"]) == (True, True, 30)


def test_damaged_segment_is_a_row_with_its_error(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1")).segment().batch(("b", "2"))
    path = log.write()
    file = path / f"{0:020}.log"
    file.write_bytes(file.read_bytes() + b"\xff" * 40)
    damaged, _ = rows("segments", path)
    assert damaged["recordsCount"] == 1
    assert damaged["validBytes"] == len(log.segments[0].log)
    assert damaged["trailingBytes"] == 40
    assert "length" in damaged["error"]


def test_headers_are_walked_only_for_columns_that_need_it(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = LogBuilder(log_dir).batch(("a", "1")).write()
    walked = []
    scan = log_views.scan_headers
    monkeypatch.setattr(log_views, "scan_headers", lambda path: walked.append(1) or scan(path))
    cheap = ("topic", "baseOffset", "sizeInBytes", "state", "hasSnapshot", "path")
    assert len(rows("segments", path, cheap)) == 1
    assert walked == []
    rows("segments", path, ("recordsCount",))
    rows("segments", path, ("indexState",))
    assert walked == [1, 1]


def test_the_marker_of_a_clean_shutdown_counts_whatever_it_holds(log_dir: Path) -> None:
    def shutdowns() -> list[tuple[Any, ...]]:
        names = ("isCleanShutdown", "brokerEpoch")
        return [tuple(row.values()) for row in rows("partitions", log_dir, names)]

    LogBuilder(log_dir, "__cluster_metadata-0").batch(("a", "1")).write()
    LogBuilder(log_dir, "orders-0").batch(("a", "1")).write()
    marker = log_dir / ".kafka_cleanshutdown"
    # the metadata log is recovered at every start
    assert shutdowns() == [(False, None), (True, 1)]
    marker.write_bytes(b"")
    assert shutdowns() == [(False, None), (True, None)]
    marker.unlink()
    assert shutdowns() == [(False, None), (False, None)]


def test_partition_row_tells_offsets_and_identity(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "orders-2").segment().batch(("a", "1"), ("b", "2"))
    log.segment().batch(("c", "3"), producer_id=9, is_transactional=True).batch(("d", "4"))
    log.log_start_offset(1).cleaner_offset(2).high_watermark(3)
    path = log.write()
    (row,) = rows("partitions", path)
    assert row == {
        "topic": "orders",
        "partition": 2,
        "kind": "live",
        "topicId": TOPIC_ID,
        "directoryId": META.directory_id,
        "logStartOffset": 1,
        "logEndOffset": 4,
        "highWatermark": 3,
        # the transaction of producer 9 is open
        "lastStableOffset": 2,
        "recoveryPoint": 4,
        "cleanerCheckpoint": 2,
        "segmentsCount": 2,
        "sizeInBytes": sum(len(segment.log) for segment in log.segments),
        "hasRemoteSegments": False,
        "isCleanShutdown": True,
        "brokerEpoch": 1,
        "logDir": str(log_dir),
        "path": str(path),
    }
