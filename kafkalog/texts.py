"""Numbers as people read them."""

from __future__ import annotations

from datetime import date as calendar_date
from datetime import timedelta
from functools import lru_cache

_EPOCH = calendar_date(1970, 1, 1)
_DAY_MS = 86_400_000
_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


def format_count(number: int, what: str) -> str:
    """`1 partition`, `2 partitions`: of words that take an s."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def format_timestamp(timestamp_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`; the number itself where no calendar holds it."""
    # An audit writes some hundred thousand of them, most of a few days.
    day, rest_ms = divmod(timestamp_ms, _DAY_MS)
    date = _date(day)
    if date is None:
        return f"{timestamp_ms} ms"
    seconds, ms = divmod(rest_ms, 1000)
    minutes, second = divmod(seconds, 60)
    return f"{date}T{minutes // 60:02}:{minutes % 60:02}:{second:02}.{ms:03}Z"


@lru_cache(maxsize=4096)
def _date(day: int) -> str | None:
    """`2026-01-31` of a number of days since 1970; None where no calendar holds it."""
    try:
        return (_EPOCH + timedelta(days=day)).isoformat()
    except OverflowError:
        return None


def format_exact_duration(duration_ms: int) -> str:
    """`604800000` → `7 d`, in the largest unit that leaves nothing over."""
    unit_ms, unit = next(each for each in _UNITS_MS if duration_ms % each[0] == 0)
    return f"{duration_ms // unit_ms} {unit}" if duration_ms else "0"


@lru_cache(maxsize=1024)
def format_setting_ms(duration_ms: int) -> str:
    """Of a setting, so that it can be found again: `7 d (604800000)`."""
    text = format_exact_duration(max(duration_ms, 0))
    is_plain = duration_ms <= 0 or text.endswith(" ms")
    return str(duration_ms) if is_plain else f"{text} ({duration_ms})"


def format_bytes(size_in_bytes: int) -> str:
    """`12058624` → `11.5 MiB`."""
    amount, units = float(size_in_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size_in_bytes} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def format_setting_bytes(size_in_bytes: int) -> str:
    """Of a setting, so that it can be found again: `1.0 GiB (1073741824)`."""
    text = format_bytes(size_in_bytes)
    return str(size_in_bytes) if text.endswith(" B") else f"{text} ({size_in_bytes})"


def format_duration(milliseconds: int) -> str:
    """`93784000` → `1 d 2 h`: the two largest units, the rest cut off."""
    if abs(milliseconds) < 1000:
        return f"{milliseconds} ms"
    sign, rest = "-" if milliseconds < 0 else "", abs(milliseconds)
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        amount, rest = divmod(rest, size)
        if amount or parts:
            parts.append((amount, unit))
    return sign + " ".join(f"{amount} {unit}" for amount, unit in parts[:2] if amount)
