"""Paths that name `.log` files: several of one partition are all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog import read_records
from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir import open_log_dir
from tests.support.log_builder import LogBuilder


@pytest.fixture
def partition(log_dir: Path) -> Path:
    log = LogBuilder(log_dir)
    for _ in range(4):
        log.segment().batch(("a", "1"), ("b", "1"))
    return log.write()


def bases(*paths: Path) -> list[list[int]]:
    return [[segment.base_offset for segment in p.segments] for p in open_log_dir(*paths)]


def test_several_files_of_a_partition_are_all_there(partition: Path) -> None:
    files = sorted(partition.glob("*.log"))
    assert bases(files[0]) == [[0]]
    assert bases(files[2], files[0], files[2]) == [[0, 4]]
    assert bases(partition / "*.log") == [[0, 2, 4, 6]]
    assert read_records(str(partition / "*.log"), columns=["offset"]).read_all().num_rows == 8


def test_a_file_beside_its_directory_takes_nothing_away(partition: Path) -> None:
    (file, *_) = partition.glob("*2.log")
    for paths in ([file, partition], [partition, file], [file, partition.parent]):
        assert bases(*paths) == [[0, 2, 4, 6]]
        assert not open_log_dir(*paths).partitions[0].problems


def test_files_of_a_partition_cannot_be_changed(partition: Path) -> None:
    (found,) = open_log_dir(partition / "*.log")
    assert found.problems == ("opened by its .log files, not as a whole",)


def test_a_log_file_of_another_name_is_refused(partition: Path) -> None:
    other = partition / "server.log"
    other.touch()
    with pytest.raises(InvalidConfigError, match="not a segment"):
        open_log_dir(other)
