"""Salvage: what is sound of a damaged log, and nothing else, in a valid copy; and the manifest."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import kafkalog
import kafkalog.repair.salvage
from kafkalog.cli.main import main
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.record import Record
from kafkalog.format.record_batch import field_position, pack_batch, with_crc
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.missing_range import MissingRange
from kafkalog.log.missing_ranges import missing_ranges
from kafkalog.repair.sound_batches import SegmentWalk
from tests.damage.doors import capped
from tests.damage.forging import around, random_damage
from tests.support.bytes_read import bytes_read
from tests.support.log_builder import LogBuilder

LOG = f"{0:020d}.log"
BATCHES = 12


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Twelve batches of three records, then a segment of two batches."""
    log = LogBuilder(tmp_path / "logs", "orders-0").segment()
    for number in range(BATCHES):
        log.batch(*((f"k{number}", f"value {number}-{i}") for i in range(3)), codec=number % 5)
    log.segment().batch(("last", "1")).batch(("last", "2"))
    log.write()
    return log


def tree(directory: Path) -> dict[Path, tuple[bytes, int]]:
    """Every file below a directory, with its time."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def salvage(log_dir: Path, output: Path, *more: str) -> tuple[int, dict[str, Any]]:
    code = main(["salvage", "--log-dir", str(log_dir), "--output", str(output), *more])
    return code, json.loads((output / "salvage.json").read_text())


def offsets(path: Path) -> list[int]:
    found: list[int] = (
        kafkalog.read_records(path, columns=["offset"]).read_all()["offset"].to_pylist()
    )
    return found


def damage(log: LogBuilder, position: int, data: bytes) -> None:
    file = log.log_dir / "orders-0" / LOG
    content = bytearray(file.read_bytes())
    content[position : position + len(data)] = data
    file.write_bytes(content)


def place(log: LogBuilder, number: int) -> tuple[int, int]:
    """(position, end) of a batch in the first segment."""
    position, header = log.segments[0].batches[number]
    return position, position + header.size_in_bytes


def test_a_sound_log_is_copied_whole(log: LogBuilder, tmp_path: Path) -> None:
    code, manifest = salvage(log.log_dir, tmp_path / "out")
    assert code == 0
    (partition,) = manifest["partitions"]
    assert [segment["leftOut"] for segment in partition["segments"]] == [[], []]
    assert (partition["status"], partition["logEndOffset"]) == ("salvaged", BATCHES * 3 + 2)
    copy = tmp_path / "out" / "orders-0"
    for name in (LOG, f"{BATCHES * 3:020d}.log", "partition.metadata", "leader-epoch-checkpoint"):
        assert (copy / name).read_bytes() == (log.log_dir / "orders-0" / name).read_bytes()
    times = [
        int(path.stat().st_mtime * 1000) for path in (copy / LOG, log.log_dir / "orders-0" / LOG)
    ]
    assert times[0] == times[1]  # to the millisecond, as Kafka knows it
    assert (copy / f"{0:020d}.index").exists()
    assert (copy / f"{0:020d}.timeindex").stat().st_size == 12


@pytest.mark.parametrize("what", ["record", "crc", "short", "long", "negative", "magic"])
def test_a_bad_batch_alone_is_left_out(log: LogBuilder, tmp_path: Path, what: str) -> None:
    start, end = place(log, 5)
    length = end - start - 12
    if what == "record":
        damage(log, start + 70, b"\xff")
    elif what == "crc":
        damage(log, start + field_position("crc"), b"\0\0\0\0")
    elif what == "magic":
        damage(log, start + 16, b"\x07")
    else:
        wrong = {"short": length - 20, "long": length + 150, "negative": -5}[what]
        damage(log, start + 8, struct.pack(">i", wrong))
    before = tree(log.log_dir)
    code, manifest = salvage(log.log_dir, tmp_path / "out")
    assert code == 1
    (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert (gap["position"], gap["length"]) == (start, end - start)
    assert (gap["firstOffset"], gap["lastOffset"]) == (15, 17)
    assert gap["reason"]
    assert tree(log.log_dir) == before  # never in place
    left = [offset for offset in range(BATCHES * 3 + 2) if offset not in (15, 16, 17)]
    assert offsets(tmp_path / "out" / "orders-0") == left
    # what was left out is named by the manifest down to the byte
    original = (log.log_dir / "orders-0" / LOG).read_bytes()
    copy = (tmp_path / "out" / "orders-0" / LOG).read_bytes()
    assert copy == original[:start] + original[end:]


def test_a_batch_whose_checksum_is_right_is_copied_as_it_is(
    log: LogBuilder, tmp_path: Path
) -> None:
    """Of a codec that nobody knows, of records that cannot be, or above every limit."""
    file = log.log_dir / "orders-0" / LOG
    content = bytearray(file.read_bytes())
    for number, name, value in ((3, "attributes", b"\0\7"), (6, "records_count", b"\0\0\0\x50")):
        start, end = place(log, number)
        forged = bytearray(content[start:end])
        at = field_position(name)
        forged[at : at + len(value)] = value
        content[start:end] = with_crc(forged)
    file.write_bytes(content)
    code, _ = salvage(log.log_dir, tmp_path / "out")
    assert code == 0
    assert (tmp_path / "out" / "orders-0" / LOG).read_bytes() == content
    reader = kafkalog.read_records(tmp_path / "out", columns=["offset"], mode="PERMISSIVE")
    codec, count = reader.read_all()["error"].drop_null().to_pylist()
    assert ("codec 7" in codec, "records count 80" in count) == (True, True)


def test_swapped_batches_are_put_back_in_order(log: LogBuilder, tmp_path: Path) -> None:
    """Neighbours, and two far from each other."""
    file = log.log_dir / "orders-0" / LOG
    original = file.read_bytes()
    parts = [original[slice(*place(log, number))] for number in range(BATCHES)]
    for name, one, other in (("a", 4, 5), ("b", 0, 1), ("c", 10, 11), ("d", 2, 9)):
        order = list(range(BATCHES))
        order[one], order[other] = other, one
        file.write_bytes(b"".join(parts[number] for number in order))
        code, manifest = salvage(log.log_dir, tmp_path / name)
        assert code == 0
        assert manifest["partitions"][0]["segments"][0]["leftOut"] == []
        assert (tmp_path / name / "orders-0" / LOG).read_bytes() == original


@pytest.mark.parametrize("number", [0, 5, 10, 11])
def test_a_batch_whose_base_offset_is_another_s_is_left_out(
    log: LogBuilder, tmp_path: Path, number: int
) -> None:
    """Also where the offset that it says is free; what lies around it is kept."""
    log.segments[1].log[:8] = struct.pack(">q", 40)
    (log.log_dir / "orders-0" / f"{BATCHES * 3:020d}.log").write_bytes(log.segments[1].log)
    file = log.log_dir / "orders-0" / LOG
    original = file.read_bytes()
    for name, base in (("low", 3 * number - 4), ("high", 3 * number + 4), ("free", 10**6)):
        start, end = place(log, number)
        damage(log, start, struct.pack(">q", base))
        _, manifest = salvage(log.log_dir, tmp_path / name)
        (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
        assert (gap["position"], gap["length"], name) == (start, end - start, name)
        copy = (tmp_path / name / "orders-0" / LOG).read_bytes()
        assert copy == original[:start] + original[end:]
        file.write_bytes(original)


def test_a_batch_that_is_there_twice_is_copied_once(log: LogBuilder, tmp_path: Path) -> None:
    file = log.log_dir / "orders-0" / LOG
    original = file.read_bytes()
    start, end = place(log, 5)
    file.write_bytes(original[:end] + original[start:end] + original[end:])
    _, manifest = salvage(log.log_dir, tmp_path / "out")
    assert len(manifest["partitions"][0]["segments"][0]["leftOut"]) == 1
    assert (tmp_path / "out" / "orders-0" / LOG).read_bytes() == original


def test_a_marker_that_stops_a_broker_is_left_out(tmp_path: Path) -> None:
    """A sound batch, but a broker does not start on it."""
    log = LogBuilder(tmp_path / "logs", "orders-0").segment()
    log.batch(("a", "1"), producer_id=7, is_transactional=True)
    bad = pack_batch(
        [Record(1, 5, b"\0\0\0\1", None)], base_offset=1, producer_id=7, producer_epoch=0,
        is_transactional=True, is_control=True,
    )  # fmt: skip
    log.raw(bad).segment(2).batch(("b", "2")).write()
    _, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert gap["length"] == len(bad)


def test_bytes_that_are_no_batch_are_one_range(log: LogBuilder, tmp_path: Path) -> None:
    (first, _), (_, end) = place(log, 3), place(log, 6)
    damage(log, first - 30, random.Random(3).randbytes(end - first + 50))
    code, manifest = salvage(log.log_dir, tmp_path / "out")
    assert code == 1
    (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert (gap["position"], gap["length"]) == (
        place(log, 2)[0],
        place(log, 7)[1] - place(log, 2)[0],
    )
    assert offsets(tmp_path / "out" / "orders-0") == [*range(6), *range(24, BATCHES * 3 + 2)]


def test_a_batch_out_of_place_is_left_out(log: LogBuilder, tmp_path: Path) -> None:
    """No checksum covers a base offset."""
    damage(log, place(log, 4)[0], struct.pack(">q", 2))
    damage(log, place(log, 8)[0], struct.pack(">q", 10_000))
    _, manifest = salvage(log.log_dir, tmp_path / "out")
    gaps = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert [gap["position"] for gap in gaps] == [place(log, 4)[0], place(log, 8)[0]]
    assert "behind those of the batch before" in gaps[0]["reason"]
    assert "next segment" in gaps[1]["reason"]


def test_a_torn_tail_and_preallocation_are_left_out(tmp_path: Path) -> None:
    for name, tail in (("torn-0", b""), ("zeros-0", bytes(5000))):
        log = LogBuilder(tmp_path / "logs", name).segment().batch(("a", "1"))
        log.torn(30) if not tail else log.raw(tail)
        log.write()
    code, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    assert code == 1
    gaps = [p["segments"][0]["leftOut"][0] for p in manifest["partitions"]]
    assert [(gap["length"], gap["lastOffset"]) for gap in gaps] == [(30, None), (5000, None)]
    assert "inside a batch" in gaps[0]["reason"]
    assert "zeros" in gaps[1]["reason"]


def test_a_batch_inside_a_value_is_not_taken_for_one(tmp_path: Path) -> None:
    """A damaged batch whose length is right is passed over as a whole, whatever its values hold."""
    inner = pack_batch([Record(5, 1, b"inner", b"1")])
    log = LogBuilder(tmp_path / "logs", "orders-0").segment().batch(("a", "1"))
    log.batch(("b", inner)).batch(("c", "2")).write()
    start, end = place(log, 1)
    damage(log, start + field_position("crc"), b"\0\0\0\0")
    _, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert (gap["position"], gap["length"]) == (start, end - start)
    assert offsets(tmp_path / "out" / "orders-0") == [0, 2]


def test_the_log_start_comes_along(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "logs", "orders-0").segment()
    for number in range(4):
        log.batch((f"k{number}", "v"))
    log.log_start_offset(2).write()
    _, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    assert manifest["partitions"][0]["logStartOffset"] == 2
    (found,) = open_log_dir(tmp_path / "out").partitions
    assert found.log_start_offset == 2


@pytest.mark.parametrize(("gone", "lost"), [(0, [0, 1]), (1, [2, 3]), (2, [4, 5])])
def test_a_segment_that_is_gone_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: int, lost: list[int]
) -> None:
    log = LogBuilder(tmp_path / "logs", "orders-0")
    for number in range(6):
        if number % 2 == 0:
            log.segment()
        log.batch((f"k{number}", "v"))
    path = log.write()
    (path / f"{2 * gone:020}.log").unlink()
    code, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    assert code == 1
    (missing,) = manifest["partitions"][0]["missing"]
    assert [missing["firstOffset"], missing["lastOffset"]] == lost
    assert missing["isProven"]
    assert missing["evidence"]
    assert f"offsets {lost[0]} to {lost[1]} are not here" in capsys.readouterr().err
    kept = [n for n in range(6) if n not in lost]
    given = kafkalog.read_records(tmp_path / "out", columns=["offset"], mode="PERMISSIVE")
    assert given.read_all()["offset"].to_pylist() == kept


def test_of_random_damage_all_that_is_untouched_is_saved(log_dir: Path, tmp_path: Path) -> None:
    """The batches around a damaged one: offsets 0, 1 in front, 300 behind."""
    contents = random_damage(random.Random(7), 60)
    for number, content in enumerate(contents.values()):
        path = log_dir / f"damaged-{number}"
        path.mkdir()
        (path / LOG).write_bytes(content)
    with capped(120):
        _, manifest = salvage(log_dir, tmp_path / "out")
    first = len(around(b"")) // 2
    for partition in manifest["partitions"]:
        path = Path(partition["path"])
        content, sound = (path / LOG).read_bytes(), around(b"")
        copy = (Path(partition["output"]) / LOG).read_bytes()
        if partition["status"] == "failed":
            assert "wrote outside of the transaction" in partition["reason"]
        gaps = partition["segments"][0]["leftOut"]
        assert len(content) - sum(gap["length"] for gap in gaps) == len(copy)
        for half in (sound[:first], sound[first:]):
            if content.startswith(half) or content.endswith(half):
                assert half in copy, (path.name, gaps)
        # read back: nothing is wrong any more
        back = kafkalog.read_batches(Path(partition["output"]) / LOG, verify_checksums=True)
        assert all(back["isValid"].to_pylist())


def test_bytes_made_up_to_look_like_huge_batches_cost_no_time(tmp_path: Path) -> None:
    """Headers of 60 MiB back to back: each would be summed up in vain."""
    header = bytearray(pack_batch([Record(3, 1, b"k", b"v")])[:61])
    struct.pack_into(">i", header, 8, MAX_BATCH_BYTES - 100)
    path = tmp_path / "logs" / "orders-0"
    path.mkdir(parents=True)
    with (path / LOG).open("wb") as file:
        file.write(pack_batch([Record(0, 1, b"k", b"v")]) + b"\xff" * 61 + bytes(header) * 2000)
        file.truncate(70 * 1024 * 1024)
    before = bytes_read()
    with capped(300):
        _, manifest = salvage(tmp_path / "logs", tmp_path / "out")
    # Each summed up in vain, they would be some hundred GiB.
    assert bytes_read() - before < 2 * 1024**3
    (gap,) = manifest["partitions"][0]["segments"][0]["leftOut"]
    assert gap["length"] > 69 * 1024 * 1024


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("logs/inside", "outside of the log dir"),
        ("logs", "outside of the log dir"),
        (".", "outside of the log dir"),
        ("full", "not empty"),
    ],
)
def test_the_output_is_never_where_something_is(
    log: LogBuilder, tmp_path: Path, output: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    before = tree(log.log_dir)
    options = ["--log-dir", str(log.log_dir), "--output", str(tmp_path / output)]
    assert main(["salvage", *options]) == 2
    assert words in capsys.readouterr().err
    assert tree(log.log_dir) == before
    assert main(["salvage", *options[:2]]) == 2
    assert "needs --output" in capsys.readouterr().err


def test_one_partition_that_fails_stops_no_other(tmp_path: Path) -> None:
    """Without its COMMIT marker a producer writes outside of its open transaction: a broker does
    not load such a log.
    """
    logs = tmp_path / "logs"
    LogBuilder(logs, "orders-0").segment().batch(("a", "1")).write()
    bad = LogBuilder(logs, "txn-0").segment()
    bad.batch(("a", "1"), producer_id=7, is_transactional=True).batch(("b", "2"), producer_id=7)
    bad.write()
    code, manifest = salvage(logs, tmp_path / "out")
    assert code == 1
    status = {p["topic"]: (p["status"], p["reason"]) for p in manifest["partitions"]}
    assert status["orders"] == ("salvaged", "")
    assert status["txn"][0] == "failed"
    assert "outside of the transaction" in status["txn"][1]


def test_json_is_the_manifest(
    log: LogBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, manifest = salvage(log.log_dir, tmp_path / "out", "--json", "--topic", "orders")
    assert json.loads(capsys.readouterr().out) == manifest


def test_a_walk_counts_what_it_took(log: LogBuilder) -> None:
    (partition,) = open_log_dir(log.log_dir).partitions
    walk = SegmentWalk(partition.segments[0], BATCHES * 3)
    taken = b"".join(bytes(data) for data in walk.batches())
    assert taken == (log.log_dir / "orders-0" / LOG).read_bytes()
    assert (walk.batches_count, walk.records_count) == (BATCHES, BATCHES * 3)


def test_a_fault_of_ours_in_one_partition_leaves_the_others(
    log: LogBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = LogBuilder(log.log_dir, "orders-1").segment()
    other.batch(("k", "v"))
    other.write()

    def failing(partition: PartitionInventory) -> list[MissingRange]:
        if partition.topic_partition.partition == 0:
            raise ZeroDivisionError("ours")
        return missing_ranges(partition)

    monkeypatch.setattr(kafkalog.repair.salvage, "missing_ranges", failing)
    code, manifest = salvage(log.log_dir, tmp_path / "out")
    assert code == 4
    first, second = manifest["partitions"]
    assert (first["status"], second["status"]) == ("failed", "salvaged")
    assert "ZeroDivisionError: ours" in first["reason"]
    assert offsets(tmp_path / "out" / "orders-1") == [0]
