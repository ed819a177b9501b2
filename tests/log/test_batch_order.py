"""Which batches of a segment are believed where a base offset is wrong: no checksum covers it."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import numpy as np
import pytest

from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.log.batch_order import (
    BELOW_SEGMENT,
    NOT_BEHIND,
    NOT_OF_PLACE,
    NOT_OF_SEGMENT,
    order_batches,
)
from kafkalog.log.segment_tail import SegmentEnds


def rows_of(*batches: tuple[int, int], magic: int = 2, codec: int = 0) -> np.ndarray:
    """Batches by first and last offset, as they lie in a file."""
    rows = np.zeros(len(batches), BATCH_ROW)
    rows["base_offset"], rows["last_offset"] = np.array(batches).T
    rows["magic"], rows["attributes"] = magic, codec
    rows["position"] = 100 * np.arange(len(batches))
    return rows


def closed(base: int, end: int) -> SegmentEnds:
    return SegmentEnds(base, end, is_last=False)


def last(base: int) -> SegmentEnds:
    return SegmentEnds(base, None, is_last=True)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("counts", [(2, 1, 3, 1, 2), (1, 1, 1, 1), (3, 3, 3), (1, 5, 2)])
def test_one_wrong_base_offset_takes_no_other_batch(counts: tuple[int, ...], is_last: bool) -> None:
    ends = [10 + end for end in accumulate(counts)]
    batches = [(end - count, end - 1) for end, count in zip(ends, counts, strict=True)]
    bounds = last(10) if is_last else closed(10, ends[-1])
    for damaged, (base, upto) in enumerate(batches):
        for wrong in range(ends[-1] + 5):
            if wrong == base:
                continue
            moved = (wrong, wrong + upto - base)
            order = order_batches(
                rows_of(*batches[:damaged], moved, *batches[damaged + 1 :]), bounds
            )
            others = {*range(len(batches))} - {damaged}
            assert others <= {*order.kept}, (damaged, moved)
            # Behind the end of the last segment nothing tells that it was not written there.
            is_at_the_end = damaged == len(batches) - 1 and is_last and wrong > base
            assert (damaged in order.kept) == is_at_the_end, (damaged, moved)


def test_two_batches_that_claim_one_offset() -> None:
    # the marker of 2 says 0: the batch in front of it stays
    order = order_batches(rows_of((0, 1), (0, 0), (3, 4), (5, 5)), closed(0, 6))
    assert (order.kept, order.left_out) == ([0, 2, 3], {1: NOT_BEHIND})
    # the same at the end of a segment, and in front of nothing that is known
    assert order_batches(rows_of((0, 1), (1, 1)), closed(0, 3)).kept == [0]
    assert order_batches(rows_of((0, 1), (0, 0)), last(0)).kept == [0]
    # in a log with gaps the one that holds more
    assert order_batches(rows_of((2, 2), (2, 8), (20, 24)), last(0)).kept == [1, 2]
    # in a log without any the one that lies where its offset is missing
    assert order_batches(rows_of((1, 1), (1, 1), (2, 2)), last(0)).kept == [1, 2]
    assert order_batches(rows_of((0, 0), (0, 0), (2, 2)), last(0)).kept == [0, 2]


def test_swapped_batches_copies_and_offsets_of_elsewhere() -> None:
    swapped = order_batches(rows_of((0, 2), (6, 8), (3, 5), (9, 9)), closed(0, 10))
    assert (swapped.kept, swapped.left_out) == ([0, 2, 1, 3], {})
    copy = order_batches(rows_of((0, 2), (3, 5), (3, 5), (6, 6)), closed(0, 7))
    assert (sorted(copy.kept)[::2], len(copy.left_out)) == ([0, 3], 1)
    odd = order_batches(rows_of((0, 2), (0, -1), (3, 5), (2**40, 2**40)), closed(0, 9))
    assert (odd.kept, odd.left_out) == ([0, 2], {1: BELOW_SEGMENT, 3: NOT_OF_SEGMENT})
    gap = order_batches(rows_of((0, 2), (30, 32), (6, 9), (40, 40)), last(0))
    assert (gap.kept, gap.left_out) == ([0, 2, 3], {1: NOT_OF_PLACE})


def test_wrappers_of_old_logs_say_their_last_offset_only() -> None:
    order = order_batches(rows_of((3, 3), (9, 9), (5, 5), (11, 11), magic=1, codec=1), last(0))
    assert sorted(order.kept) == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_the_chain_is_the_longest_there_is(seed: int) -> None:
    rnd = random.Random(seed)
    starts = [rnd.randrange(30) for _ in range(9)]
    batches = [(start, start + rnd.randrange(4)) for start in starts]
    kept = order_batches(rows_of(*batches), last(0)).kept
    assert all(batches[a][1] < batches[b][0] for a, b in pairwise(kept))
    best: list[int] = []
    for i, (start, _) in enumerate(batches):
        best.append(1 + max((best[j] for j in range(i) if batches[j][1] < start), default=0))
    assert len(kept) >= max(best)
