"""Numbers as people read them."""

from __future__ import annotations

import pytest

from kafkalog.texts import format_duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (61_999, "1 min 1 s"),
        (3_600_000, "1 h"),
        (93_784_000, "1 d 2 h"),
        (86_400_000 + 59_000, "1 d"),
        (-5000, "-5 s"),
    ],
)
def test_durations_have_two_units_at_most(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text
