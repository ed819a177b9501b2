"""The verb sql on DuckDB: formats, several statements, refusals, exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.cli.sql_output import TABLE_ROWS
from kafkalog.cli.sql_texts import json_lines
from kafkalog.cli.verb_options import READ_MODES
from kafkalog.reading.request import ReadMode
from tests.support.log_builder import START_MS, LogBuilder


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    log_dir = tmp_path_factory.mktemp("queried")
    log = LogBuilder(log_dir, "orders-0").batch(
        ("a", "one"), (b"\xff\x00", None), (None, "two\nlines")
    )
    log.write()
    return str(log_dir)


def joined(count: int) -> str:
    """The three records as often joined with each other."""
    return ", ".join(f"record_offsets t{number}" for number in range(count))


def test_rows_as_a_table(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT offset, key, value FROM records ORDER BY offset"
    assert main(["sql", path, "--sql", sql]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "offset  key     value",
        "     0  a       one",
        "     1  0xff00  -",
        "     2  -       0x74776f0a6c696e6573",
    ]
    assert err == ""


def test_within_a_struct_stands_what_sql_would_say(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT struct(value, offset > 0 AS late, array(key) AS a) AS s, key FROM records"
    assert main(["sql", path, "--sql", f"{sql} WHERE offset > 0 ORDER BY offset"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "{value: NULL, late: true, a: [0xff00]}                0xff00",
        "{value: 0x74776f0a6c696e6573, late: true, a: [NULL]}  -",
    ]


def test_mode_says_what_becomes_of_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogBuilder(tmp_path, "orders-0").batch(("a", "1")).batch(("b", "2"))
    file = log.write() / f"{0:020}.log"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    asked = ["sql", str(tmp_path), "--format", "json", "--sql", "SELECT count(*) AS n FROM records"]
    assert main(asked) == 1
    assert "checksum" in capsys.readouterr().err
    for mode, count in (("PERMISSIVE", 2), ("permissive", 2), ("DROPMALFORMED", 1)):
        assert main([*asked, "--mode", mode]) == 0
        assert capsys.readouterr().out == f'{{"n":{count}}}\n'
    assert main([*asked, "--mode", "permisive"]) == 2
    assert "did you mean PERMISSIVE?" in capsys.readouterr().err


def test_modes_are_those_of_reading() -> None:
    assert tuple(ReadMode) == READ_MODES


def test_several_statements_as_json_lines(
    path: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    sql = (
        "CREATE OR REPLACE TEMPORARY VIEW few AS SELECT key, offset FROM record_keys;\n"
        "SELECT * FROM few\nORDER BY offset; -- all;\nSELECT count(*) AS n FROM few"
    )
    assert main(["sql", path, "--format", "json", "--sql", sql]) == 0
    assert capfdbinary.readouterr().out.splitlines() == [
        b'{"key":"YQ==","offset":0}',
        b'{"key":"/wA=","offset":1}',
        b'{"key":null,"offset":2}',
        b'{"n":3}',
    ]


def test_rows_as_csv(path: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    sql = "SELECT key, value, '' AS none, timestamp, headers FROM records"
    assert main(["sql", path, "--format", "csv", "--sql", sql]) == 0
    rows = list(csv.reader(io.StringIO(capfdbinary.readouterr().out.decode())))
    assert rows[0] == ["key", "value", "none", "timestamp", "headers"]
    moment = pa.scalar(START_MS, pa.timestamp("ms")).as_py().isoformat(timespec="milliseconds")
    assert rows[1] == ["YQ==", "b25l", "", f"{moment}Z", ""]
    assert [row[1] for row in rows[1:]] == ["b25l", "", "dHdvCmxpbmVz"]


def test_rows_as_parquet(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out")
    asked = ["sql", path, "--format", "parquet", "--output", output, "--sql"]
    assert main([*asked, "SELECT topic, r.offset FROM records r"]) == 0
    assert capsys.readouterr().err == f"written to {output}\n"
    assert pq.read_table(output)["offset"].to_pylist() == [0, 1, 2]
    assert main([*asked, "SELECT 1"]) == 2
    assert "already exists" in capsys.readouterr().err


def test_failed_query_leaves_no_parquet(path: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    asked = ["sql", path, "--format", "parquet", "--output", str(output), "--sql"]
    assert main([*asked, "SELECT cast(topic AS INT) FROM records"]) == 1
    assert not output.exists() or not any(output.iterdir())


def test_long_table_ends_with_a_word(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = f"SELECT t0.offset FROM {joined(7)}"  # 3 ** 7 rows
    assert main(["sql", path, "--sql", sql]) == 0
    out, err = capsys.readouterr()
    assert err == "the first 1000 rows; --format json, csv and parquet give all\n"
    assert len(out.splitlines()) == TABLE_ROWS + 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sql", "SELECT nothing FROM records"], "nothing"),
        (["--sql", "SELEC 1"], "SELEC"),
        (
            ["--sql", "SELECT * FROM no_view"],
            "no view no_view at line 1, column 15: there are acls",
        ),
        (["--format", "parquet", "--sql", "SELECT 1"], "needs --output"),
        (["--output", "x", "--sql", "SELECT 1"], "--output is for"),
        (["--zk-root", "/second", "--sql", "SELECT 1"], "--zk-root is for"),
        (["--engine", "oracle"], "none of duckdb, spark"),
    ],
)
def test_what_cannot_be_asked_is_usage(
    path: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", path, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_without_a_log_dir_it_is_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--sql", "SELECT 1"]) == 2
    assert "sql needs a log dir" in capsys.readouterr().err
    absent = str(tmp_path / "absent")
    assert main(["sql", absent, "--sql", "SELECT 1"]) == 2
    assert "no such file or directory" in capsys.readouterr().err


def test_statement_in_a_log_dirs_place_is_usage(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", path, "SELECT 1"]) == 2
    assert "'SELECT 1' is not there; if it is a statement: --sql" in capsys.readouterr().err


def test_a_dead_zookeepers_tables_are_views_too(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a log dir's own views, and alone; one cluster of it, or all."""
    ensemble = ["--zookeeper-dir", str(SAMPLES / "zookeeper" / "ensemble")]
    sql = "SELECT count(DISTINCT clusterId) AS n FROM zookeeper_topics; SELECT 1 AS n -- a;\n;"
    for more, clusters in ((ensemble, 2), ([*ensemble, "--zk-root", "/second"], 1)):
        assert main(["sql", *more, "--format", "json", "--sql", sql]) == 0
        found = [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()]
        assert found == [clusters, 1]
    both = "SELECT count(*) > 0 AS many FROM records, zookeeper_brokers"
    assert main(["sql", path, *ensemble, "--format", "json", "--sql", both]) == 0
    assert capsys.readouterr().out == '{"many":true}\n'


def test_reader_that_leaves_ends_the_query(path: str) -> None:
    """`| head -1` of more rows than a pipe holds: no word, exit code 0, and not all of them."""
    command = [sys.executable, "-m", "kafkalog", "sql", path, "--format", "json", "--sql"]
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1; exit ${PIPESTATUS[0]}', "bash", *command,
         f"SELECT t0.offset - t0.offset AS i FROM {joined(20)}"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ('{"i":0}\n', "", 0)


def test_statements_come_from_stdin_too(path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog", "sql", path, "--format", "json"],
        input="SELECT 1 AS a; SELECT count(*) AS b FROM records;",
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ('{"a":1}\n{"b":3}\n', "")


def test_json_of_all_types() -> None:
    """Nested and null ones, what JSON has no number for, and what it has to escape."""
    moment = pa.array([1, 1_000_000, None], pa.timestamp("us", tz="UTC"))
    batch = pa.record_batch(
        {
            "text": ['a"\n', "é", None],
            "real": [0.5, float("nan"), float("-inf")],
            "yes": [True, False, None],
            "sum": pa.array(["1.50", "-2", None]).cast(pa.decimal128(10, 2)),
            "time": moment,
            "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
            "struct": pa.array([{"a": b"\x00", "b": [{"c": 1}]}, {"a": None, "b": []}, None]),
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "day": pa.array([0, 1, None], pa.date32()),
            "none": pa.nulls(3),
        }
    )
    rows = [json.loads(line) for line in bytes(json_lines(batch)).splitlines()]
    assert rows == [
        {
            "text": 'a"\n', "real": 0.5, "yes": True, "sum": 1.5,
            "time": "1970-01-01T00:00:00.000001Z", "list": [1, None],
            "struct": {"a": "AA==", "b": [{"c": 1}]}, "map": {"k": 1}, "day": "1970-01-01",
            "none": None,
        },
        {
            "text": "é", "real": "NaN", "yes": False, "sum": -2.0,
            "time": "1970-01-01T00:00:01.000000Z", "list": [], "struct": {"a": None, "b": []},
            "map": {}, "day": "1970-01-02", "none": None,
        },
        {name: "-Infinity" if name == "real" else None for name in batch.schema.names},
    ]  # fmt: skip
