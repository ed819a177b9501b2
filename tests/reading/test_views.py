"""The table of views: its own consistency, and the refusals derived from it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from kafkalog.columns.column import arrow_schema
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.view_reader import ViewReader
from kafkalog.reading.views import (
    NARROW_VIEWS,
    VIEWS,
    View,
    default_columns,
    select_columns,
    view_columns,
)


def test_records_start_with_the_columns_of_sparks_kafka_source() -> None:
    names = "key value topic partition offset timestamp timestampType"
    assert default_columns("records") == tuple(names.split())


@pytest.mark.parametrize("view", VIEWS)
def test_column_names_are_unique_without_case(view: str) -> None:
    names = [column.name.lower() for column in view_columns(view)]
    assert len(set(names)) == len(names)


def test_columns_come_in_the_asked_order_under_the_tables_spelling() -> None:
    columns = select_columns("records", ["OFFSET", "Key"])
    assert [column.name for column in columns] == ["offset", "key"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["key", "kee"], r"column 'kee' is unknown in view 'records'; available: key, value"),
        (["key", "KEY"], "column 'KEY' is asked for twice"),
        ([], "no column"),
        (["error"], "column 'error' is unknown"),
    ],
)
def test_wrong_columns_are_refused_with_what_is_there(names: list[str], reason: str) -> None:
    with pytest.raises(InvalidConfigError, match=reason):
        select_columns("records", names)


def test_unknown_view_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidConfigError, match="'recrods' is unknown; available: records"):
        view_columns("recrods")


def test_permissive_schema_can_hold_a_row_that_has_only_a_place() -> None:
    columns = select_columns("records", ["offset", "error"], with_error=True)
    assert arrow_schema(columns).field("offset").nullable is False
    assert all(field.nullable for field in arrow_schema(columns, all_nullable=True))
    assert arrow_schema(columns).field("error").type == pa.string()


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_a_row_of_the_table_is_whole(view: View) -> None:
    assert isinstance(view.reader(), ViewReader)
    assert view.row
    assert set(view.pushed) <= {column.name for column in view.columns}
    assert len(set(view.options)) == len(view.options)


def test_the_table_is_imported_without_readers_and_kernels() -> None:
    code = "import sys, kafkalog.reading.views; print([m for m in sys.modules if 'numba' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_narrow_views_are_of_columns_that_are_there() -> None:
    for view, names in NARROW_VIEWS.values():
        assert select_columns(view, names)
