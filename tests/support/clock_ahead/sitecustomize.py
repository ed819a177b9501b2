"""Python imports this at its start where this folder is in PYTHONPATH: the time of day is then
CLOCK_DAYS days ahead, in a process of the tests and in all Python processes that it starts.

`make test CLOCK_DAYS=400` puts it there. What measures durations, Java and the times of files go by
the machine's clock. libfaketime would take them along, but Python's `time.sleep` fails under it.
"""

from __future__ import annotations

import os
import time

_AHEAD_NS = int(os.environ.get("CLOCK_DAYS", "0")) * 86_400 * 10**9
_time_ns = time.time_ns


def _ahead_ns() -> int:
    return _time_ns() + _AHEAD_NS


def _ahead() -> float:
    return _ahead_ns() / 1e9


time.time_ns = _ahead_ns
time.time = _ahead
