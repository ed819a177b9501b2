"""Comparisons of a query → a row filter, as far as a column of a view can be pruned by: those that
its row in `views` has as `pushed`. Whoever hands queries over (Spark, DuckDB) says in these terms
what they compare.

=, IN, <, <=, >, >= with literals are taken, of a key and a topic = and IN; what is taken is exact.
Timestamps are compared in milliseconds, as the disk has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.columns.column import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.views import view_columns, view_named

_IN_CALENDAR = Condition(MIN_TIMESTAMP_MS, MAX_TIMESTAMP_MS)
_NOT_NEGATIVE = Condition(low=0)

# What a bound says of whole numbers.
_BOUNDS: dict[str, Callable[[int], Condition]] = {
    ">": lambda n: Condition(low=n + 1),
    ">=": lambda n: Condition(low=n),
    "<": lambda n: Condition(high=n - 1),
    "<=": lambda n: Condition(high=n),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column, in any case, against literals without nulls: `sign` is one of < <= > >= with one
    value, or = with those of which it equals one (none: no row). Timestamps are microseconds since
    1970.
    """

    column: str
    sign: str
    values: frozenset[object]


def push_comparison(view: str, row_filter: RowFilter, one: Comparison) -> RowFilter | None:
    """The row filter with this one as well, or None if the view cannot be pruned by it."""
    column = next((c for c in view_columns(view) if c.name.lower() == one.column.lower()), None)
    if column is None or column.name not in view_named(view).pushed:
        return None
    name = column.name
    if name == "topic":
        texts = frozenset(value for value in one.values if isinstance(value, str))
        return row_filter.with_topics(texts) if _is_one_of(one, texts) else None
    if name == "key":
        keys = frozenset(bytes(v) for v in one.values if isinstance(v, bytes | bytearray))
        return row_filter.with_keys(keys) if _is_one_of(one, keys) else None
    numbers = frozenset(int(value) for value in one.values if isinstance(value, int))
    if len(numbers) < len(one.values):
        return None
    condition = (_timestamp if name == "timestamp" else _number)(one.sign, numbers)
    if condition is None:
        return None
    if column.nullable and name != "timestamp":
        # A number that is null for -1, which meets no condition.
        condition = condition.also(_NOT_NEGATIVE)
    return row_filter.with_number(name, condition)


def _is_one_of(one: Comparison, values: frozenset[str] | frozenset[bytes]) -> bool:
    return one.sign == "=" and len(values) == len(one.values)


def _number(sign: str, numbers: frozenset[int]) -> Condition | None:
    if sign == "=":
        return Condition.one_of(numbers)
    return _BOUNDS[sign](*numbers) if sign in _BOUNDS else None


def _timestamp(sign: str, micros: frozenset[int]) -> Condition | None:
    """In milliseconds; a literal has microseconds, a record never has."""
    if sign == "=":
        whole = frozenset(value // 1000 for value in micros if not value % 1000)
        return Condition.one_of(whole).also(_IN_CALENDAR)
    if sign not in _BOUNDS:
        return None
    (value,) = micros
    # So that whole milliseconds compare as they would with the literal's microseconds: > and <= go
    # by the floor, >= and < by the ceiling.
    rounded = value // 1000 if sign in (">", "<=") else -(-value // 1000)
    return _BOUNDS[sign](rounded).also(_IN_CALENDAR)
