"""INTERVAL, which only stands beside + and -: a literal of days, hours, minutes, seconds and so on,
or months and years."""

from __future__ import annotations

import re

from sqlglot import exp

from kafkalog.dialect.errors import refusal
from kafkalog.dialect.scope import Context
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import TIMESTAMP

_MICROSECONDS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_SHOWN = ("DAY", "HOUR", "MINUTE", "SECOND")


def plus_interval(context: Context, node: exp.Expression) -> Typed:
    """A timestamp moved by an interval of fixed length."""
    word = "+" if isinstance(node, exp.Add) else "-"
    left, right = node.this, node.expression
    if word == "+" and isinstance(left, exp.Interval):
        left, right = right, left
    if not isinstance(right, exp.Interval) or isinstance(left, exp.Interval):
        raise refusal("INTERVAL in this place", "only timestamp + or - INTERVAL")
    item = context.compile(left)
    if item.type != TIMESTAMP:
        raise refusal(f"{item.type} {word} INTERVAL")
    length, label = interval(right)
    if node.this is not left:
        shown = f"{label} {word} {item.label}"
    else:
        shown = f"{item.label} {word} {label}"
    micros = f"(epoch_us({item.sql}) {word} {length}::BIGINT)"
    return computed(f"make_timestamptz({micros})", TIMESTAMP, shown)


def interval(node: exp.Interval) -> tuple[int, str]:
    """The microseconds of an interval, and Spark's name for it."""
    unit = node.args.get("unit")
    value = node.this
    if not isinstance(unit, exp.Var) or not isinstance(value, exp.Literal):
        raise refusal(
            f"{node.sql(dialect='spark')}", "INTERVAL n UNIT of a number and one unit only"
        )
    name = unit.name.upper().removesuffix("S")
    if name not in _MICROSECONDS or re.fullmatch(r"-?\d{1,9}", value.this) is None:
        raise refusal(f"{node.sql(dialect='spark')}", f"units are {', '.join(_MICROSECONDS)}")
    count = int(value.this)
    if name not in _SHOWN or count < 0:
        # Spark spreads such lengths over fields in the column's name.
        return count * _MICROSECONDS[name], _spread(count * _MICROSECONDS[name], name)
    return count * _MICROSECONDS[name], f"INTERVAL '{_padded(name, count)}' {name}"


def _padded(name: str, count: int) -> str:
    return str(count) if name == "DAY" else f"{count:02d}"


def _spread(length: int, name: str) -> str:
    if name == "WEEK" and length >= 0:
        return f"INTERVAL '{length // _MICROSECONDS['DAY']}' DAY"
    raise refusal(f"INTERVAL of {name}")
