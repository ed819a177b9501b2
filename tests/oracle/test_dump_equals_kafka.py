"""What `kafkalog dump` says about a file, against Kafka's own DumpLogSegments and record classes,
and against kafka-python's record parser: on all samples, batch by batch and record by record.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from tests.oracle.kafka import Kafka
from tests.oracle.rebuilding import random_case
from tests.oracle.rounds import work_directory
from tests.support.kafka_python import DefaultRecordBatch, MemoryRecords

pytestmark = pytest.mark.oracle

LOG_DIRS = [SAMPLES / "broker", SAMPLES / "cleaning" / "before", SAMPLES / "cleaning" / "after"]
PARTITIONS = [p for log_dir in LOG_DIRS for p in sorted(log_dir.iterdir()) if p.is_dir()]
KNOWN = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)")
HEADERS = re.compile(rb" headers: \[[^\n]*\]$", re.MULTILINE)
ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}


def by_name(partition: Path) -> str:
    return f"{partition.parent.name}-{partition.name[:40]}"


def dump(*words: str) -> tuple[int, bytes, list[str]]:
    """Exit code, stdout, lines of stderr of the verb in this process."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["dump", *words])
    sys.stdout.flush()
    return code, out.buffer.getvalue(), err.getvalue().splitlines()  # type: ignore[attr-defined]


def kafkas(kafka: Kafka, *words: str) -> tuple[str, list[str]]:
    answer = kafka.call("dumplog", *words)
    return answer["text"], answer["stderr"].splitlines()


def unescaped(text: bytes) -> str:
    """Our text without what Kafka's tool does not have: headers with values, and escapes."""

    def raw(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 16)]) if match[1] else NAMED[match[2]]

    return ESCAPE.sub(raw, HEADERS.sub(b"", text)).decode()


def files_of(partition: Path) -> list[str]:
    return [str(p) for p in sorted(partition.iterdir()) if KNOWN.fullmatch(p.name)]


@pytest.mark.parametrize("partition", PARTITIONS, ids=by_name)
def test_every_line_of_a_partition_is_kafkas(kafka: Kafka, partition: Path) -> None:
    files = files_of(partition)
    # values that are no text break Kafka's lines: those are compared below, through JSON
    how = "--deep-iteration" if partition.name.startswith("__") else "--print-data-log"
    text, notices = kafkas(kafka, how, "--files", ",".join(files))
    _, ours, said = dump(how, "--files", ",".join(files))
    assert unescaped(ours).split("\n") == text.split("\n")
    assert sorted(said) == sorted(notices)


@pytest.mark.parametrize("partition", PARTITIONS, ids=by_name)
def test_json_rows_are_what_kafkas_classes_read(kafka: Kafka, partition: Path) -> None:
    seen = 0
    for path in sorted(partition.glob("*.log")):
        _, out, _ = dump(str(path), "--json", "--print-data-log")
        rows = [json.loads(line) for line in out.splitlines()]
        theirs = [row for batch in kafka.dump_file(path) for row in (batch, *batch["records"])]
        assert len(rows) == len(theirs)
        for ours, other in zip(rows, theirs, strict=True):
            compare = _compare_batch if ours["type"] == "batch" else _compare_record
            compare(ours, other)
        seen += len(rows)
    assert seen or not any(p.stat().st_size for p in partition.glob("*.log"))


def _compare_batch(ours: dict[str, Any], kafkas: dict[str, Any]) -> None:
    types = {0: "create", 1: "append", -1: "none"}
    ours_and_kafkas = (
        "position pos|sizeInBytes size|magic magic|baseOffset base|lastOffset last|"
        "leaderEpoch epoch|codec codec|maxTimestampMs maxTs|producerId pid|producerEpoch pepoch|"
        "baseSequence seq|"
        "lastSequence lastSeq|isTransactional txn|isControl control|isValid valid|crc crc|"
        "deleteHorizonMs horizon|recordsCount count|baseTimestampMs baseTs"
    )
    names = dict(pair.split() for pair in ours_and_kafkas.split("|"))
    assert {name: ours[name] for name in names} == {n: kafkas[k] for n, k in names.items()}
    assert types[ours["timestampType"]] == kafkas["tsType"]


def _compare_record(ours: dict[str, Any], kafkas: dict[str, Any]) -> None:
    assert ours["offset"] == kafkas["offset"]
    assert ours["timestampMs"] == kafkas["ts"]
    assert (-1 if ours["sequence"] is None else ours["sequence"]) == kafkas["seq"]
    assert (ours["key"], ours["value"]) == (kafkas["key"], kafkas["value"])
    assert ours["controlType"] == kafkas.get("type")
    headers = [[header["key"], header["value"]] for header in ours["headers"] or []]
    assert headers == kafkas.get("headers", [])


@pytest.mark.parametrize("partition", PARTITIONS, ids=by_name)
def test_json_rows_are_what_kafka_python_reads(partition: Path) -> None:
    for path in sorted(partition.glob("*.log")):
        _, out, _ = dump(str(path), "--json", "--print-data-log")
        rows = iter([json.loads(line) for line in out.splitlines()])
        for batch in _kafka_python_batches(path.read_bytes()):
            row = next(rows)
            assert row["type"] == "batch"
            assert (row["baseOffset"], row["crc"], row["isValid"]) == (
                batch.base_offset,
                batch.crc,
                batch.validate_crc(),
            )
            assert row["isControl"] == batch.is_control_batch
            assert row["isTransactional"] == batch.is_transactional
            assert row["producerId"] == batch.producer_id
            for record in batch:
                row = next(rows)
                assert (row["offset"], row["timestampMs"]) == (record.offset, record.timestamp)
                assert (row["key"], row["value"]) == (_base64(record.key), _base64(record.value))
                assert [(h["key"], h["value"]) for h in row["headers"] or []] == [
                    (key, _base64(value)) for key, value in record.headers
                ]
        assert next(rows, None) is None


def _kafka_python_batches(data: bytes) -> Iterator[DefaultRecordBatch]:
    records = MemoryRecords(data)
    while records.has_next():
        yield records.next_batch()


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


@pytest.mark.parametrize("seed", [2, 6, 10, 14, 1, 4])
def test_legacy_and_transactional_logs_line_by_line(kafka: Kafka, seed: int) -> None:
    with work_directory() as work:
        case = random_case(seed, kafka, work / "log")
        files = files_of(case.log_dir / case.partition)
        text, notices = kafkas(kafka, "--deep-iteration", "--files", ",".join(files))
        _, ours, said = dump("--deep-iteration", *files)
        assert ours.decode().split("\n") == text.split("\n")
        assert sorted(said) == sorted(notices)


def test_the_metadata_log_and_its_snapshots(kafka: Kafka) -> None:
    directory = SAMPLES / "broker" / "__cluster_metadata-0"
    files = [str(p) for p in (*directory.glob("*.log"), *directory.glob("*.checkpoint"))]
    files.append(str(SAMPLES / "broker" / "bootstrap.checkpoint"))
    assert len(files) >= 2
    text, _ = kafkas(kafka, "--cluster-metadata-decoder", "--files", ",".join(files))
    _, ours, _ = dump("--cluster-metadata-decoder", *files)
    known = 0
    for mine, other in zip(ours.decode().split("\n"), text.split("\n"), strict=True):
        if "is not known here" in mine:
            assert mine.split(" payload: ")[0] == other.split(" payload: ")[0]
            continue
        known += " payload: " in mine
        head, _, payload = mine.partition(" payload: ")
        other_head, _, other_payload = other.partition(" payload: ")
        assert head == other_head
        assert (json.loads(payload) if payload else "") == (
            json.loads(other_payload) if other_payload else ""
        )
    assert known > 50


@pytest.mark.parametrize("option", ["--verify-index-only", "--index-sanity-check"])
def test_broken_indexes_get_kafkas_notices(kafka: Kafka, tmp_path: Path, option: str) -> None:
    source = SAMPLES / "cleaning" / "before" / "accounts-0"
    for path in source.iterdir():
        shutil.copy(path, tmp_path)
    index = max(tmp_path.glob("*.index"), key=lambda p: p.stat().st_size)
    data = index.read_bytes()
    assert len(data) >= 8
    index.write_bytes(data[:3] + bytes([data[3] + 1]) + data[4:])
    times = index.with_suffix(".timeindex")
    data = times.read_bytes()
    times.write_bytes(data[:7] + bytes([data[7] ^ 1]) + data[8:])
    files = f"{index},{times}"
    text, notices = kafkas(kafka, option, "--files", files)
    code, ours, said = dump(option, "--files", files)
    assert ours.decode() == text
    assert sorted(said) == sorted(notices)
    assert code == (1 if option == "--verify-index-only" else 0)
