"""Random logs and calls of retention for the oracle: Kafka on copy A, ours on copy B, compare.

A case is one log with some calls, each on a fresh copy; the same one for the same seed, always.
Limits are drawn around the ages and sizes the log really has, so that equality is met often.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Answer, Kafka
from tests.oracle.scripts import START_MS, Line

NAME = "orders-3"
CALLS = 2
LOG_CONFIG = {"internal.segment.bytes": "900", "index.interval.bytes": "200"}
FUTURE_MS = START_MS + 10**12


@dataclass(frozen=True, slots=True)
class RetentionCall:
    """What both are told. `high_watermark` None = as checkpointed."""

    now_ms: int
    config: Mapping[str, str]
    high_watermark: int | None
    kafka_version: str
    partition_name: str = NAME
    producer_expiry_ms: int | None = None


@dataclass(slots=True)
class Tally:
    """What the calls of some cases came to; `complaints` is empty where everything was equal."""

    logs: int = 0
    calls: int = 0
    deleting: int = 0
    rolls: int = 0
    complaints: list[str] = field(default_factory=list)


def retention_script(rnd: random.Random) -> list[Line]:
    """Lines of the harness's `write`: producers, epochs, transactions, odd and missing times."""
    lines: list[Line] = []
    offset = rnd.choice((0, 0, 0, 1000))
    epoch, sequences = 0, {7: 0, 9: 0}
    for number in range(rnd.randint(0, 7)):
        if number:
            lines.append({"roll": True})
            lines.append({"advance_ms": rnd.choice((0, 1, 1000, 60_000))})
        no_times, in_future = rnd.random() < 0.15, rnd.random() < 0.06
        for _ in range(rnd.randint(0 if rnd.random() < 0.2 else 1, 3)):
            offset += rnd.choice((0, 0, 0, 7))
            epoch += rnd.random() < 0.2
            count = rnd.randint(1, 4)
            records = [
                {"offset": offset + i, "key": _text(b"k%d" % i), "value": _text(bytes(20))}
                for i in range(count)
            ]
            for record in records:
                if no_times:
                    record["ts"] = -1
                elif in_future:
                    record["ts"] = FUTURE_MS
                elif rnd.random() < 0.5:
                    record["ts"] = START_MS - rnd.randint(-2000, 100_000)
            line: Line = {"records": records, "leaderEpoch": epoch, "baseOffset": offset}
            offset += count
            if rnd.random() < 0.5:
                line |= {"pid": 7, "producerEpoch": 0, "sequence": sequences[7]}
                sequences[7] += count
            elif rnd.random() < 0.3:
                marker = {"pid": 9, "producerEpoch": 0, "control": rnd.choice(("abort", "commit"))}
                line |= {"pid": 9, "producerEpoch": 0, "sequence": sequences[9]}
                line["transactional"] = True
                sequences[9] += count
                lines.append(line)
                line = {**marker, "baseOffset": offset, "leaderEpoch": epoch}
                offset += 1
            lines.append(line)
    if rnd.random() < 0.3:
        lines.append({"roll": True})
    return lines


def play_retention(seed: int, kafka: Kafka, work: Path, tally: Tally) -> None:
    """One log and its calls in the empty directory `work`; adds to `tally`."""
    rnd = random.Random(seed)
    base = work / "base"
    base.mkdir(parents=True)
    lines = retention_script(rnd)
    written = kafka.write(base / NAME, lines, now_ms=START_MS, config=LOG_CONFIG)
    end = int(written["logEndOffset"])
    if rnd.random() < 0.4:
        start = rnd.choice((end, rnd.randint(int(written["logStartOffset"]), end)))
        lines = [{"log_start": start}]
        written = kafka.write(base / NAME, lines, now_ms=int(written["now"]), config=LOG_CONFIG)
    kafka.open_once(base, NAME, now_ms=int(written["now"]), config=LOG_CONFIG)
    for number in range(CALLS):
        kafkas, ours = work / f"kafka-{number}", work / f"ours-{number}"
        shutil.copytree(base, kafkas)
        shutil.copytree(base, ours)
        call = random_call(rnd, written, kafka.line)
        expected, found = retain_and_compare(
            call,
            kafka,
            ours=ours,
            kafkas=kafkas,
            source=base,
            everything_deleted=written["logStartOffset"] == written["logEndOffset"],
        )
        tally.complaints += [f"seed {seed} call {number} {call}: {line}" for line in found]
        tally.calls += 1
        tally.logs += number == 0
        tally.deleting += bool(expected["deleted"])
        tally.rolls += bool(expected["deleted"]) and expected["remaining"] == [end]
        for directory in (kafkas, ours):
            shutil.rmtree(directory)


def retain_and_compare(
    call: RetentionCall,
    kafka: Kafka,
    *,
    ours: Path,
    kafkas: Path,
    source: Path,
    everything_deleted: bool,
) -> tuple[Answer, list[str]]:
    """The call on two equal log dirs, Kafka's and ours: Kafka's answer, and what differs then.

    `everything_deleted`: whether the log started at its end already before.
    """
    expected = _retain_with_kafka(kafka, kafkas, call)
    facts = retain_with_kafkalog(ours, call)
    found = _differences(facts, expected)
    for log_dir in (ours, kafkas):
        _as_a_broker_checkpoints(log_dir, int(expected["remaining"][0]))
    differences = compare_log_dirs(
        ours,
        kafkas,
        call.partition_name,
        source=source,
        kafka=kafka,
        index_interval_bytes=int(call.config["index.interval.bytes"]),
        ignored=_come_and_go(call, ours, kafkas) if everything_deleted else frozenset(),
    )
    return expected, [*found, *map(str, differences)]


def random_call(rnd: random.Random, written: Answer, line: str) -> RetentionCall:
    """Settings and a moment for what `write` answered."""
    segments = written["segments"]
    now_ms = int(written["now"]) + rnd.choice((0, 1, 5000, 10**6))
    # an empty policy is allowed from 4.2 on (KIP-1161)
    policies = ("delete",) * 5 + ("compact,delete", "delete,compact", "compact")
    policy = rnd.choice((*policies, "" if line != "4.1" else "delete"))
    age = now_ms - int(rnd.choice(segments)["largestTimestamp"])
    retention_ms = max(-1, rnd.choice((-1, 0, age - 1, age, age + 1, age, 10**9)))
    behind = sum(int(s["size"]) for s in segments[rnd.randrange(len(segments)) :])
    retention_bytes = rnd.choice((-1, -1, 0, behind - 1, behind, behind + 1))
    start, end = int(written["logStartOffset"]), int(written["logEndOffset"])
    config = {
        "cleanup.policy": policy,
        "retention.ms": str(retention_ms),
        "retention.bytes": str(retention_bytes),
    }
    watermark = rnd.randint(start, end) if rnd.random() < 0.3 else None
    return RetentionCall(now_ms, {**LOG_CONFIG, **config}, watermark, line)


def _retain_with_kafka(kafka: Kafka, log_dir: Path, call: RetentionCall) -> Answer:
    watermark = "checkpoint" if call.high_watermark is None else call.high_watermark
    return kafka.retain(
        log_dir,
        call.partition_name,
        now_ms=call.now_ms,
        config=call.config,
        high_watermark=watermark,
        producer_expiry_ms=call.producer_expiry_ms,
    )


def _differences(facts: Mapping[str, Any], expected: Answer) -> list[str]:
    """What we said of the call against what Kafka answered."""
    end = int(expected["logEndOffset"])
    wanted = {
        "deletedBaseOffsets": expected["deleted"],
        "logStartOffset": expected["logStartOffset"],
        "logEndOffset": end,
        "rollOffset": end if facts["deleted"] and not facts["kept"] else None,
    }
    kept = [segment["baseOffset"] for segment in facts["kept"]] or [facts["rollOffset"]]
    wrong = [f"{n}: ours {facts[n]}, Kafka's {v}" for n, v in wanted.items() if facts[n] != v]
    if kept != expected["remaining"]:
        wrong.append(f"kept: ours {kept}, Kafka's {expected['remaining']}")
    return wrong


def _come_and_go(call: RetentionCall, *log_dirs: Path) -> frozenset[str]:
    """Where every record is deleted (log start = log end), Kafka removes all snapshots each time it
    opens a log that has them, and writes those of the last segments when it opens one without.
    """
    name = call.partition_name
    return frozenset(path.name for d in log_dirs for path in (d / name).glob("*.snapshot"))


def retain_with_kafkalog(log_dir: Path, call: RetentionCall) -> Mapping[str, Any]:
    """`kafkalog retain --apply` in this process; the one element of its JSON's `partitions`."""
    topic = call.partition_name.rpartition("-")[0]
    arguments = ["retain", "--log-dir", str(log_dir), "--topic", topic, "--apply", "--json"]
    # The scripts leave gaps, which stand for compaction where no metadata tells the policy.
    arguments += ["--force", "config-differs"]
    arguments.append("--no-undo")
    arguments += ["--now", str(call.now_ms), "--kafka-version", call.kafka_version]
    for name, value in call.config.items():
        arguments += ["--config", f"{name}={value}"]
    if call.high_watermark is not None:
        arguments += ["--high-watermark", str(call.high_watermark)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    assert code == 0, f"exit code {code}: {err.getvalue()} {out.getvalue()}"
    (facts,) = json.loads(out.getvalue())["partitions"]
    assert isinstance(facts, dict)
    return facts


def _as_a_broker_checkpoints(log_dir: Path, first_base: int) -> None:
    """A broker's LogManager, which the harness lacks, leaves out a log that starts where its first
    segment does; and a file without lines is as good as none.
    """
    path = log_dir / LOG_START_OFFSET_FILE
    if not path.exists():
        return
    entries = parse_offset_checkpoint(path.read_bytes())
    entries = {key: offset for key, offset in entries.items() if offset != first_base}
    path.write_bytes(pack_offset_checkpoint(entries))
    if not entries:
        path.unlink()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
