"""The `.lock` of a log dir: whoever holds it, another process changes nothing."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.errors import LogDirLockedError
from kafkalog.log.lock_holder import lock_holder
from kafkalog.log.log_dir import open_log_dir
from kafkalog.swap.log_dir_lock import (
    LogDirLock,
    check_lock_holder,
    log_dirs_to_lock,
)
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import run_in_child
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import NAME, SETTINGS, TOPIC, compact, contents
from tests.oracle.kafka import Kafka


@contextmanager
def another_process(lock: Path, hold: Callable[[int], None]) -> Iterator[int]:
    """A child that opens `lock`, calls `hold` with it and stays; its process id."""
    ready, tell = os.pipe()
    stays, leaves = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(leaves)
        hold(os.open(lock, os.O_RDWR | os.O_CREAT, 0o644))
        os.write(tell, b"x")
        os.read(stays, 1)  # however slow the test is: until it is done, or dead
        os._exit(0)
    os.close(tell)
    os.close(stays)
    try:
        assert os.read(ready, 1) == b"x"
        yield pid
    finally:
        os.close(ready)
        os.close(leaves)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def record_lock(fd: int) -> None:
    fcntl.lockf(fd, fcntl.LOCK_EX)


def command(log_dir: Path) -> int:
    words = ["compact", "--log-dir", str(log_dir), "--topic", TOPIC, "--apply"]
    words += ["--now", str(NOW_MS), "--json"]
    return main(words + [f"--config={key}={value}" for key, value in SETTINGS.items()])


def test_a_lock_held_by_another_process_stops_the_run_with_exit_code_3(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    with another_process(copy / ".lock", record_lock) as pid:
        with pytest.raises(LogDirLockedError, match="running broker"):
            compact(copy)
        assert command(copy) == 3
        assert "nothing was done" in capsys.readouterr().err
        assert lock_holder(str(copy)) == pid
    assert contents(copy) == before
    assert command(copy) == 0
    assert contents(copy) == undisturbed.after


@pytest.mark.oracle
def test_a_lock_held_as_a_broker_holds_it_stops_the_run_with_exit_code_3(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    assert kafka.lock(copy)
    try:
        assert command(copy) == 3
        assert str(copy / ".lock") in capsys.readouterr().err
    finally:
        kafka.unlock()
    assert contents(copy) == before


@pytest.mark.oracle
def test_a_broker_cannot_start_while_a_run_holds_the_lock(log_dir: Path, kafka: Kafka) -> None:
    with LogDirLock(str(log_dir)):
        assert not kafka.lock(log_dir)
    assert kafka.lock(log_dir)
    kafka.unlock()


def test_the_file_alone_and_a_flock_mean_nothing(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    with another_process(copy / ".lock", lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)):
        assert lock_holder(str(copy)) is None
        assert [result.status for result in compact(copy).results] == ["compacted"]


def test_one_process_takes_a_lock_once_and_keeps_it(log_dir: Path) -> None:
    (log_dir.parent / f"{log_dir.name}-link").symlink_to(log_dir)
    link = log_dir.parent / f"{log_dir.name}-link"
    try:
        with LogDirLock(str(log_dir)):
            for path in (log_dir, link, log_dir / "."):
                with pytest.raises(LogDirLockedError, match="this process"):
                    LogDirLock(str(path)).__enter__()
            mine = os.getpid()

            def see() -> None:
                assert lock_holder(str(log_dir)) == mine

            assert run_in_child(see) == 0
        with LogDirLock(str(link)):
            pass
    finally:
        link.unlink()


def test_a_driver_that_is_gone_stops_its_tasks(log_dir: Path) -> None:
    with pytest.raises(LogDirLockedError, match="nobody"):
        check_lock_holder(str(log_dir), 1)
    with another_process(log_dir / ".lock", record_lock) as pid:
        check_lock_holder(str(log_dir), pid)
        with pytest.raises(LogDirLockedError, match=f"found process {pid}"):
            check_lock_holder(str(log_dir), pid + 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file another user's")
def test_a_new_lock_belongs_to_the_log_dirs_owner(log_dir: Path) -> None:
    os.chown(log_dir, 65534, 65534)
    with LogDirLock(str(log_dir)):
        stat = (log_dir / ".lock").stat()
    assert (stat.st_uid, stat.st_gid) == (65534, 65534)


VERBS = {
    "compact": [f"--config={key}={value}" for key, value in SETTINGS.items()],
    "retain": ["--config=cleanup.policy=delete", "--config=retention.ms=-1"],
    "recover": [],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("link", ["in a directory", "between", "in a log dir"])
def test_a_partition_is_changed_by_its_own_path_only(
    verb: str,
    link: str,
    undisturbed: Undisturbed,
    log_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A broker follows a link, and holds the lock of the log dir with the link."""
    target = undisturbed.copy(log_dir / "elsewhere")
    broker, between = log_dir / "broker", log_dir / "between"
    broker.mkdir()
    between.mkdir()
    (between / NAME).symlink_to(target / NAME)
    (broker / NAME).symlink_to(f"../between/{NAME}")
    before = contents(target)
    words = [verb, "--topic", TOPIC, "--apply", "--run-dir", str(log_dir / "runs")]
    words += ["--now", str(NOW_MS), *VERBS[verb]]
    if link == "in a log dir":
        (broker / "meta.properties").write_text("version=0\nbroker.id=1\n")
    path = between / NAME if link == "between" else broker / NAME
    given = [broker, path] if link == "in a log dir" else [path]
    for each in given:
        assert main([*words, "--log-dir", str(each)]) == 3, each
        assert "link" in "".join(capsys.readouterr())
        after = contents(target)
        after.pop(".lock", None)
        assert after == before
    with another_process(target / ".lock", lambda _: open_for_writing(target / NAME)):
        assert main([*words, "--log-dir", str(target)]) == 3
        assert "open for writing" in capsys.readouterr().err
        after = contents(target)
        after.pop(".lock", None)
        assert after == before
    (log_dir / "by-another-name").symlink_to(target)
    assert main([*words, "--log-dir", str(log_dir / "by-another-name")]) == 0


def test_undo_does_not_begin_beside_who_writes(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    run_dir = ["--run-dir", str(log_dir / "runs")]
    words = ["compact", "--log-dir", str(copy), "--topic", TOPIC, "--apply", "--now", str(NOW_MS)]
    assert main([*words, *VERBS["compact"], *run_dir]) == 0
    (run,) = (path.name for path in (log_dir / "runs").iterdir())
    with another_process(copy / ".lock", lambda _: open_for_writing(copy / NAME)):
        assert main(["undo", run, *run_dir]) == 3
        assert main(["purge", run, *run_dir]) == 3
    with another_process(copy / ".lock", lambda _: open_for_reading(copy / NAME)):
        assert main(["undo", run, *run_dir]) == 0


def open_for_writing(directory: Path) -> None:
    os.open(max(directory.glob("*.log")), os.O_RDWR)


def open_for_reading(directory: Path) -> None:
    os.open(max(directory.glob("*.log")), os.O_RDONLY)


def test_a_log_dir_by_two_names_is_locked_once(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (log_dir / "link").symlink_to(copy)
    inventory = open_log_dir(log_dir / "link")
    assert log_dirs_to_lock([*inventory, *open_log_dir(copy / NAME)]) == [str(copy)]
