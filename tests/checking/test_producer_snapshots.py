"""Producer snapshots that cannot be read, after a clean stop: one is as good as a readable one, for
a broker deletes it and replays the log (`tests/oracle/test_start_claims.py` asks Kafka).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.file_names import producer_snapshot_file_name
from tests.checking.running import failures
from tests.support.log_builder import LogBuilder

FORGOTTEN, UNREADABLE = "open-transaction-forgotten", "snapshot-unreadable"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {FORGOTTEN}),
        ({4: b""}, {UNREADABLE}),
        ({4: bytes(60)}, {UNREADABLE}),
        ({2: b"\0\1\0"}, {UNREADABLE}),
        ({1: b""}, {FORGOTTEN}),  # no segment begins there: removed as a stray
    ],
)
def test_an_open_transaction_is_forgotten_only_without_any_snapshot(
    tmp_path: Path, files: dict[int, bytes], expected: set[str]
) -> None:
    log = LogBuilder(tmp_path, "orders-0").segment()
    log.batch(("a", "1"), ("b", "1"), producer_id=5, is_transactional=True)
    log.segment().batch(("a", "2"), ("b", "2")).write()
    for path in log.path.glob("*.snapshot"):
        path.unlink()
    for offset, data in files.items():
        (log.path / producer_snapshot_file_name(offset)).write_bytes(data)
    assert failures(tmp_path) == expected
