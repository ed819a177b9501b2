"""In memory or in runs on disk: however the key map is made, the bytes are those of Kafka."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.benchmarks.bench_compact import same_bytes
from tests.benchmarks.generate import LogSpec, write_log
from tests.conftest import NOW_MS
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.rounds import (
    Compact,
    CompactCall,
    compact_with_kafkalog,
    play_and_keep_failed,
    work_directory,
)
from tests.oracle.scripts import seed_scenario
from tests.support.small_budgets import small_budgets

pytestmark = pytest.mark.oracle

# Of a row of its own; in the soak, 200 logs.
FIRST = 40_000
SAMPLE = range(FIRST, FIRST + 12)
ALL = range(FIRST, FIRST + 200)
# Wrappers with a billion offsets between them.
WIDE_GAPS = FIRST + 165


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


def across_tasks(call: CompactCall) -> Mapping[str, Any]:
    if call.dedupe_buffer_size is not None:  # is made within a task
        return compact_with_kafkalog(call)
    return compact_with_kafkalog(call, "--strategy", "across-tasks", "--workers", "1")


def play(kafka: Kafka, seeds: Sequence[int], compact: Compact = compact_with_kafkalog) -> None:
    outcomes = [play_and_keep_failed(seed_scenario(seed), kafka, compact) for seed in seeds]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome.cleaned for outcome in outcomes) > len(seeds)


@pytest.mark.thorough
def test_spilled_runs_equal_kafkas(kafka: Kafka) -> None:
    with small_budgets():
        play(kafka, SAMPLE)


def test_maps_across_tasks_equal_kafkas(kafka: Kafka) -> None:
    with small_budgets():
        play(kafka, [*SAMPLE, WIDE_GAPS], across_tasks)


@pytest.mark.soak
@pytest.mark.parametrize("more", [(), ("--memory", "256m"), ("--strategy", "across-tasks")])
def test_4_gib_equal_kafkas(kafka: Kafka, more: tuple[str, ...]) -> None:
    config = {"cleanup.policy": "compact", "segment.bytes": str(256 << 20)}
    with work_directory() as work:
        write_log(work / "ours", "t", LogSpec(records=34_000_000, keys=2_000_000))
        shutil.copytree(work / "ours", work / "kafkas")
        kafka.clean(work / "kafkas", "t-0", now_ms=NOW_MS, config=config, map_bytes=64 << 20)
        call = CompactCall(work / "ours", "t", 0, NOW_MS, config, None, 86_400_000, keyless=False)
        compact_with_kafkalog(call, *more)
        assert same_bytes(work / "ours", work / "kafkas")


@pytest.mark.soak
def test_200_logs_across_tasks_equal_kafkas(kafka: Kafka) -> None:
    with small_budgets():
        play(kafka, ALL, across_tasks)


@pytest.mark.soak
def test_200_logs_spilled_equal_kafkas(kafka: Kafka) -> None:
    with small_budgets():
        play(kafka, ALL)
