"""What a run says about partitions and files it could not read, or was asked for wrongly."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from kafkalog.cleaning.joined_sources import join_sources
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.operations import compact_partition, compact_plan
from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.swap import segment_deletion
from kafkalog.swap.log_dir_lock import LOCK_FILE_NAME
from tests.cleaning.test_laws import CONFIG
from tests.operations.faults.logs import contents
from tests.operations.test_compact import NOW_MS, checkpoint, partition_contents, write_partition
from tests.support.control_variants import VARIANTS
from tests.support.log_builder import START_MS, LogBuilder


def request_for(log_dir: Path, *topics: str) -> CompactionRequest:
    return CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics)


def command(log_dir: Path | str, *words: str) -> int:
    where = ["compact", "--log-dir", str(log_dir), "--config=cleanup.policy=compact"]
    return main([*where, "--config=min.cleanable.dirty.ratio=0", *words])


def put_elsewhere(log_dir: Path, name: str) -> None:
    """A partition that cannot be used: its directory is a link to a disk that is not there."""
    shutil.rmtree(log_dir / name)
    (log_dir / name).symlink_to(log_dir / "nowhere")


@pytest.mark.parametrize("words", [[], ["--topic", "t", "--apply"]])
def test_a_partition_that_is_passed_over_is_named(
    log_dir: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0")
    write_partition(log_dir, "u-0")
    put_elsewhere(log_dir, "u-0")
    assert command(log_dir, "--json", *words) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [p["topic"] for p in document["partitions"]] == ["t"]
    assert document["problems"] == [
        f"{log_dir}/u-0: a link to nowhere: a broker cannot load or make it"
    ]
    assert document["problems"][0] in err


def test_a_named_partition_that_cannot_be_read_is_not_called_missing_only(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    put_elsewhere(log_dir, "t-0")
    with pytest.raises(
        InvalidConfigError, match=r"not in the log dirs: t; .*t-0: a link to nowhere"
    ):
        plan_run(request_for(log_dir, "t"))


def test_a_file_that_cannot_be_scanned_refuses_its_partition_alone(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    write_partition(log_dir, "u-0")
    (snapshot,) = (log_dir / "t-0").glob("*4.snapshot")
    os.truncate(snapshot, 70 * 1024 * 1024)  # sparse; more than any snapshot is taken for
    before = partition_contents(log_dir, "u-0")
    run = apply_run(request_for(log_dir, "t", "u"), clean_pack)
    assert [(p.status, p.topic_partition.topic) for p in run.plans] == [
        ("refused", "t"),
        ("clean", "u"),
    ]
    assert f"cannot be read: {snapshot}: more than" in run.plans[0].reason
    assert [result.status for result in run.results] == ["compacted"]
    assert partition_contents(log_dir, "u-0") != before


def test_no_memory_fails_one_partition(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_partition(log_dir, "t-0")
    write_partition(log_dir, "t-1")
    joined = join_sources

    # By name, not by order: two threads work at once, and either may come first.
    def fail(groups, *arguments):  # type: ignore[no-untyped-def]
        if "/t-0/" in groups[0].sources[0].path:
            raise MemoryError
        return joined(groups, *arguments)

    monkeypatch.setattr(compact_partition, "join_sources", fail)
    before = partition_contents(log_dir, "t-0")
    run = apply_run(request_for(log_dir, "t"), clean_pack)
    assert [result.status for result in run.results] == ["failed", "compacted"]
    assert "not enough memory" in run.results[0].reason
    assert partition_contents(log_dir, "t-0") == before


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_fault_of_ours_fails_one_partition_and_is_exit_code_4(
    log_dir: Path,
    workers: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("t-0", "t-1", "t-2"):
        write_partition(log_dir, name)
    joined = join_sources

    def divide(groups, *arguments):  # type: ignore[no-untyped-def]
        return 1 // 0 if "/t-1/" in groups[0].sources[0].path else joined(groups, *arguments)

    monkeypatch.setattr(compact_partition, "join_sources", divide)
    before = partition_contents(log_dir, "t-1")
    assert command(log_dir, "--topic", "t", "--apply", "--json", "--workers", workers) == 4
    out, err = capsys.readouterr()
    document = json.loads(out)
    statuses = [p["status"] for p in document["partitions"]]
    assert statuses == ["compacted", "failed", "compacted"]
    reason = document["partitions"][1]["reason"]
    assert reason.startswith("a fault of kafkalog: ZeroDivisionError: ")
    (fault,) = document["faults"]
    assert fault.startswith("t-1: Traceback")
    assert fault in err
    assert partition_contents(log_dir, "t-1") == before
    assert checkpoint(log_dir) == {("t", 0): 3, ("t", 2): 3}


@pytest.mark.parametrize("apply", [[], ["--apply"]])
def test_a_fault_of_ours_in_a_plan_leaves_the_others_theirs(
    log_dir: Path,
    apply: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("t-0", "t-1"):
        write_partition(log_dir, name)
    scanned = compact_plan.scan_partition_facts

    def fail(partition, **arguments):  # type: ignore[no-untyped-def]
        if partition.topic_partition.partition == 0:
            raise KeyError("offsets")
        return scanned(partition, **arguments)

    monkeypatch.setattr(compact_plan, "scan_partition_facts", fail)
    before = partition_contents(log_dir, "t-0")
    assert command(log_dir, "--topic", "t", "--json", *apply) == 4
    document = json.loads(capsys.readouterr().out)
    statuses = [p["status"] for p in document["partitions"]]
    assert statuses == ["compacted" if apply else "clean"]
    (problem,) = document["problems"]
    assert problem.startswith("t-0: not planned: a fault of kafkalog: KeyError: 'offsets' (")
    assert partition_contents(log_dir, "t-0") == before


def test_a_fault_of_ours_in_retention_fails_one_partition(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("t-0", "t-1"):
        write_partition(log_dir, name)
    checked = segment_deletion.check_unchanged

    def fail(directory: str, token: str) -> object:
        return [][0] if directory.endswith("t-0") else checked(directory, token)

    monkeypatch.setattr(segment_deletion, "check_unchanged", fail)
    before = partition_contents(log_dir, "t-0")
    words = ["retain", "--log-dir", str(log_dir), "--topic", "t", "--apply", "--json"]
    assert main([*words, "--config=cleanup.policy=delete", "--config=retention.bytes=0"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert [p["status"] for p in document["partitions"]] == ["failed", "deleted"]
    assert "IndexError" in document["partitions"][0]["reason"]
    assert partition_contents(log_dir, "t-0") == before


@pytest.mark.parametrize("inside", ["backup-1", "meta.properties"])
def test_what_else_lies_in_a_partition_is_no_change(log_dir: Path, inside: str) -> None:
    path = write_partition(log_dir, "t-0")
    (path / inside).mkdir()
    run = apply_run(request_for(log_dir, "t"), clean_pack)
    assert [result.status for result in run.results] == ["compacted"]


def test_one_partition_under_two_names_is_refused(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    write_partition(log_dir, "t-00")
    (log_dir / "meta.properties").unlink()
    before = contents(log_dir)
    assert command(log_dir, "--topic", "t", "--apply") == 3
    assert contents(log_dir) == before


def test_an_empty_path_is_not_the_current_directory(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partition(log_dir, "t-0")
    before = contents(log_dir)
    monkeypatch.chdir(log_dir)
    assert command("", "--topic", "*", "--apply") == 2
    assert contents(log_dir) == before


@pytest.mark.parametrize("now", ["9223372036854775808", "-9223372036854775808"])
def test_a_time_beyond_64_bits_is_bad_usage(log_dir: Path, now: str) -> None:
    write_partition(log_dir, "t-0")
    assert command(log_dir, "--topic", "*", "--apply", f"--now={now}") == 2
    with pytest.raises(InvalidConfigError, match="64 bits"):
        CompactionRequest((str(log_dir),), int(now), CONFIG)


def test_a_lock_that_cannot_be_taken_stops_the_run_with_exit_code_3(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0")
    (log_dir / LOCK_FILE_NAME).mkdir()
    before = contents(log_dir)
    assert command(log_dir, "--topic", "*", "--apply") == 3
    assert f"nothing was done: {log_dir}/.lock: the lock" in capsys.readouterr().err
    assert contents(log_dir) == before


def test_bytes_before_are_those_that_were_read(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not Kafka's two sums, which both count a segment that holds the first dirty offset."""
    path = write_partition(log_dir, "t-0")
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    size = sum((path / f"{base:020d}.log").stat().st_size for base in (0, 2))
    for words in ([], ["--topic", "t", "--apply"]):
        assert command(log_dir, *words) == 0
        header, row = (line.split() for line in capsys.readouterr().out.splitlines())
        assert row[header.index("bytesBefore")] == str(size)


def test_a_pipe_in_a_files_place_is_no_reason_to_wait(log_dir: Path) -> None:
    path = write_partition(log_dir, "t-0")
    (path / "partition.metadata").unlink()
    os.mkfifo(path / "partition.metadata")
    (plan,) = plan_run(request_for(log_dir)).plans
    assert plan.status == "refused"


@pytest.mark.parametrize("name", ["no key", "no value", "type 7"])
def test_a_control_batch_that_no_broker_goes_on_with_is_refused_in_the_plan_too(
    log_dir: Path, name: str
) -> None:
    log = LogBuilder(log_dir, "t-0").segment().batch(("a", "1"), ("a", "2"), producer_id=5)
    log.raw(VARIANTS[name].batch(2, START_MS))
    log.next_offset = 3
    log.segment(3).batch(("c", "1")).write()
    before = contents(log.path)
    (planned,) = plan_run(request_for(log_dir, "t")).plans
    assert planned.status == "refused"
    assert "control record" in planned.reason or "end-transaction marker" in planned.reason
    assert command(log_dir, "--apply") != 0
    assert contents(log.path) == before
