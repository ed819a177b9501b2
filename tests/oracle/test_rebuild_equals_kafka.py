"""Rebuilt indexes and snapshots against those of Kafka's loader after an unclean stop, recovery
point 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracle.kafka import Kafka
from tests.oracle.rebuilding import break_files, lose_everything, random_case, rebuild_both
from tests.oracle.rounds import work_directory

pytestmark = pytest.mark.oracle

BATCHES_OF_SEEDS = [
    pytest.param(
        range(first, first + 20), id=f"from-{first}", marks=pytest.mark.thorough if first else ()
    )
    for first in range(0, 200, 20)
]


def _play(
    kafka: Kafka, seed: int, damage: Callable[[Path], None], *, may_know_more: bool
) -> list[str]:
    with work_directory() as work:
        case = random_case(seed, kafka, work / "log")
        damage(case.log_dir / case.partition)
        found = rebuild_both(case, kafka, work, may_know_more=may_know_more)
        return [f"seed {seed}: {difference}" for difference in found]


@pytest.mark.parametrize("seeds", BATCHES_OF_SEEDS)
def test_rebuilt_from_the_logs_alone_files_equal_kafkas(kafka: Kafka, seeds: range) -> None:
    complaints = [
        line for seed in seeds for line in _play(kafka, seed, lose_everything, may_know_more=False)
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("seeds", BATCHES_OF_SEEDS[:4])
def test_broken_files_and_torn_tails_become_kafkas(kafka: Kafka, seeds: range) -> None:
    complaints = [
        line
        for seed in seeds
        for line in _play(
            kafka,
            seed + 1000,
            lambda path, seed=seed: break_files(path, random.Random(seed)),  # type: ignore[misc]
            may_know_more=True,
        )
    ]
    assert not complaints, "\n".join(complaints)
