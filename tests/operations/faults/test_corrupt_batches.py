"""`--on-corrupt-batch`: by default the partition stays as it was; with `keep` the corrupt batch
does, byte for byte and in its place, and nothing that can be read is lost.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.transaction_index import parse_transaction_index
from tests.conftest import NOW_MS
from tests.operations.faults.logs import NAME, SETTINGS, contents
from tests.oracle.kafka import Kafka
from tests.support.log_builder import LogBuilder
from tests.support.reference.batches import parse_batches
from tests.support.topics import topic_words

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def compact(log_dir: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    words = [
        *("compact", "--log-dir", str(log_dir), *topic_words(log_dir), "--json", "--workers", "1")
    ]
    words += ["--now", str(NOW_MS), *more]
    code = main([*words, *(f"--config={key}={value}" for key, value in SETTINGS.items())])
    return code, json.loads(capsys.readouterr().out)


def write_log(log_dir: Path) -> Path:
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0).batch(("a", "1"), ("b", "1")).batch(("a", "2"), ("c", "in the damaged batch"))
    log.batch(("d", "1"), ("a", "3"), codec=CompressionType.LZ4)
    log.segment(100).batch(("b", "2"), ("e", "1")).segment(200).batch(("d", "2"))
    log.segment().batch(("z", "active"))
    return log.write()


def batches(path: Path) -> list[bytes]:
    """The stored bytes of every batch, by the lengths they state."""
    found = []
    for file in sorted(path.glob("*.log")):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from(">i", data, at + 8)
            found.append(data[at : at + 12 + length])
            at += 12 + length
    return found


def keys(path: Path, but: bytes) -> list[tuple[bytes, bytes | None]]:
    """Keys and values of all batches but one."""
    return [
        (record.key or b"", record.value)
        for batch in batches(path)
        if batch != but
        for _, header, records in parse_batches(batch)
        if not header.is_control
        for record in records
    ]


def damage(path: Path, n: int, change: Callable[[bytearray], object]) -> bytes:
    """Change the n-th batch of the first segment in place; its new bytes."""
    file = min(path.glob("*.log"))
    data, start = bytearray(file.read_bytes()), 0
    for _ in range(n):
        start += 12 + struct.unpack_from(">i", data, start + 8)[0]
    end = start + 12 + struct.unpack_from(">i", data, start + 8)[0]
    batch = data[start:end]
    change(batch)
    data[start:end] = batch
    file.write_bytes(data)
    return bytes(batch)


def flip_a_value(batch: bytearray) -> None:
    batch[batch.index(b"damaged")] ^= 0x20


def forge_the_count(batch: bytearray) -> None:
    struct.pack_into(">i", batch, 57, 2**31 - 1)


def break_a_record(batch: bytearray) -> None:
    """A record longer than the batch, under a checksum that is right."""
    batch[61] = 0x7E
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))


DAMAGES = {"value": flip_a_value, "count": forge_the_count, "records": break_a_record}


@pytest.mark.parametrize("name", DAMAGES)
def test_by_default_the_partition_stays_as_it_was(
    log_dir: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    damage(write_log(log_dir), 1, DAMAGES[name])
    before = contents(log_dir)
    code, document = compact(log_dir, capsys, "--apply")
    assert code == 1
    assert document["partitions"][0]["status"] == "failed"
    assert contents(log_dir) == before


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("more", [[], ["--swap-per-group"], ["--no-undo"]], ids=str)
def test_a_kept_batch_is_there_byte_for_byte_and_the_others_are_compacted(
    log_dir: Path, capsys: pytest.CaptureFixture[str], name: str, more: list[str]
) -> None:
    path = write_log(log_dir)
    bad = damage(path, 1, DAMAGES[name])
    code, document = compact(log_dir, capsys, "--apply", "--on-corrupt-batch", "keep", *more)
    assert code == 1  # something to look at
    (entry,) = document["partitions"]
    assert (entry["status"], entry["corruptBatches"]) == ("compacted", 1)
    assert "1 corrupt batches were kept as they are, the first: " in entry["reason"]
    assert f"{0:020d}.log @ " in entry["reason"]
    assert document["problems"] == [f"{NAME}: {entry['reason']}"]
    assert batches(path).count(bad) == 1
    # What the bad batch may have said supersedes nothing, and nothing else is lost.
    assert keys(path, bad) == [
        (b"a", b"3"), (b"b", b"2"), (b"e", b"1"), (b"d", b"2"), (b"z", b"active"),
    ]  # fmt: skip
    assert [batch[:8] for batch in batches(path)] == sorted(batch[:8] for batch in batches(path))
    before = contents(log_dir)
    code, document = compact(log_dir, capsys)
    assert document["partitions"][0]["status"] == "skip"
    assert contents(log_dir) == before


def test_undo_gives_the_damaged_log_back(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(write_log(log_dir), 1, flip_a_value)
    before = contents(log_dir)
    more = ("--on-corrupt-batch", "keep", "--run-dir", str(tmp_path))
    _, document = compact(log_dir, capsys, "--apply", *more)
    assert main(["undo", document["runId"], "--run-dir", str(tmp_path)]) == 0
    assert contents(log_dir) == before


def test_without_a_corrupt_batch_it_is_as_without_the_option(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, more in (("kept", ["--on-corrupt-batch", "keep"]), ("plain", [])):
        write_log(log_dir / name)
        code, _ = compact(log_dir / name, capsys, "--apply", "--no-undo", *more)
        assert code == 0
    kept, plain = (
        {path: data for path, (data, _) in contents(log_dir / name).items()}
        for name in ("kept", "plain")
    )
    assert kept == plain


def write_transactions(log_dir: Path) -> Path:
    """An aborted and a committed transaction of one producer, and later values of their keys."""
    log = LogBuilder(log_dir, NAME).segment(0)
    log.batch(("a", "aborted"), producer_id=7, is_transactional=True).marker(ABORT, 7)
    log.batch(("a", "committed"), producer_id=7, is_transactional=True).marker(COMMIT, 7)
    log.batch(("b", "1"), ("b", "2")).segment(100).batch(("c", "1"), ("b", "3"))
    log.segment().batch(("z", "active"))
    return log.write()


@pytest.mark.parametrize("n", range(5))
def test_where_any_batch_of_a_log_with_transactions_is_corrupt_no_transaction_is_touched(
    log_dir: Path, capsys: pytest.CaptureFixture[str], n: int
) -> None:
    """Had the ABORT marker been in it, the committed value would have been taken for aborted."""
    path = write_transactions(log_dir)
    was = batches(path)
    (index,) = path.glob("*.txnindex")
    entries = parse_transaction_index(index.read_bytes(), 0)
    bad = damage(path, n, lambda batch: batch.__setitem__(-1, batch[-1] ^ 1))
    _, document = compact(log_dir, capsys, "--apply", "--on-corrupt-batch", "keep")
    assert document["partitions"][0]["status"] == "compacted"
    found = batches(path)
    assert bad in found
    # The transactional batches and their markers, those that are not the damaged one.
    assert all(batch in found for i, batch in enumerate(was[:4]) if i != n and i != 0)
    assert (b"a", b"committed") in keys(path, bad) or n == 2
    assert parse_transaction_index(index.read_bytes(), 0) == entries


@pytest.mark.oracle
def test_a_broker_loads_what_was_kept(
    log_dir: Path, capsys: pytest.CaptureFixture[str], kafka: Kafka
) -> None:
    path = write_log(log_dir)
    damage(path, 1, flip_a_value)
    compact(log_dir, capsys, "--apply", "--on-corrupt-batch", "keep", "--no-undo")
    kept = {p.name: p.read_bytes() for p in path.glob("*.log")}
    loaded = kafka.open_once(log_dir, NAME, now_ms=NOW_MS, config=SETTINGS)
    assert (loaded["logStartOffset"], loaded["logEndOffset"]) == (0, 202)
    assert {p.name: p.read_bytes() for p in path.glob("*.log")} == kept


def test_a_length_that_is_wrong_leads_nowhere_and_the_partition_stays(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    damage(path, 1, lambda batch: struct.pack_into(">i", batch, 8, 5))
    before = contents(log_dir)
    code, document = compact(log_dir, capsys, "--apply", "--on-corrupt-batch", "keep")
    assert code in (1, 3)
    assert document["partitions"][0]["status"] in ("failed", "refused")
    assert contents(log_dir) == before


@pytest.mark.parametrize(
    "more",
    [["--strategy", "across-tasks"], ["--dedupe-buffer-size", "99999"], ["--verify", "deep"]],
    ids=str,
)
def test_what_cannot_go_with_it_is_bad_usage(log_dir: Path, more: list[str]) -> None:
    write_log(log_dir)
    words = ["compact", "--log-dir", str(log_dir), "--on-corrupt-batch", "keep", *more]
    assert main(words) == 2
    assert main(["compact", "--log-dir", str(log_dir), "--on-corrupt-batch", "drop"]) == 2
