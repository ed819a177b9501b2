"""Spark's filters → a row filter of ours, as far as a column of a view can be pruned by: those that
its row in `reading.views` has as `pushed`.

=, <=>, IN, <, <=, >, >= with a literal are taken, of a key and a topic = and IN, and IS NOT NULL of
what cannot be null; what is taken is exact, so Spark does not filter again. Everything else stays
with Spark: OR, casts (`cast(key AS STRING) = 'k'`), functions, LIKE, NOT of anything but a flag.
Timestamps are compared in milliseconds, as the disk has them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.views import view_columns, view_named

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_IN_CALENDAR = Condition(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
_NOT_NEGATIVE = Condition(low=0)

# What a comparison says of whole numbers: of x itself, and of x = n / 1000 with n in hand, rounded.
_BOUNDS: dict[type[Filter], Callable[[int], Condition]] = {
    GreaterThan: lambda n: Condition(low=n + 1),
    GreaterThanOrEqual: lambda n: Condition(low=n),
    LessThan: lambda n: Condition(high=n - 1),
    LessThanOrEqual: lambda n: Condition(high=n),
}


def push_filters(
    view: str, row_filter: RowFilter, filters: Sequence[Filter]
) -> tuple[RowFilter, list[Filter]]:
    """(the row filter with what could be taken of `filters`, the filters left to Spark)."""
    left: list[Filter] = []
    compared: set[str] = set()
    for one in filters:
        pushed = _push(view, row_filter, one)
        if pushed is None:
            left.append(one)
        else:
            row_filter = pushed
            compared.add(_column(one))
    # Spark asks for IS NOT NULL beside each comparison, which a null never meets.
    return row_filter, [
        one for one in left if not (isinstance(one, IsNotNull) and _column(one) in compared)
    ]


def _column(one: Filter) -> str:
    """Name of the column, in lower case; empty for a field in a column."""
    compared = one.child if isinstance(one, Not) else one
    path: tuple[str, ...] = getattr(compared, "attribute", ())
    return path[0].lower() if len(path) == 1 else ""


def _push(view: str, row_filter: RowFilter, one: Filter) -> RowFilter | None:
    """The row filter with this one as well, or None if it is not ours."""
    # Spark matches names without case.
    column = next((c for c in view_columns(view) if c.name.lower() == _column(one)), None)
    if column is None:
        return None
    name = column.name
    if isinstance(one, IsNotNull):
        return None if column.nullable else row_filter
    if name not in view_named(view).pushed:
        return None
    values = _literals(one)
    if name == "topic":
        texts = frozenset(value for value in values or () if isinstance(value, str))
        all_text = values is not None and len(texts) == len(values)
        return row_filter.with_topics(texts) if all_text else None
    if name == "key":
        keys = frozenset(bytes(v) for v in values or () if isinstance(v, bytes | bytearray))
        all_bytes = values is not None and len(keys) == len(values)
        return row_filter.with_keys(keys) if all_bytes else None
    condition = _timestamp(one) if name == "timestamp" else _number(one)
    if condition is None:
        return None
    if column.nullable and name != "timestamp":
        # A number that is null for -1, which meets no condition.
        condition = condition.also(_NOT_NEGATIVE)
    return row_filter.with_number(name, condition)


def _literals(one: Filter) -> set[object] | None:
    """What the column is one of; a null is never equal. None for other comparisons."""
    if isinstance(one, Not) and isinstance(one.child, EqualTo):
        # NOT isControl
        value = one.child.value
        return {not value} if isinstance(value, bool) else None
    if isinstance(one, In):
        return {value for value in one.value if value is not None}
    if isinstance(one, EqualTo | EqualNullSafe) and one.value is not None:
        return {one.value}
    return None


def _number(one: Filter) -> Condition | None:
    values = _literals(one)
    if values is not None:
        numbers = frozenset(int(value) for value in values if isinstance(value, int))
        return Condition.one_of(numbers) if len(numbers) == len(values) else None
    bound, value = _BOUNDS.get(type(one)), getattr(one, "value", None)
    return bound(int(value)) if bound is not None and isinstance(value, int) else None


def _timestamp(one: Filter) -> Condition | None:
    """In milliseconds; Spark's literal has microseconds, a record never has."""
    values = _literals(one)
    if values is not None:
        micros = [_micros(value) for value in values]
        if any(value is None for value in micros):
            return None
        whole = frozenset(
            value // 1000 for value in micros if value is not None and not value % 1000
        )
        return Condition.one_of(whole).also(_IN_CALENDAR)
    value = _micros(getattr(one, "value", None))
    if value is None:
        return None
    down, up = value // 1000, -(-value // 1000)
    bounds: dict[type[Filter], Condition] = {
        GreaterThan: Condition(low=down + 1),
        GreaterThanOrEqual: Condition(low=up),
        LessThan: Condition(high=up - 1),
        LessThanOrEqual: Condition(high=down),
    }
    bound = bounds.get(type(one))
    return None if bound is None else bound.also(_IN_CALENDAR)


def _micros(value: object) -> int | None:
    if not isinstance(value, dt.datetime):
        return None
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)
