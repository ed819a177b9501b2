"""The oracle judges our cleaner, so first: does the judge see what it should see?"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
import zstandard

from tests.oracle.compare import BATCH_HEADER, compare_log_dirs, expected_indexes, parse_batches
from tests.oracle.jars import COMPILER, KAFKA_VERSION, LOCK_FILE, RELEASES, read_lock
from tests.oracle.kafka import Kafka, KafkaFailedError, Kafkas
from tests.oracle.rounds import CompactCall, compact_with_kafka, play, work_directory
from tests.oracle.scripts import CODECS, START_MS, random_scenario

pytestmark = pytest.mark.oracle

CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4000",
    "index.interval.bytes": "0",
    "delete.retention.ms": "1000",
}
INTERVAL = 0
PARTITION = "orders-0"


@pytest.fixture
def work() -> Iterator[Path]:
    with work_directory() as path:
        yield path


@pytest.mark.parametrize("seed", [3, 10, 21])
def test_kafka_on_both_copies_has_no_difference(kafka: Kafka, work: Path, seed: int) -> None:
    scenario = random_scenario(seed, keyless=seed == 10)
    outcome = play(scenario, kafka, work / "case", compact_with_kafka(kafka))
    assert not outcome.complaints, outcome
    assert outcome.rounds == scenario.rounds


def test_doing_nothing_is_seen(kafka: Kafka, work: Path) -> None:
    def idle(call: CompactCall) -> Mapping[str, Any]:
        return {}

    outcomes = [play(random_scenario(s), kafka, work / str(s), idle) for s in range(4)]
    assert all(outcome.complaints for outcome in outcomes)


def test_scenarios_are_the_same_for_the_same_seed() -> None:
    for codec in CODECS:
        one, other = (random_scenario(7, codec=codec).next_round(0, 0, START_MS) for _ in "ab")
        assert one == other
        assert {line["codec"] for line in one.lines if "records" in line} == {codec}


def test_a_failing_call_raises_and_the_jvm_goes_on(kafka: Kafka, work: Path) -> None:
    with pytest.raises(KafkaFailedError, match="no such partition directory"):
        kafka.clean(work, "missing-0", now_ms=START_MS, config=CONFIG)
    assert kafka.call("version")["kafka"] == KAFKA_VERSION


@pytest.mark.thorough
def test_each_release_runs_its_own_jars() -> None:
    with Kafkas() as kafkas:
        for line, release in RELEASES.items():
            assert kafkas.of(line).call("version")["kafka"] == release


def test_a_jvm_that_died_is_started_again() -> None:
    with Kafkas() as kafkas:
        first = kafkas.of("4.3")
        assert kafkas.of("4.3") is first
        first.close()
        assert kafkas.of("4.3") is not first
        assert kafkas.of("4.3").call("version")["kafka"] == KAFKA_VERSION


def test_every_jar_is_pinned_and_no_host_is_named() -> None:
    locked = read_lock()
    assert len({jar.file_name for jar in locked}) == len(locked) > 80
    for user in (*RELEASES.values(), COMPILER):
        assert any(user in jar.needed_by for jar in locked)
    assert all(len(jar.sha256) == 64 for jar in locked)
    files = [LOCK_FILE, LOCK_FILE.with_name("ivysettings.xml")]
    assert not any("://" in file.read_text() for file in files)


# -- one small mutation at a time ----------------------------------------------------------------


def _flip(path: Path, position: int) -> None:
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _first_log(log_dir: Path) -> Path:
    return next(p for p in sorted((log_dir / PARTITION).glob("*.log")) if p.stat().st_size)


def _touch(path: Path) -> None:
    times = path.stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1_000_000))


def _with_valid_crc(path: Path, field_position: int) -> None:
    """Changes a header byte of the first batch and makes its CRC right again."""
    _flip(path, field_position)
    data = bytearray(path.read_bytes())
    length = parse_batches(path)[0].get("length")
    struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21 : 12 + length])))
    path.write_bytes(data)


def _leave_a_cleaned_file(log_dir: Path) -> None:
    (log_dir / PARTITION / "00000000000000000000.log.cleaned").touch()


def _replace_snapshot_timestamp(log_dir: Path) -> None:
    path = max((log_dir / PARTITION).glob("*.snapshot"))
    data = bytearray(path.read_bytes())
    data[10 + 33] ^= 1  # last byte of the first entry's timestamp
    struct.pack_into(">I", data, 2, google_crc32c.value(bytes(data[6:])))
    path.write_bytes(data)


def _checkpoint_one_on(log_dir: Path) -> None:
    path = log_dir / "cleaner-offset-checkpoint"
    words = path.read_text().split()
    path.write_text(f"0\n1\n{words[2]} {words[3]} {int(words[4]) + 1}\n")


MUTATIONS: dict[str, Callable[[Path], None]] = {
    "record bytes": lambda d: _flip(_first_log(d), BATCH_HEADER.size + 3),
    "partition_leader_epoch": lambda d: _flip(_first_log(d), 15),
    "attributes": lambda d: _with_valid_crc(_first_log(d), 22),
    "base_timestamp": lambda d: _with_valid_crc(_first_log(d), 34),
    "max_timestamp": lambda d: _with_valid_crc(_first_log(d), 42),
    "base_sequence": lambda d: _with_valid_crc(_first_log(d), 56),
    "index: entry 0": lambda d: _flip(_first_log(d).with_suffix(".index"), 7),
    "timeindex: entry 0": lambda d: _flip(_first_log(d).with_suffix(".timeindex"), 7),
    "modification time": lambda d: _touch(_first_log(d).with_suffix(".timeindex")),
    "producer 5 timestamp": _replace_snapshot_timestamp,
    "cleaner-offset-checkpoint": _checkpoint_one_on,
    "cleaned: file": _leave_a_cleaned_file,
    "snapshot: file": lambda d: max((d / PARTITION).glob("*.snapshot")).unlink(),
}


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("field", MUTATIONS)
def test_a_mutation_of_one_byte_is_seen(kafka: Kafka, work: Path, field: str, codec: str) -> None:
    source, ours, kafkas = _cleaned_copies(kafka, work, codec)
    assert not _compare(ours, kafkas, source, kafka)
    MUTATIONS[field](ours)
    found = _compare(ours, kafkas, source, kafka)
    assert any(field in text for text in found), found


def test_another_compressor_is_no_difference_but_another_record_is(
    kafka: Kafka, work: Path
) -> None:
    source, ours, kafkas = _cleaned_copies(kafka, work, "zstd")
    assert _recompress(ours, source, lambda records: records) > 0
    assert not _compare(ours, kafkas, source, kafka)
    _recompress(ours, source, lambda records: records.replace(b"value", b"VALUE", 1))
    assert any("record 0" in text for text in _compare(ours, kafkas, source, kafka))


def test_a_copied_batch_recompressed_is_seen(kafka: Kafka, work: Path) -> None:
    """Batches nothing was taken from have to be the same bytes, whatever the codec."""
    source, ours, kafkas = _cleaned_copies(kafka, work, "zstd")
    _recompress(ours, work, lambda records: records)
    assert any("length" in text for text in _compare(ours, kafkas, source, kafka))


def _recompress(log_dir: Path, source: Path, change: Callable[[bytes], bytes]) -> int:
    """Other zstd bytes for every batch not found in `source`, and the indexes that go with it."""
    known = {b.data for path in (source / PARTITION).glob("*.log") for b in parse_batches(path)}
    rebuilt = 0
    for path in sorted((log_dir / PARTITION).glob("*.log")):
        times, out = path.stat().st_mtime_ns, b""
        for batch in parse_batches(path):
            data = bytearray(batch.data)
            if batch.codec and batch.data not in known:
                records = zstandard.ZstdDecompressor().decompressobj().decompress(data[61:])
                data[61:] = zstandard.ZstdCompressor(level=9).compress(change(records))
                struct.pack_into(">i", data, 8, len(data) - 12)
                struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
                rebuilt += 1
            out += data
        if out == path.read_bytes():
            continue
        path.write_bytes(out)
        indexes = expected_indexes(int(path.stem), parse_batches(path), INTERVAL)
        for suffix, entry, entries in zip(
            (".index", ".timeindex"), (">ii", ">qi"), indexes, strict=True
        ):
            path.with_suffix(suffix).write_bytes(b"".join(struct.pack(entry, *e) for e in entries))
        for suffix in (".log", ".index", ".timeindex"):
            os.utime(path.with_suffix(suffix), ns=(times, times))
    return rebuilt


def _cleaned_copies(kafka: Kafka, work: Path, codec: str) -> tuple[Path, Path, Path]:
    """(before, after, after): a log of two keys in small segments, cleaned by Kafka."""
    records = [{"key": "a2V5", "value": "dmFsdWUgdmFsdWUgdmFsdWUgdmFsdWU=", "ts": START_MS}] * 3
    batch = {"codec": codec, "pid": 5, "producerEpoch": 0}
    other = [{"key": "a2V5Mg==", "value": "YmxhIGJsYSBibGEgYmxhIGJsYSBibGE=", "ts": START_MS + 1}]
    lines: list[dict[str, Any]] = []
    for number in range(20):
        lines += [{**batch, "sequence": 4 * number, "records": records + other}]
        lines += [{"records": [{**other[0], "key": f"bGFzd{number % 10}A="}], "codec": codec}]
        lines += [{"roll": True}] if number % 7 == 0 else []
    source = work / "source"
    source.mkdir(parents=True)
    kafka.write(source / PARTITION, lines, now_ms=START_MS, config=CONFIG)
    kafka.open_once(source, PARTITION, now_ms=START_MS, config=CONFIG)
    ours, kafkas = work / "ours", work / "kafka"
    shutil.copytree(source, ours)
    shutil.copytree(source, kafkas)
    for log_dir in (ours, kafkas):
        assert not kafka.clean(log_dir, PARTITION, now_ms=START_MS, config=CONFIG)["skipped"]
    return source, ours, kafkas


def _compare(ours: Path, kafkas: Path, source: Path, kafka: Kafka) -> list[str]:
    found = compare_log_dirs(
        ours, kafkas, PARTITION, source=source, kafka=kafka, index_interval_bytes=INTERVAL
    )
    return [str(difference) for difference in found]
