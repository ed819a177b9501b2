"""Tables made of rows are those that pyarrow makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafkalog.auditing.row_tables import column_of_lists, lists_array, table_of

SCHEMA = pa.schema(
    [
        ("number", pa.int64()), ("text", pa.string()), ("large", pa.large_string()),
        ("data", pa.large_binary()),
    ]
)  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"number": -(2**63), "text": "ä", "large": None, "data": b"\0"},
    {"number": 2**63 - 1, "text": "", "large": "x" * 9, "data": b""},
    {"number": 0, "text": None, "large": "", "data": b"ab"},
] * 5
# Of ASCII alone, without nulls, as most columns are.
PLAIN: list[dict[str, Any]] = [
    {"number": number, "text": "x" * number, "large": f"\0{number}", "data": b"\xff"}
    for number in range(15)
]


@pytest.mark.parametrize("count", [0, 1, 8, 15])
@pytest.mark.parametrize("rows", [ROWS, PLAIN])
def test_a_table_of_rows_is_the_one_of_pyarrow(rows: list[dict[str, Any]], count: int) -> None:
    made = table_of(rows[:count], SCHEMA)
    made.validate(full=True)
    assert made.equals(pa.Table.from_pylist(rows[:count], SCHEMA))


def test_numbers_and_texts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError):
        table_of([{**ROWS[0], "number": 2**63}], SCHEMA)
    with pytest.raises(UnicodeEncodeError):
        table_of([{**ROWS[0], "text": "\udcff"}], SCHEMA)


@pytest.mark.parametrize("lists", [[], [[]], [[1, -(2**63)], [], [2**63 - 1, 4, 5]], [[], [7]]])
@pytest.mark.parametrize("first", [0, 1])
def test_lists_of_numbers_are_those_of_pyarrow(lists: list[list[int]], first: int) -> None:
    counts = np.array([len(each) for each in lists], np.int64)
    numbers = np.array([number for each in lists for number in each], np.int64)
    made = lists_array(counts, numbers)
    made.validate(full=True)
    assert made.to_pylist() == lists
    column = pa.chunked_array([made[:first], made[first:]], pa.large_list(pa.int64()))
    again = column_of_lists(column)
    assert [each.tolist() for each in again] == [counts.tolist(), numbers.tolist()]
