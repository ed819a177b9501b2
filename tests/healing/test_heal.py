"""A wrong replica is put right by the records of a right one; undo gives its bytes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import pack_offset_checkpoint
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.tables import read_records
from tests.comparing.comparing import told
from tests.comparing.test_differences import Build, at, data, nodes, plain
from tests.support.log_builder import LogBuilder

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def heal(*log_dirs: Path, apply: bool = True) -> int:
    words = ["compare", *map(str, log_dirs), "--heal", "--topic", "*", "--workers", "1"]
    return main([*words, "--apply"] if apply else words)


def contents(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and modification time of every file of the partitions."""
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(log_dir.glob("*/*"))
    }


def served(log_dir: Path) -> list[list[tuple[object, ...]]]:
    """Offset, key and value of what consumers of both isolation levels get."""
    (path,) = log_dir.glob("orders-0")
    columns = ["offset", "key", "value"]
    return [
        [tuple(row.values()) for row in read_records(path, columns=columns, read_committed=level)
         .read_all().to_pylist()]
        for level in (False, True)
    ]  # fmt: skip


def verified(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The ids of what `verify` finds; log dirs here lack other partitions, or the metadata log."""
    capsys.readouterr()
    main(["verify", str(log_dir), "--json"])
    return {finding["id"] for finding in json.loads(capsys.readouterr().out)["findings"]}


def run_ids(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["runs", "--json"]) == 0
    return [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]]


@pytest.fixture
def samples(log_dir: Path) -> tuple[Path, Path]:
    return tuple(copy_sample(f"replicas/node{n}", log_dir / f"node{n}") for n in (1, 2))  # type: ignore[return-value]


def test_what_kafkas_cleaner_left_is_healed_and_undone(
    samples: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for ending in (".log", ".index"):  # what a broker had not removed yet when it stopped
        (samples[1] / "tomb-0" / f"{0:020d}{ending}.deleted").write_bytes(b"cleaned before")
    before = [contents(log_dir) for log_dir in samples]
    assert heal(*samples, apply=False) == 1
    assert [contents(log_dir) for log_dir in samples] == before
    assert heal(*samples) == 0
    assert contents(samples[0]) == before[0]
    assert told(*samples) == []
    assert verified(samples[1], capsys) <= {"partition-missing"}
    assert heal(*samples) == 0  # nothing is left to do
    healed = run_ids(capsys)
    for run in healed:
        if any(run in path.name for path in samples[1].glob("*/*.undo")):
            assert main(["undo", run]) == 0
    after = contents(samples[1])
    assert {name: after.get(name) for name in before[1]} == before[1]
    assert set(after) == set(before[1])
    assert told(*samples) == [
        ("aborted-served-as-committed", 0, "2", "1"), ("resurrected-key", 0, "2", "1")
    ]  # fmt: skip


def test_worker_processes_heal_as_one_does(samples: tuple[Path, Path]) -> None:
    words = ["compare", *map(str, samples), "--heal", "--topic", "*", "--workers", "2", "--apply"]
    assert main(words) == 0
    assert told(*samples) == []


def test_a_task_whose_driver_has_no_lock_changes_nothing(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafkalog.healing import run as module

    monkeypatch.setattr(module, "os", SimpleNamespace(getpid=lambda: 1))
    before = contents(samples[1])
    assert heal(*samples) == 1
    assert contents(samples[1]) == before


def older_values(log: LogBuilder, *, has_tombstone: bool) -> LogBuilder:
    """Without its tombstone a key's older value would come to light behind the newest."""
    log.segment()
    for offset, value in ((0, "1"), (1, "2"), (2, "3")):
        if not has_tombstone:
            at(log, offset, "a", value)
    at(log, 4, "b", "1").segment()
    return at(log, 5, "b", "2").segment().batch(("c", "1")).cleaner_offset(5)


def ended(log: LogBuilder, type_: ControlRecordType, *, has_it: bool, later: bool) -> LogBuilder:
    data(log.segment().batch(("a", "1")))
    if has_it:
        log.marker(type_, 7)
    else:
        log.next_offset += 1
    log.batch(("b", "1"))
    return data(log).marker(COMMIT if type_ is ABORT else ABORT, 7) if later else log


def lost(log: LogBuilder) -> LogBuilder:
    log.segment().batch(("a", "1"))
    return at(log, 2, "c", "3").batch(("own", "tail"))


def longer(log: LogBuilder) -> LogBuilder:
    return plain(log).batch(("own", "tail"))


CASES: dict[str, tuple[Build, Build]] = {
    "resurrected-key": (
        lambda log: older_values(log, has_tombstone=True),
        lambda log: older_values(log, has_tombstone=False),
    ),
    "missing-range": (longer, lost),
    **{
        f"{kind} {later}": (
            lambda log, k=kind, b=later: ended(log, k, has_it=True, later=b),  # type: ignore[misc]
            lambda log, k=kind, b=later: ended(log, k, has_it=False, later=b),  # type: ignore[misc]
        )
        for kind in (ABORT, COMMIT)
        for later in (True, False)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_difference_is_healed(
    case: str, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dirs = nodes(log_dir, *CASES[case])
    assert told(*dirs) != []
    right = served(dirs[0])
    assert heal(*dirs) == 0
    assert told(*dirs) == []
    assert verified(dirs[1], capsys) == {"metadata-log-missing"}
    assert served(dirs[1]) == right == served(dirs[0])


def damaged(log_dir: Path) -> list[Path]:
    dirs = nodes(log_dir, longer, plain)
    log = dirs[0] / "orders-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    return dirs


def test_a_batch_that_cannot_be_read_is_taken_from_another_copy(log_dir: Path) -> None:
    """The wrong copy goes on behind the right one: its own records stay there."""
    dirs = damaged(log_dir)
    assert heal(*dirs) == 0
    assert told(*dirs) == []
    assert [row[0] for row in served(dirs[0])[0]] == [0, 1, 2, 3]


def test_what_is_not_provable_stays_as_it_is(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def changed(log: LogBuilder) -> LogBuilder:
        return log.segment().batch(("a", "1"), ("b", "other")).batch(("c", "3"))

    def old(log: LogBuilder) -> LogBuilder:
        return plain(log).batch(("d", "old"))

    def new(log: LogBuilder) -> LogBuilder:
        return plain(log).epoch(2).batch(("d", "new"))

    for number, (builds, reason) in enumerate(
        (((plain, changed), "not provable which copy is right"), ((new, old), "its broker cuts it"))
    ):
        root = log_dir / str(number)
        root.mkdir()
        dirs = nodes(root, *builds)
        before = [contents(each) for each in dirs]
        assert heal(*dirs) == 1
        assert reason in capsys.readouterr().out
        assert [contents(each) for each in dirs] == before
    assert main(["compare", *map(str, dirs), "--apply", "--topic", "*"]) == 2


def test_a_torn_tail_is_cut_by_recover_and_not_on_the_way(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dirs = nodes(log_dir, *CASES["resurrected-key"])
    active = sorted((dirs[1] / "orders-0").glob("*.log"))[-1]
    with active.open("ab") as file:
        file.write(bytes(7) + b"torn")
    before = contents(dirs[1])
    assert heal(*dirs) == 1
    assert "11 bytes behind its last whole batch" in capsys.readouterr().out
    assert contents(dirs[1]) == before
    assert main(["recover", str(dirs[1]), "--topic", "orders", "--apply"]) == 0
    assert heal(*dirs) == 0
    assert told(*dirs) == []


def test_a_copy_that_changes_meanwhile_is_left_alone(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafkalog.healing import heal as module

    def written_to(healed: object, right: PartitionInventory, limit: int) -> None:
        points = Path(right.log_dir, "recovery-point-offset-checkpoint")
        name = right.topic_partition
        points.write_bytes(pack_offset_checkpoint({(name.topic, name.partition): 7}))

    monkeypatch.setattr(module, "check_equal", written_to)
    before = contents(samples[1])
    assert heal(*samples) == 1
    assert contents(samples[1]) == before


class Death(BaseException):
    """The process is gone: nothing catches it."""


def operations(path: Path) -> Iterator[str]:
    yield from ("rename", "link", "remove", "write_new", "sync_directory")


@pytest.mark.parametrize(
    "at_operation",
    [
        3,
        9,
        *(pytest.param(n, marks=pytest.mark.thorough) for n in (0, 1, 5, 12, 15, 18, 21, 23, 25)),
    ],
)
def test_a_run_that_dies_leaves_a_copy_that_the_next_one_heals(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, at_operation: int
) -> None:
    from kafkalog.swap.local_files import LocalFiles

    dirs = nodes(log_dir, *CASES["resurrected-key"])
    right, done = served(dirs[0]), 0
    for name in operations(log_dir):
        own = getattr(LocalFiles, name)

        def dying(self: LocalFiles, *args: object, own: object = own) -> object:
            nonlocal done
            # Of the live partition alone: the staged one is nobody's.
            if "-healing.tmp" not in str(args[-1] if len(args) == 1 else args[1]):
                done += 1
                if done > at_operation:
                    raise Death
            return own(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(LocalFiles, name, dying)
    with pytest.raises(Death):
        heal(*dirs)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(log_dir / "state"))
    assert heal(*dirs) == 0
    assert told(*dirs) == []
    assert served(dirs[1]) == right
    assert not list(dirs[1].glob("*/*-healing.tmp"))
    shutil.rmtree(log_dir / "state")
