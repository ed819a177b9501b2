"""A log dir in a bucket read as the one on the disk it was copied from."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import kafkalog
from kafkalog.cli import options
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, KafkaLogError, LogChangedError
from kafkalog.log import log_dir as opening
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading import split_plan
from kafkalog.reading.fetch import fetch
from kafkalog.reading.lookups import list_offsets, offset_for_leader_epoch
from kafkalog.reading.tables import read_view
from kafkalog.reading.views import VIEWS
from kafkalog.remote.side_by_side import AT_ONCE
from kafkalog.resources import process_pool
from tests.remote.test_aiven import BROKER, STORE
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
    except KafkaLogError as error:
        expected = error.reason
    try:
        found: pa.Table | str = rows(read_view(view, PLACE))
    except KafkaLogError as error:
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


def test_partitions_of_a_bucket_are_opened_and_planned_side_by_side(
    log_dir: Path, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits until as many have begun as may at once; the order stays."""
    for number in range(AT_ONCE):
        LogBuilder(log_dir, f"orders-{number}").segment().batch((f"k{number}", "v")).write()
    copied(bucket, log_dir)
    for module, name in ((opening, "_read"), (split_plan, "wanted_ranges")):
        all_begun = threading.Barrier(AT_ONCE, timeout=60)
        real = getattr(module, name)

        def wait(*args: Any, real: Any = real, all_begun: Any = all_begun, **more: Any) -> Any:
            all_begun.wait()
            return real(*args, **more)

        monkeypatch.setattr(module, name, wait)
    found = kafkalog.read_records(PLACE, columns="partition, key").read_all()
    expected = [(number, f"k{number}".encode()) for number in range(AT_ONCE)]
    assert list(zip(*found.to_pydict().values(), strict=True)) == expected


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
    with pytest.raises(InvalidConfigError, match="ftp:// is not read here"):
        open_log_dir("ftp://server/kafka")
    LogBuilder(log_dir, "orders-0").segment().batch(("a", "1")).write()
    assert len(open_log_dir(log_dir.as_uri()).partitions) == 1


# When the bucket says that all was written.
WRITTEN_S = datetime(2026, 11, 29, tzinfo=UTC).timestamp()
# Verb → its words of a log dir; None: it refuses one in a bucket. The guide has the table.
VERBS: dict[str, list[str] | None] = {
    "segments": ["{}", "--json"],
    "verify": ["{}", "--json", "--workers=1"],
    "why": ["b-txn-0", "--log-dir", "{}", "--now=2026-11-30T00:00:00Z"],
    "dump": ["{}/b-txn-0", "--print-data-log"],
    "sql": ["{}", "--sql", "SELECT count(*), max(offset) FROM records WHERE topic = 'b-txn'"],
    "audit": ["{}", "--json", "--workers=1", "--now=2026-11-30T00:00:00Z"],
    "cluster": ["{}", "--json", "--now=2026-11-30T00:00:00Z"],
    "compare": [str(SAMPLES / "replicas/node1"), "{}", "--json"],
    "lag": ["{}", "--json"],
    "digest": ["{}", "--output", "digest", "--hash-key", "key", "--json", "--workers=1"],
    "attach": None,
    "bucket": None,
    "compact": None,
    "info": None,
    "recover": None,
    "retain": None,
    "salvage": None,
}
# What each is shown of, where it is not the sample of tiered topics.
SAMPLE = {
    "cluster": SAMPLES / "broker",
    "compare": SAMPLES / "replicas/node2",
    "lag": SAMPLES / "broker",
}
# Runs have ids and times of their own.
UNLIKE = re.compile(r'"(runId|seconds)": ')
QUICK = ("segments", "verify", "why", "dump")


def printed(
    verb: str, place: str, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> tuple[int, list[str]]:
    words = [word.replace("{}", place) for word in VERBS[verb] or []]
    if verb in ("verify", "audit"):
        words.append(f"--run-dir={tmp_path}/runs-{place.count(':')}")
    code = main([verb, *words])
    streams = capfdbinary.readouterr()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.json*"))
    assert b"canary" not in streams.out + streams.err + kept  # as credentials begin here
    text = streams.out.decode().replace(place, "PLACE")
    return code, [line for line in text.splitlines() if not UNLIKE.search(line)]


def same_of_both(
    verb: str, bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    disk = Path(shutil.copytree(SAMPLE.get(verb, BROKER), tmp_path / "disk")).resolve()
    for path in disk.rglob("*"):
        os.utime(path, (WRITTEN_S, WRITTEN_S))
    copied(bucket, disk)
    expected = printed(verb, str(disk), capfdbinary, tmp_path)
    found = printed(verb, PLACE, capfdbinary, tmp_path)
    assert found == expected
    assert found[0] < 2
    assert found[1]


@pytest.mark.parametrize("verb", QUICK)
def test_a_verb_prints_of_a_bucket_what_it_prints_of_the_disk(
    verb: str, bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    same_of_both(verb, bucket, capfdbinary, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "verb", [v for v, words in VERBS.items() if words and v not in (*QUICK, "digest")]
)
def test_each_other_verb_prints_of_a_bucket_what_it_prints_of_the_disk(
    verb: str, bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    same_of_both(verb, bucket, capfdbinary, tmp_path)


@pytest.mark.thorough
def test_a_digest_of_a_bucket_is_in_no_conflict_with_the_disk(
    bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    disk = (SAMPLES / "replicas/node2").resolve()
    copied(bucket, disk)
    monkeypatch.chdir(tmp_path)
    Path("key").write_bytes(bytes(range(32)))
    assert printed("digest", PLACE, capfdbinary, tmp_path)[0] == 0
    main(["compare", str(disk), "digest", "--hash-key", "key", "--json"])
    assert json.loads(capfdbinary.readouterr().out)["findings"] == []


@pytest.mark.parametrize("verb", [verb for verb, words in VERBS.items() if words is None])
def test_a_verb_that_needs_files_refuses_a_bucket(
    verb: str, bucket: S3Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copied(bucket, BROKER)
    more = {
        "salvage": [f"--output={tmp_path}/out"],
        "bucket": [f"--remote-dir={STORE}"],
        "attach": ["--in-place"],
    }
    assert main([verb, PLACE, *more.get(verb, ["--topic=a-lz4"] * (verb != "info"))]) == 2
    said = capsys.readouterr().err
    assert verb == "attach" or "it takes a local or mounted directory" in said


def test_workers_are_not_forked_of_a_process_that_has_asked_a_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client's threads are not in a child, which waits for them for ever."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # see tests/conftest.py
    monkeypatch.delitem(sys.modules, "obstore", raising=False)
    assert process_pool.start_method() == "fork"
    monkeypatch.setitem(sys.modules, "obstore", ModuleType("obstore"))
    assert process_pool.start_method() == "spawn"


@pytest.mark.thorough
def test_several_workers_verify_a_bucket(
    bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    copied(bucket, BROKER)
    found = []
    for workers in (1, 2):
        main(["verify", PLACE, "--json", f"--workers={workers}", f"--run-dir={tmp_path}"])
        document = json.loads(capfdbinary.readouterr().out)
        found.append([document[name] for name in document if name not in ("runId", "seconds")])
    assert found[0] == found[1]


def test_the_guide_says_of_each_verb_whether_it_takes_a_bucket() -> None:
    """Of all that take a log dir."""
    # Of runs, of kernels, the data source's, and one with a guide of its own.
    others = {"runs", "undo", "purge", "compile", "export", "restore"}
    guide = Path("docs/guides/tiered.md").read_text()
    (reads,) = re.findall(r"^\| reads a log dir in a bucket \| (.*) \|$", guide, re.MULTILINE)
    (refuses,) = re.findall(r"^\| refuses it \| (.*) \|$", guide, re.MULTILINE)
    assert re.findall(r"`(\w+)`", reads) == sorted(v for v, words in VERBS.items() if words)
    assert re.findall(r"`(\w+)`", refuses) == sorted(v for v, words in VERBS.items() if not words)
    assert {verb.name for verb in options.VERBS} - others == VERBS.keys()


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
