"""Records of internal topics as `kafkalog dump` shows them, against Kafka's DumpLogSegments: the
samples byte by byte, then records of every type in every version, tombstones and broken ones.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.format.varint import pack_unsigned_varint
from kafkalog.messages.coordinator_record import RecordTypes
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.remote_log_records import LAYOUTS
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES
from tests.oracle.kafka import Kafka
from tests.oracle.test_coordinator_messages import COORDINATOR, GONE, REMOTE
from tests.oracle.test_dump_equals_kafka import dump, kafkas
from tests.support.log_builder import LogBuilder
from tests.support.random_messages import random_message

pytestmark = pytest.mark.oracle

TOPICS: dict[str, tuple[str, str, RecordTypes]] = {
    "__consumer_offsets": ("--offsets-decoder", "group", OFFSETS_TYPES),
    "__transaction_state": ("--transaction-log-decoder", "transaction", TRANSACTION_TYPES),
    "__share_group_state": ("--share-group-state-decoder", "share", SHARE_STATE_TYPES),
}
PARTITIONS = [p for topic in TOPICS for p in sorted(SAMPLES.glob(f"*/{topic}-*"))]
Pair = tuple[bytes, bytes | None]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_samples_are_shown_byte_by_byte(kafka: Kafka, partition: Path) -> None:
    option = TOPICS[partition.name.rpartition("-")[0]][0]
    files = [str(path) for path in sorted(partition.glob("*.log"))]
    for more in ((), ("--skip-record-metadata",)):
        text, _ = kafkas(kafka, option, *more, "--files", ",".join(files))
        _, ours, _ = dump(option, *more, *files)
        assert ours.decode().split("\n") == text.split("\n")


def pairs(kafka: Kafka, package: str, types: RecordTypes, rng: random.Random) -> Iterator[Pair]:
    """Records of every type and version, as Kafka's classes write them."""
    cases = [
        (f"{COORDINATOR}.{package}.generated.{message.name}", version, message)
        for known in types.values()
        if known.name not in GONE
        for value_version in range(known.value.versions.first, known.value.versions.last + 1)
        for _ in range(4)
        for message, version in ((known.key, 0), (known.value, value_version))
    ]
    answers = kafka.encode(
        (name, version, random_message(message, version, rng)) for name, version, message in cases
    )
    bodies = [bytes.fromhex(answer["bytes"]) for answer in answers]
    for i in range(0, len(cases), 2):
        key = cases[i][2].api_key.to_bytes(2, "big") + bodies[i]
        yield key, cases[i + 1][1].to_bytes(2, "big") + bodies[i + 1]
        if i % 8 == 0:
            yield key, None


@pytest.mark.parametrize("topic", TOPICS)
def test_every_type_and_version_is_shown_byte_by_byte(
    kafka: Kafka, log_dir: Path, topic: str
) -> None:
    option, package, types = TOPICS[topic]
    log = LogBuilder(log_dir, f"{topic}-0")
    for key, value in pairs(kafka, package, types, random.Random(topic)):
        log.batch((key, value))
    path = log.write() / f"{0:020d}.log"
    text, _ = kafkas(kafka, option, "--files", str(path))
    _, ours, _ = dump(option, str(path))
    assert text.count("skipping") == 0
    assert ours.decode().split("\n") == text.split("\n")


def test_classic_members_are_shown_as_their_protocol_says(kafka: Kafka, log_dir: Path) -> None:
    """Subscriptions of every version, one that is none, and groups that are no consumers."""
    member = {"memberId": "m", "clientId": "c", "clientHost": "/h", "sessionTimeout": 1,
              "groupInstanceId": None, "rebalanceTimeout": 2}  # fmt: skip
    shown = ("AAAAAAABAAF0/////w==", "AAEAAAABAAF0AAAAAAAAAAA=",
             "AAMAAAAAAAAAAAAAAAAAAAAJAAFy", "AAkAAAAAAAAAAAAAAAAAAAAJ//8=",
             "AAEA", "")  # fmt: skip
    members = [{**member, "subscription": text, "assignment": text} for text in shown]
    fields = {"generation": 1, "protocol": "range", "leader": None, "currentStateTimestamp": -1}
    name = f"{COORDINATOR}.group.generated.GroupMetadataValue"
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    for kind in ("consumer", "connect"):
        (answer,) = kafka.encode([(name, 3, {**fields, "protocolType": kind, "members": members})])
        log.batch((b"\0\2\0\1g", b"\0\3" + bytes.fromhex(answer["bytes"])))
    path = log.write() / f"{0:020d}.log"
    text, _ = kafkas(kafka, "--offsets-decoder", "--files", str(path))
    _, ours, _ = dump("--offsets-decoder", str(path))
    assert ours.decode().split("\n") == text.split("\n")
    assert ours.count(b'"ownedPartitions"') == 3


def test_what_cannot_be_read_is_said_where_kafka_says_it(kafka: Kafka, log_dir: Path) -> None:
    commit = bytes.fromhex("0001 0001 67 0001 74 00000000")
    broken: list[Pair] = [
        (b"\0\x63", b"x"), (b"\0\x12\0\1g", b"\0\0"), (commit, b"\0\x09"), (commit, b""),
        (commit, b"\0\3\0\0"), (commit[:-1], b"\0\3"), (b"\0", None), (commit, None),
    ]  # fmt: skip
    path = LogBuilder(log_dir, "__consumer_offsets-0").batch(*broken).write() / f"{0:020d}.log"
    text, _ = kafkas(kafka, "--offsets-decoder", "--files", str(path))
    _, ours, _ = dump("--offsets-decoder", str(path))
    theirs = [_without_reason(line) for line in text.split("\n")]
    assert [_without_reason(line) for line in ours.decode().split("\n")] == theirs
    assert sum("Error at offset" in line for line in theirs) == 5
    assert text.count("Unknown record type") == 2


def _without_reason(line: str) -> str:
    return re.sub(r"(Error at offset \d+, skipping\.).*", r"\1", line)


def test_remote_log_metadata_is_shown_byte_by_byte(kafka: Kafka, log_dir: Path) -> None:
    rng = random.Random("remote")
    log = LogBuilder(log_dir, "__remote_log_metadata-0")
    states = {"remoteLogSegmentState": 4, "remotePartitionDeleteState": 3}
    for api_key in LAYOUTS:
        message = LAYOUTS[api_key][0]
        cases = []
        for _ in range(12):
            fields = random_message(message, 0, rng)
            for name, count in states.items():
                if name in fields:
                    fields[name] = rng.randrange(count)
            for name in set(fields) & {"startOffset", "endOffset", "maxTimestampMs"}:
                fields[name] = rng.randrange(1 << 40)
            for name in set(fields) & {"brokerId", "eventTimestampMs", "segmentSizeInBytes"}:
                fields[name] = rng.randrange(1 << 30)
            if "startOffset" in fields:
                fields["endOffset"] = fields["startOffset"] + rng.randrange(1 << 20)
                fields["segmentLeaderEpochs"] = [
                    {"leaderEpoch": epoch, "offset": epoch * 10}
                    for epoch in rng.sample(range(9), 3)
                ]
            if fields.get("remoteLogSegmentState") == 0 and api_key == 1:
                fields["remoteLogSegmentState"] = 1  # an update to the first state is refused
            cases.append((f"{REMOTE}.generated.{message.name}", 0, fields))
        for answer in kafka.encode(cases):
            head = b"".join(map(pack_unsigned_varint, (1, api_key, 0)))
            log.batch((None, head + bytes.fromhex(answer["bytes"])))
    path = log.write() / f"{0:020d}.log"
    text, _ = kafkas(kafka, "--remote-log-metadata-decoder", "--files", str(path))
    _, ours, _ = dump("--remote-log-metadata-decoder", str(path))
    assert text.count("skipping") == 0
    assert ours.decode().split("\n") == text.split("\n")
