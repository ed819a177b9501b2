"""Settings out of metadata logs: samples of a broker, and what a crash or a restore leaves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.checking.metadata_replay import check_replay
from kafkalog.format.constants import CompressionType
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.metadata_log import METADATA_DIR, read_cluster_settings
from tests.support.metadata_builder import (
    OTHER_ID,
    MetadataBuilder,
    abort,
    begin,
    broker_config,
    change_replicas,
    config,
    end,
    feature,
    frame,
    no_op,
    partition,
    remove_topic,
    topic,
)

POLICY = "cleanup.policy"


@pytest.fixture
def cluster(log_dir: Path) -> MetadataBuilder:
    return MetadataBuilder(log_dir)


def read(cluster: MetadataBuilder) -> ClusterSettings:
    settings = read_cluster_settings(cluster.write())
    assert settings.problems == ()
    return settings


def problem(cluster: MetadataBuilder) -> str:
    return only_problem(cluster.write())


def only_problem(path: Path) -> str:
    settings = read_cluster_settings(path)
    (found,) = settings.problems
    assert str(path) in found
    assert found.endswith(f" (the state before offset {settings.end_offset} is used)")
    return found


def policies(settings: ClusterSettings) -> dict[str, str | None]:
    return {name: found.config.get(POLICY) for name, found in settings.topics.items()}


# -- what a broker wrote ---------------------------------------------------------------------------


def test_the_samples_settings_are_those_the_broker_was_told() -> None:
    settings = read_cluster_settings(SAMPLES / "broker" / METADATA_DIR)
    assert settings.problems == ()
    assert settings.end_offset == 167
    assert settings.metadata_version == 30
    assert settings.feature_levels["transaction.version"] == 2
    assert settings.broker_configs == {"": {"min.insync.replicas": "1"}}
    assert {name for name, policy in policies(settings).items() if policy == "compact"} == {
        "compacted",
        "__consumer_offsets",
        "__transaction_state",
    }
    assert "removed" not in settings.topics
    orders = settings.topics["orders"]
    assert orders.config == {"index.interval.bytes": "1024", "internal.segment.bytes": "12288"}
    assert orders.replicas == {0: (1,), 1: (1,), 2: (1,)}
    metadata = (SAMPLES / "broker" / "orders-0" / "partition.metadata").read_text()
    assert metadata.endswith(orders.topic_id)


def test_a_setting_that_was_changed_has_its_last_value() -> None:
    before, after = (
        read_cluster_settings(SAMPLES / "cleaning" / side / METADATA_DIR)
        for side in ("before", "after")
    )
    key = "min.compaction.lag.ms"
    assert before.topics["accounts"].config[key] == str(2**63 - 1)
    assert after.topics["accounts"].config[key] == "0"


def test_a_brokers_own_snapshot_file_is_read(log_dir: Path) -> None:
    """`bootstrap.checkpoint` has the form of a snapshot; a 4.4 broker puts it there as one."""
    directory = log_dir / METADATA_DIR
    directory.mkdir()
    name = f"{0:020d}-{0:010d}.checkpoint"
    shutil.copy(SAMPLES / "broker" / "bootstrap.checkpoint", directory / name)
    settings = read_cluster_settings(directory)
    assert settings.problems == ()
    assert settings.metadata_version == 30
    assert len(settings.feature_levels) == 6


# -- what records do -------------------------------------------------------------------------------


def test_a_removed_setting_and_feature_are_gone(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a"), config("a", POLICY, "compact"), config("a", "segment.ms", "5"))
    cluster.batch(config("a", POLICY, None), config("a", "retention.ms", None))
    cluster.batch(feature("group.version", 1), feature("metadata.version", 27))
    cluster.batch(feature("group.version", 0))
    settings = read(cluster)
    assert settings.topics["a"].config == {"segment.ms": "5"}
    assert settings.feature_levels == {"metadata.version": 27}


def test_a_topic_made_anew_has_another_id_and_no_old_settings(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a"), config("a", POLICY, "compact"), partition([1]), remove_topic())
    cluster.batch(topic("a", OTHER_ID), partition([2], OTHER_ID))
    settings = read(cluster)
    assert settings.topics["a"].topic_id == OTHER_ID
    assert settings.topics["a"].config == {}
    assert settings.topics["a"].replicas == {0: (2,)}


def test_replicas_follow_changes(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a"), partition([1, 2]), partition([1], number=3))
    cluster.batch(change_replicas([2, 4]))
    assert read(cluster).topics["a"].replicas == {0: (2, 4), 3: (1,)}


def test_broker_settings_are_told_apart(cluster: MetadataBuilder) -> None:
    cluster.batch(broker_config("", "log.retention.ms", "1"), broker_config("1", "a", "2"))
    cluster.batch(broker_config("1", "a", None), config("1", "x", "y", kind=8))
    assert read(cluster).broker_configs == {"": {"log.retention.ms": "1"}}


def test_a_transaction_counts_at_its_end_and_an_aborted_or_open_one_never(
    cluster: MetadataBuilder,
) -> None:
    cluster.batch(topic("a"), begin(), config("a", POLICY, "compact"), no_op())
    cluster.segment().batch(end(), begin(None), config("a", POLICY, "delete"))
    cluster.batch(remove_topic(), abort(), config("a", "segment.ms", "1"))
    cluster.batch(begin(), config("a", POLICY, "delete"), config("a", "segment.ms", "2"))
    settings = read(cluster)
    assert settings.topics["a"].config == {POLICY: "compact", "segment.ms": "1"}
    assert "without the transaction that is open there" in settings.read_from


def test_records_of_unknown_types_are_counted(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a"), frame(99, 0, b"x"), frame(99, 0, b"y"), frame(3, 9, b"z"))
    cluster.batch(config("a", POLICY, "compact"))
    settings = read(cluster)
    assert settings.unread == {"type 99 version 0": 2, "PartitionRecord version 9": 1}
    assert policies(settings) == {"a": "compact"}


def test_features_that_no_known_release_has_are_told_as_verify_does(
    cluster: MetadataBuilder,
) -> None:
    cluster.batch(feature("metadata.version", 20), feature("share.version", 1), topic("a"))
    cluster.batch(feature("no.such.feature", 2), feature("gone.feature", 1))
    cluster.batch(feature("gone.feature", 0), config("a", POLICY, "compact"))
    settings = read(cluster)
    assert settings.unread == {"FeatureLevelRecord no.such.feature level 2": 1}
    assert policies(settings) == {"a": "compact"}
    found = [f for f in check_replay(settings.path) if f.kind == "metadata-record-unknown"]
    assert [f.text for f in found] == ["1 of FeatureLevelRecord no.such.feature level 2"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (config("a", POLICY, "compact", version=1), "ConfigRecord version 1 is not known"),
        (frame(9, 3, b""), "RemoveTopicRecord version 3 is not known"),
        (frame(2, 0, b"", frame_version=0), "KRaft preview"),
        (remove_topic(OTHER_ID), "never created"),
        (topic("a", OTHER_ID), "created twice"),
        (topic("b"), "created twice"),
        (end(), "EndTransactionRecord without a transaction"),
        (abort(), "AbortTransactionRecord without a transaction"),
        (begin() + b"\0", "byte .* of the value: .* left"),
        (b"", "byte 0 of the value: number is cut off"),
    ],
)
def test_a_record_that_may_hide_a_setting_is_a_problem_with_its_place(
    cluster: MetadataBuilder, value: bytes, reason: str
) -> None:
    found = problem(cluster.batch(topic("a"), no_op()).batch(value))
    assert "(offset 2)" in found
    assert re.search(reason, found), found


def test_a_transaction_within_a_transaction_is_a_problem(cluster: MetadataBuilder) -> None:
    assert "within another" in problem(cluster.batch(begin(), begin()))


# -- snapshots -------------------------------------------------------------------------------------


def with_snapshots(cluster: MetadataBuilder) -> MetadataBuilder:
    """A log of ten records in two segments that sets one policy after the other."""
    cluster.batch(topic("a"), *(config("a", POLICY, "delete") for _ in range(4)), epoch=1)
    cluster.segment().batch(*(config("a", f"k{n}", "log") for n in range(5)), epoch=2)
    return cluster


SNAPSHOT = (topic("a"), config("a", POLICY, "compact"), feature("metadata.version", 26))


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_the_newest_snapshot_then_the_log_behind_it(cluster: MetadataBuilder, codec: int) -> None:
    with_snapshots(cluster).snapshot(3, 1, topic("old"))
    cluster.snapshot(7, 2, *SNAPSHOT, codec=codec)
    settings = read(cluster)
    assert settings.topics.keys() == {"a"}
    assert settings.topics["a"].config == {POLICY: "compact", "k2": "log", "k3": "log", "k4": "log"}
    assert settings.metadata_version == 26
    assert settings.read_from == f"{7:020d}-{2:010d}.checkpoint and the log up to offset 10"


@pytest.mark.parametrize("damage", ["footer", "header", "cut", "crc", "record", "transaction"])
def test_a_snapshot_that_is_not_whole_is_passed_over_and_named(
    cluster: MetadataBuilder, damage: str
) -> None:
    with_snapshots(cluster).snapshot(5, 1, topic("a"), config("a", POLICY, "compact"))
    values = {"record": (b"\1",), "transaction": (begin(),)}.get(damage, SNAPSHOT)
    cluster.snapshot(8, 2, *values, footer=damage != "footer", header=damage != "header")
    directory = cluster.write()
    file = directory / f"{8:020d}-{2:010d}.checkpoint"
    data = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(data[:-5])
    if damage == "crc":
        data[-10] ^= 1
        file.write_bytes(data)
    settings = read_cluster_settings(directory)
    assert settings.problems == ()
    assert policies(settings) == {"a": "compact"}
    assert len(settings.topics["a"].config) == 1 + 5
    assert "not whole: " in settings.read_from
    assert file.name in settings.read_from


def test_without_a_whole_snapshot_the_log_from_0_tells(cluster: MetadataBuilder) -> None:
    with_snapshots(cluster).snapshot(8, 2, *SNAPSHOT, footer=False)
    settings = read(cluster)
    assert policies(settings) == {"a": "delete"}
    assert settings.read_from.startswith("the log up to offset 10 (not whole: ")


@pytest.mark.parametrize(("end_offset", "epoch"), [(11, 2), (4, 3)])
def test_a_snapshot_ahead_of_the_log_is_all_that_counts(
    cluster: MetadataBuilder, end_offset: int, epoch: int
) -> None:
    settings = read(with_snapshots(cluster).snapshot(end_offset, epoch, *SNAPSHOT))
    assert settings.topics["a"].config == {POLICY: "compact"}
    assert settings.end_offset == end_offset
    assert "ahead of the log" in settings.read_from


def test_a_snapshot_and_no_log_is_enough(cluster: MetadataBuilder) -> None:
    directory = cluster.segment(100).snapshot(100, 2, *SNAPSHOT).write()
    assert policies(read_cluster_settings(directory)) == {"a": "compact"}
    (directory / f"{100:020d}.log").unlink()
    assert policies(read_cluster_settings(directory)) == {"a": "compact"}


def test_a_log_whose_head_is_gone_needs_a_snapshot_that_reaches_it(
    cluster: MetadataBuilder,
) -> None:
    cluster.segment(5).batch(config("a", "k", "v"))
    cluster.snapshot(4, 1, *SNAPSHOT).snapshot(6, 1, *SNAPSHOT, footer=False)
    found = problem(cluster)
    assert "the log begins at offset 5, and no whole snapshot reaches it" in found
    assert "does not end with its footer" in found
    cluster.log.path.joinpath(f"{5:020d}-{1:010d}.checkpoint").write_bytes(
        cluster._snapshots[f"{4:020d}-{1:010d}.checkpoint"]
    )
    settings = read_cluster_settings(cluster.log.path)
    assert settings.topics["a"].config == {POLICY: "compact", "k": "v"}


def test_unfinished_and_deleted_snapshots_are_none(cluster: MetadataBuilder) -> None:
    directory = with_snapshots(cluster).write()
    for suffix in (".part", ".deleted"):
        (directory / f"{9:020d}-{2:010d}.checkpoint{suffix}").write_bytes(b"garbage")
    assert policies(read_cluster_settings(directory)) == {"a": "delete"}


# -- damage ----------------------------------------------------------------------------------------


def test_a_torn_tail_ends_the_last_segment_only(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a"), config("a", POLICY, "compact"))
    cluster.log.torn(40)
    directory = cluster.write()
    assert policies(read_cluster_settings(directory)) == {"a": "compact"}
    (directory / f"{2:020d}.log").touch()
    assert "bytes after the last whole batch" in only_problem(directory)


def test_a_gap_in_the_log_is_a_problem(cluster: MetadataBuilder) -> None:
    cluster.batch(topic("a")).segment(3).batch(config("a", POLICY, "compact"))
    assert "offset 3 follows 0" in problem(cluster)


def test_a_flipped_bit_is_a_problem(cluster: MetadataBuilder) -> None:
    directory = cluster.batch(topic("a"), config("a", POLICY, "compact")).batch(no_op()).write()
    file = directory / f"{0:020d}.log"
    data = bytearray(file.read_bytes())
    data[75] ^= 1
    file.write_bytes(data)
    assert "@ 0 (offset 0): the batch's CRC does not agree" in only_problem(directory)


def test_garbage_is_a_problem(cluster: MetadataBuilder) -> None:
    directory = cluster.batch(topic("a")).write()
    (directory / f"{0:020d}.log").write_bytes(b"\xff" * 300)
    assert "batch length" in only_problem(directory)
