"""Replicas of a random partition, each cleaned by Kafka at moments of its own: the same appends on
all of them, so that every one has got each tombstone and marker before any is cleaned away.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.scripts import START_MS, Scenario, random_scenario

REPLICAS = 3
_KINDS: tuple[dict[str, bool], ...] = (
    {"transactional": True},
    {"legacy": True},
    {"transactional": True, "legacy": True},
    {},
    {"keyless": True},
)


def replica_scenario(seed: int) -> Scenario:
    """One with transactions, legacy batches or both; a leader gives out offsets without holes."""
    scenario = random_scenario(seed, **_KINDS[seed % len(_KINDS)])
    scenario.hole_share = 0.0
    return scenario


def play_replicas(scenario: Scenario, kafka: Kafka, work: Path) -> tuple[list[Path], int]:
    """(the log dirs, how many rounds of a cleaner did something); fewer rounds than the scenario
    has where Kafka gives the partition up.
    """
    rnd = random.Random(scenario.seed)
    log_dirs = [work / f"replica-{number}" for number in range(REPLICAS)]
    for log_dir in log_dirs:
        log_dir.mkdir(parents=True)
    name, cleaned, log_end, clock = scenario.partition_name, 0, 0, START_MS
    rounds = max(scenario.rounds, 3)
    for number in range(rounds):
        # Nothing is truncated below a high watermark, and a log start moves on all of them.
        appended = scenario.next_round(log_end, log_end, clock)
        lines = [line for line in appended.lines if "log_start" not in line]
        for log_dir in log_dirs:
            written = kafka.write(
                log_dir / name,
                lines,
                now_ms=clock,
                config=appended.config,
                producer_expiry_ms=scenario.producer_expiry_ms,
            )
        log_end = int(written["logEndOffset"])
        clock = int(written["now"]) + appended.clean_after_ms
        for log_dir in log_dirs:
            # What came last is mostly not cleaned yet.
            if rnd.random() < (0.3 if number < rounds - 1 else 0.7):
                continue
            try:
                answer = kafka.clean(
                    log_dir,
                    name,
                    now_ms=clock + rnd.choice((0, 1000, 10 * 86_400_000)),
                    config=appended.config,
                    producer_expiry_ms=scenario.producer_expiry_ms,
                )
            except KafkaFailedError:
                return log_dirs, cleaned
            cleaned += not answer["skipped"]
    return log_dirs, cleaned
