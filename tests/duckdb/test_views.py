"""The views of SQL on the samples: each has the columns, types and rows of `kafkalog.read_view`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kafkalog
from data.copy_samples import SAMPLES
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.function_views.table import FUNCTION_VIEWS, ZOOKEEPER_VIEWS
from kafkalog.reading.sql_views import SQL_VIEWS
from kafkalog.reading.views import NARROW_VIEWS, default_columns
from tests.support.client_records import CLIENT_VIEWS, write_client_topics
from tests.support.coordinator_logs import write_coordinator_logs
from tests.support.log_builder import START_MS, LogBuilder

BROKER = SAMPLES / "broker"


def plain(table: pa.Table) -> pa.Table:
    """Without what Arrow says of nulls and of names inside lists."""
    return pa.table(
        {
            name: pa.chunked_array(table[name].chunks, _type(table[name].type))
            if table[name].type == _type(table[name].type)
            else table[name].cast(_type(table[name].type))
            for name in table.column_names
        }
    )


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _type(field.type)) for field in kind])
    return kind


@pytest.mark.parametrize("name", SQL_VIEWS)
def test_view_has_the_rows_of_read_view(name: str, tmp_path: Path) -> None:
    view = SQL_VIEWS[name][0]
    path = BROKER
    if view in CLIENT_VIEWS:  # of programs that the sample did not have
        path = tmp_path
        write_client_topics(path)
    columns = NARROW_VIEWS[name][1] if name in NARROW_VIEWS else default_columns(view)
    if name == "records":
        columns = (*columns, "headers")
    wanted = kafkalog.read_view(view, path, columns=columns)
    found = kafkalog.sql(path, f"SELECT * FROM {name}")
    assert found.column_names == list(columns)
    assert plain(found).equals(plain(wanted))
    assert found.num_rows or name in ("transaction_index", "latest_offset_commits")


def test_ages_go_by_option_now(tmp_path: Path) -> None:
    write_coordinator_logs(tmp_path, seed=8)
    query = "SELECT lastTimestampMs + ageMs AS now FROM open_transactions"
    found = kafkalog.sql(tmp_path, query, now=START_MS + 5_000)
    assert set(found["now"].to_pylist()) == {START_MS + 5_000}


def test_tables_of_clusters_groups_and_zookeeper_are_there() -> None:
    """With the columns of their rows in the table of function views; what is in them,
    `tests/reading/function_views` has."""
    ensemble = SAMPLES / "zookeeper" / "ensemble"
    for name, view in (FUNCTION_VIEWS | ZOOKEEPER_VIEWS).items():
        found = kafkalog.sql(BROKER, f"SELECT * FROM {name}", zookeeper_dir=ensemble)
        assert plain(found).schema == plain(view.schema.empty_table()).schema, name


def test_options_go_to_the_views_that_take_them(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0").batch(("a", "1"), producer_id=7, is_transactional=True)
    log.write()
    LogBuilder(tmp_path, "clicks-0").batch(("b", "2"), ("b", "3")).write()
    count = "SELECT (SELECT count(*) FROM records) AS r, (SELECT count(*) FROM segments) AS s"

    def counts(**options: str | bool | int) -> tuple[int, int]:
        (row,) = kafkalog.sql(tmp_path, count, **options).to_pylist()
        return row["r"], row["s"]

    assert counts() == (3, 2)
    assert counts(subscribe="orders") == (1, 1)
    assert counts(isolationLevel="read_committed") == (2, 2)
    assert counts(assign='{"clicks": [0]}', failOnDataLoss=False) == (2, 1)
    assert counts(maxBatchBytes=1 << 20) == (3, 2)
    for wrong, words in (
        ({"colour": "red"}, "option 'colour' is unknown; available: path"),
        ({"mode": "lenient"}, "takes FAILFAST, PERMISSIVE or DROPMALFORMED"),
        ({"subscribe": "order"}, "not there: order; there are: clicks, orders"),
    ):
        with pytest.raises(InvalidConfigError, match=words):
            counts(**wrong)  # type: ignore[arg-type] # literal dicts


def test_several_paths_are_one_log_dir() -> None:
    found = kafkalog.sql(
        [BROKER / "orders-1", str(BROKER / "orders-0" / f"{0:020}.log")],
        "SELECT DISTINCT partition FROM records ORDER BY partition",
    )
    assert found["partition"].to_pylist() == [0, 1]
