"""Which segments go from remote storage, rule by rule; what a live broker deletes:
tests/bucket/test_live_retention.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import (
    CopyStage,
    RemoteLog,
    RemoteRetentionPlan,
    RemoteSegment,
    cost_per_month,
    is_within_epochs,
    plan_remote_retention,
    with_records,
)

NOW_MS = 1_000_000


def segment(
    start: int, end: int, *epochs: tuple[int, int], age_ms: int = 0, size: int = 100,
    stage: CopyStage = CopyStage.FINISHED, name: str = "",
) -> RemoteSegment:  # fmt: skip
    return RemoteSegment(
        name or f"{start}-{end}", start, end, size, NOW_MS - age_ms, epochs or ((0, start),), stage
    )


def log(*segments: RemoteSegment, **changes: object) -> RemoteLog:
    plain = RemoteLog(segments, ((0, 0),), 0, 1000, 0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def plan(own: RemoteLog, *settings: str) -> RemoteRetentionPlan:
    config = LogConfig.from_overrides(["remote.storage.enable=true", *settings])
    return plan_remote_retention(own, config, NOW_MS)


def going(own: RemoteLog, *settings: str) -> list[tuple[str, str]]:
    return [(v.segment.segment_id, v.rule) for v in plan(own, *settings).deleted]


OLD = (segment(0, 9, age_ms=3000), segment(10, 19, age_ms=2000), segment(20, 29, age_ms=1000))


def test_by_time_strictly_and_from_the_oldest_on() -> None:
    found = plan(log(*OLD), "retention.ms=2000")
    assert [v.segment.start_offset for v in found.deleted] == [0]
    assert (found.log_start_offset, found.deleted_bytes) == (10, 100)
    assert found.next_due_ms == NOW_MS + 1
    assert [v.rule for v in found.kept] == ["retention.ms"] * 2
    # One of another time in front holds those behind it.
    younger = (segment(0, 9), *OLD[1:])
    assert going(log(*younger), "retention.ms=500") == []
    assert [v.rule for v in plan(log(*younger), "retention.ms=500").kept] == [
        "retention.ms", "earlier-segment", "earlier-segment",
    ]  # fmt: skip


def test_by_size_with_what_is_on_the_disk_only() -> None:
    own = log(*OLD, local_bytes=150)
    settings = "retention.ms=-1", "retention.bytes=300"
    assert going(own, *settings) == [("0-9", "retention.bytes")]
    assert going(replace(own, local_bytes=149), *settings) == [("0-9", "retention.bytes")]
    assert going(replace(own, local_bytes=99), *settings) == []
    # What went by time is taken off what is too much.
    settings = "retention.ms=2500", "retention.bytes=200"
    assert going(own, *settings) == [("0-9", "retention.ms"), ("10-19", "retention.bytes")]


def test_a_copy_that_did_not_end_goes_and_does_not_count() -> None:
    begun = segment(0, 9, size=10_000, stage=CopyStage.STARTED, name="!begun")
    own = log(begun, *OLD)
    assert going(own, "retention.ms=-1", "retention.bytes=300") == []
    assert going(own, "retention.ms=-1", "retention.bytes=200") == []  # it is first, and too large
    small = replace(begun, size_in_bytes=100)
    assert going(log(small, *OLD), "retention.ms=-1", "retention.bytes=200") == [
        ("!begun", "retention.bytes")
    ]


def test_a_deletion_that_was_begun_ends_whatever_retention_says() -> None:
    own = log(replace(OLD[0], stage=CopyStage.DELETING), *OLD[1:])
    assert going(own, "retention.ms=-1") == [("0-9", "deletion-begun")]


def test_below_the_log_start_and_in_epochs_that_the_log_no_longer_has() -> None:
    segments = (segment(0, 9, (0, 0)), segment(10, 19, (0, 10), (2, 15)), segment(20, 29, (2, 20)))
    own = log(*segments, leader_epochs=((2, 20),), log_start_offset=20)
    assert going(own, "retention.ms=-1") == [
        ("0-9", "older-leader-epochs"), ("10-19", "log-start-offset"),
    ]  # fmt: skip
    within = replace(own, log_start_offset=15, leader_epochs=((2, 15),))
    assert going(within, "retention.ms=-1") == [("0-9", "older-leader-epochs")]


def test_below_the_log_start_counts_as_brokers_count_it() -> None:
    """A third of the log has to go, and that much lies below its start."""
    own = log(*OLD, log_start_offset=10, local_bytes=0)
    size = f"retention.bytes={sum(s.size_in_bytes for s in OLD) - OLD[0].size_in_bytes}"
    below = ("0-9", "log-start-offset")
    assert going(own, "retention.ms=-1", size) == [below, ("10-19", "retention.bytes")]
    assert going(replace(own, counts_below_start=False), "retention.ms=-1", size) == [below]


def test_what_another_leader_wrote_is_passed_by_and_stays() -> None:
    """Epoch 1 was never in the log; behind it what is due goes all the same."""
    other = segment(10, 25, (0, 10), (1, 15), age_ms=5000, name="other")
    own = log(OLD[0], other, *OLD[1:], leader_epochs=((0, 0), (2, 500)))
    assert going(own, "retention.ms=1500") == [("0-9", "retention.ms"), ("10-19", "retention.ms")]
    (verdict,) = (v for v in plan(own, "retention.ms=1500").kept if v.segment.segment_id == "other")
    assert verdict.rule == "other-leader-epochs"


def test_a_topic_that_is_not_tiered_keeps_all() -> None:
    for settings, said in (
        (["remote.storage.enable=false"], "is false"),
        ([], "nothing here says"),
    ):
        config = LogConfig.from_overrides([*settings, "retention.ms=1"])
        found = plan_remote_retention(log(*OLD), config, NOW_MS)
        assert (found.deleted, {v.rule for v in found.kept}) == ((), {"remote.storage.enable"})
        assert said in found.kept[0].reason


@pytest.mark.parametrize(
    ("epochs", "end", "own", "expected"),
    [
        (((0, 0),), 9, ((0, 0),), True),
        (((0, 0),), 1000, ((0, 0),), False),  # at the log's end
        (((5, 0),), 9, ((0, 0),), False),
        (((0, 0), (2, 10)), 20, ((0, 0), (1, 10)), False),
        (((0, 0), (2, 10)), 20, ((0, 0), (2, 10), (3, 30)), True),
        (((0, 0), (2, 10)), 30, ((0, 0), (2, 10), (3, 30)), False),  # it goes on in epoch 2
        (((0, 0), (2, 11)), 20, ((0, 0), (2, 10)), False),
        # The first epoch of the log may begin above that of the segment, no other may.
        (((5, 14), (7, 15), (9, 100)), 150, ((7, 51), (9, 100)), True),
        (((7, 15), (9, 100)), 150, ((5, 0), (7, 51), (9, 100)), False),
        # Epochs without a record.
        (((0, 0), (1, 10), (2, 10)), 20, ((0, 0), (2, 10)), True),
    ],
)
def test_within_the_leader_epochs_of_a_log(
    epochs: tuple[tuple[int, int], ...], end: int, own: Iterable[tuple[int, int]], expected: bool
) -> None:
    start = epochs[0][1]
    assert is_within_epochs(segment(start, end, *epochs), 1000, with_records(own)) is expected


def test_the_cost_of_a_month() -> None:
    assert cost_per_month(10 * 1024**3, 0.023) == 0.23
    assert cost_per_month(1, None) is None
