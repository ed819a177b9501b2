"""Whether a partition is cleaned, and what the plan says."""

from __future__ import annotations

import json
import pickle

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.log.header_facts import ActiveProducer
from kafkalog.planning.compaction import CLEAN, SKIP, CompactionPlan
from tests.planning.facts import FIVE, HOUR_MS, NOW_MS, facts_of, partition, plan, segment


def test_a_ratio_equal_to_the_limit_is_not_enough() -> None:
    inventory = partition(cleaner=20)  # 200 clean, 200 dirty
    made = plan(inventory, "min.cleanable.dirty.ratio=0.5")
    assert made.status == SKIP
    assert made.reason == (
        "cleanable ratio 0.5 (200 of 400 bytes) is not above min.cleanable.dirty.ratio 0.5"
    )
    assert made.groups == ()
    assert plan(inventory, "min.cleanable.dirty.ratio=0.4999").status == CLEAN


def test_a_ratio_limit_of_zero_fires_on_any_dirty_byte_only() -> None:
    assert plan(partition(cleaner=30)).status == CLEAN
    assert plan(partition(cleaner=40)).status == SKIP


def test_a_ratio_limit_of_one_never_fires() -> None:
    assert plan(partition(), "min.cleanable.dirty.ratio=1").status == SKIP


def _waiting(age_ms: int, *overrides: str) -> CompactionPlan:
    ages = {10: age_ms, 20: age_ms - 1, 30: age_ms - 2}
    facts = [
        facts_of(segment(base), first_batch_max_timestamp_ms=NOW_MS - age)
        for base, age in ages.items()
    ]
    overrides = ("min.cleanable.dirty.ratio=1", "max.compaction.lag.ms=21600000", *overrides)
    return plan(partition(cleaner=10), *overrides, facts=facts)


def test_max_lag_forces_a_round_whatever_the_ratio() -> None:  # item 22
    made = _waiting(6 * HOUR_MS + 1)
    assert (made.status, made.must_compact) == (CLEAN, True)
    assert "max.compaction.lag.ms" in made.reason


def test_max_lag_does_not_force_at_exactly_its_age() -> None:  # item 22
    made = _waiting(6 * HOUR_MS)
    assert (made.status, made.must_compact) == (SKIP, False)


def test_max_lag_looks_at_the_oldest_first_batch_from_first_dirty_on() -> None:
    # Segment 0 has been waiting for long, but it is clean.
    assert not _waiting(3 * HOUR_MS).must_compact


def test_max_lag_does_not_lift_the_high_watermark() -> None:
    facts = [facts_of(segment(base), first_batch_max_timestamp_ms=1) for base, _ in FIVE]
    made = plan(
        partition(high_watermark=5),
        "max.compaction.lag.ms=1",
        "min.cleanable.dirty.ratio=1",
        facts=facts,
    )
    assert (made.must_compact, made.cleanable_bytes, made.status) == (True, 0, SKIP)


@pytest.mark.parametrize("timestamp", [None, 0, -1])
def test_max_lag_ignores_segments_without_a_timestamp_above_zero(timestamp: int | None) -> None:
    facts = [facts_of(segment(base), first_batch_max_timestamp_ms=timestamp) for base, _ in FIVE]
    assert not plan(partition(), "max.compaction.lag.ms=1", facts=facts).must_compact


def test_max_lag_takes_the_active_segment_for_nobody() -> None:
    facts = [facts_of(segment(base), first_batch_max_timestamp_ms=NOW_MS) for base, _ in FIVE[:4]]
    facts.append(facts_of(segment(40), first_batch_max_timestamp_ms=1))
    assert not plan(partition(), "max.compaction.lag.ms=1", facts=facts).must_compact


def test_a_round_rewrites_the_log_from_its_first_segment() -> None:  # 3.1
    made = plan(partition(cleaner=20))
    assert [source.base_offset for source in made.sources] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    ("version", "offset"), [("4.1", 20), ("4.2", 20), ("4.3", 20), ("4.4", 25), ("4.4.0", 25)]
)
def test_the_batch_kept_for_its_last_offset_depends_on_the_version(
    version: str, offset: int
) -> None:  # KAFKA-17076 and KAFKA-20452
    made = plan(partition(high_watermark=25), kafka_version=version)
    assert made.retained_end_offset == offset


@pytest.mark.parametrize("version", ["4.0", "4.5", "3.9", "5.1", "4", "4.x", "", "4.3.1.2"])
def test_versions_whose_rules_are_unknown_are_refused(version: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"4\.1 to 4\.4"):
        plan(partition(), kafka_version=version)


def test_a_plan_survives_json_and_pickle() -> None:
    producers = (ActiveProducer(7, 1, 9, NOW_MS), ActiveProducer(3, 0, None, NOW_MS))
    made = plan(partition(), "internal.segment.bytes=200", producers=producers)
    assert CompactionPlan.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert [producer.producer_id for producer in made.active_producers] == [3, 7]


def test_a_plan_explains_itself_in_a_line() -> None:
    assert plan(partition(high_watermark=25)).explain() == (
        "orders-0: 2 segments into 1, dirty 100.0% of 200 B, offsets 0 to 20 (end excluded), "
        "then high watermark 25; within-task; cleanable ratio 1 is above 0 (200 of 200 bytes)"
    )
    assert plan(partition([(0, 9)], end=1)).explain() == (
        "orders-0: skip: nothing to clean: first dirty offset 0, cleanable up to 0 (active segment)"
    )


def test_peak_bytes_are_those_of_the_sources_and_their_indexes() -> None:
    assert plan(partition()).peak_bytes == 4 * (100 + 12)


def test_the_token_changes_with_anything_the_plan_rests_on() -> None:
    tokens = {
        partition().token,
        partition(end=51).token,
        partition(cleaner=10).token,
        partition(high_watermark=10).token,
        partition([*FIVE[:4], (40, 101)]).token,
        partition(dir_inode=3).token,
        partition(directory_id=None).token,
    }
    assert len(tokens) == 7
    assert partition(leftovers=("kafkalog-1.tmp",)).token == partition().token
