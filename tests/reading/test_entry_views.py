"""Views of small files: whose entries they show, and what happens to a file that cannot be read."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from data.copy_samples import SAMPLES
from kafkalog.errors import CorruptCheckpointError, KafkaLogError, RecordTooLargeError
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
)
from kafkalog.format.limits import MAX_SMALL_FILE_BYTES
from kafkalog.reading import entry_views
from kafkalog.reading.entry_views import ENTRIES_READER
from kafkalog.reading.views import VIEWS
from tests.support.log_builder import LogBuilder

ENTRY_VIEWS = [name for name, view in VIEWS.items() if view.reader() is ENTRIES_READER]
BROKER = SAMPLES / "broker"
# Every view's file, broken.
BROKEN = {
    "offset_index": f"{0:020d}.index",
    "time_index": f"{0:020d}.timeindex",
    "transaction_index": f"{0:020d}.txnindex",
    "producer_snapshot": f"{9:020d}.snapshot",
    "leader_epochs": "leader-epoch-checkpoint",
    "checkpoints": f"../{CLEANER_OFFSET_FILE}",
}
GARBAGE = b"\xff\xfe\n" * 40


def rows(view: str, path: Path, **options: Any) -> list[dict[str, Any]]:
    table = kafkalog.read_view(view, path, **options)
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


@pytest.mark.parametrize("view", ENTRY_VIEWS)
def test_every_view_has_rows_of_the_broker_and_the_columns_of_the_table(view: str) -> None:
    found = rows(view, BROKER)
    assert found
    assert list(found[0]) == [column.name for column in VIEWS[view].columns]
    nullable = {column.name for column in VIEWS[view].columns if column.nullable}
    assert all(
        value is not None for row in found for name, value in row.items() if name not in nullable
    )


def test_checkpoints_are_those_of_what_was_opened(tmp_path: Path) -> None:
    LogBuilder(tmp_path, "orders-0").batch(("a", "1")).write()
    LogBuilder(tmp_path, "orders-1").batch(("a", "1")).write()
    (tmp_path / HIGH_WATERMARK_FILE).write_text("0\n4\norders 0 1\norders 1 1\ngone 7 5\n€ 1 2\n")
    (tmp_path / CLEANER_OFFSET_FILE).write_text("0\n1\norders 1 1\n")
    (tmp_path / RECOVERY_POINT_FILE).unlink()
    wanted = {"columns": ["topic", "partition", "checkpoint", "offset"]}

    def lines(path: Path, **options: Any) -> list[tuple[Any, ...]]:
        found = rows("checkpoints", path, **wanted, **options)
        return [tuple(row.values()) for row in found]

    assert (("gone", 7, HIGH_WATERMARK_FILE, 5)) in lines(tmp_path)
    assert (("€", 1, HIGH_WATERMARK_FILE, 2)) in lines(tmp_path)
    assert lines(tmp_path, topics=["orders"]) == [
        ("orders", 0, HIGH_WATERMARK_FILE, 1),
        ("orders", 1, HIGH_WATERMARK_FILE, 1),
        ("orders", 1, CLEANER_OFFSET_FILE, 1),
    ]
    assert lines(tmp_path / "orders-0") == [("orders", 0, HIGH_WATERMARK_FILE, 1)]


def test_a_file_with_a_suffix_says_so(tmp_path: Path) -> None:
    path = LogBuilder(tmp_path).segment().batch(("a", "1")).segment().batch(("b", "2")).write()
    (path / f"{0:020d}.timeindex").rename(path / f"{0:020d}.timeindex.deleted")
    found = rows("time_index", path, columns=["segmentBaseOffset", "state"])
    assert [tuple(row.values()) for row in found] == [(0, "deleted"), (1, "live")]


@pytest.mark.parametrize("view", ENTRY_VIEWS)
def test_a_file_that_cannot_be_read_is_treated_as_the_mode_says(
    tmp_path: Path, view: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = LogBuilder(tmp_path).segment().batch(("a", "1")).write()
    broken = (path / BROKEN[view]).resolve()
    broken.write_bytes(GARBAGE)
    with pytest.raises(KafkaLogError) as caught:
        rows(view, tmp_path)
    assert caught.value.path == str(broken)
    (bad,) = [row for row in rows(view, tmp_path, mode="PERMISSIVE") if row["error"] is not None]
    assert bad["path"] == str(broken)
    assert bad["error"] == str(caught.value)
    with caplog.at_level(logging.WARNING):
        left = rows(view, tmp_path, mode="DROPMALFORMED")
    assert str(broken) not in {row["path"] for row in left}
    assert "left out 1 malformed files" in caplog.text


def test_a_file_that_is_gone_since_the_plan_has_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = LogBuilder(tmp_path).segment().batch(("a", "1")).write()

    def plan_then_delete(*args: Any) -> Any:
        tasks = ENTRIES_READER.plan(*args)
        (path / "leader-epoch-checkpoint").unlink()
        return tasks

    assert rows("leader_epochs", path)
    deleting = replace(ENTRIES_READER, plan=plan_then_delete)
    monkeypatch.setattr(entry_views, "ENTRIES_READER", deleting)
    assert rows("leader_epochs", path) == []


def test_a_file_past_the_cap_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = LogBuilder(tmp_path).segment().batch(("a", "1")).write()
    with (path / f"{0:020d}.txnindex").open("wb") as file:
        file.truncate(MAX_SMALL_FILE_BYTES + 1)
    with pytest.raises(RecordTooLargeError, match="more than 67108864 bytes"):
        rows("transaction_index", path)


def test_a_malformed_checkpoint_names_its_line(tmp_path: Path) -> None:
    path = LogBuilder(tmp_path).batch(("a", "1")).write()
    (tmp_path / CLEANER_OFFSET_FILE).write_text("0\n1\norders 0\n")
    with pytest.raises(CorruptCheckpointError, match="line 3"):
        rows("checkpoints", path)
