"""Values of settings as people write them: `3d` for `retention.ms`, `256MiB` for `segment.bytes`.

Kafka takes plain numbers only; what comes out here is one. Durations: ms, s, m or min, h, d, w.
Sizes: B, KiB, MiB, GiB, TiB and short k, m, g, t (1024), KB, MB, GB, TB (1000). A unit counts only
for keys that end in `.ms` or `.bytes`; without one the text stays as it is, for the setting's own
parser to judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from kafkalog.errors import InvalidConfigError

_NUMBER = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)")

DURATIONS: Mapping[str, int] = {
    "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
    "w": 604_800_000,
}  # fmt: skip
SIZES: Mapping[str, int] = {
    "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30,
    "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "tb": 10**12,
}  # fmt: skip


def plain_value(key: str, text: str) -> str:
    """The number Kafka takes; InvalidConfigError for a unit that is none, or half a byte."""
    text = text.strip()
    units = DURATIONS if key.endswith(".ms") else SIZES if key.endswith(".bytes") else None
    if units is None:
        return text
    number = parse_quantity(text, units)
    if number is not None:
        return str(number)
    if _NUMBER.fullmatch(text):
        raise InvalidConfigError(
            f"{key}: {text!r} is no whole number of {'ms' if units is DURATIONS else 'bytes'} "
            f"in {', '.join(units)}"
        )
    return text


def parse_quantity(text: str, units: Mapping[str, int]) -> int | None:
    """`1.5h` → 5400000; None for what is not a number with one of these units, or no whole one."""
    found = _NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in units:
        return None
    amount = Fraction(found[1]) * units[found[2].lower()]
    return int(amount) if amount.denominator == 1 else None
