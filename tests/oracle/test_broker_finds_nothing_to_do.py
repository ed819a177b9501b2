"""A real broker on the results of every kind of run: it loads them without a word, its own cleaner
and its own retention, under the same settings, find nothing left to do, and consumers of both
isolation levels read exactly what should be left.

Two starts. In the first the broker is kept from cleaning and deleting; then our runs, by the
settings on the disk alone; in the second it cleans and deletes at once. Two topics that we leave
alone show that it does.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from tests.oracle.consuming import COMMITTED, UNCOMMITTED, Message, consume
from tests.oracle.dump_notices import bad_lines
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import work_directory
from tests.support.broker import CLIENT_WAIT_S, Broker, complaints, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow]

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# The broker of the first start does neither.
KEPT_FROM_CLEANING = {"log.cleaner.backoff.ms": "86400000", "log.initial.task.delay.ms": "86400000"}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
DELETE = {"cleanup.policy": "delete", "retention.ms": str(DAY_MS)}
BOTH = COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)}
SMALL = {"internal.segment.bytes": "3000", "index.interval.bytes": "512"}
POLICIES = {
    "plain": COMPACT,
    "transactional": COMPACT,
    "legacy": COMPACT,
    "bounded": COMPACT,
    "deleted": DELETE,
    "both": BOTH,
}
# What our runs leave to the broker.
UNCOMPACTED, UNDELETED = "left-uncompacted", "left-undeleted"
NINE_KEYS = 24 * 11
LEGACY_CODECS = ("none", "none", "gzip", "lz4")


@dataclass(frozen=True)
class Done:
    """A broker's directory after our runs, and what either consumer has to read of each topic."""

    directory: Path
    committed: dict[str, list[Message]]
    uncommitted: dict[str, list[Message]]
    rounds_of_bounded: int

    @property
    def log_dir(self) -> Path:
        return self.directory / "data"


@pytest.fixture(scope="module")
def done(kafka: Kafka) -> Iterator[Done]:
    with work_directory() as work:
        directory = work / "broker"
        committed, uncommitted = dict[str, list[Message]](), dict[str, list[Message]]()
        with running_broker(directory, KEPT_FROM_CLEANING) as broker:
            _create_topics(broker)
            broker.await_logs("legacy-0")  # nobody writes to it
            still_open = _produce_all(broker)
            for topic in POLICIES.keys() - {"legacy"}:
                committed[topic] = consume(broker, topic, COMMITTED)
                uncommitted[topic] = consume(broker, topic, UNCOMMITTED)
        del still_open  # its transaction is not ended by that
        log_dir = directory / "data"
        committed["legacy"] = uncommitted["legacy"] = _put_legacy(kafka, log_dir, work)
        starts = _retain(log_dir)
        rounds = _compact(log_dir)
        for read in (committed, uncommitted):
            for topic in POLICIES:
                read[topic] = _left(topic, read[topic], log_dir, starts.get(topic, 0))
        yield Done(directory, committed, uncommitted, rounds)


@pytest.mark.thorough
def test_a_broker_loads_all_and_finds_nothing_to_do(done: Done, kafka: Kafka) -> None:
    assert done.rounds_of_bounded > 2
    assert len(done.committed["transactional"]) < len(done.uncommitted["transactional"])
    for topic in POLICIES:
        assert not list(bad_lines(kafka, done.log_dir / f"{topic}-0")), topic
        assert 0 < len(done.committed[topic])
    before = _closed_files(done.log_dir)
    cleaned_to = _cleaner_offsets(done.log_dir)
    logged = (done.directory / "broker.log").stat().st_size
    with running_broker(done.directory) as broker:
        _wait_until_it_cleaned_and_deleted(done.log_dir)
        for topic in POLICIES:
            assert consume(broker, topic, COMMITTED) == done.committed[topic], topic
            left = done.uncommitted[topic]
            assert consume(broker, topic, UNCOMMITTED) == left, topic
            end = left[-1][0]
            for offset in (end // 3, end // 2, end - 3):
                if offset >= left[0][0]:  # below the log start a consumer is told so
                    wanted = [message for message in left if message[0] >= offset]
                    assert consume(broker, topic, UNCOMMITTED, offset) == wanted, (topic, offset)
        time.sleep(2.0)  # twenty more turns of its cleaner, two of its retention
        assert _closed_files(done.log_dir) == before
        assert {t: o for t, o in _cleaner_offsets(done.log_dir).items() if t in POLICIES} == {
            t: o for t, o in cleaned_to.items() if t in POLICIES
        }
    log = (done.directory / "broker.log").read_text()[logged:]
    assert "Kafka Server started" in log
    assert complaints(log, POLICIES) == []
    of_cleaner = [line for line in log.splitlines() if "leaner" in line]
    assert any(f"{UNCOMPACTED}-0" in line for line in of_cleaner)  # it tells what it cleans
    assert not [line for line in of_cleaner if _is_of_ours(line)]


# -- the first start -----------------------------------------------------------------------------


def _create_topics(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    policies = POLICIES | {UNCOMPACTED: COMPACT, UNDELETED: DELETE}
    topics = [NewTopic(name, 1, 1, config=config | SMALL) for name, config in policies.items()]
    for future in admin.create_topics(topics).values():
        future.result(CLIENT_WAIT_S)


def _produce_all(broker: Broker) -> Producer:
    for topic in ("plain", "bounded", UNCOMPACTED):
        _produce(broker, topic, hours_old=(0,))
    for topic in ("deleted", "both", UNDELETED):
        _produce(broker, topic, hours_old=(72, 48, 1))
    return _produce_transactions(broker)


def _produce(broker: Broker, topic: str, hours_old: tuple[int, ...]) -> None:
    rnd = random.Random(topic)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 5,
            "batch.size": 700,
            "enable.idempotence": True,
            "compression.type": "none" if topic == "bounded" else "zstd",
        }
    )
    now_ms = time.time_ns() // 1_000_000
    for hours in hours_old:
        for number in range(300):
            value = f"value {hours} {number} ".encode() + rnd.randbytes(20)
            producer.produce(
                topic,
                partition=0,
                key=f"key-{rnd.randrange(30)}".encode(),
                value=rnd.choice((value, value, value, None, b"")),
                timestamp=now_ms - hours * HOUR_MS + number,
            )
        assert producer.flush(CLIENT_WAIT_S) == 0


def _produce_transactions(broker: Broker) -> Producer:
    """Two producers' transactions interleaved; the third stays open from the middle on."""
    rnd = random.Random(7)
    names = ("one", "other", "open")
    one, other, opener = (_transactional(broker, name) for name in names)
    for number in range(20):
        if number == 14:
            opener.begin_transaction()
            _write(opener, "open", rnd)
        for producer in (one, other):
            producer.begin_transaction()
            outcome = rnd.choice(("commit", "commit", "abort"))
            _write(producer, outcome, rnd)
            end = producer.commit_transaction if outcome == "commit" else producer.abort_transaction
            end(CLIENT_WAIT_S)
    # Markers are written after the client was answered, these producers are answered when they
    # are. Else the broker would write them at its next start, into what our runs left.
    for name in names[:2]:
        _transactional(broker, name)
    return opener


def _transactional(broker: Broker, name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": name,
            "transaction.timeout.ms": 900_000,
            "linger.ms": 5,
            "log_level": 0,
        }
    )
    producer.init_transactions(CLIENT_WAIT_S)
    return producer


def _write(producer: Producer, outcome: str, rnd: random.Random) -> None:
    for _ in range(rnd.randint(2, 7)):
        value = f"{outcome} {rnd.randrange(10**9)} {'x' * 40}"
        producer.produce("transactional", partition=0, key=f"k{rnd.randrange(12)}", value=value)
    assert producer.flush(CLIENT_WAIT_S) == 0  # aborted data reaches the log as well


def _put_legacy(kafka: Kafka, log_dir: Path, work: Path) -> list[Message]:
    """Messages of magic 0 and 1 in place of the empty log a broker made: no client writes them now,
    Kafka's own log still takes them.
    """
    rnd = random.Random(3)
    messages: list[Message] = []
    lines: list[dict[str, Any]] = []
    for number in range(60):
        records = []
        for _ in range(rnd.randint(1, 4)):
            key, value = b"key-%d" % rnd.randrange(20), rnd.choice((rnd.randbytes(30), None, b""))
            records.append({"offset": len(messages), "key": _text(key), "value": _text(value)})
            messages.append((len(messages), key, value))
        lines.append({"records": records, "magic": number % 2, "codec": rnd.choice(LEGACY_CODECS)})
        lines += [{"roll": True}] if number % 12 == 11 else []
    written = work / "legacy" / "legacy-0"
    written.parent.mkdir()
    kafka.write(written, lines, now_ms=time.time_ns() // 1_000_000, config=COMPACT | SMALL)
    target = log_dir / "legacy-0"
    for old in target.iterdir():
        if old.name != "partition.metadata":
            old.unlink()
    for file in written.iterdir():
        if file.name != "partition.metadata":
            shutil.copy2(file, target / file.name)
    for name in (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE):
        path = log_dir / name
        offsets = dict(parse_offset_checkpoint(path.read_bytes(), str(path)))
        path.write_bytes(pack_offset_checkpoint({**offsets, ("legacy", 0): len(messages)}))
    return messages


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


# -- our runs ------------------------------------------------------------------------------------


def _run(*arguments: str) -> list[dict[str, Any]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        # The clock that the broker stamped and will go by.
        now = ("--now", str(time.time_ns() // 1_000_000))
        code = main([*arguments, *now, "--apply", "--json"])
    assert code == 0, out.getvalue() + err.getvalue()
    partitions: list[dict[str, Any]] = json.loads(out.getvalue())["partitions"]
    return partitions


def _retain(log_dir: Path) -> dict[str, int]:
    """By the topics' own settings; where their logs start now."""
    words = ["retain", "--log-dir", str(log_dir), "--topic", "deleted", "--topic", "both"]
    found = {p["topic"]: p for p in _run(*words)}
    assert all(len(p["deletedBaseOffsets"]) > 3 and p["kept"] for p in found.values())
    return {topic: p["logStartOffset"] for topic, p in found.items()}


def _compact(log_dir: Path) -> int:
    """By the topics' own settings; how many rounds a map for nine keys took."""
    words = ["compact", "--log-dir", str(log_dir)]
    at_once = [name for name, config in POLICIES.items() if "min.cleanable.dirty.ratio" in config]
    at_once.remove("bounded")
    done = _run(*words, *(w for name in at_once for w in ("--topic", name)), "--workers", "1")
    assert {p["topic"]: p["status"] for p in done} == dict.fromkeys(at_once, "compacted")
    rounds = 0
    words += ["--topic", "bounded", f"--dedupe-buffer-size={NINE_KEYS}"]
    while _run(*words)[0]["status"] == "compacted":
        rounds += 1
        assert rounds < 100
    return rounds


def _left(topic: str, messages: list[Message], log_dir: Path, start: int) -> list[Message]:
    """What should be left: from the log start on, below the end of the round the newest of each
    key that was committed.
    """
    messages = [message for message in messages if message[0] >= start]
    if "compact" not in POLICIES[topic]["cleanup.policy"]:
        return messages
    end = _cleaner_offsets(log_dir)[topic]
    newest = {
        key: offset
        for offset, key, value in messages
        if offset < end and not (value or b"").startswith(b"abort")
    }
    return [m for m in messages if m[0] >= end or newest.get(m[1]) == m[0]]


# -- what is on the disk -------------------------------------------------------------------------


def _cleaner_offsets(log_dir: Path) -> dict[str, int]:
    path = log_dir / CLEANER_OFFSET_FILE
    entries = parse_offset_checkpoint(path.read_bytes(), str(path))
    return {topic: offset for (topic, _), offset in entries.items()}


def _closed_files(log_dir: Path) -> dict[str, bytes]:
    """All segment files of our topics but the active segment's indexes, which a broker opens."""
    found = {}
    for topic in POLICIES:
        names = {path.name for path in (log_dir / f"{topic}-0").iterdir()}
        active = max(name for name in names if name.endswith(".log")).removesuffix(".log")
        for name in names:
            is_segment = name.endswith((".log", ".index", ".timeindex", ".txnindex"))
            is_open = name in (f"{active}.index", f"{active}.timeindex")
            if (is_segment or name.endswith((".deleted", ".cleaned", ".swap"))) and not is_open:
                found[f"{topic}/{name}"] = (log_dir / f"{topic}-0" / name).read_bytes()
    return found


def _wait_until_it_cleaned_and_deleted(log_dir: Path) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        cleaned = UNCOMPACTED in _cleaner_offsets(log_dir)
        if cleaned and list((log_dir / f"{UNDELETED}-0").glob("*.log.deleted")):
            return
        time.sleep(0.2)
    raise AssertionError("the broker neither cleaned nor deleted in five minutes")


def _is_of_ours(line: str) -> bool:
    return any(f"{topic}-0" in line for topic in POLICIES)
