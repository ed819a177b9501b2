"""Translation of Spark's SQL by itself: what is refused, what a wrong query is told, names."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from kafkalog.dialect.translation import (
    MACROS,
    NotTranslatedError,
    QueryError,
    translate,
    translation,
)

SCHEMAS = {
    "records": pa.schema([("key", pa.binary()), ("topic", pa.string()), ("partition", pa.int32())])
}


def test_key_condition_is_a_comparison_with_bytes() -> None:
    sql = translate("SELECT topic FROM records WHERE cast(key AS STRING) = 'k'", SCHEMAS)
    assert r"""(t1."key" = '\x6B'::BLOB)""" in sql


def test_length_of_bytes_is_the_column_that_has_it() -> None:
    query = (
        "SELECT octet_length(k) AS a, length(t.key) AS b, bit_length(key || x'00') AS c FROM "
        "(SELECT key AS k, length(r.key) AS n, key FROM records r) t GROUP BY key, k, n"
    )
    found = translation(query, SCHEMAS, {"records": {"key": "keySize"}}).sql
    # Only what stands below is the view's own column; what a query made of it has no such.
    assert found.count('"keySize"') == 1
    assert 't1."keySize"' in found
    assert found.count("octet_length(") == 3


def test_result_schema_has_the_names_and_types_of_spark() -> None:
    found = translation("SELECT count(*), sum(partition) / 2 FROM records", SCHEMAS)
    assert found.schema == pa.schema(
        [("count(1)", pa.int64()), ("(sum(partition) / 2)", pa.float64())]
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT tpoic FROM records", "column 8: did you mean topic"),
        ("SELECT topic FROM record", "there is no view record at line 1, column 19: did you mean"),
        ("SELECT topic\nFROM records WHERE\n", "syntax error at line 2"),
        ("SELECT topic FROM records WHERE partition", "WHERE needs a condition"),
        ("SELECT topic, count(*) FROM records", "neither in GROUP BY nor in an aggregate"),
        ("SELECT 1; SELECT 2", "one query is expected"),
    ],
)
def test_wrong_query_is_told_where(query: str, said: str) -> None:
    with pytest.raises(QueryError, match=said.replace("(", r"\(")):
        translate(query, SCHEMAS)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT approx_count_distinct(key) FROM records", "approx_count_distinct"),
        ("SELECT rand()", "rand"),
        ("SELECT first(topic) FROM records", "first"),
        ("SELECT * FROM records TABLESAMPLE (10 PERCENT)", "SAMPLE"),
        ("INSERT INTO records VALUES (1)", "INSERT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(query: str, named: str) -> None:
    with pytest.raises(NotTranslatedError, match=f"(?i){named}.*--engine spark"):
        translate(query, SCHEMAS)


def test_temporary_view_is_asked_like_any_other() -> None:
    created = translation(
        "CREATE TEMP VIEW v (a, b) AS SELECT topic, cast(key AS STRING) FROM records", SCHEMAS
    )
    assert created.creates == "v"
    assert created.schema == pa.schema([("a", pa.string()), ("b", pa.string())])
    connection = duckdb.connect()
    for macro in MACROS:
        connection.execute(macro)
    connection.register("records", pa.table([[b"k"], ["t"], [1]], schema=SCHEMAS["records"]))
    connection.execute(created.sql)
    schemas = {**SCHEMAS, "v": created.schema}
    found = connection.sql(translate("SELECT a, b FROM v WHERE b = 'k'", schemas)).fetchall()
    assert found == [("t", "k")]
    dropped = translation("DROP VIEW IF EXISTS v", schemas)
    assert dropped.drops == "v"
    connection.execute(dropped.sql)


def test_describe_and_show_tables_have_the_rows_of_spark() -> None:
    connection = duckdb.connect()
    assert connection.sql(translate("DESCRIBE records", SCHEMAS)).fetchall() == [
        ("key", "binary", None),
        ("topic", "string", None),
        ("partition", "int", None),
    ]
    for statement in ("SHOW TABLES", "SHOW VIEWS"):
        assert connection.sql(translate(statement, SCHEMAS)).fetchall() == [("", "records", True)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT 1",
        "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1",
        "CREATE TEMPORARY VIEW v USING parquet OPTIONS (path '/etc')",
        "DROP TABLE records",
        "DESCRIBE EXTENDED records",
    ],
)
def test_other_statements_are_refused(statement: str) -> None:
    with pytest.raises(NotTranslatedError, match="--engine spark"):
        translate(statement, SCHEMAS)
