"""`restore` from remote storage: segments of every layout that is read, decoded into partition
directories that are made or that are there; local and remote segments as one log; what is refused.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog import read_records
from kafkalog.cli.main import main
from kafkalog.format.record_batch import parse_header
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS
from tests.restoring.fresh import fresh_node
from tests.restoring.target import empty_target
from tests.support.buckets import served
from tests.support.s3_server import BUCKET, S3Server

LEVELS = (False, True)
WITH_KEYS = [word for key, file in KEYS.items() for word in ("--remote-key", f"{key}={file}")]
_COLUMNS = ["offset", "key", "value", "timestampMs", "headers"]


def rows(
    log_dir: Path, topic: str, *, committed: bool, end: int, **remote: Any
) -> list[dict[str, Any]]:
    """Of a disk that says nothing of high watermarks."""
    read = read_records(
        log_dir, topics=[topic], columns=_COLUMNS, read_committed=committed, **remote
    )
    return [row for row in read.read_all().to_pylist() if row["offset"] < end]


def restored(
    capsys: pytest.CaptureFixture[str], place: Path | str, log_dir: Path, *words: str
) -> Mapping[str, dict[str, Any]]:
    """A restore that ends well; its partitions by topic."""
    runs = str(log_dir.parent / "runs")
    args = ["restore", str(place), "--into", str(log_dir), "--run-dir", runs, "--json", *words]
    assert main([*args, "--apply"]) == 0
    document = json.loads(capsys.readouterr().out)
    return {each["topic"]: each for each in document["partitions"]}


def refusals(capsys: pytest.CaptureFixture[str], place: Path, log_dir: Path, *words: str) -> str:
    """Why nothing is restored."""
    args = ["restore", str(place), "--into", str(log_dir), "--topic", "*", "--json", *words]
    assert main(args) == 1
    document = json.loads(capsys.readouterr().out)
    return "; ".join(each["reason"] or "" for each in document["partitions"])


def test_objects_of_the_plugin_become_the_logs_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = fresh_node(tmp_path / "node")
    words = ("--remote-layout", "aiven", *WITH_KEYS, "--topic", "*", "--end-transactions", "abort")
    found = restored(capsys, STORE, log_dir, *words)
    assert found.keys() == set(TOPICS)
    for topic in TOPICS:
        stable = found[topic]["lastStableOffset"]
        for committed in LEVELS:
            end = stable if committed else found[topic]["cutOffset"]
            wanted = rows(BROKER, topic, committed=committed, end=end)
            assert rows(log_dir, topic, committed=committed, end=2**62) == wanted
            assert wanted
        for path in (log_dir / f"{topic}-0").glob("*.log"):
            own, whole = path.read_bytes(), (BROKER / f"{topic}-0" / path.name).read_bytes()
            assert own[: len(whole)] == whole


def test_objects_go_into_a_topic_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = empty_target(tmp_path / "node")
    words = ("--remote-layout", "aiven", *WITH_KEYS, "--topic", "b-lz4=orders")
    found = restored(capsys, STORE, log_dir, *words)
    end = found["orders"]["endOffset"]
    (log_dir / "replication-offset-checkpoint").unlink(missing_ok=True)
    for committed in LEVELS:
        wanted = rows(BROKER, "b-lz4", committed=committed, end=end)
        assert len(wanted) == 2700
        assert rows(log_dir, "orders", committed=committed, end=end) == wanted


def kafkas(path: Path) -> tuple[Path, Path, Path]:
    """A log dir, its remote storage, and the directory of its partition there."""
    sample = copy_sample("tiered", path / "tiered")
    (directory,) = (sample / "remote" / "kafka-tiered-storage").iterdir()
    return sample / "data", sample / "remote", directory


def test_segments_of_kafkas_own_layout_become_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, remote, _ = kafkas(tmp_path)
    log_dir = fresh_node(tmp_path / "node")
    found = restored(capsys, remote, log_dir, "--remote-layout", "kafka", "--topic", "*")
    end = found["tiered"]["endOffset"]
    for committed in LEVELS:
        wanted = rows(data, "tiered", committed=committed, end=end, remote_dirs=str(remote))
        assert len(wanted) > 300
        assert rows(log_dir, "tiered", committed=committed, end=end) == wanted


def test_local_and_remote_segments_are_one_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, remote, _ = kafkas(tmp_path)
    log_dir = fresh_node(tmp_path / "node")
    assert "--remote-dir names it" in refusals(capsys, data, log_dir)
    words = ("--remote-dir", str(remote), "--topic", "tiered")
    found = restored(capsys, data, log_dir, *words)["tiered"]
    assert (found["logStartOffset"], found["endOffset"]) == (0, 408)
    for committed in LEVELS:
        wanted = rows(data, "tiered", committed=committed, end=408, remote_dirs=str(remote))
        assert rows(log_dir, "tiered", committed=committed, end=408) == wanted
        assert committed or wanted[-1]["offset"] > 382


def test_plain_copies_become_a_log_though_they_have_no_indexes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = tmp_path / "copies" / "b-txn-0"
    copies.mkdir(parents=True)
    for path in (BROKER / "b-txn-0").glob("*.log"):
        shutil.copy2(path, copies)
    log_dir = fresh_node(tmp_path / "node")
    words = ("--remote-layout", "plain", "--topic", "*", "--end-transactions", "abort")
    found = restored(capsys, copies.parent, log_dir, *words)["b-txn"]
    for committed in LEVELS:
        end = found["lastStableOffset"] if committed else found["cutOffset"]
        wanted = rows(BROKER, "b-txn", committed=committed, end=end)
        assert rows(log_dir, "b-txn", committed=committed, end=2**62) == wanted
    counts = [len(rows(log_dir, "b-txn", committed=level, end=2**62)) for level in LEVELS]
    assert counts[0] > counts[1] > 1000


def test_offsets_that_two_segments_have_are_there_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, remote, directory = kafkas(tmp_path)
    first, second = sorted(directory.glob("*.log"))[:2]
    batch = second.read_bytes()
    batch = batch[: parse_header(batch).size_in_bytes]
    with first.open("ab") as file:  # as a leader that rolled later has it
        file.write(batch)
    log_dir = fresh_node(tmp_path / "node")
    found = restored(capsys, remote, log_dir, "--remote-layout", "kafka", "--topic", "*")
    end = found["tiered"]["endOffset"]
    wanted = rows(data, "tiered", committed=False, end=end, remote_dirs=str(remote))
    assert rows(log_dir, "tiered", committed=False, end=end) == wanted
    offsets = [row["offset"] for row in wanted]
    assert offsets == sorted(set(offsets))


def test_what_remote_storage_lacks_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, remote, directory = kafkas(tmp_path)
    log_dir = fresh_node(tmp_path / "node")
    second = sorted(directory.glob("*.log"))[1]
    for path in directory.glob(f"{second.stem}.*"):
        path.unlink()
    found = refusals(capsys, remote, log_dir, "--remote-layout", "kafka")
    assert f"offsets {int(second.name[:20])} to" in found
    found = refusals(capsys, STORE, log_dir, "--remote-layout", "aiven", *WITH_KEYS[:2])
    assert "key2" in found
    other = directory.with_name(f"{directory.name[:-22]}{'B' * 22}")
    shutil.copytree(directory, other)
    found = refusals(capsys, remote, log_dir, "--remote-layout", "kafka")
    assert "remote storage has it 2 times" in found


def test_words_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = fresh_node(tmp_path / "node")
    into = ["--into", str(log_dir), "--topic", "*"]
    assert main(["restore", "s3://bucket/tiers", *into]) == 2
    assert "--remote-layout tells" in capsys.readouterr().err
    groups = ["--groups", "*", "--output", str(tmp_path / "out")]
    assert main(["restore", str(STORE), "--remote-layout", "aiven", *into, *groups]) == 2
    assert "in log dirs alone" in capsys.readouterr().err


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    yield from served(monkeypatch)


@pytest.mark.thorough
@pytest.mark.parametrize("layout", ["aiven", "kafka"])
def test_a_bucket_is_restored_and_attached_as_a_directory_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bucket: S3Server, layout: str
) -> None:
    data, remote, _ = kafkas(tmp_path)
    place, disk, keys = (STORE, BROKER, WITH_KEYS) if layout == "aiven" else (remote, data, [])
    bucket.put_tree(place)
    uri, named = f"s3://{BUCKET}", {"remote_dirs": str(place), "remote_keys": KEYS}
    log_dir, other = fresh_node(tmp_path / "node"), fresh_node(tmp_path / "other-node")
    words = ("--remote-layout", layout, *keys, "--topic", "*", "--end-transactions", "abort")
    found = restored(capsys, uri, log_dir, *words)
    args = ["attach", uri, "--into", str(other), "--run-dir", str(tmp_path / "runs"), *words]
    assert main([*args, "--apply", "--json"]) == 0
    attached = {each["topic"]: each for each in json.loads(capsys.readouterr().out)["logs"]}
    assert attached.keys() == found.keys()
    for topic in found:
        end = found[topic]["cutOffset"]
        assert attached[topic]["copiedEndOffset"] == end
        wanted = rows(disk, topic, committed=False, end=end, **named)
        assert rows(log_dir, topic, committed=False, end=end) == wanted
        remotely = {"remote_dirs": uri, "remote_keys": KEYS}
        assert rows(other, topic, committed=False, end=end, **remotely) == wanted


@pytest.mark.thorough
def test_a_log_dir_in_a_bucket_is_taken_as_plain_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bucket: S3Server
) -> None:
    source = copy_sample("groups/data", tmp_path / "source")
    bucket.put_tree(source)
    log_dir = fresh_node(tmp_path / "node")
    words = ("--remote-layout", "plain", "--topic", "orders")
    found = restored(capsys, f"s3://{BUCKET}", log_dir, *words)
    assert found.keys() == {"orders"}
    for committed in LEVELS:
        wanted = rows(source, "orders", committed=committed, end=2**62)
        assert len(wanted) > 100
        assert rows(log_dir, "orders", committed=committed, end=2**62) == wanted
