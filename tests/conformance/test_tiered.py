"""Tiered topics: what may go from the local disk depends on what is uploaded. Where no file tells
that nothing is guessed at: the topic is refused by name, and stays. Where one does:
tests/operations/test_retain_tiered.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.operations.retain import apply_retention_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import RunRequest
from tests.conformance.rounds import NOW_MS, bases, directory_bytes
from tests.support.log_builder import START_MS, LogBuilder

TIERED = "remote.storage.enable=true"


def refusal_of(log_dir: Path, *settings: str) -> str:
    """Why nothing went; deletion was due by every limit that is given."""
    path = log_dir / "orders-3"
    before = directory_bytes(path)
    config = LogConfig.from_overrides(["cleanup.policy=delete", *settings])
    run = apply_retention_run(RunRequest((str(log_dir),), NOW_MS, config, topics=("orders",)))
    assert run.results == ()
    assert directory_bytes(path) == before
    (plan,) = run.plans
    assert plan.status == "refused"
    return plan.reason


def written(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir, "orders-3")
    for _ in range(3):
        log.segment().batch(("k", "v"), timestamp=START_MS)
    return log


@pytest.mark.parametrize("limit", ["local.retention.ms=1", "local.retention.bytes=1"])
def test_local_limits_of_a_tiered_topic_delete_nothing(log_dir: Path, limit: str) -> None:
    written(log_dir).write()
    reason = refusal_of(log_dir, TIERED, limit, "retention.ms=1000000", "retention.bytes=100000")
    assert reason.startswith("remote.storage.enable is true: ")


def test_nor_do_they_where_copying_is_disabled(log_dir: Path) -> None:
    written(log_dir).write()
    reason = refusal_of(log_dir, TIERED, "remote.log.copy.disable=true", "retention.ms=1")
    assert reason.startswith("remote.storage.enable is true: ")


def test_a_breached_active_segment_of_a_tiered_topic_is_not_rolled(log_dir: Path) -> None:
    path = written(log_dir).write()
    assert "depends on what is uploaded" in refusal_of(log_dir, TIERED, "retention.ms=1")
    assert bases(path) == [0, 1, 2]


def test_nor_does_the_log_start_of_a_tiered_topic_delete(log_dir: Path) -> None:
    written(log_dir).log_start_offset(2).write()
    assert "depends on what is uploaded" in refusal_of(log_dir, TIERED, "retention.ms=-1")
    # the same log, not tiered, loses two segments
    config = LogConfig.from_overrides(["cleanup.policy=delete", "retention.ms=-1"])
    run = apply_retention_run(RunRequest((str(log_dir),), NOW_MS, config, topics=("orders",)))
    assert [segment.base_offset for segment in run.plans[0].deleted] == [0, 1]
