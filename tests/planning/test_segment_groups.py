"""Which segments become one."""

from __future__ import annotations

import pytest

from kafkalog.log.inventory import SegmentInfo
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.segment_groups import group_again, group_segments
from tests.planning.facts import segment

MAX_INT32 = 2**31 - 1
HUGE = 2**31 - 1


def _grouped(
    segments: list[SegmentInfo], end_offset: int, *, log_bytes: int = HUGE, index_bytes: int = HUGE
) -> list[list[int]]:
    limits = LogConfig(segment_bytes=log_bytes, segment_index_bytes=index_bytes)
    groups = group_segments(segments, end_offset, limits)
    assert [group.base_offset for group in groups] == [g.sources[0].base_offset for g in groups]
    return [[source.base_offset for source in group.sources] for group in groups]


TEN = [segment(base, 100, offset_index_bytes=16) for base in range(10)]
ALL = list(range(10))


def test_huge_limits_give_one_group() -> None:  # item 105
    assert _grouped(TEN, 10) == [ALL]


def test_a_log_limit_of_one_byte_gives_a_group_per_segment() -> None:  # item 105
    assert _grouped(TEN, 10, log_bytes=1) == [[base] for base in ALL]


def test_an_index_limit_of_one_byte_gives_a_group_per_segment() -> None:  # item 105
    assert _grouped(TEN, 10, index_bytes=1) == [[base] for base in ALL]


@pytest.mark.parametrize("log_bytes", [300, 301, 399])
def test_groups_of_three_fit_three_segments(log_bytes: int) -> None:  # item 105, and the equality
    assert _grouped(TEN, 10, log_bytes=log_bytes) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_byte_less_than_three_segments_gives_groups_of_two() -> None:
    assert _grouped(TEN, 10, log_bytes=299)[0] == [0, 1]


@pytest.mark.parametrize(("index_bytes", "first"), [(48, [0, 1, 2]), (47, [0, 1])])
def test_offset_index_sums_may_reach_the_limit(index_bytes: int, first: list[int]) -> None:
    assert _grouped(TEN, 10, index_bytes=index_bytes)[0] == first


@pytest.mark.parametrize(("index_bytes", "first"), [(72, [0, 1, 2]), (71, [0, 1])])
def test_time_index_sums_may_reach_the_limit(index_bytes: int, first: list[int]) -> None:
    segments = [segment(base, 100, time_index_bytes=24) for base in range(5)]
    assert _grouped(segments, 5, index_bytes=index_bytes)[0] == first


@pytest.mark.parametrize(
    ("last_base", "groups"),
    [
        # The third segment may reach up to the next base - 1, whatever it holds.
        (MAX_INT32 + 1, [[0, 1, 2], [MAX_INT32 + 1]]),
        (MAX_INT32 + 2, [[0, 1], [2, MAX_INT32 + 2]]),
    ],
)
def test_a_span_of_31_bits_is_allowed_and_no_more(
    last_base: int, groups: list[list[int]]
) -> None:  # item 106
    segments = [segment(0), segment(1), segment(2), segment(last_base)]
    assert _grouped(segments, last_base + 1) == groups


def test_the_last_segment_reaches_to_the_end_of_the_round() -> None:
    segments = [segment(0), segment(1)]
    assert _grouped(segments, MAX_INT32 + 1) == [[0, 1]]
    assert _grouped(segments, MAX_INT32 + 2) == [[0], [1]]


def test_the_span_is_kept_whatever_the_indexes_say() -> None:  # item 107
    segments = [
        segment(base, 100, offset_index_bytes=0, time_index_bytes=0)
        for base in (0, MAX_INT32, MAX_INT32 + 10)
    ]
    assert _grouped(segments, MAX_INT32 + 20) == [[0], [MAX_INT32, MAX_INT32 + 10]]


def test_empty_segments_merge_over_any_span() -> None:  # item 108
    far = 3 * MAX_INT32
    segments = [segment(0, 0), segment(MAX_INT32, 0), segment(far, 0), segment(far + 5, 10)]
    assert _grouped(segments, far + 9) == [[0, MAX_INT32, far], [far + 5]]


def test_a_first_segment_beyond_every_limit_is_a_group() -> None:
    segments = [segment(0, 5000), segment(1, 1)]
    assert _grouped(segments, 2, log_bytes=100) == [[0], [1]]


def test_groups_that_were_done_count_with_what_became_of_them() -> None:
    """As if they had been swapped in: the round that begins anew merges them further."""
    limits = LogConfig(segment_bytes=300, segment_index_bytes=48)
    done = group_segments(TEN[:6], 6, limits)
    assert [len(group.sources) for group in done] == [3, 3]

    def again(log_bytes: int, index_bytes: int) -> list[list[int]]:
        sizes = [(log_bytes, index_bytes, 12)] * 2
        groups = group_again(list(zip(done, sizes, strict=True)), TEN[6:], 10, limits)
        return [[source.base_offset for source in group.sources] for group in groups]

    assert again(100, 0) == [ALL[:7], ALL[7:]]
    assert again(101, 0) == [ALL[:6], ALL[6:9], ALL[9:]]
    assert again(10, 32) == [ALL[:3], ALL[3:7], ALL[7:]]


def test_nothing_gives_no_groups() -> None:
    assert _grouped([], 0) == []
