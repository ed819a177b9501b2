"""`kafkalog dump` beyond what Kafka's tool does: JSON, redaction, the annotated view, damage, small
files. That its lines are Kafka's is shown in tests/oracle.
"""

from __future__ import annotations

import base64
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.columns.schemas import BATCHES, RECORDS
from kafkalog.format.constants import CompressionType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record
from tests.support.log_builder import START_MS, LogBuilder


@pytest.fixture
def dumped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the verb; (exit code, stdout as bytes, stderr)."""

    def run(*words: str | Path) -> tuple[int, bytes, str]:
        out = io.TextIOWrapper(io.BytesIO(), "utf-8")
        monkeypatch.setattr(sys, "stdout", out)
        code = main(["dump", *map(str, words)])
        out.flush()
        return code, out.buffer.getvalue(), capsys.readouterr().err  # type: ignore[attr-defined]

    return run


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_json_rows_have_the_views_columns(dumped: Any, log_dir: Path) -> None:
    log = LogBuilder(log_dir, "a-7").batch(("k", b"\xff\n"), (None, None), timestamp=START_MS)
    path = log.write() / f"{0:020d}.log"
    code, out, err = dumped(path, "--json", "--print-data-log")
    batch, first, second = rows(out)
    assert (code, err) == (0, "")
    assert list(batch) == ["type", *(column.name for column in BATCHES)]
    assert list(first) == ["type", *(column.name for column in RECORDS)]
    assert (batch["topic"], batch["partition"], batch["isValid"]) == ("a", 7, True)
    assert (first["key"], first["value"]) == ("aw==", base64.b64encode(b"\xff\n").decode())
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
    assert first["timestamp"].startswith("20")
    assert first["timestampMs"] == START_MS
    _, out, _ = dumped(path, "--json", "--print-data-log", "--format", "text")
    assert rows(out)[1]["value"] == "\ufffd\n"
    _, out, _ = dumped(path, "--json", "--deep-iteration")
    assert {"key", "value", "headers"}.isdisjoint(rows(out)[1])


def test_bytes_are_shown_in_the_format_asked_for(dumped: Any, log_dir: Path) -> None:
    headers = ((b"h", b"\x01"), (b"n", None))
    record = Record(0, START_MS, b"a\nb", b"\xff\\", headers)
    path = LogBuilder(log_dir).batch(record).write() / f"{0:020d}.log"
    for form, key, value, header in (
        ("text", rb"a\nb", rb"\xff\\", rb"[h=\x01,n]"),
        ("hex", b"610a62", b"ff5c", b"[h=01,n]"),
        ("base64", b"YQpi", b"/1w=", b"[h=AQ==,n]"),
    ):
        _, out, _ = dumped(path, "--print-data-log", "--format", form)
        line = out.splitlines()[-1]
        assert line.endswith(b" key: " + key + b" payload: " + value + b" headers: " + header)
    _, out, _ = dumped(path, "--print-data-log", "--skip-record-metadata")
    assert out.splitlines()[-1].startswith(rb"| key: a\nb payload: ")


@pytest.mark.parametrize("options", [("--json",), (), ("--hex",), ("--skip-record-metadata",)])
def test_redacted_output_has_no_key_value_or_header_value(
    dumped: Any, log_dir: Path, options: tuple[str, ...]
) -> None:
    record = Record(0, START_MS, b"secret-key", b"secret-value", ((b"h", b"secret-header"),))
    path = LogBuilder(log_dir).batch(record, record).write() / f"{0:020d}.log"
    code, out, _ = dumped(path, "--print-data-log", "--redact", *options)
    assert code == 0
    for secret in (b"secret", b"secret".hex(" ").encode(), base64.b64encode(b"secret")[:7]):
        assert secret not in out
    if "--hex" not in options:
        digests = out.split(b" key: sha256:" if b" key: " in out else b"sha256:")[1:]
        assert len(digests) == 2
        assert digests[0][:16] == digests[1][:16]


def test_what_is_not_there_is_wrong_usage_and_nothing_is_printed(
    dumped: Any, log_dir: Path, tmp_path: Path
) -> None:
    there = LogBuilder(log_dir).batch(("k", "v")).write() / f"{0:020d}.log"
    for absent in (tmp_path / f"{0:020d}.log", tmp_path / "x", tmp_path / "*.log"):
        code, out, err = dumped(there, absent)
        assert (code, out) == (2, b"")
        assert f"no such file or directory: {absent}" in err
    assert dumped("")[0] == 2
    code, out, err = dumped(tmp_path)
    assert (code, out) == (1, b"")
    assert "no file in it" in err


def test_the_annotated_view_names_every_byte(dumped: Any, log_dir: Path) -> None:
    record = Record(0, START_MS, b"key", b"v" * 20, ((b"h", None),))
    log = LogBuilder(log_dir).batch(record).batch(record, codec=CompressionType.ZSTD)
    log.raw(pack_legacy_message(Record(2, START_MS, b"old", None), 1))
    path = log.write() / f"{0:020d}.log"
    code, out, _ = dumped(path, "--hex")
    text = out.decode()
    assert code == 0
    shown = [bytes.fromhex(line[12:60]) for line in text.splitlines() if line[10:12] == ": "]
    plain, packed, old = text.split("batch at ")[1:]
    size = int(plain.split()[1])
    assert b"".join(shown)[:size] == path.read_bytes()[:size]
    for field in ("crc", "attributes", "records_count", "timestamp_delta", "header 0 value length"):
        assert field in plain
    assert "decompress to" in packed
    assert "-1 (null)" in old
    assert "timestamp " in old


def test_a_damaged_batch_is_said_and_the_dump_goes_on(dumped: Any, log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for key in "abc":
        log.batch((key, "v" * 50), codec=CompressionType.GZIP)
    path = log.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data + b"torn")
    code, out, err = dumped(path, "--print-data-log")
    lines = out.decode().splitlines()
    assert code == 1
    assert [line.split("isvalid: ")[1] for line in lines if "isvalid" in line] == [
        "true", "false", "true",
    ]  # fmt: skip
    assert [line.split("key: ")[1][0] for line in lines if " key: " in line][::2][0] == "a"
    assert lines[-1] == f"Found 4 invalid bytes at the end of {path.name}"
    assert "payload: vvv" in lines[-2]
    _, out, err = dumped(path, "--json")
    assert [row["isValid"] for row in rows(out)] == [True, False, True]
    assert "Found 4 invalid bytes" in err


def test_max_bytes_ends_at_the_last_whole_batch(dumped: Any, log_dir: Path) -> None:
    path = LogBuilder(log_dir).batch(("a", "v")).batch(("b", "v")).write() / f"{0:020d}.log"
    code, out, _ = dumped(path, "--max-bytes", path.stat().st_size - 1)
    assert (code, out.count(b"baseOffset: ")) == (0, 1)


def test_a_directory_and_small_files(dumped: Any) -> None:
    code, out, err = dumped(SAMPLES / "broker")
    text = out.decode()
    assert (code, err) == (0, "")
    assert "topic: orders partition: 0 offset: " in text
    assert "directoryId: " in text
    assert "KRaft bootstrap snapshot" in text
    code, out, _ = dumped(SAMPLES / "broker" / "orders-0", "--json")
    kinds = {row["type"] for row in rows(out)}
    assert kinds >= {"batch", "offset_index", "time_index", "leader_epoch", "partition_metadata"}
    _, out, _ = dumped(SAMPLES / "broker" / "transactions-0", "--json")
    found = {row["type"]: row for row in rows(out)}
    assert found["transaction_index"]["lastStableOffset"] > 0
    assert found["producer_snapshot"]["snapshotOffset"] > 0


def test_broken_and_unknown_files_are_findings(dumped: Any, tmp_path: Path) -> None:
    snapshot = tmp_path / f"{5:020d}.snapshot"
    snapshot.write_bytes(b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x09")
    other = tmp_path / "notes.txt"
    other.write_text("x")
    checkpoint = tmp_path / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n0 0\n")
    index = tmp_path / f"{5:020d}.index"
    index.write_bytes(bytes.fromhex("0000000100000002"))
    code, _, err = dumped(snapshot, other, checkpoint, index)
    assert code == 1
    for told in ("CRC", "Ignoring unknown file", "line 2", "no .log beside it"):
        assert told in err


def test_indexes_marked_deleted_are_held_against_the_log_marked_so(dumped: Any) -> None:
    """Not against the one that took its place."""
    code, out, err = dumped(SAMPLES / "broker" / "__consumer_offsets-0")
    assert (code, err) == (0, "")
    assert f"{27:020d}.timeindex.deleted".encode() in out


def test_what_cannot_be_done_is_refused_by_name(dumped: Any) -> None:
    code, _, err = dumped("x.log", "--value-decoder-class", "X")
    assert (code, "takes no --value-decoder-class: a Java class" in err) == (2, True)
    code, _, err = dumped("x.log", "--offsets-decoder", "--share-group-state-decoder")
    assert (code, "one decoder at a time" in err) == (2, True)
    assert dumped()[0] == 2
    assert dumped("x.log", "--format", "octal")[0] == 2
    assert dumped("x.log", "--hex", "--json")[0] == 2


def test_no_damage_makes_a_fault_of_ours(dumped: Any, log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for codec in (CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4):
        log.batch(Record(log.next_offset, START_MS, b"k", b"v" * 9, ((b"h", b"x"),)), codec=codec)
    log.raw(pack_legacy_message(Record(3, START_MS, b"old", b"w"), 1))
    path = log.write() / f"{0:020d}.log"
    whole, rnd = path.read_bytes(), random.Random(5)
    for _ in range(50):
        data = bytearray(whole)
        for _ in range(rnd.randint(1, 4)):
            data[rnd.randrange(len(data))] = rnd.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rnd.randrange(256))
            )
        path.write_bytes(data)
        for options in (("--print-data-log",), ("--print-data-log", "--json"), ("--hex",)):
            code, _, err = dumped(path, *options)
            assert code in (0, 1), err
