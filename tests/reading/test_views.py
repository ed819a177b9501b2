"""The table of views: its own consistency, and the refusals derived from it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from data.copy_samples import SAMPLES
from kafkalog.columns.column import arrow_schema, not_null
from kafkalog.columns.places import rows_batch
from kafkalog.columns.schemas import PARTITION, TOPIC
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.tables import read_view
from kafkalog.reading.view_reader import ScanNeeds, ScanTask, ViewReader, tasks_of
from kafkalog.reading.views import (
    NARROW_VIEWS,
    VIEWS,
    View,
    default_columns,
    select_columns,
    view_columns,
)
from tests.support.log_builder import LogBuilder


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
    code = "import sys, kafkalog.reading.views; print([m for m in sys.modules if 'kernel' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_reading_records_imports_no_pandas() -> None:
    """pyarrow does, for the first array that it makes of Python's objects."""
    code = (
        "import sys, kafkalog; batches = list(kafkalog.read_records(sys.argv[1]));"
        " print(sum(batch.num_rows for batch in batches) > 0, 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(SAMPLES / "broker")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


def test_narrow_views_are_of_columns_that_are_there() -> None:
    for view, names in NARROW_VIEWS.values():
        assert select_columns(view, names)


def test_a_view_is_a_row_and_a_reader(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toy view, of partition directories and their number of files, made as the table says."""

    def plan(
        view: str,
        partitions: Sequence[PartitionInventory],
        selection: PartitionSelection,
        needs: ScanNeeds,
    ) -> list[ScanTask[PartitionInventory]]:
        return tasks_of(view, needs.wanted(partitions), pieces_per_task=1)

    def read(
        task: ScanTask[PartitionInventory], request: ReadRequest, counts: ReadCounts
    ) -> Iterator[pa.RecordBatch]:
        for piece in task.pieces:
            name, files = piece.topic_partition, len(list(Path(piece.path).iterdir()))
            row = {"topic": name.topic, "partition": name.partition, "files": files}
            yield rows_batch([row], request.schema, request.names)

    columns = (TOPIC, PARTITION, not_null("files", pa.int32(), "files in the directory"))
    reader = ViewReader(plan, read)
    monkeypatch.setitem(VIEWS, "toy", View("toy", "a directory", columns, lambda: reader))
    for name in ("orders-0", "orders-1", "other-0"):
        LogBuilder(log_dir, name).batch(("k", "v")).write()
    found = read_view("toy", log_dir, topics="orders", columns=["partition", "files"])
    assert found["partition"].to_pylist() == [0, 1]
    assert found["files"].to_pylist() == [len(list((log_dir / "orders-0").iterdir()))] * 2
    assert found.schema.field("files") == pa.field("files", pa.int32(), nullable=False)
    with pytest.raises(InvalidConfigError, match="unknown in view 'toy'; available: topic"):
        read_view("toy", log_dir, columns=["fils"])
