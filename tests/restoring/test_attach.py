"""`attach --in-place --apply`: what is written, read back by the reader of metadata; undo to the
last byte; kills at every step; what is refused; the verb itself.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.errors import LogCleaningRefusedError, LogDirLockedError
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.metadata_records import read_snapshot_records
from kafkalog.log.metadata_state import MetadataState
from kafkalog.operations.earlier_run import UNDONE
from kafkalog.operations.undo import undo_run
from kafkalog.restoring.attach import AttachRun, attach_run, is_whole
from kafkalog.restoring.metadata_place import FIRST_SNAPSHOT
from kafkalog.restoring.place_run import ATTACHED
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock
from tests.operations.faults.breaking_files import (
    CountingFiles,
    DyingFiles,
    FailingFiles,
    run_in_child,
)
from tests.operations.undo.trees import Node, differences, dress, tree
from tests.restoring.lost import DIRS, NOW_MS, LostDisks

VOTERS = ",".join(
    (
        "1@127.0.0.1:9093:u-16FAqHReOlgMHNmpb_pA",
        "2@127.0.0.1:9094",
        "3@127.0.0.1:9095",
    )
)
LEFT = frozenset({"metadata-left"})


def trees(disks: LostDisks) -> dict[str, dict[str, Node]]:
    return {name: tree(disks.path / name) for name in DIRS}


def attach(disks: LostDisks, files: LocalFiles | None = None) -> AttachRun:
    return attach_run(disks.request(force=LEFT, controllers=(VOTERS,)), lambda _: None, files)


def state_of(path: Path) -> MetadataState[None]:
    state: MetadataState[None] = MetadataState()
    for record in read_snapshot_records(path):
        state.append(record, None)
    return state


def begins_with(disks: LostDisks, name: str) -> str:
    """What a controller that starts on a log dir would find: `old` metadata, the `new` one, or none
    that it starts on.
    """
    directory = disks.path / name / METADATA_DIR
    logs = sorted(directory.glob("*.log")) if directory.is_dir() else []
    if any(path.stat().st_size for path in logs):
        return "old"
    if any(not path.name.startswith(f"{0:020d}-") for path in directory.glob("0*.checkpoint")):
        return "half"
    values = [r.value for r in read_snapshot_records(disks.path / name / BOOTSTRAP_FILE)]
    return "new" if len(values) > 20 else "old"


def test_what_is_written_is_the_plan_on_every_node(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    run = attach_run(disks.request(), lambda _: None)
    assert is_whole(run)
    paths = [disks.path / name / BOOTSTRAP_FILE for name in DIRS]
    (content,) = {path.read_bytes() for path in paths}
    state = state_of(paths[0])
    found = {
        (s["topic"], s["partition"]): (s["leader"], s["isr"], s["replicas"], s["directories"])
        for s in state.topics.states()
    }
    assert found == {
        (each.topic, each.partition): (
            each.leader,
            each.in_sync,
            [replica.node_id for replica in each.replicas],
            [replica.directory_id for replica in each.replicas],
        )
        for each in run.plan.partitions
    }
    assert {s["leaderEpoch"] for s in state.topics.states()} == {run.plan.leader_epoch}
    assert state.feature_levels == run.plan.feature_levels
    assert not state.unread()
    assert not list(disks.path.glob(f"*/*/{METADATA_DIR}"))
    assert content == paths[-1].read_bytes()


def test_a_dynamic_quorum_gets_its_voters_where_its_metadata_lies(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    assert is_whole(attach(disks))
    found = sorted(str(p.relative_to(disks.path)) for p in disks.path.rglob(FIRST_SNAPSHOT))
    assert found == [f"{name}/{METADATA_DIR}/{FIRST_SNAPSHOT}" for name in ("1/data", *DIRS[2:])]
    kinds = [r.control_type for r in read_snapshot_records(disks.path / found[0])]
    assert [kind.name for kind in kinds if kind is not None] == [
        "SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"
    ]  # fmt: skip


def test_metadata_of_kafka_3_is_a_snapshot_on_every_node(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    (disks.path / DIRS[0] / METADATA_DIR).mkdir()
    before = trees(disks)
    run = attach_run(disks.request(feature_levels={"metadata.version": 21}), lambda _: None)
    assert is_whole(run)
    name = f"{sum(run.records.values()):020d}-0000000001.checkpoint"
    found = sorted(str(p.relative_to(disks.path)) for p in disks.path.rglob("0*.checkpoint"))
    assert found == [f"{each}/{METADATA_DIR}/{name}" for each in ("1/data", "2/data", "3/data")]
    first, *others = [state_of(disks.path / each) for each in found]
    assert len({s["partition"] for s in first.topics.states()}) > 1
    assert [[*each.topics.states()] for each in others] == [[*first.topics.states()]] * 2
    undone = undo_run(tmp_path / "runs", run.run_id)
    assert {result.status for result in undone.results} == {UNDONE}
    for each in DIRS[1:]:
        assert differences(tree(disks.path / each), before[each]) == []


def test_undo_gives_every_byte_back(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("1/data", "2/data"))
    for name in DIRS:
        dress(disks.path / name)
    before = trees(disks)
    run = attach(disks)
    assert is_whole(run)
    after = trees(disks)
    assert all(after[name] != before[name] for name in DIRS)
    undone = undo_run(tmp_path / "runs", run.run_id)
    assert {result.status for result in undone.results} == {UNDONE}
    for name, was in before.items():
        assert differences(tree(disks.path / name), was) == [], name


def test_nothing_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("1/data",))
    run = attach_run(disks.request(force=LEFT, keeps_undo=False), lambda _: None)
    assert is_whole(run)
    assert not list(disks.path.rglob("*.undo"))
    assert not list((disks.path / "1/data" / METADATA_DIR).glob("*.log"))


@pytest.mark.parametrize(
    "stride", [61, pytest.param(7, marks=pytest.mark.thorough)]
)  # of the steps between two kills
def test_a_run_that_is_killed_can_be_run_again_and_undone(tmp_path: Path, stride: int) -> None:
    master = LostDisks(tmp_path / "master", ("1/data",))
    counting = CountingFiles()
    shutil.copytree(master.path, tmp_path / "counted")
    disks = LostDisks.__new__(LostDisks)
    disks.path = tmp_path / "counted"
    attach(disks, counting)
    for last in range(0, len(counting.steps), stride):
        disks.path = tmp_path / f"killed-{last}"
        shutil.copytree(master.path, disks.path)
        code = run_in_child(lambda last=last: attach(disks, DyingFiles(last)))  # type: ignore[misc]
        assert code == -signal.SIGKILL, counting.steps[last]
        for name in DIRS:
            assert begins_with(disks, name) != "half", (counting.steps[last], name)
        run = attach(disks)
        assert is_whole(run), counting.steps[last]
        assert {begins_with(disks, name) for name in DIRS} == {"new"}
        undone = undo_run(tmp_path / "runs", run.run_id)
        assert {result.status for result in undone.results} <= {UNDONE}, counting.steps[last]
        shutil.rmtree(disks.path)


def test_a_run_that_is_killed_is_undone_to_the_last_byte(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("1/data", "2/data"))
    counting = CountingFiles()
    master = shutil.copytree(disks.path, tmp_path / "master")
    attach(disks, counting)
    (tmp_path / "runs").rename(tmp_path / "counted-runs")
    last = counting.steps.index("remove 00000000000000000000.log") + 1
    shutil.rmtree(disks.path)
    shutil.copytree(master, disks.path)
    before = trees(disks)
    assert run_in_child(lambda: attach(disks, DyingFiles(last))) == -signal.SIGKILL
    (run_id,) = (path.name for path in (tmp_path / "runs").iterdir())
    undo_run(tmp_path / "runs", run_id)
    for name, was in before.items():
        wanted = {key: node.data for key, node in was.items() if node.data is not None}
        found = {k: n.data for k, n in tree(disks.path / name).items() if n.data is not None}
        assert found == wanted, name


def test_a_step_that_fails_is_told_and_nothing_more_is_begun(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    run = attach(disks, FailingFiles(3, errno.ENOSPC, for_good=True))
    assert [result.status for result in run.results] == ["failed"]
    assert "No space left" in run.results[0].reason
    assert not is_whole(run)


def test_a_plan_with_refusals_changes_nothing(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("1/data",))
    before = trees(disks)
    with pytest.raises(LogCleaningRefusedError, match="metadata-left"):
        attach_run(disks.request(), lambda _: None)
    assert trees(disks) == before


def test_a_running_broker_is_left_alone(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    before = trees(disks)

    def hold() -> None:
        with LogDirLock(str(disks.path / "2/data")):
            os.write(ready[1], b"x")
            os.read(done[0], 1)

    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        hold()
        os._exit(0)
    os.read(ready[0], 1)
    try:
        with pytest.raises(LogDirLockedError):
            attach_run(disks.request(), lambda _: None)
    finally:
        os.write(done[1], b"x")
        os.waitpid(pid, 0)
    assert trees(disks) == before


def test_the_verb_plans_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disks = LostDisks(tmp_path / "lost")
    words = ["attach", *disks.log_dirs(), "--in-place", "--now", str(NOW_MS)]
    before = trees(disks)
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "nothing was changed (--apply does)" in printed.err
    assert "lost: settings of topics" in printed.err
    assert "orders" in printed.out
    assert trees(disks) == before
    assert main([*words, "--apply", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["applied"]
    assert {each["status"] for each in document["results"]} == {ATTACHED}
    assert document["featureLevels"]["metadata.version"] == 30
    assert main(["undo", document["runId"]]) == 0
    assert trees(disks) == before
    assert main(["attach", *disks.log_dirs()]) == 2
    assert "attach needs either --in-place" in capsys.readouterr().err


def test_secrets_are_in_the_records_and_in_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disks = LostDisks(tmp_path / "lost", ("2/data",))
    words = ["attach", *disks.log_dirs(), "--in-place", "--force", "metadata-left"]
    assert main([*words, "--run-dir", str(tmp_path / "runs"), "--apply", "--json"]) == 0
    printed = capsys.readouterr()
    found = 0
    for record in read_snapshot_records(disks.path / "3/data" / BOOTSTRAP_FILE):
        value = record.value or b""
        if value[:2] == bytes([1, 11]):  # UserScramCredentialRecord
            found += 1
            name_length = value[3] - 1
            user = value[4 : 4 + name_length].decode()
            assert user not in printed.out + printed.err
    assert found == 2


def test_metadata_that_was_changed_on_one_node_stops_undo_on_all(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    run = attach_run(disks.request(), lambda _: None)
    (disks.path / "2/data" / BOOTSTRAP_FILE).write_bytes(b"somebody else's")
    before = tree(disks.path)
    undone = {
        result.place.path: result for result in undo_run(tmp_path / "runs", run.run_id).results
    }
    other = undone.pop(str(disks.path / "2/data"))
    assert (other.status, "changed since the run" in other.reason) == ("refused", True)
    assert {(each.status, "all of it, or nothing" in each.reason) for each in undone.values()} == {
        ("refused", True)
    }
    assert differences(before, tree(disks.path)) == []
