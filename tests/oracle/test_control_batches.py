"""What Kafka's loader and cleaner make of control records as they should not be: the table in
`tests.support.control_variants`, by which checks and plans go.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.support.control_variants import PRODUCER, VARIANTS
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
NOW_MS = START_MS + 10_000
EXPIRY_MS = 2**31 - 1


def build(log_dir: Path, name: str) -> None:
    """Data and the control batch in a closed segment, and an active one. No transaction is open:
    the cleaner would stop in front of it.
    """
    log = LogBuilder(log_dir, "orders-0").segment()
    log.batch(("a", "1"), ("b", "1"), producer_id=PRODUCER)
    log.batch(("a", "2"), ("b", "2"), producer_id=PRODUCER)
    log.raw(VARIANTS[name].batch(4, START_MS + 4))
    log.next_offset = 5
    log.segment(5).batch(("c", "1"))
    log.write()


def goes_on(kafka: Kafka, log_dir: Path, command: str) -> bool:
    ask = kafka.recover if command == "load" else kafka.clean
    try:
        ask(log_dir, "orders-0", now_ms=NOW_MS, config=CONFIG, producer_expiry_ms=EXPIRY_MS)
    except KafkaFailedError:
        return False
    return True


@pytest.mark.parametrize("name", VARIANTS)
def test_kafka_goes_on_or_fails_as_the_table_says(kafka: Kafka, log_dir: Path, name: str) -> None:
    build(log_dir / "load", name)
    build(log_dir / "clean", name)
    variant = VARIANTS[name]
    assert goes_on(kafka, log_dir / "load", "load") is variant.loads
    assert goes_on(kafka, log_dir / "clean", "clean") is variant.cleans
