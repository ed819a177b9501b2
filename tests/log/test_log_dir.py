"""What is found below a path, and what is a problem there."""

from __future__ import annotations

import json
import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, HIGH_WATERMARK_FILE
from kafkalog.format.file_names import log_file_name, offset_index_file_name
from kafkalog.log import partition_dir
from kafkalog.log.inventory import (
    LogInventory,
    PartitionInventory,
    PartitionKind,
    TopicPartition,
)
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_headers import HeaderScan
from tests.support.log_builder import META, START_MS, TOPIC_ID, LogBuilder

UNIQUE_ID = "2e699e9b000340b68a5200850085fc71"
ORDERS = TopicPartition("orders", 0)


def _orders(log_dir: Path, name: str = "orders-0") -> LogBuilder:
    log = LogBuilder(log_dir, name, index_interval_bytes=100)
    for first in range(0, 30, 10):
        log.segment()
        for offset in range(first, first + 10, 2):
            log.batch((f"k{offset}", "v" * 20), (f"k{offset + 1}", None))
    return log


def _only(inventory: LogInventory) -> PartitionInventory:
    (partition,) = inventory.partitions
    return partition


def test_a_log_dir_is_described_as_it_is(log_dir: Path) -> None:
    log = _orders(log_dir).high_watermark(28).cleaner_offset(10).recovery_point(20)
    log.log_start_offset(4).write()
    inventory = open_log_dir(log_dir)
    assert inventory.problems == ()
    partition = _only(inventory)
    assert partition.topic_partition == ORDERS
    assert (partition.kind, partition.problems) == (PartitionKind.LIVE, ())
    assert (partition.path, partition.log_dir) == (str(log.path), str(log_dir))
    assert (partition.directory_id, partition.topic_id) == (META.directory_id, TOPIC_ID)
    assert (partition.dir_device, partition.dir_inode) == (
        log_dir.stat().st_dev,
        log_dir.stat().st_ino,
    )
    assert (partition.log_start_offset, partition.log_end_offset) == (4, 30)
    checkpoints = partition.checkpoints
    assert (checkpoints.high_watermark, checkpoints.cleaner) == (28, 10)
    assert (checkpoints.recovery_point, checkpoints.log_start) == (20, 4)
    assert partition.snapshot_offsets == (10, 20, 30)
    assert [segment.base_offset for segment in partition.segments] == [0, 10, 20]
    assert [segment.is_active for segment in partition.segments] == [False, False, True]
    assert [segment.has_snapshot for segment in partition.segments] == [False, True, True]
    assert not partition.has_remote_segments


def test_a_segment_is_described_by_stat_and_its_indexes(log_dir: Path) -> None:
    log = _orders(log_dir)
    path = log.write() / log_file_name(10)
    segment = _only(open_log_dir(log_dir)).segments[1]
    stat = path.stat()
    assert segment.path == str(path)
    assert segment.size_in_bytes == stat.st_size == segment.identity.size
    assert (segment.identity.mtime_ns, segment.identity.inode) == (stat.st_mtime_ns, stat.st_ino)
    assert segment.modification_time_ms == stat.st_mtime_ns // 1_000_000
    assert segment.offset_index_bytes == (log.path / offset_index_file_name(10)).stat().st_size > 0
    assert segment.time_index_bytes > 0
    assert segment.largest_timestamp_ms == START_MS + 19


def test_a_partition_without_checkpoints_is_unknown_where_they_would_tell(log_dir: Path) -> None:
    _orders(log_dir).write()
    for path in log_dir.glob("*-checkpoint"):
        path.unlink()
    checkpoints = _only(open_log_dir(log_dir)).checkpoints
    assert checkpoints.high_watermark is checkpoints.cleaner is checkpoints.log_start is None


@pytest.mark.parametrize("clean_shutdown", [True, False])
@pytest.mark.parametrize("torn_bytes", [0, 1, 17, 40, 61])
def test_log_end_is_behind_the_last_whole_batch(
    log_dir: Path, torn_bytes: int, clean_shutdown: bool
) -> None:
    log = _orders(log_dir)
    if torn_bytes:
        log.torn(torn_bytes)
    log.write(clean_shutdown=clean_shutdown)
    partition = _only(open_log_dir(log_dir))
    assert (partition.log_end_offset, partition.problems) == (30, ())


def test_preallocated_indexes_count_their_entries_only(log_dir: Path) -> None:
    closed = _orders(log_dir, "a-0")
    closed.write()
    _orders(log_dir, "b-0").write(clean_shutdown=False)
    first, second = open_log_dir(log_dir)
    assert second.segments[-1].offset_index_bytes == first.segments[-1].offset_index_bytes > 0
    assert (closed.path / offset_index_file_name(20)).stat().st_size < 1000


@pytest.mark.parametrize("offset", [-1, -(2**62), -(2**63), 19])
def test_log_end_is_not_before_the_active_segment(log_dir: Path, offset: int) -> None:
    """No checksum covers a base offset, and a damaged one says anything."""
    log = _orders(log_dir).segment()
    path = log.batch(("k", "v")).write()
    active = path / log_file_name(30)
    data = active.read_bytes()
    active.write_bytes(struct.pack(">q", offset) + data[8:])
    (path / offset_index_file_name(30)).write_bytes(b"")
    partition = _only(open_log_dir(log_dir))
    assert partition.log_end_offset == 30
    (problem,) = partition.problems
    assert f"the last batch ends at {offset}, its segment begins at 30" in problem
    assert f"{active} @ 0: " in problem


def test_log_end_of_a_preallocated_log_is_before_the_zeros(log_dir: Path) -> None:
    _orders(log_dir).raw(bytes(5000)).write()
    partition = _only(open_log_dir(log_dir))
    assert (partition.log_end_offset, partition.problems) == (30, ())


def test_log_end_of_an_empty_active_segment_is_its_base(log_dir: Path) -> None:
    _orders(log_dir).segment(99).write()
    assert _only(open_log_dir(log_dir)).log_end_offset == 99


@pytest.mark.parametrize(
    "entry",
    [
        (5, 1),  # not a batch's position
        (5, 1 << 30),  # past the end
        (1, 300),  # an older log's: batches there are already past it
        (-5, 300),
    ],
)
def test_log_end_does_not_depend_on_a_wrong_index(log_dir: Path, entry: tuple[int, int]) -> None:
    path = _orders(log_dir).write() / offset_index_file_name(20)
    path.write_bytes(b"".join(value.to_bytes(4, "big", signed=True) for value in entry))
    partition = _only(open_log_dir(log_dir))
    assert (partition.log_end_offset, partition.problems) == (30, ())


def test_a_corrupt_active_segment_is_a_problem_with_its_place(log_dir: Path) -> None:
    log = _orders(log_dir).raw(bytes(17) + b"\x01" * 60)
    position = len(log.segments[-1].log) - 77
    log.write()
    partition = _only(open_log_dir(log_dir))
    assert partition.log_end_offset == 30
    assert len(partition.problems) == 1
    assert f"{log_file_name(20)} @ {position}" in partition.problems[0]


def test_log_start_is_never_below_the_first_segment(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment(40).batch(("k", "v"))
    log.write()
    assert _only(open_log_dir(log_dir)).log_start_offset == 40


def test_a_log_that_ends_before_its_start_is_a_problem(log_dir: Path) -> None:
    _orders(log_dir).log_start_offset(31).write()
    assert "before its start 31" in _only(open_log_dir(log_dir)).problems[0]


@pytest.mark.parametrize(
    ("first_base", "log_start", "cache", "remote"),
    [(40, 0, False, True), (0, 0, True, True), (0, 0, False, False), (0, 1, True, False)],
)
def test_remote_segments_show_in_the_log_start(
    log_dir: Path, first_base: int, log_start: int, cache: bool, remote: bool
) -> None:
    log = LogBuilder(log_dir).segment(first_base).batch(("k", "v"), ("l", "v"))
    log.log_start_offset(log_start).write()
    if cache:
        (log_dir / "remote-log-index-cache").mkdir()
    inventory = open_log_dir(log_dir)
    assert inventory.problems == ()
    partition = _only(inventory)
    assert (partition.has_remote_segments, partition.log_start_offset) == (remote, log_start)


@pytest.mark.parametrize("kind", ["delete", "future", "stray"])
def test_a_renamed_directory_has_its_kind(log_dir: Path, kind: str) -> None:
    _orders(log_dir).write()
    (log_dir / "orders-0").rename(log_dir / f"orders-0.{UNIQUE_ID}-{kind}")
    partition = _only(open_log_dir(log_dir))
    assert (partition.topic_partition, partition.kind) == (ORDERS, PartitionKind(kind))
    with pytest.raises(InvalidConfigError, match="found: none"):
        open_log_dir(log_dir).partition(ORDERS)


def test_a_path_may_be_a_partition_a_file_or_a_glob(log_dir: Path) -> None:
    for name in ("orders-0", "orders-1", "other-0"):
        _orders(log_dir, name).write()
    assert [str(p.topic_partition) for p in open_log_dir(log_dir)] == [
        "orders-0", "orders-1", "other-0",
    ]  # fmt: skip
    assert [str(p.topic_partition) for p in open_log_dir(log_dir / "orders-1")] == ["orders-1"]
    assert len(open_log_dir(f"{log_dir}/orders-*")) == 2
    assert len(open_log_dir(log_dir, log_dir / "orders-1", f"{log_dir}/*-0")) == 3
    partition = _only(open_log_dir(log_dir / "orders-1" / log_file_name(10)))
    assert [segment.base_offset for segment in partition.segments] == [10]
    assert partition.log_end_offset == 30
    assert "opened by its .log files, not as a whole" in partition.problems


def test_a_log_dir_named_like_a_partition_is_a_log_dir(log_dir: Path) -> None:
    root = log_dir / "kafka-logs-1"
    _orders(root).write()
    assert _only(open_log_dir(root)).topic_partition == ORDERS


@pytest.mark.parametrize("path", ["nowhere", "*.nothing", "orders-0/partition.metadata"])
def test_a_path_that_is_nothing_of_ours_is_refused(log_dir: Path, path: str) -> None:
    _orders(log_dir).write()
    with pytest.raises(InvalidConfigError, match=path.split("/")[-1].replace("*", r"\*")):
        open_log_dir(log_dir / path)


@pytest.mark.parametrize("name", [CLEANER_OFFSET_FILE, HIGH_WATERMARK_FILE, "meta.properties"])
def test_a_malformed_root_file_is_a_problem_of_every_partition(log_dir: Path, name: str) -> None:
    _orders(log_dir, "a-0").write()
    _orders(log_dir, "b-0").write()
    (log_dir / name).write_bytes(b"0\n7\na 0 x\nversion=9\n")
    inventory = open_log_dir(log_dir)
    assert len(inventory) == 2
    for partition in inventory:
        assert [name in problem for problem in partition.problems] == [True]
    assert [name in problem for problem in inventory.problems] == [True]


def test_a_malformed_partition_metadata_is_a_problem_of_its_partition(log_dir: Path) -> None:
    path = _orders(log_dir, "a-0").write()
    _orders(log_dir, "b-0").write()
    (path / "partition.metadata").write_bytes(b"version: 0\ntopic_id: ???")
    first, second = open_log_dir(log_dir)
    assert "partition.metadata" in first.problems[0]
    assert second.problems == ()


def test_foreign_directories_are_named(log_dir: Path) -> None:
    _orders(log_dir).write()
    (log_dir / "lost+found").mkdir()
    inventory = open_log_dir(log_dir)
    assert len(inventory) == 1
    assert "lost+found" in inventory.problems[0]


def test_a_directory_behind_a_link_is_the_partition_of_its_name(log_dir: Path) -> None:
    """As a broker loads it: of the log dir that holds the link."""
    root, elsewhere = log_dir / "root", log_dir / "elsewhere"
    target = _orders(elsewhere, "volume-7").write()
    _orders(root).recovery_point(30).write()
    (root / "linked-0").symlink_to(target)
    (root / "twin-0").symlink_to("orders-0")
    inventory = open_log_dir(root)
    assert [str(p.topic_partition) for p in inventory] == ["linked-0", "orders-0", "twin-0"]
    assert inventory.problems == ()
    for partition in inventory:
        assert [segment.base_offset for segment in partition.segments] == [0, 10, 20]
        assert partition.log_dir == str(root)
        assert bool(partition.problems) == (partition.topic_partition != ORDERS)
        assert partition.path == str(root / str(partition.topic_partition))
        assert _only(open_log_dir(partition.path)) == partition
    assert f"a link to {target}" in inventory.partitions[0].problems[0]


def test_a_link_that_is_in_no_log_dir_leads_to_the_partition(log_dir: Path) -> None:
    path = _orders(log_dir / "root").write()
    link = log_dir / "by-name-0"
    link.symlink_to(path)
    linked = _only(open_log_dir(link))
    assert linked.problems == (
        f"given by a link, {link}: it is read, and changed by its own path only",
    )
    assert replace(linked, problems=()) == _only(open_log_dir(path))


@pytest.mark.parametrize("target", ["nowhere", "linked-0"], ids=["gone", "itself"])
def test_a_link_to_nowhere_is_a_problem(log_dir: Path, target: str) -> None:
    _orders(log_dir).write()
    (log_dir / "linked-0").symlink_to(log_dir / target)
    inventory = open_log_dir(log_dir)
    assert _only(inventory).topic_partition == ORDERS
    assert inventory.problems == (
        f"{log_dir}/linked-0: a link to nowhere: a broker cannot load or make it",
    )


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_files_behind_links_are_read_and_not_changed(log_dir: Path, suffix: str) -> None:
    path = _orders(log_dir / "root").write()
    whole = _only(open_log_dir(path))
    file = path / f"{10:020d}{suffix}"
    file.rename(log_dir / "elsewhere")
    file.symlink_to(log_dir / "elsewhere")
    linked = _only(open_log_dir(path))
    assert linked.problems == (f"{file.name} is a symbolic link",)
    assert linked.segments == whole.segments
    (log_dir / "elsewhere").unlink()
    gone = _only(open_log_dir(path))
    assert gone.problems == (f"{file.name} is not a regular file",)
    assert len(gone.segments) == 3 - (suffix == ".log")


@pytest.mark.parametrize("name", ["x.log", "12.log", "notes.swap", "backup.index", "a.snapshot"])
def test_names_a_broker_stumbles_over_are_problems(log_dir: Path, name: str) -> None:
    path = _orders(log_dir).write()
    (path / name).write_bytes(b"")
    assert name in _only(open_log_dir(log_dir)).problems[0]


def test_files_with_a_suffix_are_listed_apart(log_dir: Path) -> None:
    path = _orders(log_dir).write()
    names = [
        log_file_name(0, ".cleaned"),
        log_file_name(10, ".swap"),
        log_file_name(5, ".deleted"),
        offset_index_file_name(10, ".swap"),
        "kafkalog-r1-0-00000000000000000000.log.tmp",
        "kafkalog-r1-00000000000000000000.log.undo",
        "notes.txt",
    ]
    for name in names:
        (path / name).write_bytes(b"")
    partition = _only(open_log_dir(log_dir))
    assert [(s.base_offset, s.state) for s in partition.other_segments] == [
        (0, "cleaned"), (10, "swap"), (5, "deleted"),
    ]  # fmt: skip
    assert partition.leftovers == tuple(sorted([*names[:2], names[3], names[4]]))
    assert partition.problems == ()
    assert len(partition.segments) == 3


def test_two_live_directories_of_one_node_refuse_each_other(log_dir: Path) -> None:
    for name in ("a", "b"):
        _orders(log_dir / name).write()
    inventory = open_log_dir(log_dir / "a", log_dir / "b")
    assert ["has this partition" in p.problems[0] for p in inventory] == [True, True]
    with pytest.raises(InvalidConfigError, match="needs one live directory"):
        inventory.partition(ORDERS)


def test_replicas_of_several_nodes_may_be_opened_together(log_dir: Path) -> None:
    for name in ("a", "b"):
        _orders(log_dir / name).write()
    meta = log_dir / "b" / "meta.properties"
    meta.write_bytes(meta.read_bytes().replace(b"node.id=1", b"node.id=2"))
    assert [p.problems for p in open_log_dir(log_dir / "a", log_dir / "b")] == [(), ()]


def test_the_token_follows_the_files(log_dir: Path) -> None:
    path = _orders(log_dir).write()
    token = _only(open_log_dir(log_dir)).token
    assert _only(open_log_dir(log_dir)).token == token
    (path / "kafkalog-r-0-x.tmp").write_bytes(b"output of a task")
    assert _only(open_log_dir(log_dir)).token == token
    os.utime(path / log_file_name(10), ns=(1, 1))
    touched = _only(open_log_dir(log_dir)).token
    assert touched != token
    copy = path / "copy"
    copy.write_bytes((path / log_file_name(0)).read_bytes())
    stat = (path / log_file_name(0)).stat()
    copy.rename(path / log_file_name(0))
    os.utime(path / log_file_name(0), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert _only(open_log_dir(log_dir)).token not in (token, touched)


def test_an_inventory_survives_json_and_pickle(log_dir: Path) -> None:
    _orders(log_dir).write()
    inventory = open_log_dir(log_dir)
    document: dict[str, Any] = json.loads(json.dumps(inventory.to_json()))
    again = LogInventory.from_json(document)
    assert again == inventory
    assert _only(again).token == _only(inventory).token
    assert pickle.loads(pickle.dumps(inventory)) == inventory


def test_a_partition_that_cannot_be_read_hides_no_other(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _orders(log_dir, "a-0").write()
    _orders(log_dir, "b-0").write()
    scan = partition_dir.scan_headers

    def refuse(path: str, *range_: int) -> HeaderScan:
        if "/a-0/" in path:
            raise PermissionError(13, "Permission denied", path)
        return scan(path, *range_)

    monkeypatch.setattr(partition_dir, "scan_headers", refuse)
    inventory = open_log_dir(log_dir)
    assert [str(p.topic_partition) for p in inventory] == ["b-0"]
    assert [("a-0" in text, "Permission denied" in text) for text in inventory.problems] == [
        (True, True)
    ]


def test_a_file_deleted_meanwhile_is_looked_for_again(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _orders(log_dir).write()
    scan, calls = partition_dir.scan_headers, []

    def vanish_once(path: str, *range_: int) -> HeaderScan:
        calls.append(path)
        if len(calls) == 1:
            raise FileNotFoundError(2, "No such file or directory", path)
        return scan(path, *range_)

    monkeypatch.setattr(partition_dir, "scan_headers", vanish_once)
    inventory = open_log_dir(log_dir)
    assert (len(inventory), inventory.problems, len(calls)) == (1, (), 2)


def test_a_formatted_log_dir_has_no_partitions(log_dir: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"no log dir: .*; the directory is empty"):
        open_log_dir(log_dir)
    (log_dir / "meta.properties").write_text("")
    assert len(open_log_dir(log_dir)) == 0


def test_a_partition_without_segments_starts_and_ends_at_its_log_start(log_dir: Path) -> None:
    (log_dir / "orders-0").mkdir()
    partition = _only(open_log_dir(log_dir))
    assert (partition.segments, partition.log_end_offset, partition.problems) == ((), 0, ())
