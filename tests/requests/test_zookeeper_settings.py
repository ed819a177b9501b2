"""Log dirs of the ZooKeeper era: their settings are those of their cluster in ZooKeeper."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from data.copy_samples import SAMPLES, copy_sample
from kafkalog.cli.main import main
from kafkalog.format.meta_properties import MetaProperties, pack_meta_properties
from kafkalog.zookeeper.settings import read_zookeeper_settings
from tests.zookeeper.live import cluster_id, live

ENSEMBLE = SAMPLES / "zookeeper" / "ensemble"
ZOOKEEPER = ("--zookeeper-dir", str(ENSEMBLE))
# An hour after the sample's brokers stopped: of what its tombstones and markers wait for,
# delete.retention.ms of a day, nothing has passed.
AN_HOUR_LATER = ("--now", 1795849170557 + 3_600_000)


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def statuses(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        f"{entry['topic']}-{entry['partition']}": (entry["status"], entry["reason"])
        for entry in document["partitions"]
    }


def test_settings_are_those_the_brokers_described() -> None:
    found = read_zookeeper_settings([str(ENSEMBLE)])
    assert set(found) == {cluster_id(""), cluster_id("/second")}
    own = found[cluster_id("")]
    assert not own.problems
    described = live()["admin"]
    assert set(own.topics) == set(described["topics"])
    for topic, config in described["configs"].items():
        expected = dict(config)
        if "segment.bytes" in expected and int(expected["segment.bytes"]) < 1024 * 1024:
            expected["internal.segment.bytes"] = expected.pop("segment.bytes")
        assert dict(own.topics[topic].config) == expected
    assert own.broker_configs["1"] == {"log.retention.ms": "60000000"}
    assert own.broker_configs[""] == {"log.retention.ms": "50000000"}
    assert own.topics["moved"].replicas == {0: (2,)}
    assert own.topics["plain"].topic_id


def test_a_plan_takes_policy_and_sources_from_the_log_dirs_own_cluster(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for log_dir, retention, source in (
        ("broker-1", "3600000", "topic"),
        ("second", "1000000", "topic"),
    ):
        path = SAMPLES / "zookeeper" / log_dir
        code, document = run(capsys, "retain", "--log-dir", path, *ZOOKEEPER, "--topic", "plain")
        assert code == 0
        entries = document["partitions"]
        assert entries
        for entry in entries:
            assert entry["configSources"]["retention.ms"] == {"value": retention, "source": source}
        assert any("ZooKeeper's" in note for note in document["notes"])


def test_without_zookeeper_the_policy_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    path = SAMPLES / "zookeeper" / "broker-1"
    _, document = run(capsys, "compact", "--log-dir", path, "--topic", "compacted")
    assert all("cleanup.policy is not known" in why for _, why in statuses(document).values())
    _, document = run(capsys, "compact", "--log-dir", path, "--topic", "compacted", *ZOOKEEPER)
    assert all(status != "refused" for status, _ in statuses(document).values())


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (MetaProperties(0, "BBBBBBBBBBBBBBBBBBBBBg", 1, None), "the log dir is of cluster BBBB"),
        (MetaProperties(0, None, 1, None), "--zk-root says whose the log dir is"),
    ],
)
def test_a_log_dir_of_another_cluster_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], meta: MetaProperties, reason: str
) -> None:
    copy = copy_sample("zookeeper/broker-1", tmp_path / "copy")
    (copy / "meta.properties").write_bytes(pack_meta_properties(meta))
    _, document = run(capsys, "compact", "--log-dir", copy, "--topic", "compacted", *ZOOKEEPER)
    for status, why in statuses(document).values():
        assert status == "refused"
        assert reason in why


def test_a_chroot_that_is_named_is_taken_for_a_log_dir_without_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_sample("zookeeper/second", tmp_path / "copy")
    (copy / "meta.properties").write_bytes(pack_meta_properties(MetaProperties(0, None, 1, None)))
    words = ("retain", "--log-dir", copy, "--topic", "plain", *ZOOKEEPER, "--zk-root", "/second")
    code, document = run(capsys, *words)
    assert code == 0
    told = document["partitions"][0]["configSources"]["retention.ms"]
    assert told == {"value": "1000000", "source": "topic"}


def test_damage_in_zookeeper_refuses_and_a_root_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ENSEMBLE, tmp_path / "zk")
    newest = max((tmp_path / "zk" / "version-2").glob("log.*"), key=lambda p: int(p.suffix[1:], 16))
    data = bytearray(newest.read_bytes())
    data[16 + 12 + 40] ^= 1
    newest.write_bytes(data)
    path = SAMPLES / "zookeeper" / "broker-1"
    damaged = ("--zookeeper-dir", tmp_path / "zk")
    _, document = run(capsys, "compact", "--log-dir", path, "--topic", "compacted", *damaged)
    for status, why in statuses(document).values():
        assert status == "refused"
        assert "checksum" in why
    words = ["compact", "--log-dir", str(path), *ZOOKEEPER, "--zk-root", "/nowhere"]
    assert main(words) == 2
    assert "no cluster at '/nowhere'" in capsys.readouterr().err


def test_logs_of_that_era_are_read_verified_and_compacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a round over the whole log, of which Kafka's own cleaner had done a part."""
    copy = copy_sample("zookeeper/broker-1", tmp_path / "copy")
    (copy / "cleaner-offset-checkpoint").unlink()
    before = kafkalog.read_records(str(copy), topics=["compacted"]).read_all()
    verify = ("verify", "--log-dir", copy, *ZOOKEEPER, "--run-dir", tmp_path / "runs")
    code, document = run(capsys, *verify)
    assert [f for f in document["findings"] if f["severity"] != "info"] == []
    assert code == 0
    words = ("compact", "--log-dir", copy, "--topic", "compacted", "--apply", "--workers", 1)
    code, document = run(capsys, *words, *ZOOKEEPER, *AN_HOUR_LATER)
    assert code == 0
    assert {status for status, _ in statuses(document).values()} == {"compacted"}
    after = kafkalog.read_records(str(copy), topics=["compacted"]).read_all()
    assert _latest(after) == _latest(before)
    code, document = run(capsys, *verify)
    assert code == 0


def _latest(records: Any) -> dict[tuple[int, bytes], bytes | None]:
    found = {}
    for row in records.select(["partition", "key", "value"]).to_pylist():
        found[row["partition"], row["key"]] = row["value"]
    return found


def test_the_replicas_of_both_brokers_hold_the_same_records() -> None:
    columns = ["partition", "offset", "key", "value", "timestampMs"]
    one, two = (
        kafkalog.read_records(
            str(SAMPLES / "zookeeper" / name), topics=["plain"], columns=columns
        ).read_all()
        for name in ("broker-1", "broker-2")
    )
    assert one.num_rows == 3 * (40 + 20)
    assert one.sort_by([("partition", "ascending"), ("offset", "ascending")]).equals(
        two.sort_by([("partition", "ascending"), ("offset", "ascending")])
    )
