"""What is planned for disks whose metadata is lost, and what is refused: by the disks of three real
nodes, whose metadata log tells what they were.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.inventory import LogInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.log.metadata_topics import UNASSIGNED
from kafkalog.restoring.attach import AttachRequest, AttachRun, plan_attach_run
from kafkalog.restoring.attach_facts import PlannedPartition
from kafkalog.restoring.attach_plan import EPOCH_MARGIN, PRODUCER_ID_MARGIN
from kafkalog.restoring.disks import read_disks
from kafkalog.restoring.left_metadata import LeftMetadata, read_left_metadata
from tests.restoring.lost import DIRS, NOW_MS, LostDisks
from tests.support.log_builder import START_MS
from tests.support.metadata_builder import MetadataBuilder, broker_config, feature

VOTER_1 = "1@127.0.0.1:9093:u-16FAqHReOlgMHNmpb_pA"


def planned(run: AttachRun, topic: str, number: int) -> PlannedPartition:
    found = {(each.topic, each.partition): each for each in run.plan.partitions}
    return found[topic, number]


def metadata_left(path: Path) -> LeftMetadata:
    found: LogInventory = open_log_dir(*(path / name for name in DIRS))
    left = read_left_metadata(found)
    assert left is not None
    return left


def test_disks_alone_give_what_the_metadata_log_had(tmp_path: Path) -> None:
    known = {
        (state["topic"], state["partition"]): state
        for state in metadata_left(LostDisks(tmp_path / "known", DIRS).path).topics.states()
    }
    run = plan_attach_run(LostDisks(tmp_path / "lost").request())
    assert not run.plan.refusals
    assert run.plan.feature_levels["metadata.version"] == 30
    epochs = [state["leaderEpoch"] for state in known.values()]
    of_disks = {(each.topic, each.partition): each for each in run.plan.partitions}
    # One topic was deleted while node 1 was away: its copy there is all that is left of it.
    assert of_disks.keys() - known.keys() == {("removed", 0)} - known.keys()
    assert known.keys() <= of_disks.keys()
    for name, state in known.items():
        each = of_disks[name]
        assert each.topic_id == state["topicId"]
        where = {replica.node_id: replica.directory_id for replica in each.replicas}
        assert where == dict(zip(state["replicas"], state["directories"], strict=True))
        # All copies hold the same, so any may lead, more than the cluster knew when it stopped.
        assert set(each.in_sync) >= {*state["isr"], *state["eligibleLeaderReplicas"]}
    assert run.plan.leader_epoch > max(epochs)


def test_a_metadata_log_that_is_left_gives_all_its_settings(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("2/data",))
    left = metadata_left(disks.path)
    run = plan_attach_run(disks.request(force=frozenset({"metadata-left"})))
    assert not run.plan.refusals
    assert not run.plan.configs
    for name, count in (
        ("ClientQuotaRecord", 4), ("UserScramCredentialRecord", 2), ("AccessControlEntryRecord", 3)
    ):  # fmt: skip
        assert run.records[name] == len(left.kept[name]) == count
    assert run.records["ConfigRecord"] == len(left.kept["ConfigRecord"])
    assert [voter.node_id for voter in run.voters] == [1, 2, 3]
    assert run.moved_aside == (str(disks.path / "2/data" / METADATA_DIR),)


def test_metadata_that_is_left_is_not_passed_over_without_a_word(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("2/data",))
    (refusal,) = plan_attach_run(disks.request()).plan.refusals
    assert f"metadata records in {disks.path / '2/data' / METADATA_DIR}" in refusal
    assert "--force metadata-left" in refusal


def test_only_copies_that_end_where_the_best_does_are_in_sync(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    log = disks.path / "3/data/orders-0/00000000000000000000.log"
    record = Record(40, START_MS, None, b"behind")
    log.write_bytes(log.read_bytes() + pack_batch([record], partition_leader_epoch=2))
    each = planned(plan_attach_run(disks.request()), "orders", 0)
    assert (each.leader, each.in_sync) == (3, [3])
    assert [replica.node_id for replica in each.replicas] == [1, 2, 3]
    ends = {replica.node_id: replica.end_offset for replica in each.replicas}
    assert ends == {1: 40, 2: 40, 3: 41}


def test_epochs_and_producer_ids_are_above_all_on_the_disks(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    log = disks.path / "2/data/orders-1/00000000000000000000.log"
    record = Record(20, START_MS, None, b"behind")
    batch = pack_batch(
        [record], partition_leader_epoch=9, producer_id=7_654_321, producer_epoch=0, base_sequence=0
    )
    log.write_bytes(log.read_bytes() + batch)
    plan = plan_attach_run(disks.request()).plan
    assert plan.leader_epoch == 9 + EPOCH_MARGIN
    assert plan.next_producer_id == 7_655_000 + PRODUCER_ID_MARGIN


def test_producers_of_the_broker_sample_are_known_from_snapshots_and_coordinator(
    tmp_path: Path,
) -> None:
    disks = read_disks([str(Path(__file__).parents[2] / "data/samples/broker")], MAX_BATCH_BYTES)
    by_topic: dict[str, int] = {}
    for each in disks.copies:
        topic = each.name.topic
        by_topic[topic] = max(by_topic.get(topic, -1), each.highest_producer_id)
    assert by_topic["__transaction_state"] >= by_topic["transactions"] >= 0
    assert by_topic["codec-none"] >= 0


def test_settings_that_are_lost_delete_nothing(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "data/samples/tiered/data"
    log_dir = shutil.copytree(sample, tmp_path / "data")
    shutil.rmtree(log_dir / METADATA_DIR)
    disks = LostDisks(tmp_path / "lost")
    request = disks.request()
    plan = plan_attach_run(type(request)((str(log_dir),), request.now_ms)).plan
    assert plan.configs["tiered"]["remote.storage.enable"] == "true"
    assert plan.configs["tiered"]["retention.ms"] == "-1"
    assert plan.configs["__remote_log_metadata"]["retention.ms"] == "-1"
    broker = shutil.copytree(sample.parents[1] / "broker", tmp_path / "broker")
    shutil.rmtree(broker / METADATA_DIR)
    plan = plan_attach_run(type(request)((str(broker),), request.now_ms)).plan
    assert plan.configs["__consumer_offsets"] == {"cleanup.policy": "compact"}
    assert plan.configs["__transaction_state"] == {"cleanup.policy": "compact"}
    assert plan.configs["orders"] == {"retention.ms": "-1", "retention.bytes": "-1"}


def test_a_lost_node_is_said_and_its_partitions_wait_for_it(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    plan = plan_attach_run(disks.request("1/data", "1/data-2", "2/data")).plan
    assert not plan.refusals
    assert plan.nodes == (1, 2)
    kept = LostDisks(tmp_path / "kept", ("2/data",))
    force = frozenset({"metadata-left"})
    run = plan_attach_run(kept.request("2/data", force=force))
    each = planned(run, "orders", 1)
    (own,) = (replica for replica in each.replicas if replica.node_id == 2)
    assert own.path is not None
    others = [replica for replica in each.replicas if replica.node_id != 2]
    assert {(r.directory_id, r.is_in_sync) for r in others} == {(UNASSIGNED, False)}
    assert any(
        text.startswith("orders: 1 of 3 copies of partition 0") for text in run.plan.warnings
    )
    absent = [text for text in run.plan.warnings if "none of its log dirs is given" in text]
    assert [text.split()[1] for text in absent] == ["1", "3"]


def test_a_log_dir_that_was_forgotten_is_named(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost", ("2/data",))
    meta = (disks.path / "1/data-2/meta.properties").read_text()
    (directory,) = (line[13:] for line in meta.splitlines() if line.startswith("directory.id="))
    request = disks.request("1/data", "2/data", "3/data", force=frozenset({"metadata-left"}))
    (warning,) = (t for t in plan_attach_run(request).plan.warnings if t.startswith("node 1: of"))
    assert f"directory.id {directory} are not given" in warning


def test_a_node_that_is_a_controller_alone_is_no_broker(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    for path in (disks.path / "3/data").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    run = plan_attach_run(disks.request())
    assert run.plan.nodes == (1, 2, 3)
    assert sorted(run.plan.registrations) == ["1", "2"]


def test_a_number_of_which_nothing_is_left_is_made_only_when_asked_for(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    for directory in disks.path.glob("*/*/orders-1"):
        shutil.rmtree(directory)
    (refusal,) = plan_attach_run(disks.request()).plan.refusals
    assert refusal.startswith("orders-1: no copy is in these log dirs")
    run = plan_attach_run(disks.request(force=frozenset({"lost-partitions"})))
    assert not run.plan.refusals
    assert planned(run, "orders", 1).is_empty
    assert any("orders-1" in text and "begins anew" in text for text in run.plan.lost)


def test_a_default_that_the_first_controller_sets_is_said(tmp_path: Path) -> None:
    log_dir = tmp_path / "data"
    log_dir.mkdir()
    sample = Path(__file__).parents[2] / "data/samples/broker"
    shutil.copy(sample / "meta.properties", log_dir)
    shutil.copytree(sample / "orders-0", log_dir / "orders-0")
    MetadataBuilder(log_dir).batch(
        feature("metadata.version", 30),
        feature("eligible.leader.replicas.version", 1),
        broker_config("", "min.insync.replicas", "2"),
    ).write()
    request = AttachRequest((str(log_dir),), NOW_MS, force=frozenset({"metadata-left"}))
    plan = plan_attach_run(request).plan
    assert any(text.startswith("min.insync.replicas=2 is the default") for text in plan.warnings)
    assert "orders" in plan.configs  # which that log does not know


def stray(path: Path) -> None:
    (path / "2/data/orders-1").rename(path / f"2/data/orders-1.{'0' * 32}-stray")


def twice(path: Path) -> None:
    shutil.copytree(path / "1/data/orders-2", path / "1/data-2/orders-2")


def other_id(path: Path) -> None:
    (path / "2/data/orders-1/partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA"
    )


def no_id(path: Path) -> None:
    (path / "2/data/orders-1/partition.metadata").unlink()


def no_ids_at_all(path: Path) -> None:
    for file in path.glob("*/*/paired-0/partition.metadata"):
        file.unlink()


def no_features(path: Path) -> None:
    for file in path.glob("*/*/bootstrap.checkpoint"):
        file.unlink()


@pytest.mark.parametrize(
    ("break_disks", "refusal"),
    [
        (stray, 'do mv "$d" "${d%.*}"; done'),
        (twice, "orders-2 lies twice on node 1"),
        (other_id, "orders has several topic ids"),
        (no_id, "no partition.metadata tells its topic id"),
        (no_ids_at_all, "no partition.metadata tells its topic id"),
        (no_features, "--feature metadata.version=LEVEL"),
    ],
)
def test_disks_that_contradict_themselves_are_refused(
    tmp_path: Path, break_disks: Any, refusal: str
) -> None:
    disks = LostDisks(tmp_path / "lost")
    break_disks(disks.path)
    refusals = plan_attach_run(disks.request()).plan.refusals
    assert any(refusal in each for each in refusals), refusals


def test_a_level_of_another_feature_alone_is_refused(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    no_features(disks.path)
    run = plan_attach_run(disks.request(feature_levels={"group.version": 1}))
    assert any("--feature metadata.version=LEVEL" in text for text in run.plan.refusals)
    assert run.records == {}


def test_log_dirs_of_two_clusters_are_refused(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    meta = disks.path / "3/data/meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=4L6g", "cluster.id=5L6g"))
    with pytest.raises(InvalidConfigError, match="log dirs of more than one cluster"):
        plan_attach_run(disks.request())


def of_kafka_3(path: Path) -> LostDisks:
    """With node 1's metadata log in the first of its log dirs."""
    disks = LostDisks(path)
    (disks.path / DIRS[0] / METADATA_DIR).mkdir()
    return disks


def test_levels_that_are_given_go_over_those_of_the_disk(tmp_path: Path) -> None:
    run = plan_attach_run(
        of_kafka_3(tmp_path / "lost").request(
            feature_levels={"metadata.version": 16, "eligible.leader.replicas.version": 0}
        )
    )
    assert run.plan.feature_levels["metadata.version"] == 16
    assert run.plan.registrations == {}
    assert "RegisterBrokerRecord" not in run.records


def test_metadata_of_kafka_3_has_to_have_a_place(tmp_path: Path) -> None:
    disks = LostDisks(tmp_path / "lost")
    with pytest.raises(InvalidConfigError, match=f"node 1 of Kafka 3.*directory {METADATA_DIR}"):
        plan_attach_run(disks.request(feature_levels={"metadata.version": 21}))


def test_brokers_that_came_from_zookeeper_are_taken_and_others_of_it_are_not(
    tmp_path: Path,
) -> None:
    disks = of_kafka_3(tmp_path / "lost")
    path = disks.path / "2/data/meta.properties"
    text = path.read_text().replace("version=1", "version=0").replace("node.id", "broker.id")
    path.write_text(text)
    run = plan_attach_run(disks.request(feature_levels={"metadata.version": 21}))
    assert any("nodes 2 came from ZooKeeper" in each for each in run.plan.warnings)
    assert run.plan.nodes == (1, 2, 3)
    path.write_text("\n".join(x for x in text.splitlines() if "directory.id" not in x))
    with pytest.raises(InvalidConfigError, match="a broker of ZooKeeper"):
        plan_attach_run(disks.request())


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("1@127.0.0.1", "ID@HOST:PORT"),
        ("1@h:0", "ID@HOST:PORT"),
        ("9@h:9093", "node 9 of the quorum: none of its log dirs is given"),
        ("1@h:9093", "in which of"),
        (f"{VOTER_1},{VOTER_1}", "a node is there twice"),
    ],
)
def test_voters_that_cannot_be_are_refused(tmp_path: Path, given: str, error: str) -> None:
    request = LostDisks(tmp_path / "lost").request(controllers=(given,))
    with pytest.raises(InvalidConfigError, match=error):
        plan_attach_run(request)


def test_voters_that_are_given_have_the_ids_of_their_disks(tmp_path: Path) -> None:
    given = (VOTER_1, "2@INNER://b.example:9093,3@[::1]:9093")
    run = plan_attach_run(LostDisks(tmp_path / "lost").request(controllers=given))
    assert [(v.listener, v.host, v.directory_id) for v in run.voters] == [
        ("CONTROLLER", "127.0.0.1", "u-16FAqHReOlgMHNmpb_pA"),
        ("INNER", "b.example", "LXaqW37qTESjpxeBV_pB0g"),
        ("CONTROLLER", "::1", "r0Qb5hsaRg26BzAzP5mOXQ"),
    ]
