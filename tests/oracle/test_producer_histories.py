"""What Kafka's loader makes of producers and transactions: the table in
`tests.support.producer_histories`, by which all replays go, and what recover makes of the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.file_names import producer_snapshot_file_name
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.format.transaction_index import parse_transaction_index
from tests.oracle.kafka import Answer, Kafka, KafkaFailedError
from tests.support.producer_histories import HISTORIES, NOW_MS

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", HISTORIES)
def test_kafka_loads_what_the_table_says(kafka: Kafka, log_dir: Path, name: str) -> None:
    history = HISTORIES[name]
    log = history.build(log_dir)

    def load() -> Answer:
        expiry_ms = history.expiration_ms
        return kafka.recover(
            log_dir, log.name, now_ms=NOW_MS, config={}, producer_expiry_ms=expiry_ms
        )

    if history.outside:
        with pytest.raises(KafkaFailedError, match="InvalidTxnState"):
            load()
        return
    loaded = load()
    snapshot = log.path / producer_snapshot_file_name(log.next_offset)
    entries = parse_producer_snapshot(snapshot.read_bytes())
    assert sorted(entries, key=lambda entry: entry.producer_id) == history.entries()
    indexes = sorted(log.path.glob("*.txnindex"))
    found = [
        entry
        for path in indexes
        for entry in parse_transaction_index(path.read_bytes(), int(path.stem))
    ]
    assert tuple(found) == history.aborted
    first_open = [known.open for known in history.known.values() if known.open >= 0]
    assert loaded["lastStableOffset"] == min(first_open, default=log.next_offset)
