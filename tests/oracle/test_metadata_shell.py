"""What Kafka's metadata shell shows of a metadata log or of a snapshot is what our tables say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cluster.history import ClusterHistory, Until
from kafkalog.cluster.moments import Row
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.secret_settings import REDACTED
from kafkalog.log.segment_headers import scan_headers
from tests.oracle.setup import ensure_oracle

pytestmark = pytest.mark.oracle

Tree = dict[str, Any]
NODE = SAMPLES / "cluster" / "1" / "data" / "__cluster_metadata-0"
SINGLE = SAMPLES / "broker" / "__cluster_metadata-0"
LOG = f"{0:020}.log"
# The file that the shell reads, and where it ends in the log.
PLACES = [(NODE / f"{102:020}-{3:010}.checkpoint", 102), (NODE / LOG, None), (SINGLE / LOG, None)]
ATTEMPTS = 20
_FIELD = re.compile(r"(\w+)=(\[[^\]]*\]|[\w-]+)")


def shell(file: Path, scratch: Path) -> Tree:
    """`tree /image`, as nested names; what is a value has nothing below it.

    The shell waits until it has read the file, not until it has applied what it read: one run in
    six shows an image without a record. Such a run is asked again.
    """
    copy = scratch / file.name  # the shell locks the directory
    shutil.copy(file, copy)
    runtime = ensure_oracle()
    command = [str(runtime.java), "-Doracle.loglevel=off", "-XX:TieredStopAtLevel=1", "-cp"]
    command += [runtime.class_path, "org.apache.kafka.shell.MetadataShell", "--snapshot", str(copy)]
    expected = f"offset {image_offset(file)},"
    provenance = ""
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            [*command, "tree", "/image"], capture_output=True, text=True, check=True, timeout=300
        )
        tree = nested(done.stdout)
        provenance = only(tree["provenance"])
        if provenance.startswith(expected):
            return tree
    raise AssertionError(f"{file}: no image of {expected} but of {provenance}")


def image_offset(file: Path) -> int:
    """The offset of the last record that an image is made of."""
    headers = scan_headers(str(file)).rows
    is_data = headers["attributes"] & CONTROL_FLAG_MASK == 0
    return int(headers["last_offset"][is_data][-1])


def nested(lines: str) -> Tree:
    root: Tree = {}
    above: list[Tree] = [root]
    for line in lines.splitlines():
        name = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        if name.startswith("["):
            continue  # a line of the log
        below: Tree = {}
        # a user and a client of its quota have nodes of one name
        del above[depth + 1 :]
        above[depth].setdefault(name.removesuffix(":"), below)
        above.append(above[depth][name.removesuffix(":")])
    return root


def only(tree: Tree) -> str:
    (value,) = tree
    return str(value)


def fields(text: str) -> dict[str, str]:
    """`name=value` in what Kafka prints of a registration."""
    return dict(_FIELD.findall(text))


def numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"-?\d+", text)]


@pytest.mark.parametrize(
    ("file", "end"),
    [PLACES[0], *(pytest.param(*place, marks=pytest.mark.thorough) for place in PLACES[1:])],
    ids=["snapshot", "cluster", "single"],
)
def test_the_shell_shows_what_the_tables_say(file: Path, end: int | None, tmp_path: Path) -> None:
    seen = shell(file, tmp_path)
    history = ClusterHistory(file.parent, None if end is None else Until(offset=end))
    assert history.problems == []
    holds = {
        table: [row for row in history.rows[table] if row["endOffset"] is None]
        for table in ("topics", "configs", "features", "client_quotas", "acls", "scram")
    }

    brokers = {row["brokerId"]: row for row in history.rows["brokers"]}
    assert {str(node) for node in brokers} == set(seen["cluster"]["brokers"])
    for node, row in brokers.items():
        its = fields(only(seen["cluster"]["brokers"][str(node)]))
        assert its["epoch"] == str(row["brokerEpoch"])
        assert its["incarnationId"] == row["incarnationId"]
        assert its["fenced"] == str(row["isFenced"]).lower()
        assert its["inControlledShutdown"] == str(row["inControlledShutdown"]).lower()
        assert its.get("directories") == f"[{', '.join(row['logDirs'])}]"

    assert {row["topic"]: row["topicId"] for row in holds["topics"]} == {
        name: only(topic["id"]) for name, topic in seen["topics"]["byName"].items()
    }
    assert partitions(history, holds["topics"]) == {
        (topic_id, number): registration(only(node))
        for topic_id, topic in seen["topics"]["byId"].items()
        for number, node in topic.items()
        if number.isdecimal()
    }

    settings: dict[str, dict[str, str]] = {}
    for row in holds["configs"]:
        resource = f"{row['entityType'].upper()}{':' if row['entity'] else ''}{row['entity'] or ''}"
        settings.setdefault(resource, {})[row["key"]] = row["value"]
    for resource, its in seen["configs"].items():
        ours = settings.pop(resource, {})
        # The shell shows secrets, the tables do not.
        shown = {key: only(value) for key, value in its.items()}
        assert ours == {
            key: REDACTED if ours.get(key) == REDACTED else value for key, value in shown.items()
        }
    assert settings == {}

    features = {
        name.removeprefix("finalized_"): only(level)
        for name, level in seen["features"].items()
        if name.startswith("finalized_")
    }
    levels = {row["feature"]: str(row["level"]) for row in holds["features"]}
    assert levels.pop("metadata.version")
    levels.pop("kraft.version", None)  # a control record, which no image has
    assert levels == features

    assert sorted(row["resourceName"] for row in holds["acls"]) == sorted(
        fields(only(node))["resourceName"] for node in seen["acls"].get("byId", {}).values()
    )
    assert {(row["mechanism"], row["user"], row["iterations"]) for row in holds["scram"]} == {
        (mechanism, user, int(fields(only(node))["iterations"]))
        for mechanism, users in seen["scram"].items()
        for user, node in users.items()
    }
    # Of client ids the shell knows nothing: it shows their entities as others, or without a name.
    assert {
        (f"{row['entityType']}({row['entity']})", row["key"], row["value"])
        for row in holds["client_quotas"]
        if row["entityType"] in ("user", "ip")
    } == {
        (entity, key, float(only(value)))
        for entity, its in seen["clientQuotas"].items()
        for key, value in its.items()
        if entity.startswith(("user(", "ip("))
    }


def partitions(history: ClusterHistory, topics: list[Row]) -> dict[tuple[str, str], Any]:
    """(topic id, number) → the last state of each partition of the topics that are there."""
    there = {row["topicId"] for row in topics}
    return {
        (row["topicId"], str(row["partition"])): (
            row["leader"], row["leaderEpoch"], row["partitionEpoch"], row["replicas"],
            sorted(row["isr"]), row["addingReplicas"], row["removingReplicas"], row["directories"],
        )
        for row in history.rows["partition_changes"]
        if row["topicId"] in there and row["event"] != "deleted"
    }  # fmt: skip


def registration(text: str) -> Any:
    its = fields(text)
    directories = its["directories"].strip("[]")
    return (
        int(its["leader"]), int(its["leaderEpoch"]), int(its["partitionEpoch"]),
        numbers(its["replicas"]), sorted(numbers(its["isr"])), numbers(its["addingReplicas"]),
        numbers(its["removingReplicas"]), directories.split(", ") if directories else [],
    )  # fmt: skip
