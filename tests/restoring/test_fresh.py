"""A restore into a cluster that was never started: topics are made with it, logs stay the same."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import parse_offset_checkpoint
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from kafkalog.reading.function_views.group_offsets import commits_in_force
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.tables import read_batches
from kafkalog.requests.run_request import run_request
from kafkalog.restoring import beside
from kafkalog.restoring.metadata_place import FIRST_SNAPSHOT
from kafkalog.restoring.offsets_topic import offsets_partition
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.run import apply_restore
from kafkalog.swap.local_files import LocalFiles
from tests.restoring.fresh import fields_of, fresh_node, run_json
from tests.restoring.target import empty_target, served
from tests.restoring.test_restore import open_at_the_end
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, config, partition, topic

TOPIC_ID = "7L6g3nShT-eMCtK--X86sw"


def tree(directory: Path) -> dict[str, bytes]:
    """Every file, but for the lock that any run makes."""
    found = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    return {str(p.relative_to(directory)): data for p, data in found.items() if p.name != ".lock"}


def test_logs_are_the_sources_and_metadata_begins_above_them(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target")
    run_json(capsys, str(source), "--into", str(target), "--topic", "orders", "--apply")
    assert served(target / "orders-0") == served(source / "orders-0")
    logs = [sorted((path / "orders-0").glob("*.log")) for path in (source, target)]
    assert [p.read_bytes() for p in logs[0]] == [p.read_bytes() for p in logs[1]]
    batches = read_batches(target / "orders-0")
    (made,) = fields_of(target, "PartitionRecord")
    assert made["leaderEpoch"] > max(batches["leaderEpoch"].to_pylist())
    (ids,) = fields_of(target, "ProducerIdsRecord")
    assert ids["nextProducerId"] > max(batches["producerId"].to_pylist())
    points = parse_offset_checkpoint((target / "recovery-point-offset-checkpoint").read_bytes())
    assert points == {("orders", 0): 19}
    assert [path.name for path in target.glob("*-delete")] == []


def test_new_cluster_of_kafka_3_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target", levels={"metadata.version": 21})
    said = refused(capsys, str(source), "--into", str(target), "--topic", "orders")
    assert "metadata.version 21 is of Kafka 3" in said


def test_undo_takes_all_of_it_back(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target")
    before = tree(target)
    words = [str(source), "--into", str(target), "--topic", "orders"]
    run_json(capsys, *words)
    assert tree(target) == before
    run = run_json(capsys, *words, "--apply")
    assert (target / "orders-0").is_dir()
    assert main(["restore", *words, "--apply"]) == 3
    assert f"kafkalog undo {run['runId']}" in "".join(capsys.readouterr())
    assert main(["undo", str(run["runId"])]) == 0
    assert tree(target) == before
    assert not (target / "orders-0").exists()
    assert main(["restore", *words, "--apply"]) == 0


def test_no_undo_keeps_nothing(source: Path, log_dir: Path) -> None:
    target = fresh_node(log_dir / "target")
    words = [str(source), "--into", str(target), "--topic", "orders", "--apply", "--no-undo"]
    assert main(["restore", *words]) == 0
    assert list(target.rglob("kafkalog-*")) == []
    assert served(target / "orders-0") == served(source / "orders-0")


def several(log_dir: Path) -> Path:
    """Two topics with settings, of three replicas, in node 1's log dir."""
    cluster = MetadataBuilder(log_dir)
    cluster.batch(
        topic("orders", TOPIC_ID),
        *(partition([1, 2, 3], TOPIC_ID, n) for n in range(3)),
        config("orders", "retention.ms", "-1"),
        config("orders", "remote.storage.enable", "true"),
    ).write()
    for n in range(3):
        log = LogBuilder(log_dir, f"orders-{n}", topic_id=TOPIC_ID).segment().epoch(4)
        log.batch((f"k{n}", "v"), producer_id=n).write()
    return log_dir


def test_replicas_are_spread_over_nodes_and_log_dirs(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = several(log_dir / "source")
    dirs = [fresh_node(log_dir / f"node-{n}{d}", n) for n in (1, 2, 3) for d in ("", "-b")]
    into = [word for path in dirs for word in ("--into", str(path))]
    run = run_json(capsys, str(source), *into, "--topic", "orders", "--apply")
    for n in range(3):
        copies = [path / f"orders-{n}" for path in dirs if (path / f"orders-{n}").is_dir()]
        assert sorted(copy.parent.name[:6] for copy in copies) == ["node-1", "node-2", "node-3"]
        assert all(served(copy) == served(source / f"orders-{n}") for copy in copies)
    assert all(list(path.glob("orders-*")) for path in dirs)
    made = fields_of(dirs[0], "PartitionRecord")
    assert [each["leader"] for each in made] == [1, 2, 3]
    assert all(sorted(each["isr"]) == [1, 2, 3] for each in made)
    assert {each["topicId"] for each in made} == {TOPIC_ID}
    assert [f["name"] for f in fields_of(dirs[0], "ConfigRecord")] == ["retention.ms"]
    assert any("remote.storage.enable=true" in note for note in run["notes"])
    checkpoints = {(path / BOOTSTRAP_FILE).read_bytes() for path in dirs}
    assert len(checkpoints) == 1


def test_followers_that_are_left_empty_are_out_of_sync_and_said(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = several(log_dir / "source")
    dirs = [fresh_node(log_dir / f"node-{n}", n) for n in (1, 2, 3)]
    into = [word for path in dirs for word in ("--into", str(path))]
    words = [*into, "--topic", "orders", "--replication-factor", "2", "--empty-followers"]
    run = run_json(capsys, str(source), *words, "--apply")
    for number, made in enumerate(fields_of(dirs[0], "PartitionRecord")):
        assert made["isr"] == [made["leader"]]
        assert len(made["replicas"]) == 2
        holding = [path.name for path in dirs if (path / f"orders-{number}").is_dir()]
        assert holding == [f"node-{made['leader']}"]
    size = sum(p.stat().st_size for n in range(3) for p in (source / f"orders-{n}").glob("*.log"))
    assert any(f"3 replicas begin empty and out of sync: brokers copy {size} bytes" in note
               for note in run["notes"])  # fmt: skip


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["restore", *words, "--apply"]) == 3
    return "".join(capsys.readouterr())


def test_voters_of_a_dynamic_quorum_stay(source: Path, log_dir: Path) -> None:
    target = fresh_node(log_dir / "target")
    directory = target / METADATA_DIR
    directory.mkdir()
    (directory / FIRST_SNAPSHOT).write_bytes(pack_metadata_snapshot([], 0, contained_ms=1))
    before = tree(directory)
    assert main(["restore", str(source), "--into", str(target), "--topic", "*", "--apply"]) == 0
    assert tree(directory) == before
    assert (target / "orders-0").is_dir()


def test_topic_with_a_gap_is_refused_whole(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = log_dir / "source"
    for n in (0, 2):
        LogBuilder(source, f"orders-{n}").segment().batch(("a", "1")).write()
    target = fresh_node(log_dir / "target")
    before = tree(target)
    said = refused(capsys, str(source), "--into", str(target), "--topic", "orders")
    assert "orders has 3 partitions, of 1 nothing is in the source" in said
    assert tree(target) == before


def test_log_dir_that_is_not_formatted_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, other = fresh_node(log_dir / "target"), fresh_node(log_dir / "other", 2)
    (other / BOOTSTRAP_FILE).unlink()
    words = [str(source), "--into", str(target), "--into", str(other), "--topic", "orders"]
    assert "is not formatted as kafka-storage.sh format does" in refused(capsys, *words)


def test_partitions_without_metadata_are_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target")
    LogBuilder(target, "other-0").segment().batch(("a", "1")).write()
    said = refused(capsys, str(source), "--into", str(target), "--topic", "orders")
    assert "other-0 is there" in said


def test_options_of_new_topics_are_refused_where_topics_are_there(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = empty_target(log_dir / "target")
    words = [str(source), "--into", str(target), "--topic", "orders", "--replication-factor", "1"]
    assert main(["restore", *words]) == 2
    assert "was started before and has its own topics" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("group", "count", "number"),
    # Java: "".hashCode() is 0, "abc" 96354, "polygenelubricants" the smallest number, whose abs is
    # itself; "\U0001f600" two units, hash 1772899.
    [("", 50, 0), ("abc", 50, 4), ("polygenelubricants", 50, 0), ("\U0001f600", 7, 2)],
)
def test_group_is_in_the_partition_of_its_java_hash(group: str, count: int, number: int) -> None:
    assert offsets_partition(group, count) == number


@pytest.mark.parametrize("count", [3, 5])
def test_groups_go_into_the_new_offsets_topic(
    count: int, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = copy_sample("groups/data", log_dir / "source")
    target = fresh_node(log_dir / "target")
    words = [str(source), "--into", str(target), "--topic", "orders", "--until", "orders-0=10"]
    words += ["--groups", "*", "--offsets-partitions", str(count), "--now", str(START_MS)]
    planned = run_json(capsys, *words)["groups"]
    assert list(target.glob("*-*")) == []
    run = run_json(capsys, *words, "--apply")
    assert run["groups"] == planned
    by_name = {each["group"]: each for each in run["groups"]}
    assert (by_name["modern"]["clamped"], by_name["modern"]["file"]) == (1, None)
    before, after = (
        {(r["group"], r["topic"], r["partition"]): r for r in _commits(path)}
        for path in (source, target)
    )
    assert {key for key in before if key[1] == "orders"} == set(after)
    for key, row in after.items():
        assert row["offsetsPartition"] == by_name[key[0]]["offsetsPartition"] < count
        assert row["offset"] == min(before[key]["offset"], 0 if key[2] == 0 else 1 << 62)
        assert row["commitTimestampMs"] == START_MS
    assert len(list(target.glob("__consumer_offsets-*"))) == count
    made = fields_of(target, "PartitionRecord")
    assert len(made) == 4 + count
    assert main(["undo", str(run["runId"])]) == 0
    assert list(target.glob("*-*")) == []


def _commits(log_dir: Path) -> list[dict[str, Any]]:
    reads = SharedReads([str(log_dir)], FunctionOptions())
    return list(commits_in_force(reads).to_pylist())


class _Flipping(LocalFiles):
    """Copies a byte wrongly that no checksum covers: the leader epoch of the first batch."""

    def copy_into(self, fd: int, source: str, length: int, start: int = 0) -> None:
        super().copy_into(fd, source, length, start)
        os.pwrite(fd, b"\x55", 15)


@pytest.mark.parametrize("from_bytes", [beside.THREADS_FROM_BYTES, 0], ids=["small", "large"])
def test_copy_that_differs_is_seen_and_nothing_is_put_in_place(
    from_bytes: int, source: Path, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "THREADS_FROM_BYTES", from_bytes)
    target = fresh_node(log_dir / "target")
    before = tree(target)
    request = run_request([str(target)], {"run_dir": str(tmp_path / "runs")})
    asked = RestoreRequest((str(source),), ("orders",))
    (result,) = apply_restore(request, asked, lambda _: None, _Flipping()).results
    assert result.status == "failed"
    assert "differs from the source's" in result.reason
    assert tree(target) == before
    assert list(target.glob("*-*")) == []


class _Syncs(LocalFiles):
    """Which files were forced to disk, by their numbers."""

    def __init__(self) -> None:
        self.synced: list[int] = []

    def sync_file(self, fd: int) -> None:
        super().sync_file(fd)
        self.synced.append(os.fstat(fd).st_ino)


@pytest.mark.parametrize("target_is_new", [True, False])
def test_large_log_is_compared_and_on_disk_before_it_is_in_place(
    target_is_new: bool,
    source: Path,
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "THREADS_FROM_BYTES", 0)
    target = log_dir / "target"
    fresh_node(target) if target_is_new else empty_target(target)
    request = run_request([str(target)], {"run_dir": str(tmp_path / "runs"), "now_ms": START_MS})
    files = _Syncs()
    (result,) = apply_restore(
        request, RestoreRequest((str(source),), ("orders",)), lambda _: None, files
    ).results
    assert (result.status, result.records) == ("restored", 16)
    assert served(target / "orders-0") == served(source / "orders-0")
    made = {path.stat().st_ino for path in (target / "orders-0").glob("*.log")}
    assert made <= set(files.synced)


def test_file_systems_that_do_not_copy_are_read(
    source: Path, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EXDEV, "not this one")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    target = fresh_node(log_dir / "target")
    assert main(["restore", str(source), "--into", str(target), "--topic", "*", "--apply"]) == 0
    assert served(target / "orders-0") == served(source / "orders-0")


@pytest.mark.parametrize("segment", [0, -1])
def test_damaged_source_is_refused_and_salvage_named(
    segment: int, source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sorted((source / "orders-0").glob("*.log"))[segment]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    target = fresh_node(log_dir / "target")
    before = tree(target)
    assert main(["restore", str(source), "--into", str(target), "--topic", "*", "--apply"]) == 1
    said = "".join(capsys.readouterr())
    assert "kafkalog salvage" in said
    assert path.name in said
    assert tree(target) == before


def test_open_transaction_is_aborted_behind_the_sources_bytes(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = open_at_the_end(log_dir / "source"), fresh_node(log_dir / "target")
    words = [str(source), "--into", str(target), "--topic", "orders"]
    assert "producer 5 from offset 2 on" in refused(capsys, *words)
    run = run_json(capsys, *words, "--end-transactions", "abort", "--apply")
    assert run["partitions"][0]["recordsCompared"] == 4
    before, after = (
        next((path / "orders-0").glob("*.log")).read_bytes() for path in (source, target)
    )
    assert after.startswith(before)
    assert [row[0] for row in served(target / "orders-0")[1]] == [0, 1, 4]


class _Full(LocalFiles):
    """There is no room for the metadata once every partition has its name."""

    def rename(self, source: str, target: str) -> None:
        if target.endswith(BOOTSTRAP_FILE):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
        super().rename(source, target)


def test_error_while_metadata_is_written_is_taken_back_by_undo(
    source: Path, log_dir: Path, tmp_path: Path
) -> None:
    target = fresh_node(log_dir / "target")
    before = tree(target)
    request = run_request([str(target)], {"run_dir": str(tmp_path / "runs")})
    asked = RestoreRequest((str(source),), ("orders",))
    run = apply_restore(request, asked, lambda _: None, _Full())
    (result,) = run.results
    assert result.status == "failed"
    assert f"kafkalog undo {run.run_id}" in result.reason
    assert fields_of(target, "TopicRecord") == []
    assert main(["undo", run.run_id, "--run-dir", str(tmp_path / "runs")]) == 0
    assert tree(target) == before
    assert list(target.glob("*-*")) == []
