"""Three partitions for kills at random times, and what must be left of their records.

kills-0   plain records of every codec in many segments, tombstones among them
kills-1   transactions, committed and aborted, one open; idempotent producers
kills-2   segments that become several groups, one whose offsets lie too far apart
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from tests.conftest import NOW_MS
from tests.oracle.kafka import Answer, Kafka, KafkaFailedError
from tests.support.log_builder import LogBuilder, RecordSpec

TOPIC = "kills"
NAMES = tuple(f"{TOPIC}-{number}" for number in range(3))
ISLAND = 2**31 + 1000
OLD_MS = NOW_MS - 1_000_000
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "400",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
}

# offset, key, value; in base64, as the oracle has them
Read = tuple[int, str | None, str | None]


def write_kill_logs(log_dir: Path, seed: int, scale: int = 1) -> None:
    """All three, the same for the same seed; the first two with so many times the batches."""
    rnd = random.Random(seed)
    _write_plain(log_dir, rnd, 12 * scale)
    _write_transactions(log_dir, rnd, 12 * scale)
    _write_islands(log_dir, rnd)


def _records(rnd: random.Random, count: int, keys: int) -> list[RecordSpec]:
    return [
        (f"key-{rnd.randrange(keys)}", None if rnd.random() < 0.1 else rnd.randbytes(60).hex())
        for _ in range(count)
    ]


def _write_plain(log_dir: Path, rnd: random.Random, batches: int) -> None:
    log = LogBuilder(log_dir, f"{TOPIC}-0", index_interval_bytes=400)
    for number in range(10):
        log.segment(modified_ms=OLD_MS + number)
        for _ in range(batches):
            codec = rnd.choice(list(CompressionType))
            log.batch(*_records(rnd, 10, 900), codec=codec, timestamp=OLD_MS + number)
    log.segment().batch(("key-1", "active"), timestamp=NOW_MS).write()


def _write_transactions(log_dir: Path, rnd: random.Random, batches: int) -> None:
    log = LogBuilder(log_dir, f"{TOPIC}-1", index_interval_bytes=400)
    producers = range(11, 15)
    open_now: set[int] = set()
    for number in range(8):
        log.segment(modified_ms=OLD_MS + number)
        time_ms = OLD_MS + number
        for _ in range(batches):
            producer = rnd.choice(producers)
            if producer in open_now and rnd.random() < 0.4:
                end = rnd.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
                log.marker(end, producer, timestamp=time_ms)
                open_now.discard(producer)
            else:
                open_now.add(producer)
                log.batch(*_records(rnd, 8, 90), timestamp=time_ms, producer_id=producer,
                          is_transactional=True)  # fmt: skip
            log.batch(*_records(rnd, 4, 90), timestamp=time_ms, producer_id=20)
        if number == 6:
            for producer in sorted(open_now):
                log.marker(ControlRecordType.ABORT, producer, timestamp=time_ms)
            open_now.clear()
    log.segment().batch(("key-1", "active"), timestamp=NOW_MS).write()


def _write_islands(log_dir: Path, rnd: random.Random) -> None:
    log = LogBuilder(log_dir, f"{TOPIC}-2", index_interval_bytes=400)
    for island in range(3):
        for number in range(3):
            base = max(log.next_offset, island * ISLAND + 100 * number)
            log.segment(base, modified_ms=OLD_MS + island * 4 + number)
            log.batch((f"only-{island}-{number}", "stays"), timestamp=OLD_MS)
            for _ in range(3):
                log.batch(*_records(rnd, 12, 40), timestamp=OLD_MS + island)
    log.segment().batch(("key-1", "active"), timestamp=NOW_MS)
    path = log.write()
    # The last segment of an island takes the first of the next one in: too far for one segment.
    bases = sorted(int(file.stem) for file in path.glob("*.log"))
    below, above = max(base for base in bases if base < ISLAND), ISLAND
    with (path / f"{below:020d}.log").open("ab") as file:
        file.write((path / f"{above:020d}.log").read_bytes())
    for file in path.glob(f"{above:020d}.*"):
        file.unlink()


@dataclass(frozen=True)
class Reading:
    """What consumers get of a partition, in either isolation level."""

    uncommitted: frozenset[Read]
    committed: frozenset[Read]
    log_end_offset: int
    last_stable_offset: int

    def last_values(self) -> dict[str | None, str | None]:
        """Of the committed records; without deleted keys."""
        values = {key: value for _, key, value in sorted(self.committed, key=lambda r: r[0])}
        return {key: value for key, value in values.items() if value is not None}


def read_by_kafka(kafka: Kafka, log_dir: Path, name: str, work: Path, *, clean: bool) -> Reading:
    """Kafka loads a copy, after a clean stop or a crash, and reads it as consumers would."""
    copy = Path(shutil.copytree(log_dir, work / "kafkas", ignore=_but(name)))
    try:
        load = kafka.open_once if clean else kafka.recover
        loaded = load(copy, name, now_ms=NOW_MS, config=SETTINGS)
        left = [path.name for path in (copy / name).iterdir()]
        assert not [n for n in left if n.endswith((".cleaned", ".swap", ".deleted"))], left
        dumped = [b for s in kafka.dump(copy / name)["segments"] for b in s["batches"]]
        _check_order(dumped)
        aborted = set(_aborted(dumped, _fetched(kafka, copy, name, loaded)))
        start, stable = loaded["logStartOffset"], loaded["lastStableOffset"]
        data = [b for b in dumped if not b["control"]]
        sound = [b for b in data if b["base"] not in aborted]
        return Reading(
            uncommitted=frozenset(r for r in _read(data) if start <= r[0]),
            committed=frozenset(r for r in _read(sound) if start <= r[0] < stable),
            log_end_offset=loaded["logEndOffset"],
            last_stable_offset=stable,
        )
    finally:
        shutil.rmtree(copy)


def _but(name: str) -> Any:
    """For copytree: of the partitions only this one."""

    def ignored(directory: str, names: list[str]) -> list[str]:
        return [n for n in names if n != name and Path(directory, n).is_dir()]

    return ignored


def _check_order(batches: list[Answer]) -> None:
    previous = -1
    for batch in batches:
        assert batch["valid"], batch
        assert batch["base"] > previous, (previous, batch)
        previous = batch["last"]


def _read(batches: Iterable[Answer]) -> Iterator[Read]:
    for batch in batches:
        for record in batch["records"]:
            yield record["offset"], record["key"], record["value"]


def _fetched(kafka: Kafka, log_dir: Path, name: str, loaded: Answer) -> Iterator[Answer]:
    """Fetches of a read_committed consumer from the log's start to its last stable offset."""
    offset = loaded["logStartOffset"]
    while offset < loaded["lastStableOffset"]:
        answer = kafka.fetch(
            log_dir, name, now_ms=NOW_MS, config=SETTINGS, offset=offset, max_bytes=1 << 30
        )
        if not answer["batches"]:
            return
        yield answer
        offset = answer["batches"][-1][1] + 1


def _aborted(batches: list[Answer], fetched: Iterable[Answer]) -> Iterator[int]:
    """Base offsets of the batches that a consumer leaves out (Fetcher.nextFetchedRecord): those of
    a producer between the first offset of an aborted transaction and its marker.
    """
    by_base = {batch["base"]: batch for batch in batches}
    for answer in fetched:
        coming = sorted(answer["aborted"], key=lambda entry: entry[1])
        skipped = set[int]()
        for base, last in answer["batches"]:
            while coming and coming[0][1] <= last:
                skipped.add(coming.pop(0)[0])
            batch = by_base[base]
            if batch["control"]:
                skipped -= {batch["pid"] for r in batch["records"] if r["type"] == "ABORT"}
            elif batch["txn"] and batch["pid"] in skipped:
                yield base


def cleaned_by_kafka(kafka: Kafka, log_dir: Path, work: Path) -> dict[str, Reading]:
    """What Kafka's own cleaner leaves of each partition for consumers."""
    copy = Path(shutil.copytree(log_dir, work / "cleaned-by-kafka"))
    for name in NAMES:
        try:
            kafka.clean(copy, name, now_ms=NOW_MS, config=SETTINGS)
        except KafkaFailedError:  # a segment had to be split: the next round takes the parts
            kafka.clean(copy, name, now_ms=NOW_MS, config=SETTINGS)
    return {name: read_by_kafka(kafka, copy, name, work, clean=True) for name in NAMES}


def check_nothing_lost(found: Reading, before: Reading, cleaned: Reading, what: str) -> None:
    """All that Kafka's cleaner keeps is there, nothing else than was there, and each key has its
    last value.
    """
    assert cleaned.uncommitted <= found.uncommitted <= before.uncommitted, what
    assert cleaned.committed <= found.committed <= before.committed, what
    assert found.last_values() == before.last_values(), what
    assert found.log_end_offset == before.log_end_offset, what
    assert found.last_stable_offset == before.last_stable_offset, what
