"""Our retention and Kafka's `deleteOldSegments` on the same logs: the same segments go, and what is
left is the same, byte for byte.

`KAFKALOG_RETENTION_SEEDS=a-b` plays other logs than the default ones.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.oracle.kafka import Kafka
from tests.oracle.retention import CALLS, Tally, play_retention

pytestmark = pytest.mark.oracle

FIRST, LAST = map(int, os.environ.get("KAFKALOG_RETENTION_SEEDS", "0-65").split("-"))
CHUNK = 22


@pytest.mark.parametrize("first", range(FIRST, LAST + 1, CHUNK))
def test_random_calls_delete_what_kafka_deletes(kafka: Kafka, first: int, log_dir: Path) -> None:
    tally = Tally(0, 0, 0, [])
    for seed in range(first, min(first + CHUNK, LAST + 1)):
        play_retention(seed, kafka, log_dir / "case", tally)
        shutil.rmtree(log_dir / "case")
    assert not tally.complaints, "\n".join(tally.complaints)
    assert tally.deleting > tally.calls / 4
    assert tally.rolls > tally.calls / 50


def test_the_default_run_is_500_calls() -> None:
    assert 66 * CALLS >= 500
