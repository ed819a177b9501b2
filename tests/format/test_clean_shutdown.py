from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.copy_samples import SAMPLES
from kafkalog.format.clean_shutdown import (
    CLEAN_SHUTDOWN_FILE,
    parse_clean_shutdown,
)


@pytest.mark.parametrize(
    "path", sorted(SAMPLES.rglob(CLEAN_SHUTDOWN_FILE)), ids=lambda p: p.parent.name
)
def test_the_file_of_a_broker_is_read(path: Path) -> None:
    data = path.read_bytes()
    epoch = parse_clean_shutdown(data)
    assert epoch is not None
    # A broker that has no epoch, as it never had one from a KRaft controller, writes -1.
    assert epoch > 0 or (epoch == -1 and "zookeeper" in path.parts)


@pytest.mark.parametrize(
    ("data", "epoch"),
    [
        (b"", None),  # before 3.7
        (b'{"version":0,"brokerEpoch":14,"later":[1]}', 14),
        (b'{"version":7,"brokerEpoch":-1}', -1),
        (b'{"version":0}', None),
        (b'{"version":0,"brokerEpoch":9223372036854775808}', None),
        (b'{"version":0,"brokerEpoch":1', None),
        (b"[" * 100_000, None),
    ],
)
def test_any_text_is_a_clean_shutdown(data: bytes, epoch: int | None) -> None:
    assert parse_clean_shutdown(data) == epoch


@given(st.binary(max_size=60))
def test_garbage_never_raises(data: bytes) -> None:
    parse_clean_shutdown(data)
