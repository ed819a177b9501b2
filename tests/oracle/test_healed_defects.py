"""Seeded defects of one replica of partitions that Kafka cleaned: what is healed is alike
afterwards, and what is not provable stays as it is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.request import CompareRequest
from kafkalog.healing.run import apply_healing, heal_statuses
from kafkalog.requests.run_request import run_request
from tests.comparing.comparing import compare
from tests.comparing.defects import KINDS, do_damage
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.replicas import play_replicas, replica_scenario
from tests.oracle.rounds import copy_log_dir, work_directory
from tests.support.reference.replicas import Copy, read_copy

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

DEFECTS_OF_EACH = 10
CHUNKS = [range(7_005, 7_008), pytest.param(range(7_008, 7_058), marks=pytest.mark.soak)]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


@pytest.mark.parametrize("seeds", CHUNKS, ids=len)
def test_what_is_healed_is_alike_and_the_rest_is_as_it_was(kafka: Kafka, seeds: range) -> None:
    ended: Counter[str] = Counter()
    for seed in seeds:
        with work_directory() as work:
            log_dirs, _ = play_replicas(replica_scenario(seed), kafka, work / "whole")
            copies = [read_copy(log_dir) for log_dir in log_dirs]
            for number in range(DEFECTS_OF_EACH):
                target = work / f"damaged-{number}"
                ended.update(_heal(f"{seed} {number}", number, log_dirs, copies, target))
    assert ended["healed"] > len(seeds)
    assert ended["refused"] > len(seeds)
    assert set(ended) == {"healed", "refused"}


def _heal(
    seed: str, number: int, log_dirs: list[Path], copies: list[Copy], target: Path
) -> list[str]:
    target.mkdir()
    damaged = [target / log_dir.name for log_dir in log_dirs]
    for log_dir, copy in zip(log_dirs, damaged, strict=True):
        copy_log_dir(log_dir, copy)
    if do_damage(random.Random(seed), KINDS[number % len(KINDS)], damaged, copies) is None:
        return []
    paths = tuple(map(str, damaged))
    before, logs = compare(*damaged), _logs(damaged)
    healing = apply_healing(
        run_request(paths, {"topics": ["*"], "run_dir": str(target / "runs")}),
        CompareRequest(paths),
        lambda tasks: map(compare_partition, tasks),
        lambda _: None,
    )
    statuses = heal_statuses(healing.healed)
    assert healing.compared.differences == before.differences
    if "healed" in statuses:
        assert compare(*damaged).differences == [], seed
    else:
        assert _logs(damaged) == logs, seed
    return statuses


def _logs(log_dirs: list[Path]) -> list[bytes]:
    return [path.read_bytes() for each in log_dirs for path in sorted(each.glob("*/*.log"))]
