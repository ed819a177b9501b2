"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_timestamp(timestamp_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`; the number itself where no calendar holds it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_time(timestamp_ms: int) -> str:
    """The same to the second: `2026-01-31T12:00:00Z`."""
    text = format_timestamp(timestamp_ms)
    return f"{text[:-5]}Z" if text.endswith("Z") else text


def format_bytes(size_in_bytes: int) -> str:
    """`12058624` → `11.5 MiB`."""
    amount, units = float(size_in_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size_in_bytes} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


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
