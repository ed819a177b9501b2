"""`kafkalog cluster --zookeeper-dir`: clusters of a dead ZooKeeper, with the directories of their
brokers.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES, copy_sample
from kafkalog.cli.main import main
from tests.zookeeper.live import cluster_id

ERA = SAMPLES / "zookeeper"
ENSEMBLE = ("--zookeeper-dir", str(ERA / "ensemble"))
LOG_DIRS = [
    word for name in ("broker-1", "broker-2", "second") for word in ("--log-dir", str(ERA / name))
]


@pytest.fixture
def checked(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> dict[str, Any]:
        assert main(["cluster", *words, "--json"]) in (0, 1)
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def ids(document: dict[str, Any]) -> list[tuple[str, str | None, int | None]]:
    return [(f["id"], f["topic"], f["partition"]) for f in document["findings"]]


def test_every_cluster_is_told_with_its_brokers_and_their_log_dirs(checked: Any) -> None:
    document = checked(*LOG_DIRS, *ENSEMBLE)
    one, second = document["clusters"]
    assert [one["clusterId"], second["clusterId"]] == [cluster_id(""), cluster_id("/second")]
    brokers = {row["brokerId"]: row for row in one["brokers"]}
    assert [brokers[1]["rack"], brokers[2]["rack"]] == ["east", "west"]
    # broker 1 was stopped first, in order; with broker 2 ZooKeeper went as well
    assert (brokers[1]["isFenced"], brokers[1]["inControlledShutdown"]) == (True, True)
    assert (brokers[1]["leaders"], brokers[2]["leaders"]) == (0, 8)
    assert (one["partitionsCount"], second["partitionsCount"]) == (8, 1)
    assert [len(one["logDirs"]), len(second["logDirs"])] == [2, 1]
    found = ids(document)
    assert ("unclean-election", "unclean", 0) in found
    assert ("under-replicated", "plain", 3) in found
    # every directory of the brokers is assigned to them, under the id it has
    assert not {"not-assigned", "topic-id-foreign", "directory-id-foreign"} & {f[0] for f in found}


def test_one_cluster_and_one_time_can_be_chosen(checked: Any) -> None:
    words = (*LOG_DIRS, *ENSEMBLE)
    (second,) = checked(*words, "--zk-root", "/second")["clusters"]
    assert second["clusterId"] == cluster_id("/second")
    # while both ran: nobody is away, and no log dir is held against the past
    early = checked(*words, "--zk-root", "/", "--now", "1795849050000")
    (one,) = early["clusters"]
    assert [row["isFenced"] for row in one["brokers"]] == [False, False]
    assert one["logDirs"] == []


def test_a_directory_that_zookeeper_does_not_know_is_not_assigned(
    checked: Any, tmp_path: Path
) -> None:
    copy = copy_sample("zookeeper/broker-1", tmp_path / "copy")
    shutil.copytree(copy / "plain-0", copy / "nobodys-0")
    document = checked("--log-dir", str(copy), *ENSEMBLE, "--zk-root", "/")
    assert ("not-assigned", "nobodys", 0) in ids(document)


def test_of_a_migrated_cluster_the_metadata_log_counts(checked: Any) -> None:
    era = SAMPLES / "migration"
    words = ["--log-dir", str(era / "controller"), "--zookeeper-dir", str(era / "ensemble")]
    (cluster,) = checked(*words)["clusters"]
    assert cluster["path"].endswith("__cluster_metadata-0")
