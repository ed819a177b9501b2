"""Statements: errors in our words, damage in three modes, what ends early, what memory may be
used, and what SQL cannot reach."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import kafkalog
from data.copy_samples import copy_sample
from kafkalog.duckdb.log_rows import LogRows
from kafkalog.duckdb.session import SqlSession
from kafkalog.duckdb.tables import LogTables
from kafkalog.errors import CorruptRecordError, InvalidConfigError, KafkaLogError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kafkalog.reading.pushing import Comparison
from tests.support.bytes_read import bytes_read
from tests.support.log_builder import LogBuilder


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """96 MB in twelve segments."""
    log_dir = tmp_path_factory.mktemp("long")
    log = LogBuilder(log_dir, "orders-0")
    value = "v" * 100_000
    for _ in range(12):
        log.segment()
        for _ in range(8):
            log.batch(*((f"key-{number}", value) for number in range(10)))
    log.write()
    return log_dir


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three batches; one byte of the second is wrong."""
    log = LogBuilder(tmp_path).batch(("a", "1")).batch(("b", "2")).batch(("a", "3"))
    file = log.write() / f"{0:020}.log"
    content = bytearray(file.read_bytes())
    content[log.segments[0].batches[1][0] + 65] ^= 1
    file.write_bytes(content)
    return tmp_path


# 960 rows four times joined with each other.
ENDLESS = "SELECT count(*) AS n FROM " + ", ".join(f"record_keys t{number}" for number in range(4))


def rows(session: SqlSession, statement: str) -> list[dict[str, object]]:
    found = session.run(statement)
    assert found is not None
    answer: list[dict[str, object]] = found.read_all().to_pylist()
    return answer


# -- errors and damage -----------------------------------------------------------------------------


def test_damage_ends_a_query_or_costs_its_batch(damaged: Path) -> None:
    count = "SELECT count(*) AS n FROM records"
    with pytest.raises(CorruptRecordError, match=r"0{20}\.log @ \d+ \(offset 1\): .*checksum"):
        kafkalog.sql(damaged, count)
    dropped = kafkalog.sql(damaged, count, mode="DROPMALFORMED")
    assert dropped.to_pylist() == [{"n": 2}]
    rows = kafkalog.sql(damaged, "SELECT * FROM records", mode="PERMISSIVE")
    assert rows.column_names[-1] == "error"
    assert [error is None for error in rows["error"].to_pylist()] == [True, False, True]
    for condition, offsets in (
        ("key = X'61'", [0, 2]),
        ("key IS NULL", [None]),
        ("error IS NOT NULL", [None]),
    ):
        query = f"SELECT offset FROM records WHERE {condition}"
        found = kafkalog.sql(damaged, query, mode="PERMISSIVE")
        assert found["offset"].to_pylist() == offsets, condition


@pytest.fixture(scope="module")
def damaged_broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bit of each internal topic is wrong, and one partition's directory cannot be read."""
    log_dir = copy_sample("broker", tmp_path_factory.mktemp("damaged") / "logs")
    for topic in (OFFSETS_TOPIC, TRANSACTION_TOPIC, CLUSTER_METADATA_TOPIC):
        for file in log_dir.glob(f"{topic}-*/*.log"):
            content = bytearray(file.read_bytes())
            if len(content) > 200:
                content[len(content) // 2] ^= 1
                file.write_bytes(content)
    (log_dir / "unread-0").symlink_to(log_dir / "nowhere")
    return log_dir


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_every_view_bears_damage_where_the_mode_does(damaged_broker: Path, mode: str) -> None:
    log = LogTables((str(damaged_broker),), {"mode": mode})
    with SqlSession(log) as session:
        counts = {n: rows(session, f"SELECT count(*) AS n FROM {n}")[0]["n"] for n in log.names()}
    assert 0 not in (counts["transactional_ids"], counts["top_committers"], counts["groups"])
    with pytest.raises(CorruptRecordError):
        kafkalog.sql(damaged_broker, "SELECT count(*) FROM transactional_ids")


def test_a_directory_that_cannot_be_read_concerns_its_own_rows(damaged_broker: Path) -> None:
    of_all = "SELECT count(*) AS n FROM segments"
    with pytest.raises(InvalidConfigError, match=r"unread-0 cannot be read: .*mode PERMISSIVE"):
        kafkalog.sql(damaged_broker, of_all)
    assert kafkalog.sql(damaged_broker, of_all, mode="PERMISSIVE")["n"][0].as_py() > 20
    of_orders = "SELECT count(*) AS n FROM records WHERE topic = 'orders'"
    assert kafkalog.sql(damaged_broker, of_orders)["n"].to_pylist() == [2700]
    assert kafkalog.sql(damaged_broker, "SELECT * FROM connect_offsets").num_rows == 0


def test_views_of_a_topic_that_is_not_there_say_so(
    long_log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once a statement, however many views are made of it."""
    for views in ("groups, group_members", "offset_commits", "transactional_ids", "topics"):
        caplog.clear()
        assert kafkalog.sql(long_log, f"SELECT 1 AS a FROM {views}").num_rows == 0
        said = [record.message for record in caplog.records if "is empty" in record.message]
        assert len(said) == 1, views
        assert said[0].startswith("no partition of __")


def test_errors_of_a_connection_have_the_readers_text(damaged: Path) -> None:
    with (
        kafkalog.connect(damaged) as connection,
        pytest.raises(duckdb.Error, match=r"CorruptRecordError: .*\(offset 1\)"),
    ):
        connection.sql("SELECT count(*) FROM records").fetchall()


@pytest.mark.parametrize(
    ("query", "kind", "words"),
    [
        ("SELEC 1", InvalidConfigError, "SELEC"),
        ("SELECT nothing FROM records", InvalidConfigError, "nothing"),
        ("SELECT * FROM record", InvalidConfigError, "no view record .*: did you mean records"),
        ("SELECT * FROM orders", InvalidConfigError, "is a topic: .* WHERE topic = 'orders'"),
        ("SELECT 1; SELECT 2", InvalidConfigError, "one query is expected, 2 were found"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1 AS a", InvalidConfigError, "no rows"),
        ("SELECT cast(topic AS INT) FROM records", KafkaLogError, "^the text '.*' is no int"),
        ("SELECT * FROM range(9)", InvalidConfigError, "RANGE.*--engine spark"),
        ("DESCRIBE record", InvalidConfigError, "no view record .*: did you mean records"),
    ],
)
def test_what_is_wrong_with_a_query_is_said(
    long_log: Path, query: str, kind: type[KafkaLogError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        kafkalog.sql(long_log, query)


def test_statements_see_views_that_earlier_ones_made(long_log: Path) -> None:
    with SqlSession(LogTables((str(long_log),))) as session:
        made = "CREATE TEMPORARY VIEW few AS SELECT key, valueSize FROM record_keys"
        assert session.run(made) is None
        assert rows(session, "SELECT count(*) AS n FROM few WHERE valueSize > 1") == [{"n": 960}]
        assert session.run("DROP VIEW few") is None
        with pytest.raises(InvalidConfigError, match="no view few"):
            session.run("SELECT * FROM few")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(octet_length(value)) AS n, max(length(key)) AS m FROM records", [(9, 2)]),
        (
            "SELECT octet_length(value) AS n, count(*) AS m FROM records GROUP BY 1 ORDER BY n",
            [(None, 1), (0, 1), (1, 1), (3, 1), (5, 1)],
        ),
        (
            "SELECT a.offset FROM records a JOIN records b ON a.offset + 1 = b.offset "
            "WHERE length(a.value) > bit_length(b.value) OR octet_length(b.key) = 2",
            [(2,)],
        ),
    ],
)
def test_lengths_of_payloads_are_read_without_them(
    tmp_path: Path,
    query: str,
    expected: list[tuple[int | None, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = LogBuilder(tmp_path).batch(("a", "12345"), ("b", None), (None, ""))
    log.batch(("ä", "1"), ("a", "123")).write()
    asked: list[str] = []
    read = LogRows.read

    def noted(rows: LogRows, names: Sequence[str], where: Sequence[Comparison]) -> Any:
        asked.extend(names)
        return read(rows, names, where)

    monkeypatch.setattr(LogRows, "read", noted)
    found = kafkalog.sql(tmp_path, query).to_pylist()
    assert [tuple(row.values()) for row in found] == expected
    assert "valueSize" in asked
    assert {"key", "value"}.isdisjoint(asked)


def test_views_are_listed_and_described(long_log: Path) -> None:
    with SqlSession(LogTables((str(long_log),))) as session:
        session.run("CREATE TEMPORARY VIEW few AS SELECT headers, offset FROM records")
        names = [row["viewName"] for row in rows(session, "SHOW VIEWS")]
        assert names == sorted(names)
        assert {"records", "few"} <= set(names)
        assert rows(session, "DESCRIBE TABLE few") == [
            {
                "col_name": "headers",
                "data_type": "array<struct<key:string,value:binary>>",
                "comment": None,
            },
            {"col_name": "offset", "data_type": "bigint", "comment": None},
        ]


# -- what ends early -------------------------------------------------------------------------------


def decoding_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("kafkalog-decoding")]


@pytest.mark.parametrize("threads", [1, 2])
def test_limit_ends_the_reading(long_log: Path, threads: int) -> None:
    with SqlSession(LogTables((str(long_log),), threads=threads)) as session:
        rows(session, "SELECT 1 AS a FROM records LIMIT 1")  # imports
        before = bytes_read()
        found = rows(session, "SELECT octet_length(value) AS size FROM records LIMIT 3")
        assert found == [{"size": 100_000}] * 3
        # How far threads come before the reader has its rows is the machine's business.
        assert threads > 1 or bytes_read() - before < 50_000_000
        assert decoding_threads() == []


def test_interrupt_ends_the_reading(long_log: Path) -> None:
    """By the session's own call from another thread; Ctrl-C is tried on a process."""
    with SqlSession(LogTables((str(long_log),), threads=2)) as session:
        ended = threading.Event()
        interrupting = threading.Thread(target=_interrupt_until, args=(session, ended))
        interrupting.start()
        try:
            # Nothing else ends this query.
            with pytest.raises(KafkaLogError, match=r"(?i)interrupt"):
                rows(session, ENDLESS)
        finally:
            ended.set()
            interrupting.join()
        assert decoding_threads() == []


def _interrupt_until(session: SqlSession, ended: threading.Event) -> None:
    """Again and again: an interrupt that comes before the query runs ends nothing."""
    while not ended.wait(0.1):
        session.interrupt()


def test_control_c_ends_the_verb(long_log: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kafkalog", "sql", str(long_log), "--sql", ENDLESS],
        stderr=subprocess.PIPE, text=True, preexec_fn=_take_interrupts,
    ) as process:  # fmt: skip
        # It is inside the query when it has read the log once.
        while _bytes_read_by(process.pid) < 90_000_000:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (1, "kafkalog: interrupted; run it again to go on\n")


def _take_interrupts() -> None:
    """A shell in the background has its children ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _bytes_read_by(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


# -- memory and files ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [-5, "-1", "-0.5GB", " -1", "none", "much", ""])
def test_a_memory_limit_that_would_be_none_is_refused(log_dir: Path, limit: str | int) -> None:
    with pytest.raises(InvalidConfigError, match="memory_limit takes 512MB or the like"):
        kafkalog.sql(log_dir, "SELECT 1 AS a", memory_limit=limit)


def test_what_does_not_fit_is_spilled_and_gone_afterwards(
    tmp_path: Path, long_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with kafkalog.connect(long_log, memory_limit="80MB") as connection:
        query = "SELECT i, count(*) AS n FROM range(6000000) t(i) GROUP BY i ORDER BY i DESC"
        assert connection.execute(query).fetchone() == (5_999_999, 1)
        (spilled,) = tmp_path.iterdir()
        assert spilled.name.startswith("kafkalog-sql-")
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_an_error_of_ours(long_log: Path) -> None:
    with pytest.raises(KafkaLogError, match=r"(?i)memory"):
        kafkalog.sql(
            long_log,
            "SELECT sort_array(collect_list(value)) AS v FROM records",
            memory_limit="20MB",
        )


REFUSED = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "COPY (SELECT 1) TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET memory_limit = '1TB'",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "CREATE SECRET s (TYPE s3)",
    "SELECT * FROM elsewhere",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_no_file_and_no_setting_is_in_reach(tmp_path: Path, long_log: Path, statement: str) -> None:
    out = tmp_path / "out"
    elsewhere = {"a": [1]}  # a variable that DuckDB could find by itself
    assert elsewhere
    text = statement.format(out=out)
    with pytest.raises(KafkaLogError):
        kafkalog.sql(long_log, text)
    with kafkalog.connect(long_log) as connection, pytest.raises(duckdb.Error):
        connection.execute(text).fetchall()
    assert not out.exists()
