"""Conditions and columns of queries: the rows are those of a whole Arrow table, and what is not
asked for is not read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafkalog
from kafkalog.duckdb import dataset
from kafkalog.reading import scan
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.view_reader import ScanTask
from tests.support.bytes_read import bytes_read
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.sparse_log import TEN_GIB_OFFSET, ten_gib

VIEWS = ("records", "batches", "segments", "partitions", "producers", "checkpoints", "record_keys")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Logs with several segments, epochs, producers, keys and times, in no order of time."""
    log_dir = tmp_path_factory.mktemp("asked")
    rnd = random.Random(5)
    for partition in range(3):
        log = LogBuilder(log_dir, f"orders-{partition}", index_interval_bytes=200)
        for number in range(30):
            if number % 10 == 0:
                log.segment()
            log.epoch(number // 12)
            for time in (-1, START_MS + number, START_MS + rnd.randrange(40)):
                keys = [rnd.choice(("a", "b", None, "")) for _ in range(2)]
                log.batch(
                    *((key, "value") for key in keys),
                    timestamp=time,
                    producer_id=rnd.choice((-1, 4, 9)),
                    codec=rnd.choice((0, 4)),
                )
        log.write()
    LogBuilder(log_dir, "clicks-0").batch(("a", "click")).write()
    return str(log_dir)


@pytest.fixture(scope="module")
def connections(
    path: str,
) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]]:
    """(the views of the log, the same rows as tables that were read as a whole)."""
    with kafkalog.connect(path, threads=2) as views, duckdb.connect() as tables:
        tables.execute("SET TimeZone = 'UTC'")
        for view in VIEWS:
            tables.register(view, views.sql(f"SELECT * FROM {view}").to_arrow_table())
        yield views, tables


# -- conditions ------------------------------------------------------------------------------------

_TIME = f"make_timestamptz({START_MS + 12}000::BIGINT)"
_NUMBERS = st.sampled_from(["-1", "0", "1", "2", "4", "9", "17", "33", "100", "100000"])
_LITERALS = {
    "number": _NUMBERS,
    "text": st.sampled_from(["'orders'", "'clicks'", "'none'", "'live'"]),
    "bytes": st.sampled_from(["'a'::BLOB", "'b'::BLOB", "''::BLOB", "'\\xFF'::BLOB"]),
    "time": st.sampled_from(
        [_TIME, f"{_TIME} + INTERVAL 1 MICROSECOND", "make_timestamptz(0::BIGINT)"]
    ),
    "milliseconds": st.integers(START_MS - 2, START_MS + 42).map(str) | st.just("-1"),
    "flag": st.sampled_from(["true", "false"]),
}


def _kind(field: pa.Field) -> str | None:
    if pa.types.is_timestamp(field.type):
        return "time"
    if field.name.endswith("Ms"):
        return "milliseconds"
    kinds = {"int": "number", "str": "text", "bin": "bytes", "boo": "flag"}
    return kinds.get(str(field.type)[:3])


@st.composite
def _condition(draw: st.DrawFn, schema: pa.Schema, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        parts = [draw(_condition(schema, depth - 1)) for _ in range(2)]
        joined = draw(st.sampled_from([" AND ", " AND ", " OR "])).join(parts)
        return f"(NOT ({joined}))" if draw(st.integers(0, 4)) == 0 else f"({joined})"
    fields = [field for field in schema if _kind(field) is not None]
    field = draw(st.sampled_from(fields))
    literal = _LITERALS[str(_kind(field))]
    name = f'"{field.name}"'
    sign = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "IN", "BETWEEN", "NULL"]))
    if sign == "IN":
        values = draw(st.lists(literal | st.just("NULL"), min_size=1, max_size=4))
        return f"{name} IN ({', '.join(values)})"
    if sign == "BETWEEN":
        return f"{name} BETWEEN {draw(literal)} AND {draw(literal)}"
    if sign == "NULL":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    return f"{name} {sign} {draw(literal)}"


def check(
    connections: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection],
    view: str,
    condition: str,
) -> int:
    """The rows of a condition by both; how many there are."""
    query = f"SELECT * FROM {view} WHERE {condition}"
    found, wanted = (c.sql(query).to_arrow_table() for c in connections)
    assert found.equals(wanted), condition
    named = f"SELECT count(*) AS n FROM {view} WHERE {condition}"
    counts = [connection.sql(named).fetchall() for connection in connections]
    assert counts == [[(wanted.num_rows,)]] * 2, condition
    return int(wanted.num_rows)


@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_of_any_condition_are_those_of_the_whole_table(
    connections: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection],
    view: str,
    data: st.DataObject,
) -> None:
    schema = connections[1].sql(f"SELECT * FROM {view} LIMIT 0").to_arrow_table().schema
    check(connections, view, data.draw(_condition(schema)))


CONDITIONS = [
    '"offset" = 17',
    '"offset" BETWEEN 20 AND 33 AND partition = 1',
    '"offset" IN (3, 50, 100000)',
    "topic = 'clicks'",
    "topic IN ('orders', 'none')",
    "key = 'a'::BLOB",
    "key IN ('a'::BLOB, ''::BLOB)",
    f"timestamp >= {_TIME}",
    f"timestamp < {_TIME}",
    f"timestamp = {_TIME}",
    f"timestamp > {_TIME} - INTERVAL 1 MICROSECOND",
]


def test_conditions_that_prune_let_their_rows_pass(
    connections: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection],
) -> None:
    """With the expression seen, and with one whose form is not known."""
    for condition in CONDITIONS:
        seen = check(connections, "records", condition)
        with patch.object(dataset, "asked_by", lambda _: None):
            assert check(connections, "records", condition) == seen > 0


def test_a_view_joined_with_itself(
    connections: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection],
) -> None:
    query = (
        'SELECT a.partition, a."offset", b."offset" FROM records a JOIN records b USING (key)'
        ' WHERE a."offset" = 3 AND b."offset" > 170 AND a.topic = \'orders\' ORDER BY ALL'
    )
    found, wanted = (connection.sql(query).fetchall() for connection in connections)
    assert found == wanted != []


# -- what is not asked for -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "decoded"),
    [
        ("SELECT count(*) FROM records", [["partition"]]),
        ("SELECT max(octet_length(value)) FROM records", [["value"]]),
        ("SELECT topic FROM records WHERE key IS NULL", [["topic", "key"]]),
        ("SELECT count(*) FROM batches WHERE codec = 'lz4'", [["partition", "codec"]]),
        (
            'SELECT a.key FROM records a JOIN records b ON a."offset" = b."offset"',
            [["key", "offset"], ["offset"]],
        ),
        ("SELECT topic, max(share) FROM hot_keys GROUP BY topic", None),
    ],
)
def test_only_named_columns_are_decoded(
    path: str, query: str, decoded: list[list[str]] | None
) -> None:
    read = scan.read_task
    names: list[list[str]] = []

    def noted(task: ScanTask[object], request: ReadRequest) -> Iterator[pa.RecordBatch]:
        if request.names not in names:
            names.append(request.names)
        return read(task, request)

    with patch.object(scan, "read_task", noted), kafkalog.connect(path, threads=1) as connection:
        assert connection.sql(query).fetchall()
    if decoded is None:
        assert all("value" not in each for each in names)
    else:
        assert sorted(sorted(each) for each in names) == sorted(sorted(each) for each in decoded)


def test_point_queries_of_ten_gib_read_less_than_a_megabyte(tmp_path: Path) -> None:
    """By offset, by key and offset, and by time with an option; plans and tasks together."""
    log_dir = ten_gib(tmp_path / "logs").log_dir
    time = START_MS + TEN_GIB_OFFSET
    kafkalog.sql(log_dir, "SELECT count(*) FROM record_keys WHERE topic = 'none'")  # imports
    asked = "SELECT offset, key FROM record_keys"
    by_time = {"startingTimestamp": time, "endingTimestamp": time + 1}
    for condition, options in (
        (f"offset = {TEN_GIB_OFFSET}", {}),
        (f"offset = {TEN_GIB_OFFSET} AND key = X'6b3330' AND partition = 0", {}),
        ("true", by_time),
    ):
        before = bytes_read()
        found = kafkalog.sql(log_dir, f"{asked} WHERE {condition}", **options)
        assert found.to_pylist() == [{"offset": TEN_GIB_OFFSET, "key": b"k30"}]
        assert 1000 < bytes_read() - before < 1_000_000


def test_partition_that_no_row_can_be_of_is_not_opened(path: str) -> None:
    with kafkalog.connect(path) as connection:
        connection.sql("SELECT sum(length(topic)) FROM records WHERE partition = 0").fetchall()
        before = bytes_read()
        connection.sql("SELECT sum(octet_length(value)) FROM records").fetchall()
        everything = bytes_read() - before
        before = bytes_read()
        connection.sql(
            "SELECT sum(octet_length(value)) FROM records WHERE topic = 'clicks' AND partition = 0"
        ).fetchall()
        assert bytes_read() - before < everything / 2
