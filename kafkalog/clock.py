"""The clock: the one place that asks for the time of day.

What is decided never depends on when a module runs: a time that was not given is taken here once,
by who was asked, and handed down as an argument. How long something took is `time.monotonic`.
"""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970."""
    return now_ns() // 1_000_000


def now_ns() -> int:
    """Nanoseconds since 1970, as file systems stamp files."""
    return time.time_ns()


def seconds_in(minutes: float) -> float:
    """The time in so many minutes, in seconds since 1970."""
    return time.time() + 60 * minutes


def has_passed(end_s: float | None) -> bool:
    """Whether this time, in seconds since 1970, is past; None never is."""
    return end_s is not None and time.time() >= end_s
