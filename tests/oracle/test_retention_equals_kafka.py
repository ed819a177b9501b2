"""Our retention and Kafka's `deleteOldSegments` on the same logs, release by release: the same
segments go, and what is left is the same, byte for byte.

`KAFKALOG_RETENTION_SEEDS=a-b pytest -m oracle` plays these logs with every release instead
of the default ones.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.jars import RELEASES
from tests.oracle.kafka import Kafkas
from tests.oracle.retention import Tally, play_retention

pytestmark = pytest.mark.oracle

CHUNK = 25
SEEDS = {
    "4.1": range(1000, 1075),
    "4.2": range(2000, 2075),
    "4.3": range(275),
    "4.4": range(3000, 3075),
}
if "KAFKALOG_RETENTION_SEEDS" in os.environ:
    FIRST, LAST = map(int, os.environ["KAFKALOG_RETENTION_SEEDS"].split("-"))
    SEEDS = dict.fromkeys(RELEASES, range(FIRST, LAST + 1))
# Chunks that `make test` plays: of the default release and of the newest.
QUICK = {"4.3": 1, "4.4": 1}
CHUNKS = [
    pytest.param(
        line,
        seeds[n : n + CHUNK],
        marks=() if n < QUICK.get(line, 0) * CHUNK else pytest.mark.thorough,
    )
    for line, seeds in SEEDS.items()
    for n in range(0, len(seeds), CHUNK)
]


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    with Kafkas() as running:
        yield running


@pytest.mark.parametrize(("line", "seeds"), CHUNKS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_random_calls_delete_what_kafka_deletes(
    kafkas: Kafkas, line: str, seeds: range, log_dir: Path
) -> None:
    tally = Tally()
    for seed in seeds:
        play_retention(seed, kafkas.of(line), log_dir / "case", tally)
        shutil.rmtree(log_dir / "case")
    assert not tally.complaints, "\n".join(tally.complaints)
    assert tally.logs == len(seeds)
    assert tally.deleting > tally.calls / 4
    assert tally.rolls


def test_the_default_run_is_500_logs() -> None:
    assert sum(map(len, SEEDS.values())) >= 500
