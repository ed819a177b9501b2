"""Replicas that Kafka's own cleaner has cleaned at different moments give consumers the same, as
long as each had got what was cleaned away: no difference is found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.comparing.comparing import compare
from tests.oracle.kafka import Kafkas
from tests.oracle.replicas import play_replicas, replica_scenario
from tests.oracle.rounds import work_directory

pytestmark = pytest.mark.oracle

# 200 in all, most of them by the release that is compared with everywhere.
SEEDS = {
    "4.3": range(7_000, 7_140),
    "4.1": range(7_140, 7_160),
    "4.2": range(7_160, 7_180),
    "4.4": range(7_180, 7_200),
}
QUICK = 3
CHUNK = 10
CHUNKS = [
    pytest.param("4.3", range(7_000, 7_000 + QUICK)),
    *(
        pytest.param(
            line,
            range(max(first, 7_000 + QUICK), first + CHUNK),
            marks=pytest.mark.thorough if first == seeds.start else pytest.mark.soak,
        )
        for line, seeds in SEEDS.items()
        for first in range(seeds.start, seeds.stop, CHUNK)
    ),
]


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    with Kafkas() as running:
        yield running


@pytest.mark.parametrize(("line", "seeds"), CHUNKS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_no_difference_between_replicas_that_got_everything(
    kafkas: Kafkas, line: str, seeds: range
) -> None:
    cleaned = different = 0
    for seed in seeds:
        with work_directory() as work:
            log_dirs, rounds = play_replicas(replica_scenario(seed), kafkas.of(line), work)
            cleaned += rounds
            different += _logs(log_dirs[0]) != _logs(log_dirs[1])
            run = compare(*log_dirs)
            assert [each.status for each in run.partitions] == ["compared"], (seed, run)
            assert run.differences == [], (seed, run.differences)
    sys.stderr.write(f"{len(seeds)} partitions are equal, {different} of them in other bytes\n")
    # They are not alike as they lie there.
    assert cleaned > len(seeds)
    assert different > len(seeds) / 3


def _logs(log_dir: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(log_dir.glob("*/*.log"))]
