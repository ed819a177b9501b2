"""Tables made of rows are those that pyarrow makes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.auditing.row_tables import table_of

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


@pytest.mark.parametrize("count", [0, 1, 8, 15])
def test_a_table_of_rows_is_the_one_of_pyarrow(count: int) -> None:
    made = table_of(ROWS[:count], SCHEMA)
    made.validate(full=True)
    assert made.equals(pa.Table.from_pylist(ROWS[:count], SCHEMA))


def test_numbers_and_texts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError):
        table_of([{**ROWS[0], "number": 2**63}], SCHEMA)
    with pytest.raises(UnicodeEncodeError):
        table_of([{**ROWS[0], "text": "\udcff"}], SCHEMA)
