"""Tables made of rows, and their lists read again, are those that pyarrow makes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.auditing.number_lists import NumberLists
from kafkalog.auditing.row_tables import table_of

SCHEMA = pa.schema(
    [
        ("number", pa.int64()), ("text", pa.string()), ("large", pa.large_string()),
        ("data", pa.large_binary()), ("lists", pa.large_list(pa.int64())),
    ]
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"number": -(2**63), "text": "ä", "large": None, "data": b"\0", "lists": [1, 2]},
    {"number": 2**63 - 1, "text": "", "large": "x" * 9, "data": b"", "lists": ()},
    {"number": 0, "text": None, "large": "", "data": b"ab", "lists": [-1]},
] * 5


@pytest.mark.parametrize("count", [0, 1, 8, 15])
def test_a_table_of_rows_is_the_one_of_pyarrow(count: int) -> None:
    made = table_of(ROWS[:count], SCHEMA)
    made.validate(full=True)
    assert made.equals(pa.Table.from_pylist(ROWS[:count], SCHEMA))


@pytest.mark.parametrize(("first", "count"), [(0, 15), (4, 7), (14, 1), (3, 0)])
def test_lists_are_those_of_the_column_wherever_its_pieces_begin(first: int, count: int) -> None:
    piece = table_of(ROWS, SCHEMA).slice(first, count)
    column = pa.concat_tables([piece, table_of(ROWS, SCHEMA)])["lists"]
    lists = NumberLists(column)
    assert [lists[place] for place in range(len(column))] == column.to_pylist()
    assert lists.rows(count, 2) == [[1, 2]]
    assert lists.rows(count + 2, 2) == []


def test_numbers_and_texts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError):
        table_of([{**ROWS[0], "number": 2**63}], SCHEMA)
    with pytest.raises(UnicodeEncodeError):
        table_of([{**ROWS[0], "text": "\udcff"}], SCHEMA)
