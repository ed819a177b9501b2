"""`kafkalog recover` as a user meets it; that its files are Kafka's is shown in tests/oracle."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.producer_snapshot import pack_producer_snapshot, parse_producer_snapshot
from kafkalog.log.log_dir import open_log_dir
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.recover import recover_partition
from kafkalog.repair.recover_result import DONE, SOUND, RecoverTask
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.support.log_builder import LogBuilder

NAME = "orders-0"
INTERVAL = ("--config", "index.interval.bytes=100", "--now", str(NOW_MS))


def write_log(log_dir: Path) -> Path:
    """Three segments with transactions, their indexes as Kafka writes them."""
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    for number in range(3):
        log.segment()
        for key in "abcdef":
            log.batch((key, f"{number}" * 40), timestamp=NOW_MS - 1000 + number)
        log.batch(("t", "x"), timestamp=NOW_MS, producer_id=7, is_transactional=True)
        ends = ControlRecordType.ABORT if number != 1 else ControlRecordType.COMMIT
        log.marker(ends, 7, timestamp=NOW_MS)
        log.batch(("i", "y"), timestamp=NOW_MS, producer_id=8)
    return log.write()


def recover(
    log_dir: Path, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, dict[str, Any]]:
    code = main(["recover", "--log-dir", str(log_dir), "--json", *INTERVAL, *more])
    out = capsys.readouterr().out
    return code, json.loads(out)["partitions"][0] if out else {}


def files_of(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.iterdir()}


def found(partition: dict[str, Any]) -> dict[str, str]:
    return {file["name"][-13:].lstrip("0"): file["action"] for file in partition["files"]}


def test_a_sound_log_is_left_alone(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(log_dir)
    before = files_of(path)
    assert recover(log_dir, capsys)[1]["status"] == "sound"
    code, partition = recover(log_dir, capsys, "--topic", "*", "--apply")
    assert (code, partition["status"], partition["files"]) == (0, "sound", [])
    assert (partition["logEndOffset"], partition["segmentsCount"]) == (27, 3)
    assert files_of(path) == before


def test_missing_and_wrong_files_are_named_and_with_apply_made(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    right = files_of(path)
    first, second, third = (f"{base:020d}" for base in (0, 9, 18))
    (path / f"{first}.index").unlink()
    (path / f"{second}.index").write_bytes(right[f"{second}.index"] + bytes(800))
    (path / f"{second}.timeindex").write_bytes(b"abc")
    (path / f"{first}.txnindex").unlink()
    (path / f"{third}.snapshot").write_bytes(right[f"{third}.snapshot"][:-1])
    (path / f"{5:020d}.snapshot").write_bytes(right[f"{third}.snapshot"])
    (path / f"{second}.index").chmod(0o604)
    (path / f"{first}.log").chmod(0o640)
    broken = files_of(path)
    code, partition = recover(log_dir, capsys)
    assert (code, partition["status"]) == (1, "rebuild")
    assert [(file["name"], file["action"]) for file in partition["files"]] == [
        (f"{first}.index", "create"),
        (f"{first}.txnindex", "create"),
        (f"{second}.index", "replace"),
        (f"{second}.timeindex", "replace"),
        (f"{third}.snapshot", "replace"),
        (f"{5:020d}.snapshot", "remove"),
    ]
    reasons = {file["name"]: file["reason"] for file in partition["files"]}
    assert reasons[f"{second}.index"].startswith("800 zero bytes behind its entries")
    assert reasons[f"{second}.timeindex"].startswith("3 bytes, not a multiple of 12")
    assert files_of(path) == broken
    code, partition = recover(log_dir, capsys, "--topic", "orders", "--apply", "--no-undo")
    assert (code, partition["status"]) == (0, "rebuilt")
    made = files_of(path)
    for name, data in right.items():
        if name.endswith(".snapshot"):
            one, other = (parse_producer_snapshot(files[name]) for files in (made, right))
            assert sorted(one, key=str) == sorted(other, key=str)
        else:
            assert made[name] == data, name
    assert made.keys() == right.keys()
    modes = [(path / f"{n}.index").stat().st_mode & 0o777 for n in (first, second)]
    assert modes == [0o640, 0o604]


def test_a_torn_tail_is_cut_only_with_apply(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    log = path / f"{18:020d}.log"
    whole, time_ns = log.read_bytes(), log.stat().st_mtime_ns
    log.write_bytes(whole + whole[:70])
    code, partition = recover(log_dir, capsys)
    assert (code, found(partition)) == (1, {"18.log": "cut"})
    assert len(log.read_bytes()) == len(whole) + 70
    written_ms = log.stat().st_mtime_ns // 1_000_000
    assert recover(log_dir, capsys, "--topic", "*", "--apply")[0] == 0
    assert log.read_bytes() == whole
    assert log.stat().st_mtime_ns // 1_000_000 == written_ms >= time_ns // 1_000_000


@pytest.mark.parametrize("broken", [None, "0\n9\n0 0\n", "0\n1\n0 0\n"])
def test_leader_epochs_are_those_that_batches_begin(
    log_dir: Path, capsys: pytest.CaptureFixture[str], broken: str | None
) -> None:
    log = LogBuilder(log_dir, NAME)
    log.segment().batch(("a", "v")).epoch(3).batch(("b", "v")).segment().batch(("c", "v")).epoch(4)
    epochs = log.batch(("d", "v")).write() / "leader-epoch-checkpoint"
    right = epochs.read_text()
    assert right == "0\n3\n0 0\n3 1\n4 3\n"
    epochs.write_text(right.replace("\n3\n", "\n4\n", 1) + "5 4\n")  # elected, nothing written yet
    assert recover(log_dir, capsys)[1]["status"] == "sound"
    epochs.unlink() if broken is None else epochs.write_text(broken)
    code, partition = recover(log_dir, capsys, "--topic", "*", "--apply")
    assert (code, [file["name"] for file in partition["files"]]) == (0, [epochs.name])
    assert epochs.read_text() == right


@pytest.mark.parametrize("segment", [0, 9, 18])
def test_damage_refuses_the_partition_and_says_what_a_broker_would_do(
    log_dir: Path, capsys: pytest.CaptureFixture[str], segment: int
) -> None:
    path = write_log(log_dir)
    log = path / f"{segment:020d}.log"
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(data)
    (path / f"{0:020d}.index").unlink()
    before = files_of(path)
    code, partition = recover(log_dir, capsys, "--topic", "*", "--apply")
    assert (code, partition["status"]) == (3, "refused")
    behind = {0: "delete what follows (2)", 9: "delete what follows (1)", 18: "would cut"}[segment]
    assert behind in partition["reason"]
    assert f"{segment:020d}.log @ " in partition["reason"]
    assert files_of(path) == before


def test_bytes_behind_an_inner_segment_refuse_the_partition(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    log = path / f"{9:020d}.log"
    log.write_bytes(log.read_bytes() + bytes(50))
    code, partition = recover(log_dir, capsys)
    assert (code, partition["status"]) == (1, "refused")
    assert "would cut 50 bytes here and delete what follows (1)" in partition["reason"]


def test_a_richer_snapshot_is_kept_and_a_poorer_one_replaced(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    first, second = f"{9:020d}.snapshot", f"{18:020d}.snapshot"
    entries = parse_producer_snapshot((path / first).read_bytes())
    retired = replace(entries[0], producer_id=99, current_txn_first_offset=-1)
    (path / first).write_bytes(pack_producer_snapshot([*entries, retired]))
    assert recover(log_dir, capsys)[1]["status"] == "sound"
    (path / second).write_bytes(pack_producer_snapshot(entries))  # before the marker behind it
    code, partition = recover(log_dir, capsys)
    assert (code, found(partition)) == (1, {"18.snapshot": "replace"})
    hanging = replace(retired, current_txn_first_offset=3)
    (path / first).write_bytes(pack_producer_snapshot([*entries, hanging]))
    code, partition = recover(log_dir, capsys)
    assert found(partition) == {"9.snapshot": "replace", "18.snapshot": "replace"}


def test_an_interrupted_swap_is_resolved_first(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    right = files_of(path)
    for kind in (".log", ".index", ".timeindex"):
        (path / f"{9:020d}{kind}").rename(path / f"{9:020d}{kind}.swap")
    code, partition = recover(log_dir, capsys)
    assert (code, partition["status"], partition["files"]) == (1, "rebuild", [])
    assert "finished or undone first" in partition["reason"]
    assert recover(log_dir, capsys, "--topic", "*", "--apply")[0] == 0
    made = files_of(path)
    assert {n: made[n] for n in right if n.endswith((".log", "index"))} == {
        n: data for n, data in right.items() if n.endswith((".log", "index"))
    }


def test_a_log_dir_in_use_is_not_touched(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(log_dir)
    (path / f"{0:020d}.index").unlink()
    script = (
        "import fcntl,os,sys; fd=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT);"
        "fcntl.lockf(fd,fcntl.LOCK_EX); print('held',flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(log_dir / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert recover(log_dir, capsys, "--topic", "*", "--apply") == (3, {})
        holder.send_signal(signal.SIGKILL)
    assert not (path / f"{0:020d}.index").exists()
    assert recover(log_dir, capsys, "--topic", "*", "--apply")[0] == 0


def test_killed_before_any_step_another_run_ends_the_same(log_dir: Path) -> None:
    right = files_of(write_log(log_dir / "right"))
    source = write_log(log_dir / "broken")
    for name in (f"{0:020d}.index", f"{9:020d}.txnindex", f"{18:020d}.snapshot"):
        (source / name).unlink(missing_ok=True)
    log = source / f"{18:020d}.log"
    log.write_bytes(log.read_bytes() + b"torn")
    files = CountingFiles()
    shutil.copytree(log_dir / "broken", log_dir / "counted")
    assert recover_partition(_task(log_dir / "counted"), files).status == DONE
    for last in range(len(files.steps)):
        work = log_dir / f"killed-{last}"
        shutil.copytree(log_dir / "broken", work)
        ended = run_in_child(lambda work=work, last=last: _rebuild(work, DyingFiles(last)))  # type: ignore[misc]
        assert ended == -signal.SIGKILL, files.steps[last]
        for path in (work / NAME).iterdir():
            if path.name in right and path.suffix != ".snapshot":
                old = source / path.name
                allowed = [right[path.name], old.read_bytes() if old.exists() else None]
                assert path.read_bytes() in allowed, (path.name, files.steps[last])
        assert recover_partition(_task(work)).status in (DONE, SOUND)
        assert recover_partition(_task(work)).status == SOUND
        shutil.rmtree(work)


def _rebuild(log_dir: Path, files: CountingFiles) -> None:
    recover_partition(_task(log_dir), files)


def _task(log_dir: Path) -> RecoverTask:
    (partition,) = open_log_dir(log_dir)
    config = LogConfig.from_overrides(["index.interval.bytes=100"])
    return RecoverTask(partition, config, NOW_MS, "run", True, os.getpid())


def test_no_damage_makes_a_fault_of_ours_or_loses_a_byte(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(log_dir)
    whole, rnd = files_of(path), random.Random(11)
    names = sorted(name for name in whole if not name.endswith("checkpoint"))
    for _ in range(60):
        name = rnd.choice([*names, *(n for n in names if n.endswith(".log"))])
        data = bytearray(whole[name])
        for _ in range(rnd.randint(1, 3)):
            if data:
                data[rnd.randrange(len(data))] = rnd.choice((0, 1, 0x7F, 0x80, 0xFF))
        for restored in names:
            (path / restored).write_bytes(whole[restored])
        (path / name).write_bytes(data)
        code, partition = recover(log_dir, capsys, "--topic", "*", "--apply")
        assert code in (0, 1, 3), partition
        if name.endswith(".log"):
            assert (path / name).read_bytes() == data or partition["files"][-1]["action"] == "cut"
        elif partition["status"] == "rebuilt":
            assert recover(log_dir, capsys)[1]["status"] == "sound"
