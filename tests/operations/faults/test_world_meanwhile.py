"""What others do while a run is at work, and what links and rights do to it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from kafkalog.errors import LogDirLockedError
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.swap.log_dir_lock import LogDirLock
from tests.operations.faults.breaking_files import CRASH_TIMEOUT_S, run_in_child
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import NAME, compact, contents
from tests.operations.faults.test_attempts import RUN, InterruptedFiles, plan_of
from tests.operations.faults.test_locks import command
from tests.operations.faults.test_world import compact as run_command
from tests.operations.undo.trees import differences, tree
from tests.oracle.kafka import Kafka


def test_of_two_runs_at_once_one_does_the_work_and_the_other_nothing(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (begun, tell_begun), (go_on, tell_go_on) = os.pipe(), os.pipe()

    def wait_for_the_other() -> None:
        os.write(tell_begun, b"x")
        os.read(go_on, 1)

    first = os.fork()
    if first == 0:
        signal.alarm(CRASH_TIMEOUT_S)
        code = 1
        try:
            in_the_swap = undisturbed.steps.index("sync directory") + 2
            run = compact(copy, InterruptedFiles(in_the_swap, wait_for_the_other))
            code = 0 if [r.status for r in run.results] == ["compacted"] else 2
        finally:
            os._exit(code)
    assert os.read(begun, 1) == b"x"
    halfway = contents(copy)
    assert command(copy) == 3
    assert "nothing was done" in capsys.readouterr().err
    with pytest.raises(LogDirLockedError):
        compact(copy)
    assert contents(copy) == halfway
    os.write(tell_go_on, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) == 0
    assert contents(copy) == undisturbed.after
    for fd in (begun, tell_begun, go_on, tell_go_on):
        os.close(fd)


@pytest.mark.oracle
def test_a_broker_that_starts_mid_run_does_not_get_the_log_dir(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka
) -> None:
    for at in range(0, len(undisturbed.steps), 40):
        copy = undisturbed.copy(log_dir / f"copy-{at}")
        got: list[bool] = []
        files = InterruptedFiles(at, lambda: got.append(kafka.lock(copy)))  # noqa: B023 - at once
        assert [r.status for r in compact(copy, files).results] == ["compacted"]
        assert got == [False]
        assert contents(copy) == undisturbed.after
        assert kafka.lock(copy)
        kafka.unlock()


def test_a_replicas_disk_is_told_by_its_directory_id(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    """The same files at the same path, sizes, times and all: but another broker's directory."""
    copy = undisturbed.copy(log_dir / "copy")
    meta = copy / "meta.properties"
    meta.write_text("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=bMlluLhQIw4ZCbzFubEoXQ\n")
    plan = plan_of(copy)
    assert plan.status == "clean"
    meta.write_text("version=1\ncluster.id=c\nnode.id=2\ndirectory.id=cMlluLhQIw4ZCbzFubEoXQ\n")
    before = tree(copy)
    with LogDirLock(str(copy)):
        result = clean_partition(plan, CleanRun(RUN, os.getpid()))
    assert result.status == "failed"
    assert "another host's disk under the same path" in result.reason
    changed = differences(tree(copy), before)
    assert changed == []


def test_a_log_dir_behind_a_link_is_the_log_dir(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (log_dir / "link").symlink_to(copy)
    code, partitions = run_command(log_dir / "link", capsys)
    assert (code, partitions[NAME]["status"]) == (0, "compacted")
    assert contents(copy) == undisturbed.after


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_what_a_link_leads_to_is_never_changed(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    copy, elsewhere = undisturbed.copy(log_dir / "copy"), log_dir / "elsewhere"
    elsewhere.mkdir()
    linked = copy / NAME / f"{10:020d}{suffix}"
    linked.rename(elsewhere / "file")
    linked.symlink_to(elsewhere / "file")
    before, target = contents(copy), tree(elsewhere)
    _, partitions = run_command(copy, capsys)
    assert differences(tree(elsewhere), target) == []
    if partitions[NAME]["status"] == "compacted":
        assert contents(copy) == undisturbed.after
    else:
        assert partitions[NAME]["reason"]
        assert contents(copy) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("read_only", ["directory", "log dir", "unreadable segment"])
def test_what_may_not_be_written_or_read_is_named(
    undisturbed: Undisturbed, log_dir: Path, read_only: str
) -> None:
    """As the broker's own user, whose files these are."""
    copy = undisturbed.copy(log_dir / "copy")
    log_dir.chmod(0o777)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, 65534, 65534)
    if read_only == "unreadable segment":
        (copy / NAME / f"{20:020d}.log").chmod(0)
    else:
        (copy / NAME if read_only == "directory" else copy).chmod(0o500)
    before = {name: data for name, data in contents(copy).items() if name != ".lock"}
    report = log_dir / "report"

    def as_its_user() -> None:
        os.environ["XDG_STATE_HOME"] = str(log_dir / "state")
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            run = compact(copy)
            ended = [f"{r.status}: {r.reason}" for r in run.results]
            ended += [f"{p.status}: {p.reason}" for p in run.plans if p.status != "clean"]
            report.write_text(json.dumps([*ended, *run.problems]))
        except LogDirLockedError as error:
            report.write_text(json.dumps([f"locked: {error}"]))

    assert run_in_child(as_its_user) == 0
    told = json.loads(report.read_text())
    assert told
    assert "Permission denied" in told[0]
    found = contents(copy)
    changed = {name for name in found if found[name] != before.get(name)}
    assert changed == set()
