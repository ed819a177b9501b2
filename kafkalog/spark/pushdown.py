"""Spark's filters → a row filter of ours (`reading.pushing`).

=, <=>, IN, <, <=, >, >= with a literal are taken, of a key and a topic = and IN, and IS NOT NULL of
what cannot be null; what is taken is exact, so Spark does not filter again. Everything else stays
with Spark: OR, casts (`cast(key AS STRING) = 'k'`), functions, LIKE, NOT of anything but a flag.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

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

from kafkalog.reading.conditions import RowFilter
from kafkalog.reading.pushing import Comparison, push_comparison
from kafkalog.reading.views import view_columns

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_SIGNS: dict[type[Filter], str] = {
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
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
    if isinstance(one, IsNotNull):
        column = next((c for c in view_columns(view) if c.name.lower() == _column(one)), None)
        return None if column is None or column.nullable else row_filter
    compared = _comparison(one)
    return None if compared is None else push_comparison(view, row_filter, compared)


def _comparison(one: Filter) -> Comparison | None:
    """What it says, None if it is no comparison with literals; a null is never equal."""
    if isinstance(one, Not) and isinstance(one.child, EqualTo):
        # NOT isControl
        value = one.child.value
        is_flag = isinstance(value, bool)
        return Comparison(_column(one), "=", frozenset({not value})) if is_flag else None
    if isinstance(one, In):
        values = frozenset(_literal(value) for value in one.value if value is not None)
        return Comparison(_column(one), "=", values)
    if isinstance(one, EqualTo | EqualNullSafe) and one.value is not None:
        return Comparison(_column(one), "=", frozenset({_literal(one.value)}))
    sign, value = _SIGNS.get(type(one)), getattr(one, "value", None)
    if sign is None or value is None:
        return None
    return Comparison(_column(one), sign, frozenset({_literal(value)}))


def _literal(value: object) -> object:
    """A moment as microseconds since 1970."""
    if not isinstance(value, dt.datetime):
        return value
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)
