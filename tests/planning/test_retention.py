"""Which segments retention deletes, and which rule keeps each of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import InvalidConfigError
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory, PartitionKind, TopicPartition
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.retention import RetentionPlan, plan_retention
from tests.planning.facts import FIVE, HOUR_MS, NOW_MS, facts_of, partition, segment

WEEK = "retention.ms=604800000"
FOR_EVER = "retention.ms=-1"


def plan(inventory: PartitionInventory, *settings: str, **options: Any) -> RetentionPlan:
    facts = options.pop("facts", PartitionFacts(()))
    config = LogConfig.from_overrides(["cleanup.policy=delete", *settings])
    return plan_retention(inventory, config, facts, **{"now_ms": NOW_MS, **options})


def aged(*ages_ms: int, size: int = 100) -> PartitionInventory:
    """Segments of ten offsets each whose largest timestamps are so old."""
    infos = [
        segment(10 * number, size, largest_timestamp_ms=NOW_MS - age)
        for number, age in enumerate(ages_ms)
    ]
    return partition(infos, end=10 * len(infos))


def deleted(made: RetentionPlan) -> list[int]:
    return [verdict.base_offset for verdict in made.deleted]


def kept(made: RetentionPlan) -> dict[int, str]:
    return {verdict.base_offset: str(verdict.rule) for verdict in made.kept}


@pytest.mark.parametrize(("age", "goes"), [(999, False), (1000, False), (1001, True)])
def test_time_is_strict(age: int, goes: bool) -> None:
    made = plan(aged(age, 0), "retention.ms=1000")
    assert deleted(made) == ([0] if goes else [])
    assert made.status == ("delete" if goes else "skip")


@pytest.mark.parametrize(
    ("limit", "gone"),
    [(501, []), (500, []), (401, []), (400, [0]), (399, [0]), (1, [0, 10, 20, 30])],
)
def test_size_keeps_at_least_the_limit(limit: int, gone: list[int]) -> None:
    made = plan(partition(FIVE), FOR_EVER, f"retention.bytes={limit}")
    assert deleted(made) == gone
    assert made.log_start_offset == len(gone) * 10
    assert set(kept(made).values()) == {"retention.bytes"}


def test_size_counts_after_the_log_start_and_time_after_both() -> None:
    made = plan(partition(FIVE, start=10), FOR_EVER, "retention.bytes=300")
    assert [(v.base_offset, str(v.rule)) for v in made.deleted] == [
        (0, "log-start-offset"),
        (10, "retention.bytes"),
    ]
    made = plan(partition(FIVE, start=10), WEEK, "retention.bytes=300")
    assert [str(v.rule) for v in made.deleted[2:]] == ["retention.ms"] * 3


def test_a_future_timestamp_shields_all_behind_it_and_says_how_much() -> None:
    made = plan(aged(5000, -HOUR_MS, 5000, 5000, 10), "retention.ms=1000")
    assert deleted(made) == [0]
    assert kept(made) == {
        10: "future-timestamp",
        20: "earlier-segment",
        30: "earlier-segment",
        40: "retention.ms",
    }
    assert made.kept[0].timestamp_ms == NOW_MS + HOUR_MS
    assert "2027-01-15T09:00:00.000Z" in made.kept[0].reason
    assert "shields 200 bytes behind it" in made.kept[0].reason
    assert "segment 10 in front of it stays" in made.kept[1].reason


def test_without_timestamps_the_files_time_counts() -> None:
    old = segment(0, largest_timestamp_ms=-1, modification_time_ms=NOW_MS - 1001)
    new = segment(10, largest_timestamp_ms=-1, modification_time_ms=NOW_MS - 1000)
    made = plan(partition([old, new], end=20), "retention.ms=1000")
    assert deleted(made) == [0]
    assert made.deleted[0].is_file_time
    assert made.kept[0].reason.startswith("no timestamps, its file is of ")


def test_a_timestamp_of_zero_is_one() -> None:
    made = plan(partition([segment(0, largest_timestamp_ms=0), segment(10)], end=20), WEEK)
    assert not made.deleted[0].is_file_time


@pytest.mark.parametrize(
    ("watermark", "gone"), [(0, []), (19, [0]), (20, [0, 10]), (49, 4), (50, 5)]
)
def test_nothing_at_or_past_the_high_watermark_goes(watermark: int, gone: list[int] | int) -> None:
    made = plan(partition(FIVE), WEEK, high_watermark=watermark)
    bases = [base for base, _ in FIVE]
    assert deleted(made) == (bases[:gone] if isinstance(gone, int) else gone)
    assert made.log_start_offset <= watermark
    assert set(kept(made).values()) <= {"high-watermark"}


def test_all_due_rolls_at_the_end_of_the_log() -> None:
    made = plan(partition(FIVE), WEEK)
    assert (made.roll_offset, made.log_start_offset, made.kept) == (50, 50, ())
    assert deleted(made) == [0, 10, 20, 30, 40]
    assert "a new segment starts at 50" in made.explain()


def test_the_empty_active_segment_stays_and_nothing_rolls() -> None:
    made = plan(partition([*FIVE[:4], (40, 0)], end=40), WEEK)
    assert (made.roll_offset, made.log_start_offset) == (None, 40)
    assert kept(made) == {40: "empty-active-segment"}
    again = plan(partition([(40, 0)], end=40), WEEK, "retention.bytes=0")
    assert (again.status, again.deleted, again.log_start_offset) == ("skip", (), 40)


def test_bytes_without_a_whole_batch_are_an_empty_active_segment() -> None:
    made = plan(partition([(0, 100), (10, 30)], end=10), WEEK)
    assert (deleted(made), made.roll_offset) == ([0], None)


@pytest.mark.parametrize("policy", ["compact", ""])
def test_without_delete_only_the_log_start_counts(policy: str) -> None:
    settings = (f"cleanup.policy={policy}", "retention.ms=0", "retention.bytes=0")
    made = plan(partition(FIVE, start=25), *settings)
    assert deleted(made) == [0, 10]
    assert made.log_start_offset == 25
    assert set(kept(made).values()) == {"cleanup.policy"}


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete,compact"])
def test_with_delete_all_three_count(policy: str) -> None:
    assert len(plan(partition(FIVE), f"cleanup.policy={policy}", WEEK).deleted) == 5


def test_an_empty_policy_is_an_error_before_4_2() -> None:
    with pytest.raises(InvalidConfigError, match=r"from 4\.2 on"):
        plan(partition(FIVE), "cleanup.policy=", kafka_version="4.1")
    assert plan(partition(FIVE), "cleanup.policy=", kafka_version="4.2").status == "skip"


def test_limits_that_are_off_keep_everything() -> None:
    made = plan(partition(FIVE), FOR_EVER)
    assert set(kept(made).values()) == {"no-limit"}
    assert "are off" in made.reason


@pytest.mark.parametrize(
    ("changes", "settings", "reason"),
    [
        ({"kind": PartitionKind.FUTURE}, (), "a -future directory is never deleted from"),
        ({"kind": PartitionKind.STRAY}, (), "a -stray directory"),
        ({"kind": PartitionKind.DELETE}, (), "a -delete directory"),
        ({"topic_partition": TopicPartition("__cluster_metadata", 0)}, (), "__cluster_metadata"),
        ({"has_remote_segments": True}, (), "there are remote segments, or the line is stale"),
        ({"problems": ("line 2: bad",)}, (), "line 2: bad"),
        ({"leftovers": ("0.log.swap",)}, (), "leftovers"),
        ({"high_watermark": None}, (), "high watermark unknown"),
        ({}, ("remote.storage.enable=true",), "uploaded"),
    ],
)
def test_what_must_not_be_touched_is_refused(
    changes: dict[str, Any], settings: tuple[str, ...], reason: str
) -> None:
    made = plan(partition(FIVE, **changes), WEEK, *settings)
    assert (made.status, made.deleted, made.roll_offset) == ("refused", (), None)
    assert reason in made.reason
    assert made.log_start_offset == made.log_start_before


def test_a_partition_without_segments_is_skipped() -> None:
    empty = replace(partition(FIVE), segments=())
    assert plan(empty, WEEK).status == "skip"


def test_what_a_broker_would_repair_counts_by_its_headers() -> None:
    infos = [segment(0), segment(10, 500)]
    facts = PartitionFacts(
        (facts_of(infos[1], max_timestamp_ms=NOW_MS, valid_bytes=70, trailing_bytes=430),)
    )
    made = plan(partition(infos, end=20), WEEK, facts=facts)
    assert deleted(made) == [0]
    assert (made.kept[0].size_in_bytes, made.kept[0].timestamp_ms) == (70, NOW_MS)


@pytest.mark.parametrize(
    ("number", "changes", "reason"),
    [
        (0, {"corrupt": "bad length", "corrupt_position": 7}, "segment 0 @ 7: bad length"),
        (1, {"corrupt": "bad length", "corrupt_position": 7}, "segment 10 @ 7: bad length"),
        (0, {"trailing_bytes": 5}, "5 bytes after the last whole batch"),
    ],
)
def test_what_a_broker_would_cut_off_is_refused(
    number: int, changes: dict[str, Any], reason: str
) -> None:
    infos = [segment(0), segment(10)]
    facts = PartitionFacts((facts_of(infos[number], **changes),))
    made = plan(partition(infos, end=20), WEEK, facts=facts)
    assert made.status == "refused"
    assert reason in made.reason


def test_bad_leader_epochs_are_refused() -> None:
    made = plan(partition(FIVE), WEEK, facts=PartitionFacts((), problems=("line 2: bad",)))
    assert (made.status, made.reason) == ("refused", "line 2: bad")


def test_a_plan_travels_as_json() -> None:
    made = plan(aged(5000, -HOUR_MS, 5000, 10), "retention.ms=1000", "retention.bytes=5")
    assert RetentionPlan.from_json(json.loads(json.dumps(made.to_json()))) == made


@given(
    st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 3)), min_size=1, max_size=8),
    st.integers(-1, 20),
    st.integers(-1, 12),
    st.integers(0, 80),
)
def test_what_goes_is_a_prefix_and_a_second_pass_finds_nothing(
    segments: list[tuple[int, int]], retention_ms: int, retention_bytes: int, watermark: int
) -> None:
    infos = [
        segment(10 * n, size, largest_timestamp_ms=NOW_MS - age)
        for n, (age, size) in enumerate(segments)
    ]
    end = 10 * len(infos) - (10 if infos[-1].size_in_bytes == 0 else 0)
    settings = (f"retention.ms={retention_ms}", f"retention.bytes={retention_bytes}")
    made = plan(partition(infos, end=end), *settings, high_watermark=watermark)
    assert deleted(made) == [info.base_offset for info in infos[: len(made.deleted)]]
    assert [*deleted(made), *kept(made)] == [info.base_offset for info in infos]
    assert made.log_start_offset <= (made.high_watermark or 0)
    assert infos[-1].size_in_bytes or kept(made)[infos[-1].base_offset] == "empty-active-segment"
    left = infos[len(made.deleted) :] or [segment(end, 0)]
    again = plan(partition(left, end=end), *settings, high_watermark=watermark)
    assert again.deleted == ()
