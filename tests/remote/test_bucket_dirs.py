"""A log dir in a bucket read as the one on the disk it was copied from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.fetch import fetch
from kafkalog.reading.lookups import list_offsets, offset_for_leader_epoch
from kafkalog.reading.tables import read_view
from kafkalog.reading.views import VIEWS
from tests.remote.test_aiven import BROKER
from tests.support.buckets import served
from tests.support.log_builder import LogBuilder
from tests.support.s3_server import BUCKET, S3Server

SAMPLES = Path("data/samples")
PLACE = f"s3://{BUCKET}/disks/broker-1"
# What says where a file lies, or when it was written.
OWN = ("path", "logDir", "modificationTime")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    yield from served(monkeypatch)


def copied(bucket: S3Server, log_dir: Path, place: str = "disks/broker-1") -> None:
    for path in log_dir.rglob("*"):
        if path.is_file():
            bucket.objects[f"{place}/{path.relative_to(log_dir).as_posix()}"] = path.read_bytes()


def rows(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in OWN if name in table.column_names])


def test_views_of_a_log_dir_in_a_bucket_are_those_of_the_disk(bucket: S3Server) -> None:
    """Records, headers, indexes, producers, checkpoints; SQL over them."""
    copied(bucket, BROKER)
    for view, topic in (("records", "b-txn"), ("batches", "a-lz4"), ("segments", "a-lz4"),
                        ("partitions", None), ("offset_index", "a-lz4"), ("time_index", "a-lz4"),
                        ("transaction_index", "b-txn"), ("producer_snapshot", "b-txn"),
                        ("leader_epochs", None), ("checkpoints", None)):  # fmt: skip
        found = read_view(view, PLACE, topics=topic)
        assert rows(found).equals(rows(read_view(view, BROKER, topics=topic))), view
        assert found.num_rows > 1
    query = "SELECT count(*), sum(length(value)) FROM records WHERE topic = 'b-txn'"
    assert kafkalog.sql(PLACE, query).equals(kafkalog.sql(str(BROKER), query))


@pytest.mark.thorough
@pytest.mark.parametrize("sample", ["broker", "tiered/data"])
@pytest.mark.parametrize("view", sorted(VIEWS))
def test_each_view_of_a_sample_in_a_bucket_is_that_of_the_disk(
    bucket: S3Server, view: str, sample: str
) -> None:
    copied(bucket, SAMPLES / sample)
    try:
        expected: pa.Table | str = rows(read_view(view, SAMPLES / sample))
    except InvalidConfigError as error:
        expected = error.reason
    try:
        found: pa.Table | str = rows(read_view(view, PLACE))
    except InvalidConfigError as error:
        found = error.reason
    assert found == expected


def test_offsets_of_a_partition_in_a_bucket_are_those_of_the_disk(bucket: S3Server) -> None:
    copied(bucket, BROKER)
    for level in ("read_uncommitted", "read_committed"):
        found = [
            fetch(f"{place}/b-txn-0", 100, 5000, isolation_level=level) for place in (PLACE, BROKER)
        ]
        assert found[0] == found[1]
        assert len(found[0].records) > 1000
    for timestamp in (-1, -2, -3, 1_795_922_215_210):
        own = [list_offsets(f"{place}/b-txn-0", timestamp) for place in (PLACE, BROKER)]
        assert own[0] == own[1]
    assert offset_for_leader_epoch(f"{PLACE}/b-txn-0", 0) == offset_for_leader_epoch(
        BROKER / "b-txn-0", 0
    )


def test_a_partition_or_one_segment_of_a_bucket_is_read_by_its_own_uri(bucket: S3Server) -> None:
    copied(bucket, BROKER)
    first = f"a-lz4-0/{0:020d}.log"
    for name in ("a-lz4-0", first):
        found = read_view("batches", f"{PLACE}/{name}")
        assert rows(found).equals(rows(read_view("batches", BROKER / name)))
        assert found["path"][0].as_py() == f"{PLACE}/{first}"
    assert str(open_log_dir(f"{PLACE}/{first}").partitions[0].path) == f"{PLACE}/a-lz4-0"


def test_one_offset_of_a_large_segment_reads_little_of_it(log_dir: Path, bucket: S3Server) -> None:
    log = LogBuilder(log_dir, "orders-0").segment()
    for number in range(1000):
        log.batch((f"k{number}", "v" * 3000))
    log.segment().batch(("last", "v")).write()
    copied(bucket, log_dir)
    wanted: dict[str, Any] = {"starting_offsets": {"orders-0": 500},
                              "ending_offsets": {"orders-0": 501}}  # fmt: skip
    found = kafkalog.read_records(PLACE, **wanted).read_all()
    assert found["key"].to_pylist() == [b"k500"]
    key = f"disks/broker-1/orders-0/{0:020d}.log"
    # the block of the offset, and those at both ends, by which missing offsets are found
    assert bucket.read_bytes[key] <= 3 * 256 * 1024 < len(bucket.objects[key]) / 3


def test_what_is_no_log_dir_in_a_bucket_is_said(log_dir: Path, bucket: S3Server) -> None:
    with pytest.raises(InvalidConfigError, match=f"{PLACE}: nothing is there"):
        open_log_dir(PLACE)
    bucket.objects["disks/broker-1/some/file"] = b"x"
    with pytest.raises(InvalidConfigError, match="no log dir: neither a partition's directory nor"):
        open_log_dir(PLACE)
    with pytest.raises(InvalidConfigError, match=r"20.log: no such object"):
        open_log_dir(f"{PLACE}/orders-0/{20:020d}.log")
    with pytest.raises(InvalidConfigError, match="credentials do not belong into a URI"):
        open_log_dir("s3://id:secret@bucket/x")
    with pytest.raises(InvalidConfigError, match="hdfs:// is not read here"):
        open_log_dir("hdfs://namenode/kafka")
    LogBuilder(log_dir, "orders-0").segment().batch(("a", "1")).write()
    assert len(open_log_dir(log_dir.as_uri()).partitions) == 1


def test_verbs_that_change_files_refuse_a_bucket(
    bucket: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    copied(bucket, BROKER)
    for verb in ("compact", "retain", "recover", "salvage"):
        more = ["--output", "out"] if verb == "salvage" else []
        assert main([verb, PLACE, "--topic", "a-lz4", *more]) == 2, verb
        assert "it takes a local or mounted directory" in capsys.readouterr().err


def test_segments_of_a_bucket_are_listed_as_those_of_the_disk(
    bucket: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    copied(bucket, BROKER)
    found = []
    for place in (PLACE, str(BROKER)):
        assert main(["segments", place, "--topic=a-lz4", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        found.append([{k: v for k, v in r.items() if k not in OWN} for r in document["segments"]])
    assert found[0] == found[1]
    assert len(found[0]) > 1


def test_a_segment_that_is_replaced_between_plan_and_read_is_a_change(
    log_dir: Path, bucket: S3Server
) -> None:
    log = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"))
    log.segment().batch(("b", "2")).write()
    copied(bucket, log_dir)
    reader = kafkalog.read_records(PLACE)
    key = f"disks/broker-1/orders-0/{0:020d}.log"
    bucket.objects[key] = bucket.objects[key][:-1] + b"x"
    with pytest.raises(LogChangedError, match=r"orders-0/0+\.log: the segment changed since the"):
        reader.read_all()
