"""Batches above the limit: sound, and not read; the limit is an option of all that reads."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import verify_run
from kafkalog.checking.segment import check_segment
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, RecordTooLargeError
from kafkalog.format.constants import MAX_BATCH_BYTES, CompressionType
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.tables import read_view
from kafkalog.reading.views import select_columns
from tests.support.log_builder import LogBuilder

LOG = f"{0:020d}.log"
LIMIT = 20_000


@pytest.fixture(params=["stored", "zstd", "lz4", "snappy", "gzip"])
def log(request: pytest.FixtureRequest, log_dir: Path) -> LogBuilder:
    """Five batches; the third is larger than the limit, stored or only when it is decompressed."""
    codec = 0 if request.param == "stored" else CompressionType[request.param.upper()]
    log = LogBuilder(log_dir, "orders-0")
    for number in range(5):
        value = b"v" * (LIMIT + 500 if number == 2 else 50)
        log.batch((f"k{number}", value), codec=codec if number == 2 else 0)
    log.segment().batch(("last", "v"))
    log.write()
    return log


def test_it_is_not_read_and_no_damage(log: LogBuilder) -> None:
    position = log.segments[0].batches[2][0]
    assert kafkalog.read_records(log.path, columns=["offset"]).read_all().num_rows == 6
    with pytest.raises(RecordTooLargeError, match=r"not read.*above the limit") as caught:
        kafkalog.read_records(log.path, max_batch_bytes=LIMIT).read_all()
    assert (caught.value.path, caught.value.position) == (str(log.path / LOG), position)
    assert caught.value.offset == 2
    found = kafkalog.read_records(
        log.path, columns=["offset"], mode="PERMISSIVE", max_batch_bytes=LIMIT
    ).read_all()
    assert found["offset"].to_pylist() == [0, 1, None, 3, 4, 5]
    (error,) = found["error"].drop_null().to_pylist()
    assert "above the limit" in error
    dropped = kafkalog.read_records(
        log.path, columns=["offset"], mode="DROPMALFORMED", max_batch_bytes=LIMIT
    ).read_all()
    assert dropped["offset"].to_pylist() == [0, 1, 3, 4, 5]


def findings(log: LogBuilder, tmp_path: Path, limit: int) -> list[Any]:
    request = VerifyRequest((str(log.log_dir),), run_dir=str(tmp_path), max_batch_bytes=limit)
    run = verify_run(request, lambda tasks: [check_segment(task) for task in tasks], lambda _: None)
    return [(f.kind, f.position) for f in run.findings if "orders" in (f.path or "")]


def test_verify_tells_what_it_does_not_read_and_goes_on(log: LogBuilder, tmp_path: Path) -> None:
    assert findings(log, tmp_path, MAX_BATCH_BYTES) == []
    position = log.segments[0].batches[2][0]
    assert findings(log, tmp_path, LIMIT) == [("batch-over-limit", position)]
    data = bytearray((log.path / LOG).read_bytes())
    behind = log.segments[0].batches[3][0]
    data[behind + 70] ^= 1
    (log.path / LOG).write_bytes(data)
    found = findings(log, tmp_path, LIMIT)
    assert {("batch-over-limit", position), ("crc-mismatch", behind)} <= {*found}


def test_dump_recover_and_salvage_take_the_limit(
    log: LogBuilder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(log.path / LOG), "--deep-iteration"]) == 0
    capfd.readouterr()
    limit = ["--max-batch-bytes", str(LIMIT)]
    assert main(["dump", str(log.path / LOG), "--deep-iteration", *limit]) == 1
    out, err = capfd.readouterr()
    assert "above the limit" in err
    assert "offset: 4 " in out
    where = ["--log-dir", str(log.log_dir), "--json", "--run-dir", str(tmp_path / "runs")]
    is_stored = log.segments[0].batches[2][1].size_in_bytes > LIMIT
    code = main(["recover", *where, *limit])
    assert (code != 0) == is_stored  # records are not decompressed
    capfd.readouterr()
    assert main(["salvage", *where[:3], "--output", str(tmp_path / "out"), *limit]) == 0
    (partition,) = json.loads(capfd.readouterr().out)["partitions"]
    assert [segment["leftOut"] for segment in partition["segments"]] == [[], []]
    copy = tmp_path / "out" / "orders-0" / LOG
    assert copy.read_bytes() == (log.path / LOG).read_bytes()


@pytest.mark.parametrize("limit", [0, -1, 2**31])
def test_a_limit_that_cannot_be_is_refused(log_dir: Path, limit: int) -> None:
    path = LogBuilder(log_dir).batch(("a", "1")).write()
    with pytest.raises(InvalidConfigError, match="batch limit"):
        kafkalog.read_records(path, max_batch_bytes=limit)
    with pytest.raises(InvalidConfigError, match="batch limit"):
        read_view("batches", path, max_batch_bytes=limit)


def test_a_bomb_costs_no_more_memory_than_the_limit(log_dir: Path) -> None:
    """80 MiB in some KiB of zstd: a sound batch for who raises the limit."""
    path = LogBuilder(log_dir).batch(("a", b"v" * 80 * 1024 * 1024), codec=4).write()
    assert (path / LOG).stat().st_size < 20_000
    splits = plan_splits(kafkalog.open_log_dir(path).partitions, PartitionSelection())
    request = ReadRequest.of(select_columns("records", ["value"]), max_batch_bytes=1024 * 1024)
    with pytest.raises(RecordTooLargeError):  # what is imported and compiled once
        list(read_record_splits(splits, request))
    tracemalloc.start()
    with pytest.raises(RecordTooLargeError):
        list(read_record_splits(splits, request))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * 1024 * 1024
    with pytest.raises(RecordTooLargeError):
        kafkalog.read_records(path).read_all()
    whole = kafkalog.read_records(path, columns=["valueSize"], max_batch_bytes=128 * 1024 * 1024)
    assert whole.read_all()["valueSize"].to_pylist() == [80 * 1024 * 1024]
