"""Settings of whole runs: which metadata log tells them, what is refused, what the plan says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.format.meta_properties import MetaProperties, pack_meta_properties
from tests.operations.faults.logs import contents
from tests.support.log_builder import META, START_MS, LogBuilder
from tests.support.metadata_builder import (
    OTHER_ID,
    MetadataBuilder,
    broker_config,
    config,
    feature,
    remove_topic,
    topic,
)

NOW = ["--now", str(START_MS + 10_000_000)]
POLICY = "cleanup.policy"


def write_partition(log_dir: Path, name: str = "orders-0") -> Path:
    log = LogBuilder(log_dir, name)
    for round_ in range(3):
        log.segment(modified_ms=START_MS).batch(("a", str(round_)), ("b", str(round_)))
    return log.write()


def write_cluster(log_dir: Path, *values: bytes) -> Path:
    return MetadataBuilder(log_dir).batch(topic("orders"), *values).write()


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["compact", *NOW, "--json", *map(str, words)])
    return code, json.loads(capsys.readouterr().out)


def orders(document: dict[str, Any]) -> dict[str, Any]:
    (found,) = [p for p in document["partitions"] if p["topic"] == "orders"]
    return dict(found)


def test_the_disk_tells_policy_and_version_and_the_plan_says_so(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_partition(log_dir)
    write_cluster(
        log_dir,
        config("orders", POLICY, "compact"),
        broker_config("", "log.cleaner.min.cleanable.ratio", "0.25"),
        broker_config("1", "log.cleaner.delete.retention.ms", "7"),
        broker_config("2", "log.cleaner.delete.retention.ms", "8"),
        feature("metadata.version", 28),
    )
    static = log_dir.parent / f"{log_dir.name}.properties"
    static.write_text("node.id=1\nlog.retention.hours=2\nlog.cleaner.min.cleanable.ratio=0.9\n")
    try:
        code, document = run(
            capsys, "--log-dir", log_dir, "--server-properties", static, "--topic", "orders"
        )
        assert code == 0
        plan = orders(document)
        assert (plan["status"], plan["kafkaVersion"]) == ("clean", "4.2")
        told = plan["configSources"]
        assert told[POLICY] == {"value": "compact", "source": "topic"}
        assert told["min.cleanable.dirty.ratio"] == {
            "value": "0.25",
            "source": "all brokers log.cleaner.min.cleanable.ratio",
        }
        assert told["delete.retention.ms"] == {
            "value": "7",
            "source": "broker 1 log.cleaner.delete.retention.ms",
        }
        assert told["retention.ms"] == {
            "value": "7200000",
            "source": "server.properties log.retention.hours",
        }
        assert told["segment.ms"]["source"] == "default"
        note, replicas = document["notes"]
        assert "the log up to offset 6" in note
        assert "--replicas" in replicas
        code, document = run(capsys, "--log-dir", path, "--topic", "orders", "--apply")
        assert (code, orders(document)["status"]) == (0, "compacted")
    finally:
        static.unlink()


def test_an_option_against_the_disk_is_refused_with_exit_3_until_it_is_forced(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir)
    write_cluster(log_dir, config("orders", "retention.ms", "5"))
    before = contents(log_dir)
    words = ["--log-dir", log_dir, "--topic", "orders", "--apply", "--config", f"{POLICY}=compact"]
    code, document = run(capsys, *words)
    plan = orders(document)
    assert (code, plan["status"], plan["groups"]) == (3, "refused", [])
    assert plan["reason"] == (
        "cleanup.policy is delete (from default), not compact (from option); "
        "to go on nevertheless: --force config-differs"
    )
    after = contents(log_dir)
    after.pop(".lock", None)
    assert after == before
    code, document = run(capsys, *words, "--force", "config-differs")
    assert (code, orders(document)["status"]) == (0, "compacted")


def test_a_copied_partition_needs_its_policy(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_partition(log_dir)
    code, document = run(capsys, "--log-dir", path)
    assert (code, orders(document)["status"]) == (1, "refused")
    assert "no cluster metadata" in orders(document)["reason"]
    assert "no cluster metadata" in document["notes"][0]
    assert orders(document)["kafkaVersion"] == "4.3"
    assert run(capsys, "--log-dir", path, "--topic", "*", "--apply")[0] == 3
    file = log_dir / "settings.toml"
    file.write_text('[orders]\ncleanup.policy = "compact"\n')
    code, document = run(capsys, "--log-dir", path, "--config-file", file)
    assert (code, orders(document)["status"]) == (0, "clean")
    assert orders(document)["configSources"][POLICY]["source"] == "config-file"


def test_a_topic_of_another_id_or_gone_is_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir)
    write_cluster(
        log_dir, config("orders", POLICY, "compact"), remove_topic(),
        topic("orders", OTHER_ID), config("orders", POLICY, "compact"),
    )  # fmt: skip
    code, document = run(capsys, "--log-dir", log_dir, "--topic", "orders")
    assert (code, orders(document)["status"]) == (1, "refused")
    assert OTHER_ID in orders(document)["reason"]


def test_a_damaged_metadata_log_refuses_its_partitions_and_names_the_place(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir)
    metadata = write_cluster(log_dir, config("orders", POLICY, "compact"))
    log = metadata / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    code, document = run(capsys, "--log-dir", log_dir, "--topic", "orders")
    assert (code, orders(document)["status"]) == (1, "refused")
    assert f"{log} @ 0 (offset 0): the batch's CRC" in orders(document)["reason"]
    assert f"{log} @ 0" in document["notes"][0]


@pytest.fixture
def two_log_dirs(log_dir: Path) -> tuple[Path, Path]:
    """Two log dirs of one node; the second has the metadata log."""
    first, second = log_dir / "a", log_dir / "b"
    for each in (first, second):
        each.mkdir()
    write_partition(first)
    write_cluster(second, config("orders", POLICY, "compact"))
    return first, second


def test_the_metadata_log_may_be_in_another_log_dir_of_the_node(
    two_log_dirs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = two_log_dirs
    words = ["--topic", "orders", "--log-dir", first]
    assert orders(run(capsys, *words)[1])["status"] == "refused"
    code, document = run(capsys, *words, "--log-dir", second)
    assert (code, orders(document)["status"]) == (0, "clean")
    other = MetaProperties(1, META.cluster_id, 2, META.directory_id)
    (second / "meta.properties").write_bytes(pack_meta_properties(other))
    assert orders(run(capsys, *words, "--log-dir", second)[1])["status"] == "refused"


def test_two_metadata_logs_of_a_node_are_no_ones_word(
    two_log_dirs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = two_log_dirs
    write_cluster(first, config("orders", POLICY, "delete"))
    words = ["--topic", "orders", "--log-dir", first, "--log-dir", second]
    code, document = run(capsys, *words)
    assert (code, orders(document)["status"]) == (1, "refused")
    assert "metadata log in each of" in orders(document)["reason"]


def test_the_file_of_another_broker_is_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_partition(log_dir)
    file = log_dir / "server.properties"
    for line, status in (("node.id=2", "refused"), ("node.id=1", "clean"), ("", "clean")):
        file.write_text(f"{line}\nlog.cleaner.min.cleanable.ratio=0.2\n")
        words = ("--topic", "orders", "--config", "cleanup.policy=compact")
        code, document = run(capsys, "--log-dir", path, "--server-properties", file, *words)
        assert orders(document)["status"] == status
        assert code == (1 if status == "refused" else 0)
    assert "--server-properties of node 2" not in orders(document)["reason"]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--config-file", "[orders]\nnonsense=1"),
        ("--config-file", None),
        ("--server-properties", "log.dirs=\\u12"),
        ("--server-properties", None),
    ],
)
def test_a_file_that_cannot_be_understood_is_wrong_usage(
    log_dir: Path, capsys: pytest.CaptureFixture[str], option: str, text: str | None
) -> None:
    path = write_partition(log_dir)
    file = log_dir / "file"
    if text is not None:
        file.write_text(text)
    assert main(["compact", "--log-dir", str(path), option, str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_the_samples_need_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    _, document = run(capsys, "--log-dir", SAMPLES / "broker", "--topic", "*")
    live = [p for p in document["partitions"] if p["path"].endswith(f"/{p['topic']}-0")]
    policies = {p["topic"]: p["configSources"][POLICY] for p in live}
    assert policies["compacted"] == {"value": "compact", "source": "topic"}
    assert policies["__consumer_offsets"] == {"value": "compact", "source": "topic"}
    assert policies["orders"] == {"value": "delete", "source": "default"}
    assert {p["kafkaVersion"] for p in live} == {"4.3"}
    assert not [p for p in live if "cluster metadata" in p["reason"]]


def test_a_topic_a_broker_never_compacts_is_passed_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the internal topics only the state of share groups has the policy delete, in Kafka 4.3."""
    share = SAMPLES / "share"
    _, document = run(capsys, "--log-dir", share, "--topic", "__*")
    (plan,) = [p for p in document["partitions"] if p["topic"] == "__share_group_state"]
    assert (plan["status"], plan["configSources"][POLICY]["source"]) == ("skip", "topic")
    assert "cleanup.policy is delete (from topic), not compact" in plan["reason"]
    policies = {p["configSources"][POLICY]["value"] for p in document["partitions"]}
    assert policies == {"compact", "delete"}
