"""What a simulation says is left at a time, against Kafka's own `deleteOldSegments`, called then
with the changed settings, on random logs.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.auditing.scenarios import Scenario
from tests.auditing.documents import audited_document
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.retention import LOG_CONFIG, NAME, RetentionCall, random_call, retention_script
from tests.oracle.scripts import START_MS

pytestmark = pytest.mark.oracle

SEEDS = range(5000, 5025)
CHANGED = ("cleanup.policy", "retention.ms", "retention.bytes")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


def simulated(log_dir: Path, now_ms: int, call: RetentionCall) -> tuple[int, int, list[int]]:
    """(bytes, records) left at the call's time, and the log's segments that are due then."""
    scenario = Scenario({key: call.config[key] for key in CHANGED})
    scope = {"scenarios": (Scenario(), scenario), "times": [(False, call.now_ms)]}
    config = [f"{key}={value}" for key, value in LOG_CONFIG.items()]
    document = audited_document(
        log_dir, now_ms=now_ms, config=config, scope=scope, high_watermark=call.high_watermark
    )
    of_all = [point for point in document["whatIf"][1]["points"] if not point["topic"]]
    assert document["whatIf"][1]["refused"] == []
    at_once = audited_document(
        log_dir,
        now_ms=call.now_ms,
        config=[*config, *(f"{key}={call.config[key]}" for key in CHANGED)],
        high_watermark=call.high_watermark,
    )
    due = [s["baseOffset"] for s in at_once["segments"] if -1 < s["dueMs"] <= call.now_ms]
    return of_all[-1]["bytes"], of_all[-1]["records"], due


def test_what_is_left_is_what_kafka_leaves(kafka: Kafka, log_dir: Path) -> None:
    deleting = 0
    for seed in SEEDS:
        rnd = random.Random(seed)
        base = log_dir / f"log-{seed}"
        base.mkdir()
        lines = retention_script(rnd)
        written = kafka.write(base / NAME, lines, now_ms=START_MS, config=LOG_CONFIG)
        now_ms = int(written["now"])
        kafka.open_once(base, NAME, now_ms=now_ms, config=LOG_CONFIG)
        sizes = {int(path.stem): path.stat().st_size for path in (base / NAME).glob("*.log")}
        for number in range(2):
            call = random_call(rnd, written, kafka.line)
            found_bytes, _, due = simulated(base, now_ms, call)
            copy = log_dir / f"copy-{seed}-{number}"
            shutil.copytree(base, copy)
            watermark = "checkpoint" if call.high_watermark is None else call.high_watermark
            expected = kafka.retain(
                copy, NAME, now_ms=call.now_ms, config=call.config, high_watermark=watermark
            )
            shutil.rmtree(copy)
            left = sum(sizes.get(base_offset, 0) for base_offset in expected["remaining"])
            assert found_bytes == left, f"seed {seed} call {number} {call}"
            assert due == expected["deleted"], f"seed {seed} call {number} {call}"
            deleting += bool(expected["deleted"])
    assert deleting > len(SEEDS) / 2
