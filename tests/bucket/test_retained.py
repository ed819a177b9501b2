"""`retain --cluster-is-gone`: what retention lets go from remote storage is deleted there, and what
the store keeps comes back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_records
from kafkalog.bucket import deletion_records, deletion_run
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.log_dir import open_log_dir
from kafkalog.messages.remote_log_records import RemoteLogSegmentState
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.paths import RemoteStorage
from kafkalog.restoring.bucket_attach import plan_bucket_attach
from kafkalog.restoring.bucket_request import BucketAttachRequest
from kafkalog.runs.run_dir import default_run_dir, list_runs
from tests.bucket.killing import killed_after
from tests.bucket.tiered_cluster import (
    COPIED_MS,
    DELETED,
    DELETING,
    FINISHED,
    NOW_MS,
    STARTED,
    THIRD,
    WHOLE,
    TieredCluster,
    kinds,
    metadata_partition,
)
from tests.remote.test_aiven import KEYS
from tests.remote.test_buckets import bucket as bucket  # a fixture
from tests.restoring.fresh import fresh_node
from tests.support.s3_server import BUCKET, S3Server

NOW = "2026-11-30"
# Of its 322,390 bytes in remote storage and 35,538 on the disk only, three segments are too much.
LIMIT = ("--config=retention.bytes=150000", "--force=config-differs", f"--now={NOW}")


@pytest.fixture(autouse=True)
def _without_pace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(deletion_run, "OBJECTS_PER_SECOND", 1_000_000)
    monkeypatch.setattr(deletion_records, "now_ms", lambda: NOW_MS)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cluster(tmp_path: Path) -> TieredCluster:
    return TieredCluster(tmp_path)


def retain(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str], *more: str, place: str = ""
) -> tuple[int, dict[str, Any]]:
    words = [
        "retain", str(cluster.broker), "--topic=b-txn", *LIMIT, "--json", "--cluster-is-gone",
        f"--remote-dir={place or cluster.store}", *more,
    ]  # fmt: skip
    code = main(words)
    out = capsys.readouterr().out
    return code, json.loads(out) if out else {}


def log_start(cluster: TieredCluster) -> int:
    path = cluster.broker / LOG_START_OFFSET_FILE
    return dict(parse_offset_checkpoint(path.read_bytes()))["b-txn", 0]


def offsets(cluster: TieredCluster, place: str = "") -> list[int]:
    found = read_records(
        cluster.broker, topics="b-txn", columns="offset", remote_keys=KEYS,
        remote_dirs=place or str(cluster.store),
    )  # fmt: skip
    rows: list[int] = found.read_all()["offset"].to_pylist()
    return rows


def states(cluster: TieredCluster) -> list[RemoteLogSegmentState]:
    """Of the topic's segments, by offset, as `__remote_log_metadata` tells them to all readers."""
    found = read_metadata_partitions(open_log_dir(str(cluster.broker)), MAX_BATCH_BYTES)
    assert [each.incomplete for each in found.values()] == [None, None]
    own = [c for each in found.values() for c in each.copies.values() if c.topic == "b-txn"]
    return [c.state for c in sorted(own, key=lambda c: c.start_offset or 0)]


def metadata_log(cluster: TieredCluster) -> Path:
    return cluster.broker / metadata_partition("b-txn") / f"{0:020d}.log"


def runs() -> list[dict[str, Any]]:
    """The earliest first."""
    found, problems = list_runs(default_run_dir())
    assert problems == []
    return [dict(run.facts) for run in found]


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*.*")
            if p.is_file() and p.name != ".lock"}  # fmt: skip


def test_objects_go_with_the_log_start_and_come_back(
    cluster: TieredCluster, bucket: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put_tree(cluster.store)
    bucket.is_versioned = True
    place, objects, files = f"s3://{BUCKET}", dict(bucket.objects), files_of(cluster.broker)
    _, planned = retain(cluster, capsys, place=place)
    assert bucket.objects == objects
    assert files_of(cluster.broker) == files
    assert len(planned["remoteDeletions"]["objects"]) == 9
    code, done = retain(cluster, capsys, "--apply", place=place)
    assert code == 0
    gone = [each["status"] for each in done["remoteDeletions"]["segments"]]
    assert gone == ["deleted"] * 3
    assert len(objects) - len(bucket.objects) == 9
    assert all("b-txn" in name for name in objects.keys() - bucket.objects.keys())
    assert log_start(cluster) == 1760
    assert offsets(cluster, place)[0] == 1760
    assert states(cluster) == [DELETED] * 3 + [FINISHED] * 2
    # What is gone is not due again, and nobody misses it.
    assert (
        kinds(cluster.run("b-txn", remote=RemoteStorage((place,), keys=tuple(KEYS.items())))) == []
    )
    assert retain(cluster, capsys, place=place)[1]["remoteDeletions"]["objects"] == []
    assert main(["undo", done["remoteDeletions"]["runId"]]) == 0
    assert main(["undo", done["runId"]]) == 0
    assert bucket.objects == objects
    assert files_of(cluster.broker) == files
    assert offsets(cluster, place)[0] == 0


def test_a_store_without_versions_is_asked_for_by_name(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(cluster.store)
    code, done = retain(cluster, capsys, "--apply")
    assert code == 1
    assert {each["status"] for each in done["remoteDeletions"]["segments"]} == {"refused"}
    assert files_of(cluster.store) == before
    # What is refused is not begun. The log begins behind it, and the next run deletes it, no more.
    assert states(cluster) == [FINISHED] * 5
    assert log_start(cluster) == 1760
    paces: list[float | None] = []

    def wait(_: float, __: int, bytes_per_second: float | None) -> None:
        paces.append(bytes_per_second)

    monkeypatch.setattr(deletion_run, "_wait", wait)
    pace = "--max-bytes-per-second=10MiB"
    code, done = retain(cluster, capsys, "--apply", "--no-undo", pace)
    assert code == 0
    assert paces == [10 * 1024 * 1024] * 9
    assert len(before) - len(files_of(cluster.store)) == 9
    assert offsets(cluster)[0] == 1760


def test_only_segments_of_the_plan_go(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what the metadata does not have, nor another topic's; what was being deleted goes."""
    kept = {*cluster.again("b-txn", THIRD, WHOLE, COPIED_MS), *cluster.objects("a-lz4")}
    kept |= {*cluster.objects("b-txn", 1760)}
    first = cluster.objects("b-txn", 0)
    cluster.change("b-txn", next(p for p in first if THIRD not in p.name).stem[21:], DELETING)
    _, planned = retain(cluster, capsys)
    rules = [each["rule"] for each in planned["partitions"][0]["remote"]["deleted"]]
    assert rules == ["deletion-begun", "retention.bytes", "retention.bytes"]
    code, done = retain(cluster, capsys, "--apply", "--no-undo")
    assert code == 0
    assert len(done["remoteDeletions"]["segments"]) == 3
    assert all(path.exists() for path in kept)
    left = [path for base in (0, 590, 1159) for path in cluster.objects("b-txn", base)]
    assert [path for path in left if THIRD not in path.name] == []


def test_without_all_records_nothing_goes(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(cluster.store)
    cluster.set_high_watermark("__remote_log_metadata-0", 10_000)
    cluster.set_high_watermark("__remote_log_metadata-1", 10_000)
    code, done = retain(cluster, capsys, "--apply", "--no-undo")
    assert code == 3
    assert done["partitions"][0]["remote"] is None
    assert files_of(cluster.store) == before


@pytest.mark.parametrize("words", [["--cluster-is-gone"], ["--remote-dir=x"]])
def test_the_option_and_the_place_go_together(
    cluster: TieredCluster, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retain", str(cluster.broker), *words]) == 2
    assert "both or none" in capsys.readouterr().err


def test_the_default_of_a_week_is_no_reason(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["retain", str(cluster.broker), "--topic=b-txn", "--json"]
    main([*words, "--now=2026-12-30", "--force=clock-differs"])
    (found,) = json.loads(capsys.readouterr().out)["partitions"]
    assert found["status"] == "refused"
    assert found["remote"] is None
    said = [*words, "--config=local.retention.ms=604800000", "--config=retention.ms=604800000"]
    main([*said, "--now=2026-12-30", "--force=clock-differs", "--force=config-differs"])
    (found,) = json.loads(capsys.readouterr().out)["partitions"]
    assert len(found["remote"]["deleted"]) == 5
    assert found["remote"]["logStartOffset"] == 2890


def test_what_is_still_being_copied_does_not_count(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.copy("b-txn", THIRD, STARTED, 2890, 3000)
    _, found = retain(cluster, capsys)
    (partition,) = found["partitions"]
    assert [each["baseOffset"] for each in partition["remote"]["deleted"]] == [0, 590, 1159]


def test_a_bucket_is_attached_by_what_is_left(
    cluster: TieredCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its records have as finished what is there, and nothing else."""
    assert retain(cluster, capsys, "--apply", "--no-undo")[0] == 0
    request = BucketAttachRequest(
        RemoteStorage((str(cluster.store),), keys=tuple(KEYS.items())),
        (str(fresh_node(tmp_path / "node", 1)),), NOW_MS, topics=("b-txn",),
        metadata_from=(str(cluster.broker),), end_transactions="abort",
        run_dir=str(tmp_path / "runs"),
    )  # fmt: skip
    (log,) = plan_bucket_attach(request).logs
    assert (log.start_offset, log.segments) == (1760, 2)


@pytest.mark.parametrize("objects", [0, 4])
def test_a_run_that_dies_is_undone_or_ended_by_the_next(
    cluster: TieredCluster, bucket: S3Server, objects: int,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """After so many objects; by then the topic says of all of them that they go."""
    bucket.put_tree(cluster.store)
    bucket.is_versioned = True
    place, before, files = f"s3://{BUCKET}", dict(bucket.objects), files_of(cluster.broker)
    with killed_after(objects):
        retain(cluster, capsys, "--apply", place=place)
    assert states(cluster) == [DELETING] * 3 + [FINISHED] * 2
    code, done = retain(cluster, capsys, "--apply", place=place)
    assert code == 0
    assert states(cluster) == [DELETED] * 3 + [FINISHED] * 2
    assert log_start(cluster) == 1760
    local, first, again, last = runs()
    assert (again["runId"], last["runId"]) == (done["runId"], done["remoteDeletions"]["runId"])
    # Behind the records of the first run lie those of the last, which goes first.
    assert main(["undo", first["runId"]]) == 3
    assert main(["undo", last["runId"]]) == 0
    assert main(["undo", first["runId"]]) == (0 if objects else 3)  # nothing was gone by then
    assert main(["undo", local["runId"]]) == 0
    assert bucket.objects == before
    assert files_of(cluster.broker) == files


def test_a_metadata_log_that_ends_within_a_batch_is_not_written_to(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with metadata_log(cluster).open("ab") as file:
        file.write(b"torn")
    before, stored = metadata_log(cluster).read_bytes(), files_of(cluster.store)
    code, _ = retain(cluster, capsys, "--apply", "--no-undo")
    assert code == 3
    assert metadata_log(cluster).read_bytes() == before
    assert files_of(cluster.store) == stored
