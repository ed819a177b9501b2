"""What Kafka's loader makes of leader epochs and producer snapshots that are not right: what
`checking.epoch_checks` and `checking.producer_checks` say of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE, producer_snapshot_file_name
from tests.checking.running import findings
from tests.oracle.kafka import Kafka
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.oracle

CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}
NOW_MS = START_MS + 10_000
EXPIRY_MS = 2**31 - 1


@pytest.mark.parametrize(
    ("lines", "after_clean_stop", "after_crash"),
    [
        ("5 1|3 2", "5 1|3 2", "5 1|3 2"),
        ("7 100000", "", ""),
        ("0 0|1 5000", "0 0", "0 0"),
        ("0 0|9 2", "0 0|9 2", "0 0|9 2"),
        ("0 0|1 6", "0 0|1 6", "0 0|1 6"),
        ("1 4", "1 4", "1 4"),
    ],
)
def test_epochs_that_the_batches_contradict_stay_and_those_past_the_end_go(
    kafka: Kafka, log_dir: Path, lines: str, after_clean_stop: str, after_crash: str
) -> None:
    for number, (load, expected) in enumerate(
        [(kafka.open_once, after_clean_stop), (kafka.recover, after_crash)]
    ):
        copy = log_dir / str(number)
        log = LogBuilder(copy, "orders-0")
        for epoch in (0, 1):
            log.leader_epoch = epoch
            log.segment().batch(("a", "1"), ("b", "1")).batch(("a", "2"), ("b", "2"))
        log.write()
        entries = lines.split("|")
        path = log.path / LEADER_EPOCH_CHECKPOINT_FILE
        path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))
        load(copy, "orders-0", now_ms=NOW_MS, config=CONFIG)
        assert "|".join(path.read_text().split("\n")[2:-1]) == expected


SNAPSHOTS = {
    "none": ({}, True),
    "an empty one at the end": ({4: b""}, False),
    "zeros at the end": ({4: bytes(60)}, False),
    "an empty one at a segment's base": ({2: b""}, False),
    "an empty one past the end": ({50: b""}, False),
    "an empty one at the log's start": ({0: b""}, False),
    "a stray one only": ({1: b""}, True),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_an_open_transaction_is_forgotten_only_where_no_snapshot_is_left(
    kafka: Kafka, log_dir: Path, name: str
) -> None:
    """After a clean stop: one that cannot be read is as good as one, for the log is replayed."""
    files, is_forgotten = SNAPSHOTS[name]
    log = LogBuilder(log_dir, "orders-0").segment()
    log.batch(("a", "1"), ("b", "1"), producer_id=5, is_transactional=True)
    log.segment().batch(("a", "2"), ("b", "2")).write()
    for path in log.path.glob("*.snapshot"):
        path.unlink()
    for offset, data in files.items():
        (log.path / producer_snapshot_file_name(offset)).write_bytes(data)
    said = {finding.kind for finding in findings(log_dir) if finding.severity.is_failure}
    assert ("open-transaction-forgotten" in said) is is_forgotten
    loaded = kafka.open_once(
        log_dir, "orders-0", now_ms=NOW_MS, config=CONFIG, producer_expiry_ms=EXPIRY_MS
    )
    assert loaded["lastStableOffset"] == (4 if is_forgotten else 0)
