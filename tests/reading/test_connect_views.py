"""The views of Kafka Connect's topics, over bytes that Kafka's own classes wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_view
from kafkalog.errors import CorruptRecordError
from kafkalog.format.secret_settings import REDACTED
from tests.support.client_records import client_records, write_client_topics
from tests.support.log_builder import LogBuilder


def rows(view: str, path: Path, columns: str, **options: Any) -> list[tuple[Any, ...]]:
    table = read_view(view, path, columns=columns.split(), **options)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_offsets_are_what_kafka_wrote(log_dir: Path) -> None:
    write_client_topics(log_dir)
    names = "topic connector sourcePartition sourceOffset isTombstone isLatest"
    place = ("connect-offsets", "file-source", '{"filename":"/data/é.txt"}')
    assert rows("connect_offsets", log_dir, names) == [
        (*place, '{"position":9007199254740993}', False, False),
        (*place, None, True, True),
    ]


def test_configs_are_what_kafka_wrote_without_secrets(log_dir: Path) -> None:
    write_client_topics(log_dir)
    found = rows("connect_configs", log_dir, "recordType connector task config isLatest")
    properties = {
        "connector.class": "org.example.JdbcSink",
        "connection.password": REDACTED,
        "topics": "orders",
    }
    session = {"key": REDACTED, "algorithm": "HmacSHA256", "creation-timestamp": 1767225600000}
    assert [(*row[:3], row[3] and json.loads(row[3]), row[4]) for row in found] == [
        ("connector", "jdbc-1", None, properties, False),
        ("task", "jdbc-1", 0, properties, True),
        ("commit", "jdbc-1", None, {"tasks": 1}, True),
        ("target-state", "jdbc-1", None, {"state": "PAUSED", "state.v2": "STOPPED"}, True),
        ("tasks-fencing", "jdbc-1", None, {"task-count": 2}, True),
        ("session-key", None, None, session, True),
        (
            *("restart-connector", "jdbc-1", None),
            *({"only-failed": True, "include-tasks": False}, True),
        ),
        ("logger-cluster", None, None, {"level": "DEBUG"}, True),
        ("connector", "jdbc-1", None, None, True),
    ]
    typed = rows("connect_configs", log_dir, "recordType targetState tasksCount logger")
    assert [row for row in typed if row[1:] != (None, None, None)] == [
        ("commit", None, 1, None),
        ("target-state", "STOPPED", None, None),
        ("tasks-fencing", None, 2, None),
        ("logger-cluster", None, None, "org.example"),
    ]


def test_statuses_are_what_kafka_wrote(log_dir: Path) -> None:
    write_client_topics(log_dir)
    names = "recordType connector task state workerId generation pluginVersion trace usedTopic"
    worker, trace = ("10.0.0.1:8083", 7, "1.2"), "java.lang.Exception: no"
    assert rows("connect_status", log_dir, f"{names} discoverTimestampMs") == [
        ("connector", "jdbc-1", None, "RUNNING", *worker, None, None, None),
        ("task", "jdbc-1", 2, "FAILED", *worker, trace, None, None),
        ("topic", "jdbc-1", 2, *[None] * 5, "orders", 1767225600000),
        ("task", "jdbc-1", 2, *[None] * 7),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aws.secret.access.key", "x"), ("sasl.jaas.config", "x"), ("api_key", "x"),
        ("db.passwd", "x"), ("connection.url", "jdbc:x://h/d?user=u&password=p"),
        ("uri", "mongodb://user:pass@host/db"), ("password", ["x"]), ("secrets", {"a": "x"}),
        ("nested", {"b": {"db.password": "x"}}),
    ],
)  # fmt: skip
def test_what_looks_secret_is_not_shown(log_dir: Path, name: str, value: object) -> None:
    config = json.dumps({"properties": {name: value, "tasks.max": "3"}})
    LogBuilder(log_dir, "my-connect-configs-0").batch(("connector-c", config)).write()
    ((shown,),) = rows("connect_configs", log_dir, "config")
    assert REDACTED in shown
    assert json.dumps(value, separators=(",", ":")) not in shown
    assert json.loads(shown)["tasks.max"] == "3"


def test_bytes_that_are_no_record_are_rows_with_an_error(log_dir: Path) -> None:
    state = {"state": "RUNNING"}
    records = [
        ("status-connector-c", json.dumps(state)), ("status-connector-c", "{"),
        ("status-connector-c", b"\xff\xfe{"), ("status-connector-c", "[" * 100_000),
        ("status-connector-c", "[1]"), ("status-connector-c", '{"generation": 2147483648}'),
        ("status-connector-c", '{"generation": "1"}'), ("status-connector-c", '{"state": NaN}'),
        ("status-connector-c", '{"generation": ' + "9" * 5000 + "}"),
        ("status-task-c", json.dumps(state)), ("status-topic-t", "{}"),
        ("status-topic-t:connector-c", "{}"), ("other", "{}"), (None, "{}"),
        ("status-connector-c", '{"state": "\\ud800"}'),
    ]  # fmt: skip
    LogBuilder(log_dir, "connect-status-0").batch(*records).write()
    with pytest.raises(CorruptRecordError, match=r"offset 1.*is not JSON"):
        rows("connect_status", log_dir, "state")
    found = rows("connect_status", log_dir, "offset state error", mode="PERMISSIVE")
    assert [row[0] for row in found] == list(range(len(records)))
    assert (found[0], found[-1]) == ((0, "RUNNING", None), (14, "�", None))
    expected = [
        "not JSON at", "not JSON", "too many levels", "an array, not an object", "fit 32 bits",
        "a string, not a whole number", "not JSON", "not JSON", "end in its number",
        "no ':connector-'", "no topic", "no known type", "key is null",
    ]  # fmt: skip
    errors = [row[2] for row in found[1:-1]]
    assert all(text in error for text, error in zip(expected, errors, strict=True)), errors


def test_an_error_does_not_quote_a_secret(log_dir: Path) -> None:
    records = [("session-key", '{"key":"hunter2"'), ("connector-c", '{"x":"hunter2"}')]
    LogBuilder(log_dir, "connect-configs-0").batch(*records, ("hunter2", "{}")).write()
    found = rows("connect_configs", log_dir, "config error", mode="PERMISSIVE")
    assert [row[0] for row in found] == [None] * 3
    assert all(row[1] and "hunter2" not in row[1] for row in found)


@pytest.mark.parametrize(
    ("topic", "is_found"),
    [
        ("connect-offsets", True), ("_connect-offsets", True), ("docker-connect-offsets", True),
        ("connect-cluster-offsets", True), ("my_connect_offsets", True),
        ("mm2-offsets.us.internal", True), ("mirrormaker2-cluster-offsets", True),
        ("disconnect-offsets", False), ("connect-configs", False), ("orders", False),
    ],
)  # fmt: skip
def test_topics_are_found_by_common_names(log_dir: Path, topic: str, is_found: bool) -> None:
    LogBuilder(log_dir, f"{topic}-0").batch(*client_records()["connect-offsets"]).write()
    found = rows("connect_offsets", log_dir, "connector")
    assert found == ([("file-source",)] * 2 if is_found else [])
    assert len(rows("connect_offsets", log_dir, "connector", topics=topic)) == 2
