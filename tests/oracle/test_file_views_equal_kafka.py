"""The views of small files against Kafka's DumpLogSegments, over every sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import kafkalog
import kafkalog.errors
from data.copy_samples import copy_sample
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import work_directory

pytestmark = pytest.mark.oracle

# What the tool prints of an entry → the view's columns.
PATTERNS = {
    "offset_index": r"offset: (?P<offset>-?\d+) position: (?P<position>-?\d+)",
    "time_index": r"timestamp: (?P<timestampMs>-?\d+) offset: (?P<offset>-?\d+)",
    "transaction_index": r"version: 0 producerId: (?P<producerId>-?\d+)"
    r" firstOffset: (?P<firstOffset>-?\d+) lastOffset: (?P<lastOffset>-?\d+)"
    r" lastStableOffset: (?P<lastStableOffset>-?\d+)",
    "producer_snapshot": r"producerId: (?P<producerId>-?\d+)"
    r" producerEpoch: (?P<producerEpoch>-?\d+)"
    r" coordinatorEpoch: (?P<coordinatorEpoch>-?\d+)"
    r" currentTxnFirstOffset: OptionalLong(?:\.empty|\[(?P<currentTxnFirstOffset>\d+)\])"
    r" lastTimestamp: (?P<timestampMs>-?\d+)"
    r"(?: firstSequence: -?\d+ lastSequence: (?P<lastSequence>-?\d+)"
    r" lastOffset: (?P<lastOffset>-?\d+) offsetDelta: (?P<offsetDelta>-?\d+) timestamp: -?\d+)?.*",
}
SAMPLES = ("broker", "cleaning/before", "cleaning/after")


@pytest.mark.parametrize("view", PATTERNS)
def test_every_entry_is_what_kafkas_tool_prints(kafka: Kafka, view: str) -> None:
    files_count = entries_count = 0
    with work_directory() as work:
        for number, sample in enumerate(SAMPLES):
            log_dir = copy_sample(sample, work / str(number))
            rows = kafkalog.read_view(view, log_dir).to_pylist()
            by_path: dict[str, list[dict[str, Any]]] = {}
            for row in rows:
                if row["state"] == "live":
                    by_path.setdefault(row["path"], []).append(row)
            for path, entries in by_path.items():
                # the tool takes the empty index's zeros for a partition that is not there
                expected = _dumped(kafka, view, Path(path))
                assert [_shown(entry, expected[0]) for entry in entries] == expected, path
                files_count += 1
                entries_count += len(entries)
    least = {
        "offset_index": 100,
        "time_index": 100,
        "transaction_index": 5,
        "producer_snapshot": 20,
    }
    assert entries_count >= least[view]
    assert files_count > 1 or view == "transaction_index"


def _dumped(kafka: Kafka, view: str, path: Path) -> list[dict[str, int]]:
    text = kafka.call("dumplog", "--files", str(path))["text"]
    lines = [re.fullmatch(PATTERNS[view], line) for line in text.splitlines()]
    return [
        {name: int(value) for name, value in match.groupdict(default="-1").items()}
        for match in lines
        if match is not None
    ]


def _shown(entry: dict[str, Any], like: dict[str, int]) -> dict[str, int]:
    return {name: entry[name] for name in like}


def test_a_snapshot_of_version_0_is_refused_by_kafka_as_by_us(kafka: Kafka) -> None:
    """Version 0 never left a release: both read 1 alone."""
    with work_directory() as work:
        log_dir = copy_sample("broker", work / "sample")
        snapshot = next((log_dir / "idempotent-0").glob("*.snapshot"))
        assert _dumped(kafka, "producer_snapshot", snapshot)
        snapshot.write_bytes(b"\0\0" + snapshot.read_bytes()[2:])
        assert not _dumped(kafka, "producer_snapshot", snapshot)
        with pytest.raises(kafkalog.errors.CorruptSnapshotError, match="version 0, not 1"):
            kafkalog.read_view("producer_snapshot", log_dir / "idempotent-0")


def test_a_preallocated_index_has_no_entries_whatever_kafkas_tool_shows(kafka: Kafka) -> None:
    with work_directory() as work:
        log_dir = copy_sample("broker", work / "sample")
        index = next(
            path for path in sorted((log_dir / "orders-0").glob("*.index")) if path.stat().st_size
        )
        before = kafkalog.read_view("offset_index", index.parent).num_rows
        with index.open("ab") as file:
            file.truncate(10 * 1024 * 1024)
        assert kafkalog.read_view("offset_index", index.parent).num_rows == before
        index.write_bytes(bytes(10 * 1024 * 1024))
        assert _dumped(kafka, "offset_index", index) == [{"offset": int(index.stem), "position": 0}]
        found = kafkalog.read_view("offset_index", index.parent).to_pylist()
        assert str(index) not in {row["path"] for row in found}
