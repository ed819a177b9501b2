"""Remote storage read without a log dir, and copies of tiered partitions compared with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError, RemoteStorageError
from kafkalog.log import producer_state
from kafkalog.log.producer_state import active_producers, uploaded_snapshots
from kafkalog.log.remote_tree import open_logs
from kafkalog.reading.following import end_offsets, first_offsets
from kafkalog.reading.lookups import last_stable_offset
from kafkalog.reading.selection import PartitionSelection
from kafkalog.remote.cache import BLOCKS, Block
from kafkalog.remote.paths import RemoteStorage
from kafkalog.remote.segment import ChunkedSegment
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS
from tests.support.aiven_store import Plugin
from tests.support.buckets import served
from tests.support.log_builder import LogBuilder
from tests.support.s3_server import BUCKET, S3Server

TREE: dict[str, Any] = {"remote_layout": "aiven", "remote_keys": KEYS}
STORED = RemoteStorage(layout="aiven", keys=tuple(KEYS.items()))
KEY_WORDS = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
TIERED = Path("data/samples/tiered")
SHOWN = ("topic", "partition", "offset", "timestampMs", "key", "value")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    yield from served(monkeypatch)


def uploaded(table: pa.Table, found: pa.Table) -> pa.Table:
    """The rows of the broker's own log whose offsets the tree goes up to."""
    ends = found.group_by(["topic"]).aggregate([("offset", "max")])
    parts = [
        table.filter((pc.field("topic") == topic) & (pc.field("offset") <= end))
        for topic, end in zip(*(ends[n].to_pylist() for n in ("topic", "offset_max")), strict=True)
    ]
    return pa.concat_tables(parts).sort_by([("topic", "ascending"), ("offset", "ascending")])


@pytest.mark.parametrize("read_committed", [False, True])
def test_records_of_a_tree_are_those_of_the_brokers_own_directory(read_committed: bool) -> None:
    options: dict[str, Any] = {"topics": TOPICS, "read_committed": read_committed, "columns": SHOWN}
    found = kafkalog.read_records(STORE, **options, **TREE).read_all()
    expected = uploaded(kafkalog.read_records(BROKER, **options).read_all(), found)
    assert found.sort_by([("topic", "ascending"), ("offset", "ascending")]).equals(expected)
    assert found.num_rows > 10_000
    assert set(found["topic"].to_pylist()) == set(TOPICS)  # without what is glued to the names


def test_a_tree_in_a_bucket_is_queried_listed_verified_and_dumped(
    bucket: S3Server, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    for path in STORE.rglob("*"):
        if path.is_file():
            bucket.objects[f"tiers/{path.relative_to(STORE).as_posix()}"] = path.read_bytes()
    found = []
    for place in (f"s3://{BUCKET}/tiers", str(STORE)):
        words = [place, "--remote-layout=aiven", *KEY_WORDS]
        outputs = []
        for verb, *more in (
            ("sql", "--format=json", "--sql=SELECT topic, count(*), max(offset) FROM records "
             "GROUP BY ALL ORDER BY topic"),
            ("segments", "--json", "--topic=b-*"),
            ("verify", "--json", f"--run-dir={tmp_path}", "--workers=1"),
            ("dump", "--print-data-log"),
        ):  # fmt: skip
            assert main([verb, *words, *more]) == 0, verb
            outputs.append(capfdbinary.readouterr().out.decode().replace(place, "PLACE"))
        query, segments, verified, dumped = outputs
        rows = json.loads(segments)["segments"]
        document = json.loads(verified)
        assert document["findings"] == []
        assert dumped.count("Dumping PLACE/") == 8
        found.append((
            query, dumped,
            [{k: v for k, v in row.items() if k != "modificationTime"} for row in rows],
            [{k: v for k, v in p.items() if k != "seconds"} for p in document["partitions"]],
        ))  # fmt: skip
    assert found[0] == found[1]
    assert [row["topic"] for row in found[0][2]] == ["b-lz4", *["b-txn"] * 5]


def test_fetches_and_lookups_of_a_tree_are_those_of_the_broker() -> None:
    (directory,) = STORE.glob("prefix/b-txn-*/0")
    for offset in (0, 700, 1159):
        found = kafkalog.fetch(directory, offset, 20_000, **TREE)
        expected = kafkalog.fetch(BROKER / "b-txn-0", offset, 20_000)
        assert found.records == expected.records
        assert len(found.records) > 10_000
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 2890"):
        kafkalog.fetch(directory, 2891, **TREE)
    assert kafkalog.list_offsets(directory, -1, **TREE).offset == 2890
    with pytest.raises(InvalidConfigError, match="4 partitions are there"):
        kafkalog.fetch(STORE, 0, **TREE)


def test_the_end_of_a_tree_is_judged_by_the_snapshot_of_its_last_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same producers and transactions as by a replay of all of it, which reads every chunk."""
    read: set[tuple[str, int]] = set()
    real = ChunkedSegment.blocks

    def blocks(self: ChunkedSegment, first: int, count: int) -> list[Block]:
        read.update((str(self.path), number) for number in range(first, first + count))
        return real(self, first, count)

    monkeypatch.setattr(ChunkedSegment, "blocks", blocks)
    logs = {each.topic_partition.topic: each for each in open_logs([str(STORE)], STORED)}
    stable = {}
    for topic in TOPICS:
        BLOCKS.clear()
        stable[topic] = last_stable_offset(logs[topic])
    assert read == set()
    known = active_producers(logs["b-txn"], 0, 1)
    fetched = kafkalog.fetch(logs["b-txn"], 700, 20_000)
    assert len(read) == 3  # of 16 KiB, for 20,000 bytes
    # Where another segment is read from some offset on, what lies in front of it does not count.
    first, second, *_ = logs["b-txn"].segments
    moved = replace(second, base_offset=second.base_offset - 1)
    of_two = replace(logs["b-txn"], segments=(first, moved), log_end_offset=10_000)
    assert list(uploaded_snapshots(of_two)) == []
    monkeypatch.setattr(producer_state, "uploaded_snapshots", lambda _: iter(()))
    assert {topic: last_stable_offset(logs[topic]) for topic in TOPICS} == stable
    assert stable["b-txn"] < logs["b-txn"].log_end_offset
    assert len(read) > 10
    assert active_producers(logs["b-txn"], 0, 1) == known
    assert kafkalog.fetch(logs["b-txn"], 700, 20_000) == fetched


def test_a_tree_of_local_tiered_storage_reads_as_by_a_consumer(capfdbinary: Any) -> None:
    expected = json.loads((TIERED / "consumed.json").read_text())["read_committed"]
    found = kafkalog.read_records(
        TIERED / "remote", remote_layout="kafka", read_committed=True, columns="offset, value"
    ).read_all()
    rows = [[row["offset"], row["value"].decode()] for row in found.to_pylist()]
    assert rows == [[offset, value] for offset, _, _, value in expected if offset < 382]
    assert main(["dump", str(TIERED / "remote"), "--remote-layout=kafka"]) == 0
    assert capfdbinary.readouterr().out.count(b"Dumping ") == 5


def test_a_stream_of_a_tree_in_a_bucket_goes_as_far_as_was_uploaded(bucket: S3Server) -> None:
    bucket.put_tree(TIERED / "remote")
    selection = PartitionSelection(remote_layout="kafka")
    assert first_offsets([f"s3://{BUCKET}"], selection) == {"tiered": {"0": 0}}
    assert end_offsets([f"s3://{BUCKET}"], selection) == {"tiered": {"0": 382}}


def test_partitions_of_a_tree_have_its_offsets() -> None:
    found = kafkalog.read_view("partitions", STORE, topics=TOPICS, **TREE)
    rows = found.select(["topic", "logStartOffset", "logEndOffset", "segmentsCount"]).to_pylist()
    assert [(row["topic"], row["logEndOffset"], row["segmentsCount"]) for row in rows] == [
        ("a-lz4", 2700, 1), ("b-lz4", 2700, 1), ("b-txn", 2890, 5), ("c-lz4", 2700, 1),
    ]  # fmt: skip


@pytest.fixture
def tree(log_dir: Path, tmp_path: Path) -> Path:
    """Segments of offsets 0, 1, 2 in a tree."""
    log = LogBuilder(log_dir, "orders-0")
    for value in ("a", "b", "c"):
        log.segment().batch(("k", value), partition_leader_epoch=3)
    directory = log.write()
    for number, path in enumerate(sorted(directory.glob("*.log"))):
        Plugin().copy(path, tmp_path / "store", segment_id=f"{number}" * 22, end_offset=number,
                      epochs={3: number})  # fmt: skip
    return tmp_path / "store"


def values(tree: Path, **options: Any) -> list[bytes]:
    found = kafkalog.read_records(tree, remote_layout="aiven", columns="value", **options)
    rows: list[bytes] = found.read_all()["value"].to_pylist()
    return rows


def test_what_a_tree_lacks_between_two_segments_is_an_error(tree: Path) -> None:
    assert values(tree) == [b"a", b"b", b"c"]
    for path in tree.rglob("*-1111*"):
        path.unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 1 to 1 are not here"):
        values(tree)
    assert values(tree, fail_on_data_loss=False) == [b"a", b"c"]


def test_of_a_leader_that_was_replaced_a_tree_gives_nothing(
    log_dir: Path, tree: Path, tmp_path: Path
) -> None:
    """It wrote offset 1 and 2 in epoch 4, and the next leader went on from offset 1 in epoch 5."""
    lineage = {3: 0, 5: 1}
    other = tmp_path / "other"
    other.mkdir()
    directory = LogBuilder(other, "orders-0").segment(1).batch(("k", "lost"), ("k", "too")).write()
    (log,) = directory.glob("*.log")
    Plugin().copy(log, tree, segment_id="l" * 22, end_offset=2, epochs={4: 1})
    for number in (1, 2):
        for path in tree.rglob(f"*-{number}{number}*"):
            path.unlink()
        own = log_dir / "orders-0" / f"{number:020d}.log"
        Plugin().copy(own, tree, segment_id=f"{number}" * 22, end_offset=number,
                      epochs={5: number}, lineage=lineage)  # fmt: skip
    assert values(tree) == [b"a", b"b", b"c"]
    # Without the last one's leader epochs, by what the manifests say.
    (indexes,) = tree.rglob("*-2222*.indexes")
    indexes.unlink()
    (found,) = open_logs([str(tree)], RemoteStorage((), "aiven"))
    assert ["lll" in segment.path for segment in found.segments] == [False] * 3


def test_one_damaged_manifest_of_a_tree_is_named_and_the_others_are_read(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (manifest,) = tree.rglob("*-1111*.rsm-manifest")
    manifest.write_text("{")
    with pytest.raises(RemoteStorageError, match=manifest.name):
        values(tree)
    assert values(tree, fail_on_data_loss=False) == [b"a", b"c"]
    assert main(["segments", str(tree), "--remote-layout=aiven", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [row["baseOffset"] for row in document["segments"]] == [0, 2]
    assert manifest.name in document["problems"][0]


def test_partitions_that_nobody_asks_for_are_not_looked_into(tree: Path) -> None:
    for path in tree.rglob("*-1111*.rsm-manifest"):
        path.write_text("{")
    storage = RemoteStorage((), "aiven")
    (found,) = open_logs([str(tree)], storage, accepts=lambda name: name.topic != "orders")
    assert (str(found.topic_partition), found.segments) == ("orders-0", ())
    with pytest.raises(InvalidConfigError, match="not there: order; there are: orders"):
        values(tree, topics="order")


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--remote-key=a=b"),
        ("segments", "--remote-key=a=b"),
        ("segments", "--remote-layout=plain"),
        ("compare", "--remote-layout=aiven"),
    ],
)
def test_a_layout_that_is_not_there_and_keys_of_nothing_are_refused(
    words: tuple[str, ...], tree: Path
) -> None:
    assert main([words[0], str(tree), *words[1:]]) == 2


# -- copies ----------------------------------------------------------------------------------------


@pytest.fixture
def replicas(tmp_path: Path) -> list[Path]:
    """Local retention came further on the first than on the second."""
    made = []
    for name, first in (("one", 1760), ("two", 590)):
        log_dir = Path(shutil.copytree(BROKER, tmp_path / name))
        for path in (log_dir / "b-txn-0").glob("0*.*"):
            if int(path.name[:20]) < first:
                path.unlink()
        made.append(log_dir)
    return made


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    main(["compare", *words, "--json", "--workers=1"])
    findings: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return findings


def test_local_retention_of_a_tiered_topic_is_no_difference(
    replicas: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In log dirs, in digests, and in one of each."""
    words = [*map(str, replicas), "--topic=b-txn"]
    remote = [f"--remote-dir={STORE}", *KEY_WORDS]
    (missing,) = compared(capsys, *words)
    assert (missing["id"], missing["offset"], missing["lastOffset"]) == ("missing-range", 590, 1759)
    assert compared(capsys, *words, *remote) == []
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    digests = []
    for replica in replicas:
        digests.append(f"{replica}.digest")
        assert main(["digest", str(replica), "--topic=b-txn", f"--output={digests[-1]}",
                     f"--hash-key={key}", "--workers=1", *remote]) == 0  # fmt: skip
    capsys.readouterr()
    own_key = f"--hash-key={key}"
    assert compared(capsys, *digests, own_key) == []
    assert compared(capsys, str(replicas[0]), digests[1], own_key, *words[2:], *remote) == []


def test_a_difference_from_what_was_uploaded_is_found(
    replicas: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of what the first has in remote storage only, and the second on its disk."""
    log = replicas[1] / "b-txn-0" / f"{590:020d}.log"
    for path in log.parent.glob(f"{590:020d}.*"):
        path.unlink()
    log.touch()
    found = compared(capsys, *map(str, replicas), "--topic=b-txn", f"--remote-dir={STORE}",
                     *KEY_WORDS)  # fmt: skip
    assert [(each["id"], each["offset"]) for each in found] == [("missing-range", 590)]
    assert main(["compare", *map(str, replicas), "--heal", f"--remote-dir={STORE}"]) == 2
    assert "--heal puts right what is on disks" in capsys.readouterr().err


def test_dump_of_a_tiered_partition_begins_in_the_store(
    replicas: list[Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Line by line as of the directory that has all of it."""

    def lines(directory: Path, *words: str) -> list[bytes]:
        assert main(["dump", "--print-data-log", str(directory), *words]) == 0
        found = capfdbinary.readouterr().out.splitlines()
        return [line for line in found if line.startswith((b"baseOffset", b"| offset"))]

    found = lines(replicas[0] / "b-txn-0", f"--remote-dir={STORE}", *KEY_WORDS)
    assert found == lines(BROKER / "b-txn-0")
    assert len(found) > 3000
    assert main(["dump", str(replicas[0]), f"--remote-dir={STORE}"]) == 2
