"""Objects that Aiven's plug-in wrote read as the segments that the broker has on its disk."""

from __future__ import annotations

import base64
import json
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from kafkalog import fetch, list_offsets, read_batches, read_records, read_view
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import verify_run
from kafkalog.checking.segment import check_segment, segment_task
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.cli.main import main
from kafkalog.errors import (
    InvalidConfigError,
    LogChangedError,
    OffsetOutOfRangeError,
    RemoteResourceNotFoundError,
    RemoteStorageError,
)
from kafkalog.format.segment_manifest import parse_segment_manifest
from kafkalog.log.remote_segments import describe_behind_manifest
from kafkalog.log.small_files import read_small_file
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.paths import ManifestPath, RemoteStorage
from kafkalog.remote.segment import ChunkedSegment
from tests.support.aiven_store import Plugin, packed_sizes
from tests.support.log_builder import LogBuilder

SAMPLES = Path(__file__).parent / "samples"
BROKER, STORE = SAMPLES / "broker", SAMPLES / "store"
KEYS = {"key1": str(SAMPLES / "keys/key1.pem"), "key2": str(SAMPLES / "keys/key2.pem")}
# Plain, zstd and AES, and (by the plug-in's heuristic) AES alone, with another key.
TOPICS = ["a-lz4", "b-lz4", "b-txn", "c-lz4"]
KEYS_OF_ROWS = ("topic", "partition", "segmentBaseOffset", "baseOffset", "entry", "firstOffset",
                "producerId")  # fmt: skip
INDEXES = (".index", ".timeindex", ".txnindex")


def manifests(store: Path) -> list[Path]:
    return sorted(store.rglob("*.rsm-manifest"))


def paths_of(manifest: Path) -> ManifestPath:
    objects = str(manifest).removesuffix(".rsm-manifest")
    return ManifestPath(str(manifest), objects, tuple(KEYS.items()))


def whole(segment: ChunkedSegment) -> bytes:
    return b"".join(segment.blocks(n, 1)[0] for n in range(segment.manifest.chunks.count))


def without_closed_segments(log_dir: Path) -> Path:
    """A log dir whose topics have nothing but their last segments any more."""
    for topic in TOPICS:
        directory = log_dir / f"{topic}-0"
        *closed, _ = sorted(directory.glob("*.log"))
        assert closed
        for log in closed:
            for ending in (".log", *INDEXES):
                log.with_suffix(ending).unlink(missing_ok=True)
    return log_dir


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))


def test_objects_are_the_files_of_the_broker_byte_for_byte() -> None:
    seen = set()
    for manifest in manifests(STORE):
        path = paths_of(manifest)
        segment = ChunkedSegment(path)
        copied = segment.manifest.copied
        assert copied is not None
        seen.add((segment.manifest.is_compressed, segment.manifest.data_key is not None))
        log = BROKER / f"{copied.topic}-{copied.partition}" / f"{copied.start_offset:020d}.log"
        assert whole(segment) == log.read_bytes()
        for ending in INDEXES:
            if log.with_suffix(ending).exists():
                assert read_small_file(path.beside(ending)) == log.with_suffix(ending).read_bytes()
        snapshot = log.with_name(f"{copied.end_offset + 1:020d}.snapshot")
        assert read_small_file(path.beside(".snapshot")) == snapshot.read_bytes()
    assert seen == {(False, False), (True, True), (False, True)}


@pytest.mark.parametrize("read_committed", [False, True])
def test_records_are_those_of_the_brokers_own_directory(local: Path, read_committed: bool) -> None:
    options: dict[str, Any] = {"topics": TOPICS, "read_committed": read_committed}
    expected = read_records(BROKER, **options).read_all()
    with pytest.raises(OffsetOutOfRangeError):
        read_records(local, **options)
    found = read_records(local, **options, remote_dirs=STORE, remote_keys=KEYS).read_all()
    assert found.equals(expected)
    assert found.num_rows > 4000


def test_batches_are_those_of_the_brokers_own_directory(local: Path) -> None:
    options: dict[str, Any] = {"topics": TOPICS, "verify_checksums": True}
    found = read_batches(local, **options, remote_dirs=[str(STORE)], remote_keys=KEYS)
    expected = read_batches(BROKER, **options)
    assert found.drop_columns("path").equals(expected.drop_columns("path"))
    assert str(STORE / "prefix") in " ".join(set(found["path"].to_pylist()))


def test_views_are_those_of_the_brokers_own_directory(local: Path) -> None:
    """Entries of indexes, segments, transactions: with the offsets of the remote ones."""
    own = ("path", "state", "modificationTime", "hasSnapshot")
    for view in ("offset_index", "time_index", "transaction_index", "segments", "transactions",
                 "producers"):  # fmt: skip
        found = read_view(view, local, topics=TOPICS, remote_dirs=STORE, remote_keys=KEYS)
        expected = read_view(view, BROKER, topics=TOPICS)
        tables = [
            table.drop_columns([name for name in own if name in table.column_names]).sort_by(
                [(name, "ascending") for name in table.column_names if name in KEYS_OF_ROWS]
            )
            for table in (found, expected)
        ]
        assert tables[0].equals(tables[1]), view
        assert found.num_rows > 0
    with pytest.raises(InvalidConfigError, match="'checkpoints' reads what is on the disk"):
        read_view("checkpoints", local, remote_dirs=STORE)


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_fetches_and_lookups_are_those_of_the_brokers_own_directory(
    local: Path, level: str
) -> None:
    remote: dict[str, Any] = {"remote_dirs": STORE, "remote_keys": KEYS}
    name = "b-txn-0"
    with pytest.raises(OffsetOutOfRangeError):
        fetch(local / name, 0)
    for offset in (0, 700, 1158, 1159, 1600):
        found = fetch(local / name, offset, 20_000, isolation_level=level, **remote)
        assert found == fetch(BROKER / name, offset, 20_000, isolation_level=level)
        assert found.records
    times = read_records(BROKER, topics="b-txn", columns="timestampMs").read_all()["timestampMs"]
    for timestamp in (-3, -2, -1, *sorted(set(times.to_pylist()))[::200]):
        looked_up = list_offsets(local / name, timestamp, isolation_level=level, **remote)
        assert looked_up == list_offsets(BROKER / name, timestamp, isolation_level=level)
        assert looked_up is not None


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_every_transformation_reads_alike_where_batches_cross_chunks(
    log_dir: Path, tmp_path: Path, is_compressed: bool, is_encrypted: bool
) -> None:
    log = LogBuilder(log_dir, "orders-0").segment()
    for number in range(40):
        log.batch((f"k{number}", "v" * 700))
    log.segment().batch(("last", "v")).write()
    expected = read_records(log_dir).read_all()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    key = ("key2", Path(KEYS["key2"])) if is_encrypted else None
    plugin = Plugin(1000, is_compressed=is_compressed, key=key, prefix="glued-")
    plugin.copy(first, tmp_path / "store", end_offset=39)
    first.unlink()
    found = read_records(log_dir, remote_dirs=tmp_path / "store", remote_keys=KEYS)
    assert found.read_all().equals(expected)


def test_a_list_of_chunk_sizes_is_what_the_plug_in_packs() -> None:
    """Vectors of ChunkIndexSerializationTest and of a real manifest; widths of one to four."""
    for text, sizes in (
        ("KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe", [10, 20, 30]),
        ("KLUv/SATmQAAAAAABAAACwwCADoBJAAAAAAIcA==", [2886, 3120, 2828, 2160]),
        (_packed([7]), [7]),
        (_packed([1, 70_000, 5]), [1, 70_000, 5]),
        (_packed([1, 1 << 24, 5]), [1, 1 << 24, 5]),
    ):
        assert _stored_sizes(text, len(sizes)) == sizes


def _packed(sizes: list[int]) -> str:
    return base64.b64encode(zstandard.compress(packed_sizes(sizes))).decode()


def _manifest(text: str, chunks: int) -> bytes:
    fields = {
        "version": "1",
        "compression": True,
        "segmentIndexes": {},
        "chunkIndex": {
            "type": "variable",
            "originalChunkSize": 10,
            "originalFileSize": 10 * chunks,
            "transformedChunks": text,
        },
    }
    return json.dumps(fields).encode()


def _stored_sizes(text: str, count: int) -> list[int]:
    index = parse_segment_manifest(_manifest(text, count), "m").chunks
    ranges = [index.stored_range(number) for number in range(count)]
    return [end - start for start, end in ranges]


@dataclass(frozen=True)
class Found:
    """A finding without what differs by where its file lies."""

    kind: str
    topic: str
    offset: int | None
    position: int | None
    text: str


def verified(log_dir: Path, remote: RemoteStorage, run_dir: Path) -> tuple[set[Found], int]:
    request = VerifyRequest((str(log_dir),), tuple(TOPICS), run_dir=str(run_dir), remote=remote)
    run = verify_run(request, lambda tasks: map(check_segment, tasks), lambda _: None)
    found = {Found(f.kind, f.topic or "", f.offset, f.position, f.text) for f in run.findings}
    return found, sum(len(p.partition.segments) for p in run.partitions)


def test_verify_finds_in_remote_segments_what_it_finds_on_the_disk(
    local: Path, tmp_path: Path
) -> None:
    """A batch with a wrong checksum, and an index that disagrees, as in a copy of all of it."""
    disk = Path(shutil.copytree(BROKER, tmp_path / "disk"))
    store = Path(shutil.copytree(STORE, tmp_path / "store"))
    log = disk / "a-lz4-0" / f"{0:020d}.log"
    (remote_log,) = store.glob(f"a-lz4-*/0/{log.stem}-*.log")
    for path in (log, remote_log):  # as it is: not encrypted
        flip(path, 5000)
    flip(log.with_suffix(".index"), 7)
    flip(remote_log.with_suffix(".indexes"), 7)
    remote = RemoteStorage((str(store),), keys=tuple(KEYS.items()))
    expected, segments = verified(disk, RemoteStorage(), tmp_path / "runs")
    found, remote_segments = verified(local, remote, tmp_path / "runs")
    assert {"crc-mismatch", "offset-index-disagrees"} <= {each.kind for each in found}
    assert (found, remote_segments) == (expected, segments)


def test_a_task_that_travelled_as_json_still_opens_its_objects() -> None:
    """As Spark's do: a path behind a manifest is more than its text."""
    path = paths_of(next(m for m in manifests(STORE) if "b-lz4" in str(m)))
    segment = describe_behind_manifest(path, int(Path(path).name[:20]))
    task = segment_task(segment)
    again = SegmentTask.from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    report = check_segment(again)
    assert report.findings == ()
    assert SegmentReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert report == check_segment(task)


def test_verify_names_objects_that_cannot_be_read_and_goes_on(local: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(STORE, tmp_path / "store"))
    (cut,) = store.glob("a-lz4-*/0/*.log")
    cut.write_bytes(cut.read_bytes()[:-1])
    flip(next(store.glob("prefix/b-lz4-*/0/*.log")), 100)
    remote = RemoteStorage((str(store),), keys=(("key1", KEYS["key1"]),))
    found, _ = verified(local, remote, tmp_path / "runs")
    texts = {each.topic: each.text for each in found if each.kind == "unreadable"}
    assert set(texts) == {"a-lz4", "b-lz4", "c-lz4"}
    assert "its manifest says" in texts["a-lz4"]
    assert "the tag is wrong" in texts["b-lz4"]
    assert "encrypted with key 'key2', which is not on the ring" in texts["c-lz4"]


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    topics = [f"--topic={topic}" for topic in TOPICS]
    code = main(["segments", *words, *topics, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_segments_in_remote_storage_are_listed_as_those_on_the_disk(
    local: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Path(shutil.copytree(STORE, tmp_path / "store"))
    keys = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    _, expected = listed(capsys, str(BROKER))
    code, found = listed(capsys, str(local), "--remote-dir", str(store), *keys)
    own = {"path", "state", "modificationTime", "hasSnapshot"}
    plain = [
        [{k: v for k, v in row.items() if k not in own} for row in each["segments"]]
        for each in (found, expected)
    ]
    assert plain[0] == plain[1]
    assert {row["state"] for row in found["segments"]} == {"remote", "live"}
    assert (code, found["problems"]) == (0, [])
    flip(next(store.glob("prefix/b-lz4-*/0/*.log")), 100)
    code, found = listed(capsys, str(local), "--remote-dir", str(store), *keys)
    assert (code, len(found["segments"])) == (1, len(plain[1]) - 1)
    assert "the tag is wrong" in found["problems"][0]


def test_dump_of_an_object_is_that_of_the_brokers_file(capfdbinary: Any) -> None:
    keys = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    for topic in ("a-lz4", "b-txn", "c-lz4"):
        (log, *_) = sorted((BROKER / f"{topic}-0").glob("*.log"))
        (remote_log,) = STORE.rglob(f"{topic}-*/0/{log.stem}-*.log")
        assert main(["dump", "--print-data-log", str(log)]) == 0
        expected = capfdbinary.readouterr().out.splitlines()
        assert main(["dump", "--print-data-log", *keys, str(remote_log)]) == 0
        found = capfdbinary.readouterr().out.splitlines()
        assert found[0] == f"Dumping {remote_log}".encode()
        assert found[1:] == expected[1:]
        assert len(found) > 100


# -- what is wrong ---------------------------------------------------------------------------------


def changed(manifest: Path, **members: Any) -> None:
    """Members of `chunkIndex` by their names, all others at the top."""
    fields = json.loads(manifest.read_text())
    for name, value in members.items():
        place = fields["chunkIndex"] if name in fields["chunkIndex"] else fields
        place[name] = value
    manifest.write_text(json.dumps(fields))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.fixture
def stored(log_dir: Path, tmp_path: Path) -> Path:
    """The manifest of an encrypted, compressed segment of 40 batches, which is nowhere else."""
    log = LogBuilder(log_dir, "orders-0").segment()
    for number in range(40):
        log.batch((f"k{number}", f"{number}" * 300))
    log.segment().batch(("last", "v")).write()
    BLOCKS.clear()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    plugin = Plugin(4096, is_compressed=True, key=("key2", Path(KEYS["key2"])))
    manifest = plugin.copy(first, tmp_path / "store", end_offset=39)
    first.unlink()
    return manifest


def read(log_dir: Path, stored: Path, **options: Any) -> pa.Table:
    options = {"remote_keys": KEYS, **options}
    return read_records(log_dir, remote_dirs=stored.parents[2], **options).read_all()


def test_a_key_that_is_missing_or_wrong_is_named(log_dir: Path, stored: Path) -> None:
    assert read(log_dir, stored).num_rows == 41
    with pytest.raises(RemoteStorageError, match=r"rsm-manifest: encrypted with key 'key2', which "
                       r"is not on the ring \(key1\)"):  # fmt: skip
        read(log_dir, stored, remote_keys={"key1": KEYS["key1"]})
    with pytest.raises(RemoteStorageError, match=r"key1.pem does not open the data key"):
        read(log_dir, stored, remote_keys={"key2": KEYS["key1"]})
    with pytest.raises(InvalidConfigError, match="no RSA key in PEM"):
        read(log_dir, stored, remote_keys={"key2": str(stored)})
    with pytest.raises(InvalidConfigError, match="No such file"):
        read(log_dir, stored, remote_keys={"key2": "/no/such.pem"})


def test_a_flipped_bit_names_object_chunk_and_range(log_dir: Path, stored: Path) -> None:
    log = stored.with_suffix(".log")
    second = ChunkedSegment(paths_of(stored)).manifest.chunks.stored_range(1)
    flip(log, second[0] + 20)
    place = rf"\.log @ {second[0]}: chunk 1, bytes {second[0]} to {second[1] - 1} of the object"
    with pytest.raises(RemoteStorageError, match=place + ": the tag is wrong"):
        read(log_dir, stored)
    assert read(log_dir, stored, starting_offsets={"orders-0": 40}).num_rows == 1


def test_objects_that_are_cut_gone_or_anothers_are_named(log_dir: Path, stored: Path) -> None:
    log = stored.with_suffix(".log")
    data = log.read_bytes()
    log.write_bytes(data[:-1])
    with pytest.raises(RemoteStorageError, match=r"\.log: the object has \d+ bytes, its manifest "):
        read(log_dir, stored)
    log.unlink()
    with pytest.raises(RemoteResourceNotFoundError, match=r"\.log: the manifest is there, its obj"):
        read(log_dir, stored)
    assert read(log_dir, stored, fail_on_data_loss=False).num_rows == 1
    log.write_bytes(data)
    other = stored.with_name(stored.name.replace("A" * 22, "B" * 22))
    for suffix in (".log", ".indexes", ".rsm-manifest"):
        shutil.copy(stored.with_suffix(suffix), other.with_suffix(suffix))
    with pytest.raises(RemoteStorageError, match="under another one's name"):
        read(log_dir, stored)


def test_a_log_without_its_manifest_is_an_upload_that_did_not_end(
    log_dir: Path, stored: Path
) -> None:
    stored.unlink()
    with pytest.raises(OffsetOutOfRangeError):
        read(log_dir, stored)
    assert read(log_dir, stored, fail_on_data_loss=False).num_rows == 1


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"version": "2"}, "version '2', this reads '1'"),
        ({"version": 1}, "version 1, this reads '1'"),
        ({"compression": "yes"}, "compression is 'yes'"),
        ({"originalFileSize": 1 << 40}, "originalFileSize is 1099511627776"),
        ({"originalFileSize": -1}, "originalFileSize is -1"),
        ({"originalFileSize": 100}, "chunks are listed; 100 bytes in chunks of 4096 are 1"),
        ({"originalFileSize": (1 << 31) - 1}, "chunks are listed"),
        ({"originalChunkSize": (1 << 31) - 1, "originalFileSize": (1 << 31) - 1}, "the limit is"),
        ({"originalChunkSize": 0}, "originalChunkSize is 0"),
        ({"type": "other"}, "chunkIndex of type 'other'"),
        ({"transformedChunks": "?"}, "transformedChunks is no base64"),
        ({"transformedChunks": _packed([5] * 3)}, "3 chunks are listed"),
        ({"encryption": {"dataKey": "a:b:c", "aad": ""}}, "no dataKey of the form"),
        ({"segmentIndexes": None}, "segmentIndexes is no object"),
    ],
)  # fmt: skip
def test_a_forged_manifest_is_refused_with_its_reason(
    log_dir: Path, stored: Path, members: dict[str, Any], reason: str
) -> None:
    changed(stored, **members)
    with pytest.raises(RemoteStorageError, match="rsm-manifest: no manifest: ") as raised:
        read(log_dir, stored)
    assert reason in str(raised.value)


def test_a_list_of_sizes_that_lies_about_itself_allocates_nothing() -> None:
    for raw in (
        struct.pack(">iib", 2_000_000_000, 1, 4),
        struct.pack(">iib", 3, 1, 9) + bytes(20),
        struct.pack(">iib", -5, 1, 1),
        struct.pack(">ii", 1, -4),
        b"\0",
    ):
        text = base64.b64encode(zstandard.compress(raw)).decode()
        with pytest.raises(RemoteStorageError, match=r"chunk size|stored bytes|cut off"):
            parse_segment_manifest(_manifest(text, 3), "m")
    bomb = base64.b64encode(zstandard.compress(bytes(11 << 20))).decode()
    with pytest.raises(RemoteStorageError, match="larger than 10485760"):
        parse_segment_manifest(_manifest(bomb, 3), "m")


def test_a_chunk_is_never_more_than_its_manifest_says(log_dir: Path, tmp_path: Path) -> None:
    log = LogBuilder(log_dir, "orders-0").segment()
    log.batch(("k", "v" * 5000)).segment().batch(("last", "v")).write()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    manifest = Plugin(4096, is_compressed=True).copy(first, tmp_path, end_offset=0)
    size = first.stat().st_size
    path = paths_of(manifest)
    for said in (size - 1, size + 1):
        changed(manifest, originalFileSize=said)
        with pytest.raises(RemoteStorageError, match=r"chunk 1, bytes \d+ to \d+ of the object"):
            whole(ChunkedSegment(path))


def test_an_object_that_shrinks_behind_the_check_is_a_change(stored: Path) -> None:
    segment = ChunkedSegment(paths_of(stored))
    stored.with_suffix(".log").write_bytes(b"")
    with pytest.raises(LogChangedError, match=r"chunk 0, bytes 0 to \d+ of the object: 0 bytes"):
        segment.blocks(0, 1)[0]
