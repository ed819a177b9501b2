"""The table of function views: each row makes what its columns say."""

from __future__ import annotations

import pytest

from data.copy_samples import SAMPLES
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.function_views.table import (
    FUNCTION_VIEWS,
    ZOOKEEPER_VIEWS,
    FunctionView,
    function_view_named,
)
from kafkalog.reading.views import VIEWS, select_columns
from tests.support.function_views import rows_of

NOW_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def reads() -> SharedReads:
    """A cluster with groups, transactions and a metadata log."""
    return SharedReads([str(SAMPLES / "groups" / "data")], FunctionOptions(now_ms=NOW_MS))


@pytest.mark.parametrize("view", FUNCTION_VIEWS.values(), ids=lambda view: view.name)
def test_rows_have_the_columns_and_types_of_the_table(
    reads: SharedReads, view: FunctionView
) -> None:
    assert (view.made is None) != (view.query is None)
    found = rows_of(view, reads)
    assert found.schema.names == view.schema.names
    # DuckDB calls a list's elements "l".
    types = [str(field.type).replace("list<l: ", "list<element: ") for field in found.schema]
    assert types == [str(field.type) for field in view.schema]
    assert all(column.meaning for column in view.columns)


def test_views_of_zookeeper_have_the_columns_of_the_table() -> None:
    directory = str(SAMPLES / "zookeeper" / "ensemble")
    reads = SharedReads([], FunctionOptions(now_ms=NOW_MS, zookeeper_dir=(directory,)))
    rows = 0
    for view in ZOOKEEPER_VIEWS.values():
        found = rows_of(view, reads)
        assert found.schema.names == view.schema.names, view.name
        rows += len(found)
    assert rows > 0


def test_queries_ask_for_columns_that_their_source_has() -> None:
    queries = [view.query for view in FUNCTION_VIEWS.values() if view.query is not None]
    assert len(queries) == 4
    for query in queries:
        assert select_columns(query.view, query.columns)


def test_names_are_those_of_no_view_of_the_source_and_unknown_ones_are_refused() -> None:
    assert not set(FUNCTION_VIEWS) & set(VIEWS)
    assert function_view_named("groups").name == "groups"
    with pytest.raises(InvalidConfigError, match="view 'goups' is unknown; available: latest_by"):
        function_view_named("goups")
