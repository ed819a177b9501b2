"""A replica that was away while Kafka's own cleaner worked on the leader: consumers get something
else of it, and `compare` finds it. After our compaction that knows the replica it finds none.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.comparing.comparing import compare
from tests.comparing.outages import DAY_MS, SETTINGS, comes_back, compact_knowing_it, served
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.rounds import work_directory
from tests.support.log_builder import START_MS
from tests.support.reference.replicas import Told, compare_copies, read_copy

pytestmark = pytest.mark.oracle

CHUNKS = [
    range(8_000, 8_006),
    pytest.param(range(8_006, 8_040), marks=pytest.mark.thorough),
    pytest.param(range(8_040, 10_000), marks=pytest.mark.soak),
]
# Of so many outages at least so many leave a difference.
AT_LEAST = {6: 2, 34: 12, 1_960: 800}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


@pytest.mark.parametrize("seeds", CHUNKS, ids=len)
def test_what_an_outage_leaves_is_found_and_never_left_by_us(kafka: Kafka, seeds: range) -> None:
    def clean(leader: Path, away: Path) -> None:
        for day in (1, 2, 3):
            (leader / "cleaner-offset-checkpoint").unlink(missing_ok=True)
            now_ms = START_MS + day * DAY_MS
            kafka.clean(leader, "orders-0", now_ms=now_ms, config=SETTINGS)

    kinds: Counter[str] = Counter()
    different = 0
    for seed in seeds:
        with work_directory() as work:
            back, leader = comes_back(work / "kafka", seed, clean)
            found = _told(back, leader)
            copies = [read_copy(back.parent), read_copy(leader.parent)]
            assert found == compare_copies(copies), seed
            if served(back) != served(leader):
                assert found, (seed, "consumers get other things, and nothing is found")
            kinds.update(kind for kind, _, _ in found)
            different += bool(found)
            back, leader = comes_back(work / "ours", seed, compact_knowing_it)
            assert _told(back, leader) == set(), seed
    sys.stderr.write(f"{different} of {len(seeds)} outages left a difference: {dict(kinds)}\n")
    assert different >= AT_LEAST[len(seeds)], kinds


def _told(back: Path, leader: Path) -> set[Told]:
    numbers = {"node 2": 0, "node 1": 1}
    run = compare(back.parent, leader.parent)
    assert [each.status for each in run.partitions] == ["compared"], run
    return {
        (each.kind, each.offset, frozenset(numbers[name] for name in each.wrong))
        for each in run.differences
    }
