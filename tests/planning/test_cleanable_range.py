"""First dirty, first uncleanable, the bytes between them."""

from __future__ import annotations

import pytest

from kafkalog.log.header_facts import ActiveProducer
from kafkalog.planning.compaction import CLEAN, SKIP
from kafkalog.planning.segment_groups import inactive_segments_from
from tests.planning.facts import FIVE, HOUR_MS, NOW_MS, OLD_MS, partition, plan, segment


def test_first_dirty_is_log_start_without_a_checkpoint() -> None:
    made = plan(partition(start=12))
    assert (made.first_dirty_offset, made.checkpoint_reset) == (12, None)


def test_first_dirty_is_log_start_when_the_checkpoint_is_past_the_end() -> None:  # item 6
    made = plan(partition(cleaner=200))
    assert (made.first_dirty_offset, made.checkpoint_reset) == (0, 0)


def test_first_dirty_is_log_start_when_the_checkpoint_is_below_it() -> None:  # item 7
    made = plan(partition(start=10, cleaner=0))
    assert (made.first_dirty_offset, made.checkpoint_reset) == (10, 10)


@pytest.mark.parametrize(
    ("start", "checkpoint", "reset"),
    [(10, 15, None), (20, 15, 20), (10, 51, 10), (10, 50, None), (15, 15, None)],
)
def test_checkpoint_is_reset_only_outside_the_log(
    start: int, checkpoint: int, reset: int | None
) -> None:  # item 14; equal to either end is sound
    assert plan(partition(start=start, cleaner=checkpoint)).checkpoint_reset == reset


def test_checkpoint_is_reset_even_if_nothing_is_cleaned() -> None:  # items 16 and 17
    inventory = partition([(20, 100)], start=20, end=30, cleaner=15)
    made = plan(inventory)
    assert (made.status, made.checkpoint_reset) == (SKIP, 20)
    made = plan(partition(cleaner=99), "min.cleanable.dirty.ratio=1.0")
    assert (made.status, made.checkpoint_reset) == (SKIP, 0)


def test_nothing_is_cleanable_with_only_an_active_segment() -> None:  # item 8
    made = plan(partition([(0, 100)], start=5, end=10))
    assert (made.status, made.end_offset, made.cleanable_bytes) == (SKIP, 0, 0)


def test_nothing_is_cleanable_with_the_checkpoint_in_the_active_segment() -> None:  # item 9
    made = plan(partition(cleaner=45))
    assert made.status == SKIP
    assert made.first_dirty_offset == made.first_uncleanable_offset == 45
    assert (made.end_offset, made.cleanable_bytes) == (40, 0)


def test_first_uncleanable_is_the_high_watermark_below_the_active_segment() -> None:  # item 10
    made = plan(partition(high_watermark=25))
    assert made.first_uncleanable_offset == 25
    assert made.uncleanable_reason == "high watermark 25"


def test_first_uncleanable_is_the_active_segment_at_a_full_high_watermark() -> None:  # item 11
    made = plan(partition())
    assert (made.first_uncleanable_offset, made.end_offset) == (40, 40)
    assert made.uncleanable_reason == "active segment"


def test_a_high_watermark_equal_to_the_active_base_gives_the_active_segment() -> None:
    assert plan(partition(high_watermark=40)).uncleanable_reason == "active segment"


def test_given_high_watermark_counts_where_no_checkpoint_tells() -> None:
    assert plan(partition(high_watermark=None), high_watermark=30).end_offset == 30


@pytest.mark.parametrize(("checkpoint", "given"), [(20, 30), (30, 20)])
def test_the_lower_high_watermark_holds_when_both_are_known(checkpoint: int, given: int) -> None:
    assert plan(partition(high_watermark=checkpoint), high_watermark=given).high_watermark == 20


@pytest.mark.parametrize(("given", "in_force"), [(5, 10), (99, 50)])
def test_high_watermark_stays_within_the_log(given: int, in_force: int) -> None:
    made = plan(partition(start=10, high_watermark=None), high_watermark=given)
    assert made.high_watermark == in_force


def _two_blocks(young_ms: int) -> list[object]:
    ages = (OLD_MS, OLD_MS, young_ms, OLD_MS, young_ms)
    return [
        segment(base, size, largest_timestamp_ms=age)
        for (base, size), age in zip(FIVE, ages, strict=True)
    ]


def test_min_lag_stops_at_the_first_young_segment() -> None:  # items 12 and 21
    made = plan(
        partition(_two_blocks(NOW_MS - HOUR_MS + 1)),  # type: ignore[arg-type]
        f"min.compaction.lag.ms={HOUR_MS}",
    )
    assert (made.first_uncleanable_offset, made.end_offset) == (20, 20)
    assert made.uncleanable_reason == (
        "min.compaction.lag.ms: segment 20 holds a record of 2027-01-15T07:00:00.001Z"
    )


def test_a_segment_exactly_as_old_as_min_lag_is_cleanable() -> None:  # item 13
    made = plan(
        partition(_two_blocks(NOW_MS - HOUR_MS)),  # type: ignore[arg-type]
        f"min.compaction.lag.ms={HOUR_MS}",
    )
    assert (made.end_offset, made.uncleanable_reason) == (40, "active segment")


def test_min_lag_of_zero_lets_the_future_through() -> None:
    made = plan(partition(_two_blocks(NOW_MS + HOUR_MS)))  # type: ignore[arg-type]
    assert made.end_offset == 40


def test_min_lag_goes_by_file_time_without_timestamps() -> None:
    young = segment(10, largest_timestamp_ms=-1, modification_time_ms=NOW_MS)
    made = plan(partition([segment(0), young, segment(20)], end=30), "min.compaction.lag.ms=1")
    assert made.end_offset == 10
    assert "its file is of 2027-01-15T08:00:00.000Z" in made.uncleanable_reason


def test_min_lag_ignores_segments_before_first_dirty() -> None:
    young = segment(0, largest_timestamp_ms=NOW_MS)
    made = plan(
        partition([young, segment(10), segment(20)], end=30, cleaner=10),
        "min.compaction.lag.ms=1",
    )
    assert made.end_offset == 20


def test_first_uncleanable_is_never_below_first_dirty() -> None:
    made = plan(partition(high_watermark=15, cleaner=25))
    assert (made.first_uncleanable_offset, made.end_offset) == (25, 20)
    assert (made.status, made.cleanable_bytes) == (SKIP, 0)


@pytest.mark.parametrize(
    ("high_watermark", "end"), [(19, 10), (20, 20), (21, 20), (39, 30), (40, 40), (41, 40)]
)
def test_end_is_the_base_of_the_segment_that_holds_first_uncleanable(
    high_watermark: int, end: int
) -> None:  # item 20
    made = plan(partition(high_watermark=high_watermark))
    assert made.end_offset == end
    assert [source.base_offset for source in made.sources] == list(range(0, end, 10))


def test_bytes_without_anything_dirty_are_the_closed_segments() -> None:  # item 18
    made = plan(partition(cleaner=40))
    assert (made.clean_bytes, made.cleanable_bytes, made.cleanable_ratio) == (400, 0, 0.0)


def test_bytes_and_ratio_are_sums_over_segments() -> None:  # item 19
    sizes = [(0, 10), (10, 20), (20, 40), (30, 80), (40, 160), (50, 320), (60, 640)]
    made = plan(partition(sizes, end=70, cleaner=20, high_watermark=45))
    assert (made.clean_bytes, made.cleanable_bytes) == (30, 120)
    assert made.cleanable_ratio == 120 / 150
    assert made.status == CLEAN


def test_a_first_dirty_offset_in_mid_segment_counts_its_bytes_twice() -> None:
    made = plan(partition(cleaner=15))
    assert (made.clean_bytes, made.cleanable_bytes) == (200, 300)


@pytest.mark.parametrize(
    ("start", "bases"), [(0, [0, 1, 2, 3, 4]), (2, [2, 3, 4]), (5, []), (6, [])]
)
def test_inactive_segments_are_those_from_the_containing_one(
    start: int, bases: list[int]
) -> None:  # item 24
    segments = [segment(base, 0 if base == 5 else 10) for base in range(6)]
    assert [s.base_offset for s in inactive_segments_from(segments, start)] == bases


def test_empty_log_is_skipped() -> None:
    made = plan(partition([(0, 0)], end=0))
    assert (made.status, made.end_offset) == (SKIP, 0)


def _open(first_offset: int, producer_id: int = 7) -> ActiveProducer:
    return ActiveProducer(producer_id, 0, 49, NOW_MS, current_txn_first_offset=first_offset)


def test_first_uncleanable_is_the_start_of_the_oldest_open_transaction() -> None:  # item 15
    made = plan(partition(), producers=(_open(32), _open(25, 8)))
    assert (made.status, made.first_uncleanable_offset, made.end_offset) == (CLEAN, 25, 20)
    assert made.uncleanable_reason == "transaction open since offset 25"


def test_an_open_transaction_from_the_start_on_leaves_nothing_to_clean() -> None:
    made = plan(partition(), producers=(_open(0),))
    assert (made.status, made.first_uncleanable_offset, made.end_offset) == (SKIP, 0, 0)


def test_an_open_transaction_in_the_active_segment_bounds_nothing() -> None:
    made = plan(partition(), producers=(_open(44),))
    assert (made.first_uncleanable_offset, made.uncleanable_reason) == (40, "active segment")


@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(20, "high watermark 20"), (30, "transaction open since")]
)
def test_the_lower_of_high_watermark_and_open_transaction_bounds(
    high_watermark: int, expected: str
) -> None:
    made = plan(partition(high_watermark=high_watermark), producers=(_open(25),))
    assert made.first_uncleanable_offset == min(high_watermark, 25)
    assert expected in made.uncleanable_reason


@pytest.mark.parametrize(("high_watermark", "bound"), [(32, 12), (33, 33)])
def test_a_transaction_is_open_until_its_marker_is_below_the_high_watermark(
    high_watermark: int, bound: int
) -> None:  # item 85
    made = plan(partition(high_watermark=high_watermark), completed=((12, 32), (3, 8)))
    assert made.first_uncleanable_offset == bound


def test_an_open_transaction_whose_batch_is_gone_starts_at_the_next_batch() -> None:
    made = plan(partition(), producers=(_open(12),), batches_at=((12, 31),))
    assert (made.first_uncleanable_offset, made.end_offset) == (31, 30)


def test_an_open_transaction_below_the_log_start_starts_there() -> None:
    made = plan(partition(start=15), producers=(_open(12),))
    assert made.first_uncleanable_offset == 15


def test_an_open_transaction_below_first_dirty_leaves_nothing_to_clean() -> None:
    made = plan(partition(cleaner=20), producers=(_open(12),))
    assert (made.status, made.first_dirty_offset, made.first_uncleanable_offset) == (SKIP, 20, 20)
