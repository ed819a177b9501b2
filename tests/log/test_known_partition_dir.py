"""A directory that is as an earlier run saw it is the one that reading it gives, with what lies
beside it read anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.known_directory import KnownDirectory, known_directory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.partition_dir import known_partition_dir
from tests.support.log_builder import LogBuilder


@pytest.fixture
def partition(log_dir: Path) -> Path:
    log = LogBuilder(log_dir)
    for _ in range(3):
        log.segment().batch(("a", "1"), ("b", "1"))
    return log.write()


def opened(partition: Path) -> PartitionInventory:
    """By reading it."""
    (found,) = open_log_dir(partition, known={})
    return found


def seen(partition: Path) -> KnownDirectory:
    """What an earlier run keeps of it."""
    known = known_directory(opened(partition))
    assert known is not None
    return known


def taken_up(path: Path | str, log_dir: Path, known: KnownDirectory) -> PartitionInventory:
    """By what is known."""
    return known_partition_dir(str(path), read_log_dir_files(log_dir), known)


def test_what_is_known_makes_the_partition_that_reading_makes(
    partition: Path, log_dir: Path
) -> None:
    read = opened(partition)
    assert len(read.segments) == 3
    assert taken_up(partition, log_dir, seen(partition)) == read


@pytest.mark.parametrize("start", [0, 2, 5])
def test_checkpoints_are_those_of_now(partition: Path, log_dir: Path, start: int) -> None:
    known = seen(partition)
    (log_dir / LOG_START_OFFSET_FILE).write_bytes(pack_offset_checkpoint({("orders", 0): start}))
    found = taken_up(partition, log_dir, known)
    assert (found.log_start_offset, found.checkpoints.log_start) == (start, start)
    assert found == opened(partition)


def test_a_start_beyond_the_end_is_a_problem(partition: Path, log_dir: Path) -> None:
    known = seen(partition)
    (log_dir / LOG_START_OFFSET_FILE).write_bytes(pack_offset_checkpoint({("orders", 0): 7}))
    found = taken_up(partition, log_dir, known)
    assert found.problems == ("the log ends at 6, before its start 7",)
    assert found == opened(partition)


def test_a_log_dir_whose_checkpoint_is_no_good_is_a_problem_of_the_partition(
    partition: Path, log_dir: Path
) -> None:
    known = seen(partition)
    (log_dir / LOG_START_OFFSET_FILE).write_bytes(b"no checkpoint\n")
    found = taken_up(partition, log_dir, known)
    assert len(found.problems) == 1
    assert LOG_START_OFFSET_FILE in found.problems[0]
    assert found == opened(partition)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders-0.0123456789abcdef0123456789abcdef-delete", PartitionKind.DELETE),
        ("orders-0.0123456789abcdef0123456789abcdef-future", PartitionKind.FUTURE),
    ],
)
def test_a_renamed_directory_is_of_its_kind(
    partition: Path, log_dir: Path, name: str, kind: PartitionKind
) -> None:
    renamed = partition.rename(log_dir / name)
    found = taken_up(renamed, log_dir, seen(renamed))
    assert found.kind is kind
    assert found == opened(renamed)


def test_a_directory_of_another_name_is_a_stray_one(partition: Path, log_dir: Path) -> None:
    found = taken_up(log_dir / "orders", log_dir, seen(partition))
    assert found.kind is PartitionKind.STRAY
    assert found.problems == ("orders is not the name of a partition's directory",)
