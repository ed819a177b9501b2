"""What DuckDB hands over of a WHERE clause, as it is read out of pyarrow's Expression.

These forms are nobody's promise: a newer DuckDB or pyarrow that has others fails here, and nothing
but time is lost by it in a query (`test_dataset`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafkalog.duckdb.dataset import Failures, TableDataset
from kafkalog.duckdb.expressions import Asked, asked_by
from kafkalog.reading.pushing import Comparison

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("partition", pa.int32()),
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("flag", pa.bool_()),
        ("place", pa.struct([("start", pa.int64())])),
    ]
)


class Probe:
    """No rows; remembers what it was asked for."""

    schema = SCHEMA

    def __init__(self) -> None:
        self.comparisons: list[Comparison] = []
        self.columns: list[str] = []

    def read(
        self, columns: Sequence[str], comparisons: Sequence[Comparison]
    ) -> Iterator[pa.RecordBatch]:
        self.columns, self.comparisons = list(columns), list(comparisons)
        return iter(())


def asked(query: str) -> Probe:
    probe = Probe()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", TableDataset(probe, Failures()))
        connection.sql(query).fetchall()
    return probe


def one(column: str, sign: str, *values: object) -> Comparison:
    return Comparison(column, sign, frozenset(values))


PUSHED = {
    '"offset" = 5': [one("offset", "=", 5)],
    '"offset" IN (3, 5, 9)': [one("offset", "=", 3, 5, 9)],
    '"offset" BETWEEN 3 AND 9': [one("offset", ">=", 3), one("offset", "<=", 9)],
    '"offset" > 3 AND partition < 2': [one("offset", ">", 3), one("partition", "<", 2)],
    "topic = 'a' AND topic <> 'b'": [one("topic", "=", "a")],
    "topic IN ('a', 'b')": [one("topic", "=", "a", "b")],
    "key = '\\x00k'::BLOB": [one("key", "=", b"\x00k")],
    "key IN ('k'::BLOB, 'l'::BLOB)": [one("key", "=", b"k", b"l")],
    "timestamp >= make_timestamptz(1500)": [one("timestamp", ">=", 1500)],
    "timestamp = TIMESTAMPTZ '1970-01-01 00:00:01+00'": [one("timestamp", "=", 1_000_000)],
    "flag = true": [one("flag", "=", True)],
    "\"offset\" = 5 AND (topic = 'a' OR partition = 2)": [one("offset", "=", 5)],
}
NOT_PUSHED = [
    '"offset" <> 5',
    '"offset" = 5 OR partition = 2',
    "topic LIKE 'a%'",
    "key IS NULL",
    "key IS NOT NULL",
    '"offset" % 2 = 0',
    "decode(key) = 'k'",
    "place.start = 3",
]


@pytest.mark.parametrize("condition", PUSHED)
def test_comparisons_are_found_in_the_and_of_a_condition(condition: str) -> None:
    found = asked(f"SELECT topic FROM rows WHERE {condition}").comparisons
    assert sorted(found, key=str) == sorted(PUSHED[condition], key=str)


@pytest.mark.parametrize("condition", NOT_PUSHED)
def test_what_is_no_comparison_says_nothing(condition: str) -> None:
    assert asked(f"SELECT topic FROM rows WHERE {condition}").comparisons == []


def test_only_columns_that_are_named_are_asked_for() -> None:
    assert asked("SELECT count(*) FROM rows").columns == ["offset"]
    assert asked("SELECT max(topic) FROM rows WHERE key IS NULL").columns == ["topic", "key"]
    assert asked("SELECT topic FROM rows WHERE place.start = 3").columns == ["topic", "place"]


def test_unknown_form_is_no_error() -> None:
    """Of pyarrow's own functions and literals, and of what is not an expression at all."""

    class Other:
        def __reduce__(self) -> tuple[object, ...]:
            return (str, (pa.py_buffer(b"another form"),))

    assert asked_by(Other()) is None
    sum_ = pc.field("a") + pc.field("b") > 3
    assert asked_by(sum_) == Asked(("a", "b"), ())
    nested = (pc.field("place", "start") == 3) & (pc.field("a") == 1)
    assert asked_by(nested) == Asked(("place", "a"), (one("a", "=", 1),))
