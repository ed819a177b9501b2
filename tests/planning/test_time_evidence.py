"""A time that is ahead of all that tells of the present is not believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkalog.planning.time_evidence import why_time_is_ahead
from tests.planning.facts import FIVE, NOW_MS, partition

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("now_ms", "clock_ms", "written_ms", "is_ahead"),
    [
        (NOW_MS, NOW_MS, NOW_MS - DAY_MS, False),
        (NOW_MS + 2 * DAY_MS, NOW_MS, NOW_MS - DAY_MS, False),
        (NOW_MS + 2 * DAY_MS + 1, NOW_MS, NOW_MS - DAY_MS, True),
        (NOW_MS - 900 * DAY_MS, NOW_MS, NOW_MS, False),
        (NOW_MS * 1000, NOW_MS, NOW_MS, True),  # in microseconds
        (NOW_MS + 30 * DAY_MS, NOW_MS, NOW_MS + 30 * DAY_MS, False),  # this clock is behind
        (NOW_MS + 33 * DAY_MS, NOW_MS, NOW_MS + 30 * DAY_MS, True),
        (NOW_MS * 1000, None, NOW_MS, False),  # a plan in Python
    ],
)
def test_a_time_ahead_of_clock_and_files_is_not_believed(
    now_ms: int, clock_ms: int | None, written_ms: int, *, is_ahead: bool
) -> None:
    inventory = partition(FIVE)
    segments = [replace(s, modification_time_ms=written_ms) for s in inventory.segments]
    doubt = why_time_is_ahead(replace(inventory, segments=tuple(segments)), now_ms, clock_ms)
    assert (doubt is not None) == is_ahead
    assert not is_ahead or "--force clock-differs" in (doubt or "")
