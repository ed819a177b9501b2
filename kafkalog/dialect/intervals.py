"""INTERVAL, which only stands beside + and -: a literal of days, hours, minutes, seconds and so on,
or months and years."""

from __future__ import annotations

import re

from sqlglot import exp

from kafkalog.dialect.errors import refusal
from kafkalog.dialect.scope import NAMELESS, Context
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
_MONTHS = {"MONTH": 1, "YEAR": 12}
_SHOWN = ("HOUR", "MINUTE", "SECOND")


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
    length, unit, label = interval(right)
    if node.this is not left:
        shown = f"{label} {word} {item.label}"
    else:
        shown = f"{item.label} {word} {label}"
    if unit == "MONTH":
        moved = f"epoch_us(spark_naive({item.sql}) {word} to_months({length}))"
        return computed(f"make_timestamptz({moved})", TIMESTAMP, shown)
    micros = f"(epoch_us({item.sql}) {word} {length}::BIGINT)"
    return computed(f"make_timestamptz({micros})", TIMESTAMP, shown)


def interval(node: exp.Interval) -> tuple[int, str, str]:
    """The length of an interval, its unit (MICROSECOND or MONTH), and Spark's name for it."""
    unit = node.args.get("unit")
    value = node.this
    if not isinstance(unit, exp.Var) or not isinstance(value, exp.Literal):
        raise refusal(f"{node.sql(dialect='spark')}", "INTERVAL n UNIT of a number and a unit only")
    name = unit.name.upper().removesuffix("S")
    units = (*_MICROSECONDS, *_MONTHS)
    if name not in units or re.fullmatch(r"-?\d{1,9}", value.this) is None:
        raise refusal(f"{node.sql(dialect='spark')}", f"units are {', '.join(units)}")
    count = int(value.this)
    if name in _MONTHS:
        return count * _MONTHS[name], "MONTH", f"INTERVAL '{count}' {name}"
    length = count * _MICROSECONDS[name]
    if name == "WEEK":
        return length, "MICROSECOND", f"INTERVAL '{7 * count}' DAY"
    if name == "DAY":
        return length, "MICROSECOND", f"INTERVAL '{count}' DAY"
    if name in _SHOWN and count >= 0:
        return length, "MICROSECOND", f"INTERVAL '{count:02d}' {name}"
    # Spark spreads such lengths over fields in the column's name.
    return length, "MICROSECOND", NAMELESS
