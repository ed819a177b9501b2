"""Messages of the coordinators, of remote log metadata and of the consumer protocol: our tables
against Kafka's definitions, and bytes of Kafka's generated classes of four releases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kafkalog.messages.consumer_protocol import ASSIGNMENT, SUBSCRIPTION
from kafkalog.messages.decoder import decode_message, decode_prefix
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.json_form import json_form
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.remote_log_records import LAYOUTS
from kafkalog.messages.schema import Array, Field, Message, Struct, Versions
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES
from tests.oracle.jars import RELEASES
from tests.oracle.kafka import Kafka
from tests.oracle.message_definitions import (
    fields_of_definition,
    fields_of_table,
    read_definitions,
)
from tests.support.random_messages import random_message

pytestmark = pytest.mark.oracle

CASES = 12  # of each version of each message
NEWEST = list(RELEASES)[-1]
# Types that releases 4.1 and later do not have any more: from the format's description alone.
GONE = {"ShareGroupPartitionMetadata"}
COORDINATOR = "org.apache.kafka.coordinator"
REMOTE = "org.apache.kafka.server.log.remote.metadata.storage"
# (jar, folder of its definitions, package of its classes) → messages
SOURCES: dict[tuple[str, str, str], list[Message]] = {
    (f"kafka-{name}-coordinator", "common/message", f"{COORDINATOR}.{name}.generated"): [
        message
        for known in types.values()
        if known.name not in GONE
        for message in (known.key, known.value)
    ]
    for name, types in (
        ("group", OFFSETS_TYPES),
        ("transaction", TRANSACTION_TYPES),
        ("share", SHARE_STATE_TYPES),
    )
} | {
    ("kafka-storage", "message", f"{REMOTE}.generated"): [each for each, *_ in LAYOUTS.values()],
    ("kafka-clients", "common/message", "org.apache.kafka.common.message"): [
        SUBSCRIPTION,
        ASSIGNMENT,
    ],
}  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(line, marks=pytest.mark.thorough) for line in list(RELEASES)[:-1]),
        list(RELEASES)[-1],
    ],
)
def release(request: pytest.FixtureRequest, kafka: Kafka) -> Iterator[Kafka]:
    if request.param == kafka.line:
        yield kafka
        return
    with Kafka(request.param) as running:
        yield running


def test_our_tables_are_the_newest_definitions() -> None:
    for (jar, folder, _), messages in SOURCES.items():
        definitions = read_definitions(NEWEST, jar, folder)
        for message in messages:
            definition = definitions[message.name]
            assert message.source == definition["file"]
            assert message.flexible == Versions.parse(definition["flexibleVersions"])
            if message in (SUBSCRIPTION, ASSIGNMENT):  # any version is read
                message = replace(message, versions=Versions.parse(definition["validVersions"]))
            assert message.versions == Versions.parse(definition["validVersions"])
            assert fields_of_table(message) == fields_of_definition(definition, message)
        if jar.endswith("coordinator"):
            known = {message.name for message in messages}
            assert {d["name"] for d in definitions.values()} == known


@pytest.mark.thorough
def test_earlier_releases_lack_tagged_fields_and_nothing_else() -> None:
    lacking = set()
    for line in RELEASES:
        for (jar, folder, _), messages in SOURCES.items():
            definitions = read_definitions(line, jar, folder)
            for message in messages:
                theirs = fields_of_definition(definitions[message.name], message)
                lacking |= {(line, *found) for found in _lacking(message.body, theirs)}
    assert lacking == {
        ("4.1", "AssignmentEpochs"), ("4.1", "AssignmentTimestamp"),
        ("4.1", "DeliveryCompleteCount"), ("4.1", "LastAssignmentConfigs"),
        ("4.1", "ValidatedTopologyEpoch"),
        ("4.2", "AssignmentEpochs"), ("4.2", "AssignmentTimestamp"),
        *(
            (line, f"{kind}DescriptionTopologyEpoch")
            for line in ("4.1", "4.2", "4.3")
            for kind in ("Stored", "Failed")
        ),
    }  # fmt: skip


def _lacking(body: Struct, theirs: list[tuple[Any, ...]]) -> Iterator[tuple[str]]:
    known = {name: inner for name, *_, inner in theirs}
    for field in body.fields:
        name = field.name[0].upper() + field.name[1:]
        if name not in known:
            assert field.tag is not None, name
            yield (name,)
            continue
        kind = field.type.item if isinstance(field.type, Array) else field.type
        if isinstance(kind, Struct):
            yield from _lacking(kind, known[name])
    ours = {field.name[0].upper() + field.name[1:] for field in body.fields}
    assert set(known) <= ours


def test_bytes_of_every_version_are_read_and_written_as_kafka_does(release: Kafka) -> None:
    rng = random.Random(f"coordinators {release.line}")
    cases: list[tuple[str, Message, int, dict[str, Any]]] = []
    for (jar, folder, package), messages in SOURCES.items():
        definitions = read_definitions(release.line, jar, folder)
        for message in messages:
            definition = definitions[message.name]
            theirs = fields_of_definition(definition, message)
            known = replace(message, body=_known(message.body, theirs))
            valid = Versions.parse(definition["validVersions"])
            for version in range(valid.first, valid.last + 1):
                for _ in range(CASES):
                    fields = random_message(known, version, rng)
                    cases.append((f"{package}.{message.name}", message, version, fields))
    answers = release.encode((name, version, fields) for name, _, version, fields in cases)
    for (name, message, version, sent), answer in zip(cases, answers, strict=True):
        data = bytes.fromhex(answer["bytes"])
        fields = decode_message(message, version, data)
        ours = json_form(message.body, version, fields)
        assert ours == answer["json"], (name, version, sent)
        assert list(ours) == list(answer["json"])
        assert decode_prefix(message, version, data + b"x") == (fields, len(data))
        assert encode_message(message, version, fields) == data


def _known(body: Struct, theirs: list[tuple[Any, ...]]) -> Struct:
    """The fields that a release has."""
    known = {name: inner for name, *_, inner in theirs}
    fields: list[Field] = []
    for field in body.fields:
        inner = known.get(field.name[0].upper() + field.name[1:])
        if inner is None:
            continue
        if isinstance(field.type, Array) and isinstance(field.type.item, Struct):
            field = replace(field, type=Array(_known(field.type.item, inner)))
        elif isinstance(field.type, Struct):
            field = replace(field, type=_known(field.type, inner))
        fields.append(field)
    return Struct(tuple(fields))
