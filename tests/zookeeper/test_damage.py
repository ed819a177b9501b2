"""What a server does with a damaged log at its start, and what a reader says of it: row by row."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog import read_zookeeper
from kafkalog.errors import InvalidConfigError, OffsetOutOfRangeError
from kafkalog.zookeeper.data_dir import open_zookeeper_dir, parse_name
from kafkalog.zookeeper.history import ZooKeeperHistory
from kafkalog.zookeeper.tree_difference import differences
from kafkalog.zookeeper.txn_log_file import TxnLogFile
from tests.zookeeper.files import entry_ends, replayed, write_log

SAMPLE = SAMPLES / "zookeeper"
LOG = SAMPLE / "ensemble" / "version-2" / "log.1"
ENDS = entry_ends(LOG)
WHOLE = LOG.read_bytes()


def count(path: Path) -> tuple[int, TxnLogFile]:
    file = TxnLogFile(path)
    return sum(1 for _ in file), file


@pytest.mark.parametrize("padding", [0, 1, 7, 100, 5000])
def test_zeros_or_the_end_of_the_file_end_a_log(tmp_path: Path, padding: int) -> None:
    found, file = count(write_log(tmp_path, 1, WHOLE[: ENDS[20]] + bytes(padding)))
    assert (found, file.end, file.torn, file.problems) == (20, ENDS[20], None, [])


def test_a_log_cut_anywhere_is_its_whole_entries_and_a_torn_tail(tmp_path: Path) -> None:
    for cut in range(ENDS[0], ENDS[12] + 1):
        found, file = count(write_log(tmp_path, 1, WHOLE[:cut]))
        assert found == sum(end <= cut for end in ENDS[1:])
        # The first bytes of a checksum are zeros, which end a log as well as any.
        is_clean = file.torn is None
        assert is_clean == (not any(WHOLE[file.end : cut]) or cut - file.end < 5)
        assert not file.problems


def test_a_page_that_was_not_written_is_a_torn_tail(tmp_path: Path) -> None:
    middle = (ENDS[19] + ENDS[20]) // 2
    data = WHOLE[:middle] + bytes(ENDS[20] - middle) + bytes(300)
    found, file = count(write_log(tmp_path, 1, data))
    assert found == 19
    assert file.torn is not None
    assert not file.problems


@pytest.mark.parametrize(
    ("position", "value", "what"),
    [
        (ENDS[5] - 1, b"\x00", "ends with 0x00, not 0x42"),
        (ENDS[4] + 30, b"\xff", "the checksum of an entry"),
        (ENDS[4] + 8, b"\xff\xff\xff\xff", "an entry of -1 bytes"),
        (ENDS[4] + 8, b"\x7f\xff\xff\xff", "an entry of 2147483647 bytes"),
        (ENDS[4], bytes(12), "bytes behind the end of the log"),
    ],
)
def test_damage_is_told_and_what_is_behind_it_read(
    tmp_path: Path, position: int, value: bytes, what: str
) -> None:
    data = WHOLE[:position] + value + WHOLE[position + len(value) : ENDS[30]]
    found, file = count(write_log(tmp_path, 1, data))
    assert found == 29
    (problem,) = file.problems
    assert f"log.1 @ {ENDS[4]}: " in problem
    assert what in problem
    assert f"the next entry is at {ENDS[5]}" in problem
    assert file.torn is None
    history = replayed(tmp_path)
    assert problem in history.problems
    assert any("follows" in text for text in history.problems)


def test_a_lost_entry_is_seen_by_the_digest(tmp_path: Path) -> None:
    """Even if nothing else tells: the zxids are made to follow each other."""
    history = replayed(tmp_path) if write_log(tmp_path, 1, WHOLE) else None
    assert history is not None
    assert not history.problems
    write_log(tmp_path, 1, WHOLE[: ENDS[4]] + WHOLE[ENDS[5] :])
    lost = replayed(tmp_path)
    assert any("digest after zxid" in problem for problem in lost.problems)


@pytest.mark.parametrize("length", [0, 1, 15])
def test_a_newest_log_without_a_header_is_a_crash_at_its_creation(
    tmp_path: Path, length: int
) -> None:
    write_log(tmp_path, 1, WHOLE)
    end = replayed(tmp_path).zxid
    write_log(tmp_path, end + 1, WHOLE[:length])
    history = replayed(tmp_path)
    assert (history.problems, len(history.torn)) == ([], 1)
    write_log(tmp_path, end + 2, WHOLE[:16])
    assert len(replayed(tmp_path).problems) == 1


def test_what_a_later_log_begins_with_is_not_taken_from_an_earlier_one(tmp_path: Path) -> None:
    write_log(tmp_path, 1, WHOLE[: ENDS[20]])
    header = WHOLE[: ENDS[0]]
    write_log(tmp_path, 11, header + WHOLE[ENDS[15] : ENDS[20]])
    history = replayed(tmp_path)
    # ten from the first file, none of its 11 to 15
    assert any("0x10 follows 0xa" in problem for problem in history.problems)


def test_a_damaged_snapshot_is_told_and_an_older_one_taken(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "ensemble", tmp_path / "copy")
    directory = open_zookeeper_dir([str(tmp_path / "copy")])
    expected = ZooKeeperHistory(directory).newest()
    newest = directory.snapshots[-1].path
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    history = ZooKeeperHistory(directory)
    assert history.newest() == expected
    (problem,) = history.problems
    assert f"{newest} @ " in problem
    assert "checksum" in problem


def test_a_gap_in_the_logs_is_told_and_bridged_by_a_snapshot(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "ensemble", tmp_path / "copy")
    whole = ZooKeeperHistory(open_zookeeper_dir([str(SAMPLE / "ensemble")]))
    expected = whole.at_end()
    version = tmp_path / "copy" / "version-2"
    write_log(version, 1, WHOLE[: ENDS[20]])
    history = replayed(tmp_path / "copy")
    assert history.tree == expected
    assert history.problems
    assert "no log has the transactions behind zxid 0x14" in history.problems[0]
    # Purged up to the snapshot: what is left of the older log are the changes around it.
    (version / "log.1").unlink()
    (version / "snapshot.0").unlink()
    write_log(version, 101, WHOLE[: ENDS[0]] + WHOLE[ENDS[100] :])
    fresh = ZooKeeperHistory(open_zookeeper_dir([str(tmp_path / "copy")]))
    changes = list(fresh.changes())
    assert fresh.tree == expected
    assert not fresh.problems
    created = {c.path: c for c in changes if c.kind == "created" and not c.is_from_log}
    assert created["/brokers"].zxid == expected.nodes["/brokers"].czxid
    assert created["/brokers"].time_ms == expected.nodes["/brokers"].ctime_ms


@pytest.mark.parametrize("left", [None, 0x119])
def test_behind_an_initial_snapshot_the_state_begins_with_the_next_one(
    tmp_path: Path, left: int | None
) -> None:
    """`snapshot.0` is the empty tree of a new server; the logs behind it are gone, all of them or
    up to the next snapshot."""
    shutil.copytree(SAMPLE / "ensemble", tmp_path / "copy")
    directory = open_zookeeper_dir([str(tmp_path / "copy")])
    assert [file.zxid for file in directory.snapshots] == [0, 0x118]
    for log in directory.logs:
        log.path.unlink()
    if left is not None:
        position = next(n for n, txn in enumerate(TxnLogFile(LOG)) if txn.zxid == left)
        write_log(tmp_path / "copy" / "version-2", left, WHOLE[: ENDS[0]] + WHOLE[ENDS[position] :])
    history = replayed(tmp_path / "copy")
    assert history.problems == []
    assert history.first_zxid == 0x118
    newest = ZooKeeperHistory(open_zookeeper_dir([str(tmp_path / "copy")])).newest()
    assert history.tree == newest
    assert len(newest.nodes) > 20
    tables = read_zookeeper(["topics", "configs"], tmp_path / "copy")
    assert tables["topics"].num_rows
    with pytest.raises(OffsetOutOfRangeError, match="before the oldest state, of zxid 0x118"):
        read_zookeeper("topics", tmp_path / "copy", until_zxid=0x20)


def test_where_no_later_snapshot_is_whole_the_initial_one_counts(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "ensemble", tmp_path / "copy")
    version = tmp_path / "copy" / "version-2"
    for log in version.glob("log.*"):
        log.unlink()
    newest = version / "snapshot.118"
    newest.write_bytes(newest.read_bytes()[:-30])
    history = replayed(tmp_path / "copy")
    assert any(str(newest) in problem for problem in history.problems)
    assert history.first_zxid == 0


def test_a_difference_of_equal_trees_is_none() -> None:
    tree = ZooKeeperHistory(open_zookeeper_dir([str(SAMPLE / "ensemble")])).newest()
    assert differences(tree, tree, 1, "file") == []


def test_two_servers_directories_are_refused(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "ensemble", tmp_path / "other")
    with pytest.raises(InvalidConfigError, match="of one server only"):
        open_zookeeper_dir([str(SAMPLE / "ensemble"), str(tmp_path / "other")])
    with pytest.raises(InvalidConfigError, match="no ZooKeeper snapshot and no log"):
        open_zookeeper_dir([str(SAMPLE / "broker-1")])


def test_a_log_dir_of_its_own_is_read_with_the_data_dir(tmp_path: Path) -> None:
    for kind in ("snapshot", "log"):
        (tmp_path / kind / "version-2").mkdir(parents=True)
        for file in (SAMPLE / "ensemble" / "version-2").glob(f"{kind}.*"):
            shutil.copy(file, tmp_path / kind / "version-2")
    found = ZooKeeperHistory(
        open_zookeeper_dir([str(tmp_path / "snapshot"), str(tmp_path / "log")])
    )
    expected = ZooKeeperHistory(open_zookeeper_dir([str(SAMPLE / "ensemble")]))
    assert found.at_end() == expected.at_end()


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("log.1", ("log", 1, "")),
        ("snapshot.1000002c2", ("snapshot", 0x1000002C2, "")),
        ("snapshot.e8.gz", ("snapshot", 0xE8, "gz")),
        ("snapshot.0.snappy", ("snapshot", 0, "snappy")),
        ("snapshot.e8.tmp", None),
        ("log.tmp", None),
        ("log.01", None),
        ("log.E8", None),
        ("log.e8.gz", None),
        ("log.ffffffffffffffff", None),
        ("currentEpoch", None),
    ],
)
def test_file_names_are_sorted_by_their_zxid(name: str, parsed: tuple[str, int, str]) -> None:
    assert parse_name(name) == parsed


def test_an_older_format_version_is_named(tmp_path: Path) -> None:
    log = write_log(tmp_path, 1, WHOLE[:4] + struct.pack(">i", 3) + WHOLE[8:])
    found, file = count(log)
    assert found == 0
    assert "version 3 of the transaction log, not 2" in file.problems[0]
