"""Each fault of remote storage is named with its cause, and nothing else is; nothing that somebody
may need is on the delete list. The logs are a real broker's, the objects those of Aiven's plug-in.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog import open_log_dir
from kafkalog.bucket.look import look, with_pace
from kafkalog.bucket.request import BucketRequest
from kafkalog.bucket.run import BucketRun, bucket_run
from kafkalog.checking.finding_kind import Severity
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.paths import RemoteStorage
from tests.bucket.tiered_cluster import (
    COPIED_MS,
    DAY_MS,
    DELETED,
    FINISHED,
    HOUR_MS,
    NOW_MS,
    OTHER,
    STARTED,
    THIRD,
    WHOLE,
    TieredCluster,
    deletable,
    kinds,
    look_in_turn,
    record,
    set_time,
)
from tests.remote.test_aiven import BROKER, KEYS, changed, flip
from tests.support.metadata_builder import config, no_op, remove_topic

B_TXN = "mfnqbqV4QheipuCS-yEb_A"


def rarely(*values: object) -> Any:
    """The same promise with other values."""
    return pytest.param(*values, marks=pytest.mark.thorough)


@pytest.fixture
def cluster(tmp_path: Path) -> TieredCluster:
    return TieredCluster(tmp_path)


def only(run: BucketRun) -> Any:
    (found,) = run.findings
    return found


def test_records_of_a_partition_are_where_the_real_broker_put_them() -> None:
    """25 partitions of tiered topics, on one and on two partitions of the topic."""
    count = 0
    for log_dir, partitions in ((BROKER, 2), (Path("data/samples/tiered/data"), 1)):
        for number, own in read_metadata_partitions(
            open_log_dir(str(log_dir)), MAX_BATCH_BYTES
        ).items():
            assert own.incomplete is None
            places = {(copy.topic_id, copy.partition) for copy in own.copies.values()}
            count += len(places)
            assert {remote_log_partition(*place, partitions) for place in places} == {number}
    assert count == 25


def test_a_sound_storage_has_no_finding(cluster: TieredCluster) -> None:
    run = cluster.run(is_deep=True)
    assert run.findings == ()
    assert run.deletions == ()
    assert len(run.looked) == len(run.segments) == 8
    assert all(result.report and result.report.records_count for result in run.looked)


# -- what is not there -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["log", rarely("indexes"), rarely("rsm-manifest")])
def test_an_object_that_was_deleted_is_named(cluster: TieredCluster, suffix: str) -> None:
    cluster.object("b-txn", 590, suffix).unlink()
    run = cluster.run()
    assert kinds(run) == [("object-missing", "b-txn", 590)]
    assert only(run).text == f".{suffix} is not there"
    assert run.deletions == ()


@pytest.mark.thorough
def test_a_segment_of_which_nothing_is_there_is_named(cluster: TieredCluster) -> None:
    for path in cluster.objects("b-txn", 590):
        path.unlink()
    run = cluster.run()
    assert kinds(run) == [("object-missing", "b-txn", 590)]
    assert only(run).text == "none of its objects is there; offsets 590 to 1158"
    assert only(run).size_in_bytes == 65345


# -- what nobody needs -----------------------------------------------------------------------------


def test_a_segment_that_is_there_twice_is_an_orphan_with_the_one_that_counts(
    cluster: TieredCluster,
) -> None:
    made = cluster.again("a-lz4", OTHER, WHOLE, COPIED_MS)
    run = cluster.run()
    assert kinds(run) == [("orphan", "a-lz4", 0)]
    assert "no record of __remote_log_metadata has this segment; segment 4v1d" in only(run).text
    assert "has offsets 0 to 2699 and is the one that counts" in only(run).text
    assert only(run).size_in_bytes == sum(path.stat().st_size for path in made)
    assert deletable(run) == [str(path) for path in made]


@pytest.mark.parametrize(
    ("suffixes", "missing"),
    [
        (("log",), ".indexes, .rsm-manifest"),
        rarely(("log", "indexes"), ".rsm-manifest"),
        rarely(("rsm-manifest",), ".log, .indexes"),
    ],
)
def test_half_an_upload_is_named_with_what_it_lacks(
    cluster: TieredCluster, suffixes: tuple[str, ...], missing: str
) -> None:
    made = cluster.again("b-txn", OTHER, suffixes, COPIED_MS)
    cluster.copy("b-txn", OTHER, STARTED)
    run = cluster.run()
    assert kinds(run) == [("half-upload", "b-txn", 0)]
    begun = "the upload was begun at 2026-11-29T03:18:43.823Z and did not end"
    assert only(run).text.startswith(f"{begun}, {missing} is not there; segment ")
    assert deletable(run) == [str(path) for path in made]


def test_a_segment_that_was_deleted_and_is_still_there_is_an_orphan(
    cluster: TieredCluster,
) -> None:
    made = cluster.again("b-txn", OTHER, WHOLE, COPIED_MS)
    cluster.copy("b-txn", OTHER, FINISHED, 0, 589)
    cluster.change("b-txn", OTHER, DELETED)
    run = cluster.run()
    assert kinds(run) == [("orphan", "b-txn", 0)]
    assert only(run).text.startswith("it was deleted at 2026-11-29T03:18:43.823Z, and is still")
    assert deletable(run) == [str(path) for path in made]


def test_a_topic_that_was_deleted_is_told_with_what_is_left(cluster: TieredCluster) -> None:
    place = {"name": "b-txn", "id": B_TXN, "partition": 0}
    deletion = {"topicIdPartition": place, "brokerId": 1, "eventTimestampMs": COPIED_MS}
    begun = {**deletion, "remotePartitionDeleteState": 1}
    cluster.append("__remote_log_metadata-0", record(2, begun))
    cluster.append("__cluster_metadata-0", remove_topic(B_TXN), at_ms=COPIED_MS + HOUR_MS)
    run = cluster.run()
    assert kinds(run) == [("topic-gone", "b-txn", 0)]
    assert only(run).segments == 5
    assert only(run).text == (
        "the topic was deleted at 2026-11-29T04:18:43.823Z; of its segments' deletion the last"
        " record is DELETE_PARTITION_STARTED"
    )
    own = [path for path in cluster.store.rglob("*") if path.is_file() and "b-txn" in str(path)]
    assert deletable(run) == sorted(map(str, own))
    assert only(run).size_in_bytes == sum(path.stat().st_size for path in own)


# -- what is left alone ----------------------------------------------------------------------------


def test_another_clusters_segments_are_foreign_and_stay(cluster: TieredCluster) -> None:
    """In the same prefix: one with Aiven's plug-in, half an upload among its segments."""
    (own,) = cluster.store.glob("a-lz4-*")
    other = own.with_name(f"a-lz4-{OTHER}")
    shutil.copytree(own, other)
    next(other.rglob("*.rsm-manifest")).unlink()
    run = cluster.run()
    assert kinds(run) == [("foreign", "a-lz4", 0)]
    assert only(run).severity is Severity.INFO
    assert only(run).topic_id == OTHER
    assert not run.has_failures
    assert run.deletions == ()


@pytest.mark.parametrize(
    ("suffixes", "is_announced"),
    [(("log",), True), rarely(WHOLE, True), rarely(("log",), False), rarely(WHOLE, False)],
)
def test_an_upload_in_progress_stays(
    cluster: TieredCluster, suffixes: tuple[str, ...], is_announced: bool
) -> None:
    cluster.again("b-txn", OTHER, suffixes, NOW_MS - HOUR_MS)
    if is_announced:
        cluster.copy("b-txn", OTHER, STARTED, at_ms=NOW_MS - HOUR_MS)
    run = cluster.run()
    assert kinds(run) == [("too-young", "b-txn", 0)]
    assert only(run).text == "younger than --min-age"
    assert not run.has_failures
    assert run.deletions == ()
    # With no least age the newest record decides: the log dir was copied before the upload.
    run = cluster.run(min_age_ms=0)
    assert kinds(run) == [("too-young", "b-txn", 0)]
    assert "younger than the newest record of" in only(run).text
    assert run.deletions == ()


def hide_the_end(cluster: TieredCluster) -> str:
    cluster.set_high_watermark("__remote_log_metadata-0", 69)
    return "ends at offset 68, and its high watermark is 69"


def lose_the_high_watermark(cluster: TieredCluster) -> str:
    (cluster.broker / "replication-offset-checkpoint").unlink()
    return "no checkpoint has the high watermark of"


def lose_the_partition(cluster: TieredCluster) -> str:
    shutil.rmtree(cluster.broker / "__remote_log_metadata-0")
    return "__remote_log_metadata-0 is not in the log dirs that were given"


def damage_a_batch(cluster: TieredCluster) -> str:
    flip(cluster.broker / "__remote_log_metadata-0" / f"{0:020d}.log", 500)
    return "checksum"


def lose_a_record(cluster: TieredCluster) -> str:
    """As where a segment is gone from the middle of the log."""
    cluster.append("__remote_log_metadata-0", None, key=b"k")
    path = cluster.broker / "__remote_log_metadata-0" / f"{0:020d}.log"
    data = path.read_bytes()
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 12 + int.from_bytes(data[ends[-1] + 8 :][:4], "big"))
    path.write_bytes(data[: ends[-3]] + data[ends[-2] :])
    return "offsets 67 to 67 are not there"


def put_a_strange_record(cluster: TieredCluster) -> str:
    cluster.append("__remote_log_metadata-0", b"\1\0\0\2")
    return "offset 68: "


@pytest.mark.parametrize(
    "harm",
    [
        hide_the_end, rarely(lose_the_high_watermark), rarely(lose_the_partition),
        rarely(damage_a_batch), lose_a_record, rarely(put_a_strange_record),
    ],
)  # fmt: skip
def test_where_the_metadata_is_not_all_there_nothing_is_judged(
    cluster: TieredCluster, harm: Callable[[TieredCluster], str]
) -> None:
    """Neither what is there too much, nor what is missing."""
    cluster.again("b-lz4", OTHER, WHOLE, COPIED_MS)
    cluster.again("b-lz4", THIRD, ("log",), COPIED_MS)
    text = harm(cluster)
    run = cluster.run("b-lz4")
    assert {each[0] for each in kinds(run)} == {"not-judged"}
    assert text in only(run).text
    assert only(run).severity.is_failure
    assert run.deletions == ()


@pytest.mark.thorough
def test_records_that_were_deleted_from_the_front_leave_it_unjudged(cluster: TieredCluster) -> None:
    cluster.again("b-lz4", OTHER, WHOLE, COPIED_MS)
    for path in (cluster.broker / "__remote_log_metadata-0").glob(f"{0:020d}.*"):
        if path.suffix != ".log":
            path.unlink()
            continue
        data = path.read_bytes()
        size = int.from_bytes(data[8:12], "big") + 12
        path.with_name(f"{1:020d}.log").write_bytes(data[size:])
        path.unlink()
    run = cluster.run("b-lz4")
    assert {each[0] for each in kinds(run)} == {"not-judged"}
    assert "begins at offset 1: the records before are deleted" in run.findings[0].text
    assert run.deletions == ()


def test_without_the_clusters_metadata_topics_are_known_by_their_records(
    cluster: TieredCluster,
) -> None:
    shutil.rmtree(cluster.broker / "__cluster_metadata-0")
    made = cluster.again("a-lz4", OTHER, WHOLE, COPIED_MS)
    run = cluster.run()
    assert kinds(run) == [("orphan", "a-lz4", 0)]
    assert deletable(run) == [str(path) for path in made]


def test_objects_under_two_prefixes_are_not_judged(cluster: TieredCluster) -> None:
    made = cluster.again("a-lz4", OTHER, WHOLE, COPIED_MS)
    other = cluster.store / "moved" / made[0].parent.parent.name / "0"
    other.mkdir(parents=True)
    for path in made:
        set_time(Path(shutil.copy(path, other)), COPIED_MS)
    run = cluster.run("a-lz4")
    assert kinds(run) == [("not-judged", "a-lz4", 0)]
    assert run.deletions == ()


@pytest.mark.thorough
def test_a_topic_that_is_younger_than_the_metadata_here_is_not_gone(
    cluster: TieredCluster,
) -> None:
    """The log dir's own metadata log may be older than what its other logs have."""
    (own,) = cluster.store.glob("a-lz4-*")
    own.rename(own.with_name(f"new-{OTHER}"))
    cluster.copy("new", THIRD, STARTED, at_ms=NOW_MS - 2 * DAY_MS)
    assert "topic-gone" not in {each[0] for each in kinds(cluster.run("new"))}
    cluster.append("__cluster_metadata-0", no_op(), at_ms=NOW_MS)
    assert kinds(cluster.run("new")) == [("topic-gone", "new", 0)]


# -- offsets, retention ----------------------------------------------------------------------------


def test_offsets_in_two_copies_and_in_none_are_named(cluster: TieredCluster) -> None:
    cluster.copy("b-lz4", OTHER, FINISHED, 100, 2899)
    run = cluster.run("b-lz4")
    assert [each[:2] for each in kinds(run)] == [
        ("object-missing", "b-lz4"), ("remote-overlap", "b-lz4"),
    ]  # fmt: skip
    overlap = next(each for each in run.findings if each.kind == "remote-overlap")
    assert overlap.text == "offsets 100 to 2699 are in segment MyD7nkagR3Otr5okR_3Vew as well"


def without_segments(cluster: TieredCluster, topic: str, first: int) -> None:
    """The disk has no segment below an offset any more."""
    for path in (cluster.broker / f"{topic}-0").glob("0*"):
        if int(path.name[:20]) < first:
            path.unlink()


def delete(cluster: TieredCluster, topic: str, base_offset: int) -> None:
    """A segment, as a leader does."""
    paths = cluster.objects(topic, base_offset)
    cluster.change(topic, paths[0].stem[21:], DELETED)
    for path in paths:
        path.unlink()


def test_offsets_that_nobody_has_are_a_gap(cluster: TieredCluster) -> None:
    without_segments(cluster, "b-txn", 2890)
    for base_offset in (1159, 2335):
        delete(cluster, "b-txn", base_offset)
    run = cluster.run("b-txn")
    assert kinds(run) == [("remote-gap", "b-txn", 1159), ("remote-gap", "b-txn", 2335)]
    assert run.findings[0].text == (
        "offsets 1159 to 1759 are in no finished copy and not on the disks, which begin at 2890"
    )


@pytest.mark.thorough
def test_what_a_leader_deleted_in_front_is_no_gap(cluster: TieredCluster) -> None:
    """After a crash the checkpoint of the log start is behind."""
    without_segments(cluster, "b-txn", 2890)
    assert cluster.run("b-txn").findings == ()
    for base_offset in (0, 590, 1760):
        delete(cluster, "b-txn", base_offset)
    assert kinds(cluster.run("b-txn")) == [("remote-gap", "b-txn", 1760)]


@pytest.mark.parametrize(
    ("key", "value", "text", "segments"),
    [
        ("retention.ms", "3600000", "5 by retention.ms 1 h", 5),
        rarely("retention.bytes", "200000", "1 by retention.bytes 195.3 KiB", 1),
    ],
)
def test_what_retention_let_go_long_ago_is_overdue(
    cluster: TieredCluster, key: str, value: str, text: str, segments: int
) -> None:
    cluster.append("__cluster_metadata-0", config("b-txn", key, value))
    run = cluster.run("b-txn")
    assert kinds(run) == [("retention-overdue", "b-txn", 0)]
    assert text in only(run).text
    assert only(run).segments == segments
    assert run.deletions == ()
    # What came due within the least age may still go in time.
    assert cluster.run("b-txn", now_ms=COPIED_MS + 2 * HOUR_MS).findings == ()


@pytest.mark.thorough
def test_kafkas_default_retention_counts_with_the_brokers_file_alone(
    cluster: TieredCluster,
) -> None:
    later = COPIED_MS + 30 * DAY_MS
    assert cluster.run("b-txn", now_ms=later).findings == ()
    run = cluster.run("b-txn", now_ms=later, server_properties={})
    assert "5 by retention.ms 7 d" in only(run).text


@pytest.mark.thorough
def test_segments_before_the_log_start_are_overdue(cluster: TieredCluster) -> None:
    path = cluster.broker / "log-start-offset-checkpoint"
    path.write_text(path.read_text().replace("b-txn 0 0\n", "b-txn 0 1200\n"))
    run = cluster.run("b-txn")
    assert kinds(run) == [("retention-overdue", "b-txn", 0)]
    assert "2 by the log start 1200" in only(run).text


# -- what is in the objects ------------------------------------------------------------------------


def test_a_flipped_byte_is_found_by_a_deep_look(cluster: TieredCluster) -> None:
    flip(cluster.object("a-lz4", 0, "log"), 5000)  # plain
    flip(cluster.object("b-txn", 1159, "log"), 5000)  # compressed and encrypted
    flip(cluster.object("c-lz4", 0, "indexes"), -10)  # the epochs, encrypted
    assert cluster.run().findings == ()
    run = cluster.run(is_deep=True)
    assert kinds(run) == [
        ("crc-mismatch", "a-lz4", run.findings[0].offset),
        ("object-damaged", "b-txn", 1159),
        ("object-damaged", "c-lz4", 0),
    ]
    crc, chunk, index = run.findings
    assert 0 < (crc.offset or 0) < 2700
    assert "chunk 1, bytes" in chunk.text
    assert "the tag is wrong" in chunk.text
    assert "index leaderEpoch" in index.text
    assert run.deletions == ()


def test_a_manifest_that_is_none_or_anothers_is_named(cluster: TieredCluster) -> None:
    changed(cluster.object("a-lz4", 0, "rsm-manifest"), version="7")
    manifest = cluster.object("b-lz4", 0, "rsm-manifest")
    fields = json.loads(manifest.read_text())
    fields["remoteLogSegmentMetadata"]["endOffset"] = 9000
    manifest.write_text(json.dumps(fields))
    run = cluster.run()
    assert kinds(run) == [("manifest-unreadable", "a-lz4", 0), ("object-differs", "b-lz4", 0)]
    assert "version '7', this reads '1'" in run.findings[0].text
    assert "has last offset 9000, its name or __remote_log_metadata 2699" in run.findings[1].text


@pytest.mark.parametrize("suffix", ["log", rarely("indexes")])
def test_an_object_that_was_cut_is_named(cluster: TieredCluster, suffix: str) -> None:
    path = cluster.object("c-lz4", 0, suffix)
    path.write_bytes(path.read_bytes()[:-1])
    run = cluster.run("c-lz4")
    assert kinds(run) == [("object-differs", "c-lz4", 0)]
    assert only(run).path == str(path)


def test_a_key_that_is_not_on_the_ring_is_named(cluster: TieredCluster) -> None:
    one = RemoteStorage((str(cluster.store),), keys=(("key1", KEYS["key1"]),))
    run = cluster.run(remote=one)
    assert kinds(run) == [("key-unreadable", "c-lz4", 0)]
    assert "encrypted with key 'key2', which is not on the ring (key1)" in only(run).text


@pytest.mark.thorough
def test_without_any_key_encrypted_segments_are_counted(cluster: TieredCluster) -> None:
    none = RemoteStorage((str(cluster.store),))
    run = cluster.run(remote=none)
    assert [each.kind for each in run.findings] == ["key-unreadable"] * 2
    assert not run.has_failures  # nothing had to be opened
    assert cluster.run(remote=none, is_deep=True).has_failures


def test_a_deep_look_that_was_cut_off_is_taken_up_again(cluster: TieredCluster) -> None:
    told: list[str] = []

    def dies(tasks: Any) -> Any:
        for number, task in enumerate(tasks):
            if number == 3:
                raise KeyboardInterrupt
            yield look(task)

    request = cluster.request(is_deep=True, run_dir=str(cluster.broker.parent / "runs"))
    with pytest.raises(KeyboardInterrupt):
        bucket_run(request, dies, told.append)
    run_id = told[0].split()[1].rstrip(":")
    first = cluster.objects("a-lz4")[0].with_suffix(".log")
    flip(first, 5000)  # what has changed since is read again
    run = cluster.run(is_deep=True, since=run_id)
    assert sum(result.is_carried for result in run.looked) == 2
    assert [each.kind for each in run.findings] == ["crc-mismatch"]
    again = cluster.run(is_deep=True, since=run.run_id)
    assert all(result.is_carried for result in again.looked)
    assert again.findings == run.findings


@pytest.mark.thorough
def test_workers_share_a_pace(cluster: TieredCluster) -> None:
    request = cluster.request("a-lz4", is_deep=True, run_dir=str(cluster.broker.parent / "runs"))
    run = bucket_run(request, lambda tasks: (look(with_pace(t, 1e9, 4)) for t in tasks), print)
    assert [result.task.bytes_per_second for result in run.looked] == [2.5e8]
    assert with_pace(run.looked[0].task, None, 4) is run.looked[0].task


# -- other layouts ---------------------------------------------------------------------------------


@pytest.fixture
def local_store(tmp_path: Path) -> Path:
    """Kafka's own layout, three days old."""
    store = Path(shutil.copytree("data/samples/tiered/remote", tmp_path / "local"))
    for path in store.rglob("*"):
        set_time(path, 1_795_877_230_000)
    return store


def look_at(store: Path, log_dir: str, **changes: Any) -> BucketRun:
    now_ms = 1_795_877_230_000 + 3 * DAY_MS
    return look_in_turn(BucketRequest((log_dir,), now_ms, RemoteStorage((str(store),)), **changes))


def test_kafkas_own_layout_is_judged_alike(local_store: Path, tmp_path: Path) -> None:
    log_dir, runs = "data/samples/tiered/data", str(tmp_path / "runs")
    assert look_at(local_store, log_dir, is_deep=True, run_dir=runs).findings == ()
    (log,) = local_store.rglob(f"{76:020d}-*.log")
    copy = log.with_name(f"{76:020d}-{OTHER}.log")
    shutil.copyfile(log, copy)
    set_time(copy, 1_795_877_230_000)
    next(local_store.rglob(f"{153:020d}-*.index")).unlink()
    flip(next(local_store.rglob(f"{229:020d}-*.log")), 100)
    for path in local_store.rglob(f"{306:020d}-*.log"):
        path.unlink()
    run = look_at(local_store, log_dir, is_deep=True, run_dir=runs)
    assert [(each.kind, each.segment_id) for each in run.findings if each.offset != 229] == [
        ("object-missing", "8lT44jIqTIeWXmNGGoXgfQ"),
        ("object-missing", "I_MxHgfqSpKDcMIGqlOLzw"),
        ("half-upload", OTHER),
    ]
    assert "crc-mismatch" in {each.kind for each in run.findings if each.offset == 229}
    assert deletable(run) == [str(copy)]


def test_copies_without_ids_are_information(tmp_path: Path) -> None:
    plain = tmp_path / "plain" / "orders-0"
    plain.mkdir(parents=True)
    shutil.copy(f"data/samples/broker/orders-0/{0:020d}.log", plain)
    run = look_at(tmp_path / "plain", "data/samples/broker")
    assert [(each.kind, each.severity) for each in run.findings] == [("not-judged", Severity.INFO)]
    assert run.deletions == ()


# -- what is asked for -----------------------------------------------------------------------------


def test_what_is_not_there_is_refused(cluster: TieredCluster, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="neither in the storage nor known: oders"):
        cluster.run("oders")
    with pytest.raises(InvalidConfigError, match="--remote-dir is needed"):
        cluster.run(remote=RemoteStorage())
    (tmp_path / "unmounted").mkdir()
    with pytest.raises(InvalidConfigError, match="the layout of this remote storage is not any"):
        cluster.run(remote=RemoteStorage((str(tmp_path / "unmounted"),)))
    other = Path(shutil.copytree(cluster.broker, tmp_path / "other"))
    meta = other / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=4", "cluster.id=5"))
    with pytest.raises(InvalidConfigError, match="log dirs of more than one cluster"):
        cluster.run(log_dirs=(str(cluster.broker), str(other)))
    with pytest.raises(InvalidConfigError, match="no run abc"):
        cluster.run(since="abc")


@pytest.mark.thorough
def test_tombstones_and_keys_of_a_compacted_metadata_topic_are_read(
    cluster: TieredCluster,
) -> None:
    cluster.append("__remote_log_metadata-0", None, key=b"segment")
    made = cluster.again("b-lz4", OTHER, WHOLE, COPIED_MS)
    run = cluster.run("b-lz4")
    assert kinds(run) == [("orphan", "b-lz4", 0)]
    assert deletable(run) == [str(path) for path in made]
