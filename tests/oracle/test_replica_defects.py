"""A seeded defect of one replica of partitions that Kafka cleaned: it is told of at its offset, and
all that is told is what the slow reference says, copy by copy.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.comparing.comparing import compare
from tests.comparing.defects import KINDS, do_damage
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.replicas import play_replicas, replica_scenario
from tests.oracle.rounds import copy_log_dir, work_directory
from tests.support.reference.replicas import Copy, Told, compare_copies, read_copy

pytestmark = pytest.mark.oracle

DEFECTS_OF_EACH = 15
OF_THE_ONLY_ONE = len(KINDS)
CHUNKS = [
    range(7_005, 7_006),
    pytest.param(range(7_006, 7_016), marks=pytest.mark.thorough),
    pytest.param(range(7_016, 7_236), marks=pytest.mark.soak),
]
AT_LEAST = {1: 5, 10: 80, 220: 2_000}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


@pytest.mark.parametrize("seeds", CHUNKS, ids=len)
def test_each_defect_is_found_at_its_offset_and_nothing_else(kafka: Kafka, seeds: range) -> None:
    done: Counter[str] = Counter()
    wanted = DEFECTS_OF_EACH if len(seeds) > 1 else OF_THE_ONLY_ONE
    for seed in seeds:
        with work_directory() as work:
            log_dirs, _ = play_replicas(replica_scenario(seed), kafka, work / "whole")
            copies = [read_copy(log_dir) for log_dir in log_dirs]
            assert compare_copies(copies) == set(), seed
            for number in range(wanted):
                kind = KINDS[number % len(KINDS)]
                target = work / f"damaged-{number}"
                done[kind] += _is_found(f"{seed} {number}", kind, log_dirs, copies, target)
    sys.stderr.write(f"{done.total()} defects found, each where it is: {dict(done)}\n")
    assert done.total() >= AT_LEAST[len(seeds)], done
    assert set(done) == set(KINDS), done


def _is_found(seed: str, kind: str, log_dirs: list[Path], copies: list[Copy], target: Path) -> bool:
    """False where the partition has no place for such a defect."""
    target.mkdir()
    damaged = [target / log_dir.name for log_dir in log_dirs]
    for log_dir, copy in zip(log_dirs, damaged, strict=True):
        copy_log_dir(log_dir, copy)
    defect = do_damage(random.Random(seed), kind, damaged, copies)
    if defect is None:
        return False
    found = _told(damaged)
    expected: set[Told] = {("corrupt-copy", defect.offset, frozenset({defect.copy}))}
    if kind != "duplicated":
        expected = compare_copies([read_copy(log_dir) for log_dir in damaged])
    assert found == expected, (seed, defect)
    assert defect.offset in {offset for _, offset, _ in found}, (seed, defect)
    return True


def _told(log_dirs: list[Path]) -> set[Told]:
    numbers = {str(log_dir): number for number, log_dir in enumerate(log_dirs)}
    (partition,) = compare(*log_dirs).partitions
    assert partition.status == "compared", partition.reason
    return {
        (each.kind, each.offset, frozenset(numbers[name] for name in each.wrong))
        for each in partition.differences
    }
