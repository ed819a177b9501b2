"""What headers and records say of a log's contents, against a slow and obvious count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.copy_samples import SAMPLES
from kafkalog.contents.header_contents import MOST_SLICES
from kafkalog.contents.latest_keys import KEY_ROW, Estimate, LatestKeys
from kafkalog.contents.log_contents import Contents, header_scan, scan_records
from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_headers import iterate_headers
from tests.cleaning.logs import LogSpec, log_specs, read_partition
from tests.support.log_builder import START_MS, LogBuilder


def partition_of(log_dir: Path) -> PartitionInventory:
    (partition,) = open_log_dir(log_dir)
    return partition


def contents_of(log_dir: Path, *, first_dirty: int = 0, most_rows: int = 1000) -> Contents:
    partition = partition_of(log_dir)
    scan = header_scan(partition, first_dirty)
    for segment in partition.segments:
        for headers in iterate_headers(segment.path, most_rows=most_rows):
            scan.add(scan.scanned(headers.rows), is_active=segment.is_active)
    records, problem = scan_records(
        partition,
        first_dirty_offset=first_dirty,
        end_offset=partition.segments[-1].base_offset,
        with_keys=True,
    )
    return Contents(scan.finish(), records, problem)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(spec=log_specs(keyless=True), first_dirty=st.integers(0, 30), most_rows=st.integers(1, 3))
def test_records_are_counted_as_one_by_one(
    spec: LogSpec, first_dirty: int, most_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log_dir = tmp_path_factory.mktemp("log")
    path = spec.build(log_dir).write()
    found = contents_of(log_dir, first_dirty=first_dirty, most_rows=most_rows)
    assert found.problem == ""
    expected: Counter[str] = Counter()
    latest: dict[bytes, bytes | None] = {}
    for header, records in read_partition(path):
        for record in records:
            is_clean = record.offset < first_dirty
            stamped = header.has_delete_horizon
            expected["records"] += 1
            expected["tombstones"] += record.value is None
            expected["tombstones_with_horizon"] += record.value is None and stamped
            expected["tombstones_in_clean"] += record.value is None and is_clean and not stamped
            expected["empty_values"] += record.value == b""
            expected["keyless_records"] += record.key is None
            if record.key is not None:
                latest[record.key] = record.value
    assert found.records is not None
    for name in expected:
        assert getattr(found.records, name) == expected[name], name
    keys = found.records.keys
    assert keys is not None
    assert (keys.distinct_keys.value, keys.distinct_keys.error) == (len(latest), 0)
    assert keys.fake_tombstones.value == sum(value in (b"", b"null") for value in latest.values())
    headers = found.headers
    sizes = sum(p.stat().st_size for p in path.glob("*.log"))
    assert headers.committed_bytes == sizes
    assert sum(s.closed_bytes + s.active_bytes for s in headers.slices) == sizes
    assert sum(s.records for s in headers.slices) == expected["records"]


def test_transactions_by_outcome(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    sizes: dict[str, int] = Counter()

    def data(producer_id: int, outcome: str) -> None:
        before = len(log.segments[-1].log)
        log.batch(("k", "v" * producer_id), producer_id=producer_id, is_transactional=True)
        sizes[outcome] += len(log.segments[-1].log) - before

    def marker(producer_id: int, kind: ControlRecordType) -> None:
        before = len(log.segments[-1].log)
        log.marker(kind, producer_id)
        sizes["marker"] += len(log.segments[-1].log) - before

    log.segment()
    data(7, "aborted")
    data(8, "committed")
    data(7, "aborted")
    log.segment()
    data(7, "aborted")
    marker(7, ControlRecordType.ABORT)
    data(7, "committed")
    data(9, "open")
    log.segment()
    marker(8, ControlRecordType.COMMIT)
    marker(7, ControlRecordType.COMMIT)
    marker(5, ControlRecordType.COMMIT)  # of nothing: its data was compacted away
    data(9, "open")
    log.batch(("k", "plain"))
    sizes["committed"] += log.segments[-1].batches[-1][1].size_in_bytes
    log.write()
    for most_rows in (1, 2, 3, 1000):
        headers = contents_of(log_dir, first_dirty=8, most_rows=most_rows).headers
        assert headers.committed_bytes == sizes["committed"]
        assert headers.aborted_bytes == sizes["aborted"]
        assert headers.open_bytes == sizes["open"]
        assert headers.marker_bytes == sizes["marker"]
        assert (headers.markers, headers.bare_markers) == (4, 0)
        bare = contents_of(log_dir, first_dirty=11, most_rows=most_rows).headers.bare_markers
        assert bare == 1
    records = contents_of(log_dir).records
    assert records is not None
    assert records.records == 5  # none of the aborted transaction


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_gain_is_that_of_a_round_of_cleaning(log_dir: Path, codec: CompressionType) -> None:
    from kafkalog.cli.main import main

    log = LogBuilder(log_dir)
    rnd = np.random.default_rng(7)
    for _ in range(4):
        log.segment()
        for _ in range(50):
            keys = rnd.zipf(1.5, 20) % 300
            log.batch(*((f"k{k}", rnd.bytes(60)) for k in keys), codec=codec, timestamp=START_MS)
    log.segment().batch(("k1", "active"))
    path = log.write()
    found = contents_of(log_dir).records
    assert found is not None
    assert found.keys is not None
    before = sum(p.stat().st_size for p in path.glob("*.log"))
    arguments = ["--log-dir", str(log_dir), "--topic", "orders", "--apply", "--no-undo"]
    config = ["--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0"]
    assert main(["compact", *arguments, *config]) == 0
    freed = before - sum(p.stat().st_size for p in path.glob("*.log"))
    off = 0.001 if codec is CompressionType.NONE else 0.05
    assert abs(found.keys.gain_bytes.value - freed) <= off * freed + 61
    # which is never called exact: rewritten records grow and shrink
    assert abs(found.keys.gain_bytes.value - freed) <= found.keys.gain_bytes.error
    assert found.keys.gain_bytes.error < freed


def test_the_gain_of_the_cleaning_sample_is_what_kafka_freed_within_its_error() -> None:
    """`before` and `after` are on either side of a pass of Kafka's own cleaner."""
    off = {}
    for partition in open_log_dir(SAMPLES / "cleaning/before"):
        name = str(partition.topic_partition)
        after = SAMPLES / "cleaning/after" / name
        if partition.topic_partition.topic not in ("accounts", "sessions"):
            continue
        freed = partition.size_in_bytes - sum(p.stat().st_size for p in after.glob("*.log"))
        end = partition.segments[-1].base_offset
        records, problem = scan_records(
            partition, first_dirty_offset=0, end_offset=end, with_keys=True
        )
        assert problem == ""
        assert records.keys is not None
        gain = records.keys.gain_bytes
        assert 0 < abs(gain.value - freed) <= gain.error
        off[name] = gain.value - freed
    assert off.keys() == {"accounts-0", "accounts-1", "sessions-0"}


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_stays_within_its_error(seed: int) -> None:
    rnd = np.random.default_rng(seed)
    exact, sampled = LatestKeys(), LatestKeys(2000)
    for _ in range(30):
        rows = np.zeros(10_000, KEY_ROW)
        # hashes of 40,000 keys
        rows["key"] = rnd.integers(0, 40_000, rows.size).astype(np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        rows["key"] ^= rows["key"] >> np.uint64(29)
        rows["bytes"] = rnd.integers(50, 150, rows.size)
        exact.add(rows)
        sampled.add(rows)
    assert exact.is_exact
    assert not sampled.is_exact
    assert sampled.latest().size <= 2000

    def both(of: Any) -> None:
        true, found = (keys.total(of(keys.latest())) for keys in (exact, sampled))
        assert true.error == 0
        assert 0 < found.error < 0.1 * true.value
        assert abs(found.value - true.value) <= 2 * found.error  # 4 sigma

    both(lambda rows: np.ones(rows.size))
    both(lambda rows: rows["bytes"].astype(np.float64))


def test_slices_are_bounded_and_lose_nothing(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for number in range(60):
        log.segment()
        for batch in range(12):
            log.batch(("k", "v"), timestamp=START_MS + number * 1000 + batch)
    log.batch(("k", "v"), timestamp=-1)
    log.batch(("k", "v"), timestamp=2**62)
    log.write()
    headers = contents_of(log_dir).headers
    assert len(headers.slices) <= MOST_SLICES
    assert sum(s.records for s in headers.slices) == 722
    timeless = [s for s in headers.slices if s.to_ms == -1]
    assert [s.records for s in timeless] == [1]
    future = [s for s in headers.slices if s.to_ms == 2**62]
    assert [(s.from_ms, s.records) for s in future] == [(2**62, 1)]
    assert headers.newest_timestamp_ms == 2**62
    assert headers.oldest_timestamp_ms == START_MS


def test_null_as_text(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "null"), ("b", "nulL"), ("c", "null"), ("d", ""), ("e", None))
    log.batch(("c", "back"), (None, "null"), codec=CompressionType.GZIP)
    log.write()
    records = contents_of(log_dir).records
    assert records is not None
    assert records.null_text_values == 3
    assert records.keys is not None
    assert records.keys.fake_tombstones.value == 2


def test_damage_ends_the_count_and_is_told(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1")).batch(("b", "2"))
    path = log.write()
    (file,) = path.glob("*.log")
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    found = contents_of(log_dir)
    assert found.records is not None
    assert "CRC" in found.problem
    assert str(file) in found.problem


def test_gain_of_a_sample_is_within_its_error(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    rnd = np.random.default_rng(11)
    for _ in range(3):
        log.segment()
        for _ in range(60):
            log.batch(*((f"k{k}", rnd.bytes(40)) for k in rnd.integers(0, 4000, 100)))
    log.segment().batch(("k1", "active"))
    log.write()
    partition = partition_of(log_dir)

    def gain(most_keys: int) -> Estimate:
        end = partition.segments[-1].base_offset
        records, problem = scan_records(
            partition, first_dirty_offset=0, end_offset=end, with_keys=True, most_keys=most_keys
        )
        assert problem == ""
        assert records.keys is not None
        return records.keys.gain_bytes

    exact, sampled = gain(100_000), gain(500)
    assert exact.error <= 4000 * 13 + 61  # what rewritten records may grow
    assert 0 < exact.error < sampled.error < exact.value
    assert abs(sampled.value - exact.value) <= 2 * sampled.error
