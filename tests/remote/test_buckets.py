"""Segments in a bucket read as from a directory, with no more of them than a question needs."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkalog import fetch, list_offsets, read_records, sql
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, LogChangedError, RemoteStorageError
from kafkalog.log.storage import open_file
from kafkalog.reading.lookups import TimestampAndOffset, opened, storage_of
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_chunks import SplitChunks
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.views import select_columns
from kafkalog.remote import bucket_client, scans_in_turn
from kafkalog.remote.cache import BLOCKS, CACHE_VARIABLE, Block, BlockCache, cache_bytes
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.reading_ahead import ReadingAhead
from kafkalog.remote.scans_in_turn import ScanRange, in_turn
from kafkalog.remote.segment import ChunkedSegment, read_manifest
from kafkalog.remote.side_by_side import AT_ONCE, side_by_side
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS, without_closed_segments
from tests.support.aiven_store import TOPIC_ID, Plugin
from tests.support.buckets import SECRET, served
from tests.support.log_builder import LogBuilder
from tests.support.s3_server import BUCKET, S3Server

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    yield from served(monkeypatch)


@pytest.fixture
def local(log_dir: Path, bucket: S3Server, tmp_path: Path) -> Path:
    """A log dir of 200 records in batches of one, all but the last in a segment of the bucket."""
    log = LogBuilder(log_dir, "orders-0").segment()
    for number in range(200):
        log.batch((f"k{number}", "v" * 900), timestamp=FIRST_MS + number)
    log.segment().batch(("last", "v"), timestamp=FIRST_MS + 200).write()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    key = ("key2", Path(KEYS["key2"]))
    Plugin(16384, is_compressed=True, key=key).copy(first, tmp_path / "store", end_offset=199)
    bucket.put_tree(tmp_path / "store")
    first.unlink()
    return log_dir


def read(log_dir: Path, **options: object) -> pa.Table:
    given = {"remote_dirs": f"s3://{BUCKET}", "remote_keys": KEYS, **options}
    return read_records(log_dir, **given).read_all()  # type: ignore[arg-type]


def test_records_of_a_bucket_are_those_of_the_brokers_own_directory(
    bucket: S3Server, tmp_path: Path
) -> None:
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    bucket.put_tree(STORE)
    expected = read_records(BROKER, topics=TOPICS).read_all()
    assert read(local, topics=TOPICS).equals(expected)
    assert read(local, topics=["b-txn"], remote_dirs=f"s3://{BUCKET}/prefix").num_rows > 1000
    # of topics that were not asked for nothing was read
    assert {key.split("-", 1)[0] for key in bucket.read_bytes} == {"a", "c", "prefix/b"}


def asked(bucket: S3Server, suffix: str) -> int:
    """How many ranges of the objects with this ending were read."""
    return sum(n for (method, key), n in bucket.requests.items()
               if method == "GET" and key.endswith(suffix))  # fmt: skip


@pytest.mark.parametrize("offset", [0, 17, 100, 199])
def test_one_offset_needs_the_manifest_the_indexes_and_two_chunks(
    local: Path, bucket: S3Server, offset: int
) -> None:
    remote: dict[str, Any] = {"remote_dirs": f"s3://{BUCKET}", "remote_keys": KEYS}
    directory = local / "orders-0"

    def found_by_reading() -> object:
        start, end = {"orders-0": offset}, {"orders-0": offset + 1}
        return read(local, starting_offsets=start, ending_offsets=end)["key"].to_pylist()

    for ask, answer in (
        (found_by_reading, [f"k{offset}".encode()]),
        (lambda: fetch(directory, offset, 1, **remote).next_offset, offset + 1),
        (
            lambda: list_offsets(directory, FIRST_MS + offset, **remote),
            TimestampAndOffset(FIRST_MS + offset, offset, 0),
        ),
    ):
        BLOCKS.clear()
        read_manifest.cache_clear()
        bucket.requests.clear()
        assert ask() == answer
        assert asked(bucket, ".rsm-manifest") == 1
        assert asked(bucket, ".indexes") <= 2
        assert 1 <= asked(bucket, ".log") <= 2


def test_a_scan_reads_each_chunk_once(local: Path, bucket: S3Server) -> None:
    assert read(local).num_rows == 201
    (log,) = (key for key in bucket.objects if key.endswith(".log"))
    assert bucket.read_bytes[log] == len(bucket.objects[log])


def manifest_in(bucket: S3Server) -> ManifestPath:
    (log,) = (key for key in bucket.objects if key.endswith(".log"))
    objects = f"s3://{BUCKET}/{log.removesuffix('.log')}"
    return ManifestPath(f"{objects}.rsm-manifest", objects, tuple(KEYS.items()))


def test_an_object_that_is_replaced_during_the_read_is_a_change(
    local: Path, bucket: S3Server
) -> None:
    path = manifest_in(bucket)
    segment = ChunkedSegment(path)
    assert len(segment.blocks(0, 1)[0]) == 16384
    (log,) = (key for key in bucket.objects if key.endswith(".log"))
    data = bytearray(bucket.objects[log])
    data[-1] ^= 1  # as long, and another
    bucket.objects[log] = bytes(data)
    with pytest.raises(LogChangedError, match=r"bytes 0 to \d+ cannot be read: the object was rep"):
        segment.blocks(0, 1)[0]
    assert ChunkedSegment(path).version != segment.version


@pytest.mark.parametrize("status", [429, 503])
def test_a_store_that_says_slow_down_is_asked_again(
    local: Path, bucket: S3Server, status: int
) -> None:
    bucket.refusals, bucket.refusal = 3, status
    assert read(local).num_rows == 201
    assert bucket.refusals == 0


def test_a_store_that_always_refuses_is_an_error_with_object_and_range(
    local: Path, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_client, "RETRIES", {"max_retries": 1})
    bucket.refusals = 1000
    where = r"s3://tiers/.*: bytes 0 to \d+ cannot be read: "
    with pytest.raises(RemoteStorageError, match=where):
        read(local)


def test_a_store_that_never_answers_is_an_error_with_the_object(
    local: Path, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_client, "RETRIES", {"max_retries": 1})
    monkeypatch.setattr(bucket_client, "CLIENT", {"timeout": "200ms", "connect_timeout": "60s"})
    bucket.answers.clear()
    # An object is what is asked for first: 200 ms may be too short for a store that does answer.
    with pytest.raises(RemoteStorageError, match=r"s3://tiers/.*: it cannot be looked at: "):
        ChunkedSegment(manifest_in(bucket))


def test_credentials_are_nowhere_to_be_seen(
    local: Path, bucket: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = str(read(local, columns=["path", "offset"]).to_pylist())
    bucket.objects = dict.fromkeys(bucket.objects, b"")
    with pytest.raises(RemoteStorageError) as raised:
        read(local)
    seen += caplog.text + str(raised.value) + repr(raised.value)
    with pytest.raises(InvalidConfigError, match="credentials do not belong into a URI") as raised:
        read(local, remote_dirs=f"s3://id:{SECRET}@{BUCKET}/x")
    seen += str(raised.value)
    with pytest.raises(InvalidConfigError, match="credentials do not belong into a URI") as raised:
        read(local, remote_dirs=f"az://{BUCKET}/x?sig={SECRET}")
    seen += str(raised.value)
    assert "canary" not in seen
    assert "PRIVATE KEY" not in seen
    assert any("canary-access-key-id" in head for head in bucket.heads)  # they were used


def test_a_bucket_of_no_layout_and_another_kind_of_uri_are_refused(
    local: Path, bucket: S3Server
) -> None:
    bucket.objects = {"some/file": b"x"}
    with pytest.raises(InvalidConfigError, match="is not any that is read"):
        read(local)
    with pytest.raises(InvalidConfigError, match="a URI of s3, gs, az, http, https"):
        read(local, remote_dirs="ftp://somewhere/x")


@pytest.mark.parametrize("name", [f"orders-0/{0:020d}", f"orders-0-{TOPIC_ID}/{0:020d}-{'s' * 22}"])
def test_copies_of_segments_in_a_bucket_are_read_in_front_of_the_log(
    log_dir: Path, bucket: S3Server, name: str
) -> None:
    """Layouts `plain` and `kafka`, with their indexes: a point read needs a block of each."""
    log = LogBuilder(log_dir, "orders-0").segment()
    for number in range(600):
        log.batch((f"k{number}", "v" * 2000))
    log.segment().batch(("last", "v")).write()
    expected = read_records(log_dir).read_all()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    for ending in (".log", ".index", ".timeindex"):
        file = first.with_suffix(ending)
        bucket.objects[f"copies/{name}{ending}"] = file.read_bytes()
        file.unlink()
    found = read(log_dir, remote_dirs=f"s3://{BUCKET}/copies")
    assert found.equals(expected)
    assert found.num_rows == 601
    BLOCKS.clear()
    bucket.read_bytes.clear()
    one = read(
        log_dir, remote_dirs=f"s3://{BUCKET}/copies",
        starting_offsets={"orders-0": 300}, ending_offsets={"orders-0": 301},
    )  # fmt: skip
    assert one["key"].to_pylist() == [b"k300"]
    size = len(bucket.objects[f"copies/{name}.log"])
    assert bucket.read_bytes[f"copies/{name}.log"] <= 3 * 256 * 1024 < size


def test_a_scan_begins_the_blocks_behind_the_one_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each once, no further than the scan goes, and no more than the cache may have."""
    monkeypatch.setenv(CACHE_VARIABLE, "3000")
    begun: list[int] = []
    is_third_begun = threading.Event()

    def read_blocks(number: int, count: int) -> list[Block]:
        assert count == 1  # a quarter of the cache has no two
        begun.append(number)
        if number == 4:
            is_third_begun.set()
        assert number != 2 or is_third_begun.wait(60)
        return [bytes([number])]

    ahead = ReadingAhead(read_blocks, 1000, 2500, 6001)
    assert ahead.block(2) == b"\2"
    assert set(begun) <= {2, 3, 4, 5}
    assert [ahead.block(number) for number in range(3, 7)] == [b"\3", b"\4", b"\5", b"\6"]
    assert sorted(begun) == [2, 3, 4, 5, 6]
    assert ahead.block(0) == b"\0"  # in front of it: by itself
    ahead.close()


def test_a_scan_asks_for_small_blocks_together() -> None:
    """Up to 4 MiB by one request, from the first block that is wanted to the last."""
    asked: list[tuple[int, int]] = []

    def read_blocks(first: int, count: int) -> list[Block]:
        asked.append((first, count))
        return [bytes([number]) for number in range(first, first + count)]

    block_bytes = 1024 * 1024
    ahead = ReadingAhead(read_blocks, block_bytes, 2 * block_bytes, 12 * block_bytes - 5)
    assert [ahead.block(number) for number in range(2, 12)] == [bytes([n]) for n in range(2, 12)]
    assert ahead.block(1) == b"\1"
    assert sorted(asked) == [(1, 1), (2, 4), (6, 4), (10, 2)]
    ahead.close()


def test_the_next_scan_is_begun_before_this_one_has_come_to_its_end(
    local: Path, bucket: S3Server
) -> None:
    """As much of it as this one leaves room for; what nobody takes is given up."""
    path = manifest_in(bucket)
    scans = [ScanRange(path, 0, 60_000), ScanRange(path, 70_000, 150_000)]
    whole = b"".join(ChunkedSegment(path).blocks(number, 1)[0] for number in range(10))
    bucket.requests.clear()
    found = []
    for scan in in_turn(scans, lambda scan: scan):
        with open_file(scan.path) as file:
            file.expect_scan(scan.start, scan.end)
            found.append(file.read_bytes(scan.start, scan.end - scan.start))
        if scan is scans[0]:
            next_scan = scans_in_turn.begun()
            assert next_scan is not None
            assert next_scan.scan == scans[1]
    assert scans_in_turn.begun() is None
    assert found == [whole[scan.start : scan.end] for scan in scans]
    assert asked(bucket, ".log") == 2  # one request each, for chunks this small

    for scan in in_turn(scans, lambda scan: scan):
        with open_file(scan.path) as file:
            file.expect_scan(scan.start, scan.end)
            file.read_bytes(scan.start, 1)
        break
    gc.collect()
    assert scans_in_turn.begun() is None
    assert scans_in_turn.following() is None


def test_questions_side_by_side_are_answered_in_their_order() -> None:
    """And at once: each waits until all have been asked."""
    all_asked = threading.Barrier(AT_ONCE, timeout=60)

    def ask(number: int) -> int:
        all_asked.wait()
        return -number

    assert side_by_side(ask, range(AT_ONCE)) == [-number for number in range(AT_ONCE)]

    def refuse(number: int) -> int:
        raise FileNotFoundError(2, "no such object", str(number))

    with pytest.raises(FileNotFoundError, match="'0'"):
        side_by_side(refuse, range(100))
    assert side_by_side(ask, []) == []


def test_an_option_says_how_much_is_kept(
    local: Path,
    bucket: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the data source, and of verbs, whose workers see it in their environment."""
    monkeypatch.setenv(CACHE_VARIABLE, "30000000")
    paths = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    seen: list[int] = []
    kept = BlockCache.keep

    def keep(self: BlockCache, key: Hashable, block: Block) -> None:
        kept(self, key, block)
        seen.append(cache_bytes())

    monkeypatch.setattr(BlockCache, "keep", keep)
    query = "SELECT count(*) AS n FROM records"
    words = ["sql", str(local), f"--remote-dir=s3://{BUCKET}", *paths, "--sql", query]
    assert main([*words, "--remote-cache-bytes=20KiB"]) == 0
    assert "201" in capsys.readouterr().out
    assert set(seen) == {20 * 1024}
    assert BLOCKS.size_in_bytes <= 20 * 1024
    assert os.environ[CACHE_VARIABLE] == "30000000"
    seen.clear()
    keys = ",".join(f"{key_id}={file}" for key_id, file in KEYS.items())
    options = {"remoteDir": f"s3://{BUCKET}", "remoteKey": keys, "remoteCacheBytes": "0"}
    assert sql(str(local), query, **options)["n"].to_pylist() == [201]
    assert (seen[-1], BLOCKS.size_in_bytes) == (0, 0)
    seen.clear()
    assert read(local, remote_cache_bytes=10 * 1024).num_rows == 201
    assert set(seen) == {10 * 1024}
    assert BLOCKS.size_in_bytes <= 10 * 1024
    with pytest.raises(InvalidConfigError, match="a cache of -1 bytes"):
        read(local, remote_cache_bytes=-1)
    assert read(local).num_rows == 201
    assert seen[-1] == 30_000_000


def test_what_a_process_keeps_of_objects_is_bounded_by_its_environment(
    local: Path, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = (key for key in bucket.objects if key.endswith(".log"))
    for most in ("40000", "0"):
        monkeypatch.setenv(CACHE_VARIABLE, most)
        BLOCKS.clear()
        assert read(local).num_rows == 201
        assert BLOCKS.size_in_bytes <= int(most)
    monkeypatch.setenv(CACHE_VARIABLE, "64MiB")
    with pytest.raises(InvalidConfigError, match="a number of bytes is expected"):
        read(local)
    assert bucket.read_bytes[key] >= 2 * len(bucket.objects[key])


def test_two_splits_have_one_chunk_in_common_at_most(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one where the batch ends that crosses it: each task has a process of its own."""
    partition = opened(local / "orders-0", storage_of(f"s3://{BUCKET}", None, KEYS))
    (segment,) = (s for s in partition.segments if isinstance(s.path, ManifestPath))
    splits = [
        each
        for each in plan_splits([partition], PartitionSelection(), split_bytes=40_000)
        if each.path == segment.path
    ]
    assert len(splits) > 3
    fetched: Counter[int] = Counter()
    decoded = ChunkedSegment.blocks

    def blocks(self: ChunkedSegment, first: int, count: int) -> list[Block]:
        fetched.update(range(first, first + count))
        return decoded(self, first, count)

    monkeypatch.setattr(ChunkedSegment, "blocks", blocks)
    request = ReadRequest.of(select_columns("records", ("offset", "value"), with_error=False))
    for split in splits:
        BLOCKS.clear()
        for _ in SplitChunks(request, ReadCounts()).of(split):
            pass
    chunks = len(range(0, segment.size_in_bytes, 16384))
    assert sorted(fetched) == list(range(chunks))
    assert max(fetched.values()) == 2
    assert fetched.total() == chunks + len(splits) - 1
