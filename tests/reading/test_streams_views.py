"""The views of Kafka Streams' topics, over bytes that an application of it wrote."""

from __future__ import annotations

import datetime as dt
import logging
import struct
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_view, sql
from kafkalog.errors import CorruptRecordError
from kafkalog.messages.streams_topics import CHANGELOG, application_and_store
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.streams_records import APPLICATION, streams_records, write_streams_topics

MINUTE_MS = 60_000


@pytest.fixture
def written(log_dir: Path) -> Path:
    write_streams_topics(log_dir)
    return log_dir


def rows(view: str, path: Path, columns: str, **options: Any) -> list[tuple[Any, ...]]:
    table = read_view(view, path, columns=columns.split(), **options)
    return [tuple(row.values()) for row in table.to_pylist()]


def changelog(store: str) -> str:
    return f"{APPLICATION}-{store}{CHANGELOG}"


def test_windows_are_those_that_the_application_counted_in(written: Path) -> None:
    """By its own rules: windows of a minute begin at whole minutes of the record's time."""
    columns = "timestamp storeType key windowStartMs windowEndMs sequence isTombstone"
    for store in ("per-minute", "closed", "KSTREAM-AGGREGATE-STATE-STORE-0000000006"):
        found = rows("streams_changelogs", written, columns, topics=changelog(store))
        assert [row[1:] for row in found] == [
            ("window", key, _ms(at) // MINUTE_MS * MINUTE_MS, None, 0, False)
            for (at, _, key, *_) in found
        ]
        keys = [record.key for record in streams_records()[changelog(store)]]
        assert [row[2] for row in found] == [key and key[:-12] for key in keys]
        assert {row[2] for row in found} == {b"anna", b"bertil", "é".encode()}


def test_records_of_a_join_are_numbered_in_the_time_of_each(written: Path) -> None:
    topic = changelog("KSTREAM-JOINTHIS-0000000025-store")
    found = rows("streams_changelogs", written, "timestamp windowStartMs sequence", topics=topic)
    assert [(_ms(at), start, number) for at, start, number in found] == [
        (_ms(at), _ms(at), number) for number, (at, *_) in enumerate(found, 1)
    ]


def test_sessions_have_both_ends(written: Path) -> None:
    """Gaps of 30 s between records at 0, 20, 70, then a late one at 15 s, and one at 400 s."""
    columns = "key windowStartMs windowEndMs value storeType"
    found = rows("streams_changelogs", written, columns, topics=changelog("visits"))
    start = 1_767_225_600_000
    anna = [
        ((from_ - start) // 1000, (to - start) // 1000, value and int.from_bytes(value))
        for key, from_, to, value, _ in found
        if key == b"anna"
    ]
    assert anna == [
        (0, 0, 1), (0, 0, None), (0, 20, 2), (70, 70, 1), (0, 20, None), (0, 20, 3), (400, 400, 1),
    ]  # fmt: skip
    assert {row[-1] for row in found} == {"session"}


def test_other_stores_have_their_keys_as_they_are(written: Path) -> None:
    """Also versions, foreign keys and what a suppression holds back, whose keys end in a time."""
    columns = "topic storeType key recordKey windowStartMs sequence"
    found = rows("streams_changelogs", written, columns)
    others = [row for row in found if row[1] == "key-value"]
    assert {row[0].removeprefix(f"{APPLICATION}-").removesuffix(CHANGELOG) for row in others} == {
        "counts", "rate-versions", "orders-table-STATE-STORE-0000000028",
        "KSTREAM-REDUCE-STATE-STORE-0000000014", "KSTREAM-TOTABLE-STATE-STORE-0000000033",
        "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000038",
        "KTABLE-SUPPRESS-STATE-STORE-0000000009",
    }  # fmt: skip
    assert all(row[2:] == (row[3], row[3], None, None) for row in others)
    assert {row[1] for row in found} == {"key-value", "window", "session"}


def test_values_are_without_the_stores_timestamp_which_is_the_records(written: Path) -> None:
    found = rows("streams_changelogs", written, "value", topics=changelog("counts"))
    assert [int.from_bytes(value) for (value,) in found] == [1, 1, 2, 1, 3, 4, 5]
    assert {len(value) for (value,) in found} == {8}


def test_repartitions_are_told_by_name(written: Path) -> None:
    found = rows("streams_repartitions", written, "topic applicationId name key isTombstone")
    assert {row[:3] for row in found} == {
        (f"{APPLICATION}-by-customer-repartition", None, None),
        (
            f"{APPLICATION}-KSTREAM-REDUCE-STATE-STORE-0000000014-repartition", APPLICATION,
            "KSTREAM-REDUCE-STATE-STORE-0000000014",
        ),
    }  # fmt: skip
    assert [row[3:] for row in found if row[1] is None][5] == (b"bertil", True)
    query = "SELECT DISTINCT applicationId, name FROM streams_repartitions ORDER BY name"
    named = sql(written, query, applicationId=APPLICATION).to_pylist()
    assert [row["name"] for row in named] == [
        "KSTREAM-REDUCE-STATE-STORE-0000000014",
        "by-customer",
    ]
    assert {row["applicationId"] for row in named} == {APPLICATION}


@pytest.mark.parametrize(
    ("name", "known", "parts"),
    [
        ("app-store", [], ("app", "store")),
        ("my-app-store", [], (None, None)),
        ("my-app-store", ["my-app"], ("my-app", "store")),
        ("my-app-store", ["my", "my-app", "other"], ("my-app", "store")),
        ("my-app-store", ["other"], (None, None)),
        ("a-b-KTABLE-FK-JOIN-X-0000000001", [], ("a-b", "KTABLE-FK-JOIN-X-0000000001")),
        ("a-KSTREAM-X-0000000001-store", [], ("a", "KSTREAM-X-0000000001-store")),
        ("KSTREAM-X-0000000001", [], (None, None)),
        ("store", [], (None, None)), ("-", [], (None, None)), ("", ["a"], (None, None)),
    ],
)  # fmt: skip
def test_a_name_is_cut_only_where_that_is_certain(
    name: str, known: list[str], parts: tuple[str | None, str | None]
) -> None:
    assert application_and_store(name + CHANGELOG, CHANGELOG, known) == parts


def test_a_key_too_short_for_its_store_is_as_the_mode_says(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What a store is, the first 4096 keys tell."""
    log = LogBuilder(log_dir, f"app-windows{CHANGELOG}-0")
    window = struct.pack(">cqi", b"a", START_MS, 0)
    log.batch(*[(window, "1")] * 4096).segment().batch((b"short", "2"), (window, "3")).write()
    with pytest.raises(CorruptRecordError, match=r"offset 4096.*too short for a window store"):
        rows("streams_changelogs", log_dir, "windowStartMs")
    found = rows("streams_changelogs", log_dir, "key windowStartMs error", mode="PERMISSIVE")
    assert found[-2:] == [
        (None, None, "the key is too short for a window store's"),
        (b"a", START_MS, None),
    ]
    with caplog.at_level(logging.WARNING, "kafkalog.reading.streams_views"):
        assert len(rows("streams_changelogs", log_dir, "key", mode="DROPMALFORMED")) == 4097
    assert "left out 1 records" in caplog.text
    # Whoever does not ask for the key is not told of it.
    assert len(rows("streams_changelogs", log_dir, "value")) == 4098


def test_a_bad_batch_is_a_row_of_its_own_in_mode_permissive(log_dir: Path) -> None:
    log = LogBuilder(log_dir, f"app-counts{CHANGELOG}-0")
    path = log.batch(("a", "1")).batch(("b", "2")).batch(("c", None)).write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        rows("streams_changelogs", log_dir, "offset")
    columns = "offset key isTombstone storeType store error"
    good, bad, other = rows("streams_changelogs", log_dir, columns, mode="PERMISSIVE")
    assert (good[:3], other[:3]) == ((0, b"a", False), (2, b"c", True))
    assert bad[:5] == (None, None, None, "key-value", "counts")
    assert "checksum" in bad[5]


def _ms(at: dt.datetime) -> int:
    return round(at.timestamp() * 1000)
