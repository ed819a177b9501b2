"""Numbers of the document as a page writes them, and where in the document they come from.

A figure's `at` is a path: names and list positions joined by dots, conditions in brackets behind a
list's name, `*` for every name or position, `+` between names for both. A path that reaches several
numbers means their sum, `count(…)` how many there are:

    totals.bytes    topics.3.bytesByKind.log    timeline[dayMs>=0][topic!="a"].bytes
    count(findings[severity="error"])
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What a date can say; broken clocks write more.
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
_STEPS = ((YEAR_MS, "y"), (DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s"), (1, "ms"))


@dataclass(frozen=True, slots=True)
class Figure:
    """A value of the document, its path there, and its text for people. kind: bytes, count, time,
    duration, text.
    """

    value: Any
    at: str
    text: str
    kind: str


def bytes_figure(value: int | None, at: str) -> Figure:
    """Bytes in binary units; unknown is a dash."""
    return Figure(value, at, "–" if value is None else bytes_text(value), "bytes")


def count_figure(value: float | None, at: str) -> Figure:
    """A number in groups of three."""
    return Figure(value, at, "–" if value is None else f"{value:,}", "count")


def time_figure(value: int | None, at: str) -> Figure:
    """A moment in UTC; -1 and unknown are a dash."""
    return Figure(value, at, time_text(value), "time")


def duration_figure(value: int | None, at: str) -> Figure:
    """A span in its two largest units; -1 is no limit."""
    if value is None:
        return Figure(value, at, "–", "duration")
    return Figure(value, at, "no limit" if value == -1 else duration_text(value), "duration")


def text_figure(value: object, at: str) -> Figure:
    """Words as they are."""
    return Figure(value, at, "–" if value is None else str(value), "text")


def bytes_text(value: float) -> str:
    """`0 B`, `1023 B`, `1.5 KiB`."""
    size, unit = abs(float(value)), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    sign = "−" if value < 0 else ""
    # 1023.96 KiB would round to four digits and a point
    digits = 0 if unit == 0 or size >= 100 else 1 if size >= 10 else 2
    return f"{sign}{size:.{digits}f} {_UNITS[unit]}"


def time_text(value: int | None, pattern: str = "%Y-%m-%d %H:%M") -> str:
    """`2025-06-15 15:06` in UTC; what no calendar has as its number."""
    if value is None or value == -1:
        return "–"
    if not _FIRST_MS <= value <= _LAST_MS:
        return f"{value:,} ms"
    return (_EPOCH + timedelta(milliseconds=value)).strftime(pattern)


def iso_text(value: int | None) -> str:
    """The same for machines, or nothing."""
    if value is None or value == -1 or not _FIRST_MS <= value <= _LAST_MS:
        return ""
    return (_EPOCH + timedelta(milliseconds=value)).isoformat().replace("+00:00", "Z")


def duration_text(value: int) -> str:
    """`3 d 4 h`, `250 ms`; longer than a thousand years is `for ever`."""
    if value >= 1000 * YEAR_MS:
        return "for ever"
    parts: list[str] = []
    for step, unit in _STEPS:
        count, rest = divmod(value, step)
        if count or (parts and rest):
            parts += [f"{count} {unit}"] if count else []
        value = rest
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 ms"


def condition(name: str, operator: str, value: str | int | None) -> str:
    """`[topic="orders"]`."""
    return f"[{name}{operator}{json.dumps(value, ensure_ascii=False)}]"
