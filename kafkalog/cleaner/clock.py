"""The clock, read for two things: a round's time that was not given, and the end of a run.

What a round decides never depends on when a module of this room runs: everything else takes the
time as an argument.
"""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def seconds_in(minutes: float) -> float:
    """The time in so many minutes, in seconds since 1970."""
    return time.time() + 60 * minutes


def has_passed(end_s: float | None) -> bool:
    """Whether this time, in seconds since 1970, is past; None never is."""
    return end_s is not None and time.time() >= end_s
