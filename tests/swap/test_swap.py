from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalog.cleaning.finished_group import fingerprint
from kafkalog.errors import LogDirLockedError
from kafkalog.format.file_names import parse_file_name
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.swap import partition_lock
from kafkalog.swap.local_files import LocalFiles, list_names
from kafkalog.swap.partition_lock import locked_partition, wait_for_other_runs
from kafkalog.swap.replacement import Replacement, SwapGroup, read_record, write_record
from kafkalog.swap.scratch import Scratch, is_scratch, new_attempt_id
from kafkalog.swap.swap import remove_other_attempts, remove_snapshots
from tests.batches.logs import rows_of
from tests.operations.faults.test_locks import another_process, record_lock

RECORD = Replacement(
    "r1", "compact", "a", True, 0, (SwapGroup(0, (0, 10), "f"), SwapGroup(20, (20,), "g"))
)


def test_only_one_process_at_a_time_holds_the_partition(log_dir: Path) -> None:
    scratch, inside = Scratch(str(log_dir), "r1"), log_dir / "inside"

    def take_turns() -> None:
        for _ in range(60):
            with locked_partition(scratch):
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                os.sched_yield()  # who else may come in, comes now
                inside.unlink()

    def start() -> int:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                take_turns()
                code = 0
            finally:
                os._exit(code)
        return pid

    pids = [start() for _ in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 4
    assert list_names(str(log_dir)) == []


@pytest.mark.parametrize("name", ["lock", "turn"])
def test_a_partition_that_an_earlier_run_holds_is_waited_for(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also under the name that earlier versions gave the file."""
    monkeypatch.setattr(partition_lock, "MAX_WAIT_S", 0.1)
    path = log_dir / f"kafkalog-0123abcd-{name}.tmp"
    with another_process(path, record_lock), pytest.raises(LogDirLockedError, match=path.name):
        wait_for_other_runs(str(log_dir))
    wait_for_other_runs(str(log_dir))


def test_a_record_that_is_not_whole_is_none(log_dir: Path) -> None:
    path = str(log_dir / "kafkalog-r1-swap.tmp")
    assert read_record(path) is None
    write_record(path, RECORD, LocalFiles())
    assert read_record(path) == RECORD
    data = Path(path).read_bytes()
    for size in range(len(data)):
        Path(path).write_bytes(data[:size])
        assert read_record(path) is None
    Path(path).write_text('{"run_id": "r1", "groups": [], "more": 1}')
    assert read_record(path) is None


@pytest.mark.parametrize(
    "other",
    [
        [Record(0, 0, b"k", b"w"), Record(1, 0, b"k", b"v")],
        [Record(0, 0, b"k", b"v")],
        [Record(0, 0, b"k", b"v"), Record(2, 0, b"k", b"v")],
    ],
)
def test_a_fingerprint_tells_contents_apart(other: list[Record]) -> None:
    records = [Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")]
    content = fingerprint([rows_of(pack_batch(records))])
    assert content == fingerprint([rows_of(pack_batch(records))])
    assert content != fingerprint([rows_of(pack_batch(other))])
    assert content != fingerprint([])


def test_snapshots_go_where_no_segment_starts(log_dir: Path) -> None:
    for base in (0, 10, 20):
        (log_dir / f"{base:020d}.snapshot").write_bytes(b"")
    (log_dir / f"{10:020d}.log").write_bytes(b"")
    remove_snapshots(str(log_dir), (0, 10), LocalFiles())
    left = [f"{10:020d}.log", f"{10:020d}.snapshot", f"{20:020d}.snapshot"]
    assert list_names(str(log_dir)) == left


def test_outputs_of_other_attempts_go_and_nothing_else(log_dir: Path) -> None:
    scratch = Scratch(str(log_dir), "r1")
    mine, theirs = new_attempt_id(), new_attempt_id()
    assert mine != theirs
    kept = [scratch.output(mine, "x.log"), scratch.swap_record, scratch.done_record, scratch.lock]
    kept += [Scratch(str(log_dir), "r2").output(theirs, "x.log"), str(log_dir / "x.log")]
    for path in [*kept, scratch.output(theirs, "x.log"), scratch.output(theirs, "x.index")]:
        Path(path).write_bytes(b"")
    remove_other_attempts(scratch, mine, LocalFiles())
    assert list_names(str(log_dir)) == sorted(Path(path).name for path in kept)


def test_scratch_names_mean_nothing_to_a_broker(log_dir: Path) -> None:
    scratch = Scratch(str(log_dir), "0123abcd")
    paths = [scratch.output("aa", f"{0:020d}.log"), scratch.swap_record, scratch.done_record]
    for path in [*paths, scratch.lock, scratch.swap_record + ".new.tmp"]:
        name = Path(path).name
        assert is_scratch(name)
        assert scratch.owns(name)
        assert parse_file_name(name) is None
        assert not name[0].isdigit()
        assert name.endswith(".tmp")
        assert not Scratch(str(log_dir), "0123abc").owns(name)
    for name in (f"{0:020d}.log", "kafkalog-notes.tmp", "leader-epoch-checkpoint.tmp"):
        assert not is_scratch(name)
