"""The samples are what their manifest and data/README.md say: bytes, size, and what is in them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES, copy_sample, main, read_manifest
from data.make_samples import CLEANING_TOPICS, CLUSTER_TOPICS, README, SHARE_TOPICS
from data.maker.description import row
from data.maker.topics import TOPICS
from data.maker.zookeeper_story import TOPICS as ZOOKEEPER_TOPICS
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader, parse_batch, parse_header

BROKER = SAMPLES / "broker"
MAX_DISK_BYTES = 8 * 1024 * 1024
CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


def headers(log: Path) -> Iterator[RecordBatchHeader]:
    data, position = log.read_bytes(), 0
    while position < len(data):
        header = parse_header(data, position)
        yield header
        position += 12 + header.batch_length


def records(log: Path) -> Iterator[Record]:
    """Every record, each batch's checksum checked on the way."""
    data, position = log.read_bytes(), 0
    while position < len(data):
        header, found = parse_batch(data, position)
        yield from found
        position += 12 + header.batch_length


def logs(topic_partition: str, root: Path = BROKER) -> list[Path]:
    return sorted((root / topic_partition).glob("*.log"))


def test_files_are_the_ones_in_the_manifest() -> None:
    listed = {path: facts["sha256"] for path, facts in read_manifest()["files"].items()}
    found = {
        path.relative_to(SAMPLES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in SAMPLES.rglob("*")
        if path.is_file() and path.name not in {"MANIFEST.json", ".lock"}
    }
    assert found == listed


def test_table_in_the_readme_describes_these_files() -> None:
    listed = read_manifest()["files"]
    text = README.read_text(encoding="utf-8")
    pairs = [("broker", TOPICS)]
    pairs += [(f"cleaning/{side}", CLEANING_TOPICS) for side in ("before", "after")]
    pairs += [("share", SHARE_TOPICS), ("cluster", CLUSTER_TOPICS)]
    pairs.append(("zookeeper/broker-1", ZOOKEEPER_TOPICS))
    rows = [
        row(SAMPLES, listed, f"{sample}/{topic}", what)
        for sample, topics in pairs
        for topic, what in topics.items()
    ]
    assert [line for line in rows if line not in text] == []


def test_samples_stay_small_on_the_disk() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    on_disk = sum(path.stat().st_blocks * 512 for path in files)
    as_listed = sum(path.stat().st_size for path in files)  # a sparse file would be small on disk
    assert max(on_disk, as_listed) <= MAX_DISK_BYTES


@pytest.mark.parametrize(
    "topic_partition",
    [
        *(f"codec-{name}-0" for name in (*CODECS.values(), "snappy-xerial", "mixed")),
        *("orders-0", "orders-1", "orders-2", "idempotent-0", "append-time-0"),
        *("odd-timestamps-0", "transactions-0", "compacted-0", "deleted-records-0"),
        "__consumer_offsets-0",
    ],
)
def test_topic_has_several_segments(topic_partition: str) -> None:
    assert len(logs(topic_partition)) >= 2


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_codec_topic_is_written_in_its_codec(codec: int) -> None:
    found = {h.codec for log in logs(f"codec-{CODECS[codec]}-0") for h in headers(log)}
    assert found == {codec}
    assert codec in {h.codec for log in logs("codec-mixed-0") for h in headers(log)}


def test_snappy_is_there_in_both_framings() -> None:
    payloads = [
        log.read_bytes()[start : start + 8]
        for log in [logs("codec-snappy-0")[0], logs("codec-snappy-xerial-0")[0]]
        for start in [61]
    ]
    assert [p == b"\x82SNAPPY\x00" for p in payloads] == [False, True]


def test_codec_topic_keeps_null_and_empty_apart() -> None:
    found = [r for log in logs("codec-none-0") for r in records(log)]
    assert {None, b""} <= {r.key for r in found}
    assert {None, b""} <= {r.value for r in found}
    assert any(value is None for r in found for _, value in r.headers)


def test_compacted_topic_has_horizons_and_its_inputs() -> None:
    found = [h for log in logs("compacted-0") for h in headers(log)]
    assert any(h.has_delete_horizon for h in found)
    assert len(list((BROKER / "compacted-0").glob("*.log.deleted"))) >= 5


def test_times_are_as_odd_as_promised() -> None:
    found = [h for log in logs("odd-timestamps-0") for h in headers(log)]
    assert any(h.max_timestamp > 253_402_300_799_999 for h in found)  # the end of the year 9999
    assert any(h.max_timestamp == 1 for h in found)
    assert any(h.max_timestamp - h.base_timestamp > 2**31 for h in found)
    appended = [h for log in logs("append-time-0") for h in headers(log)]
    assert {h.timestamp_type for h in appended} == {1}


def test_transactional_topic_has_markers_and_an_index() -> None:
    found = [h for log in logs("transactions-0") for h in headers(log)]
    assert any(h.is_control for h in found)
    assert any(h.is_transactional and not h.is_control for h in found)
    assert list((BROKER / "transactions-0").glob("*.txnindex"))


@pytest.mark.parametrize("topic_partition", ["accounts-0", "accounts-1", "sessions-0"])
def test_cleaning_pair_is_one_log_on_both_sides_of_one_pass(topic_partition: str) -> None:
    before = [r for log in logs(topic_partition, SAMPLES / "cleaning/before") for r in records(log)]
    after = [r for log in logs(topic_partition, SAMPLES / "cleaning/after") for r in records(log)]
    kept = {r.offset: r for r in before}
    assert 0 < len(after) < len(before)
    assert all(kept[r.offset] == r for r in after)
    assert {r.key: r.value for r in after} == {r.key: r.value for r in before}


def test_copy_has_the_times_the_broker_left(tmp_path: Path) -> None:
    copy = copy_sample("cleaning/before", tmp_path / "copy")
    facts = read_manifest()["files"]
    for path in copy.rglob("*.log"):
        name = f"cleaning/before/{path.relative_to(copy).as_posix()}"
        assert path.stat().st_mtime_ns // 1_000_000 == facts[name]["mtimeMs"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("broker", "exists: remove it"), ("brokers", "there is no sample brokers")],
)
def test_a_copy_that_cannot_be_made_says_why_and_leaves_what_is_there(
    name: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["copy_samples.py", name, str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
