"""Every record type of the metadata log, in every version, against Kafka's generated classes of
four releases; and our tables against the message definitions in Kafka's jars.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kafkalog.format.varint import pack_unsigned_varint
from kafkalog.messages.cluster_metadata import (
    MESSAGES,
    decode_metadata_record,
    encode_metadata_record,
)
from kafkalog.messages.decoder import decode_message
from kafkalog.messages.framed_record import FRAME_VERSION
from kafkalog.messages.json_form import json_form
from kafkalog.messages.schema import Message, Versions
from tests.oracle.jars import RELEASES
from tests.oracle.kafka import Kafka
from tests.oracle.message_definitions import (
    fields_of_definition,
    fields_of_table,
    read_definitions,
)
from tests.support.random_messages import random_message

pytestmark = pytest.mark.oracle

PACKAGE = "org.apache.kafka.common.metadata"
CASES = 12  # of each version of each type


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


def highest_versions(kafka: Kafka) -> dict[int, tuple[str, int]]:
    """type → (name, highest version) that this release knows."""
    types = kafka.message_types(f"{PACKAGE}.MetadataRecordType")
    assert all(each["lowestSupportedVersion"] == 0 for each in types)
    return {each["id"]: (each["name"], each["highestSupportedVersion"]) for each in types}


def test_every_type_in_every_version_is_read_and_written_as_kafka_does(release: Kafka) -> None:
    known = highest_versions(release)
    assert set(known) <= set(MESSAGES)
    cases: list[tuple[Message, int, dict[str, Any]]] = []
    rng = random.Random(release.line)
    for api_key, (name, highest) in known.items():
        message = MESSAGES[api_key]
        assert re.sub(r"(?<!^)(?=[A-Z])", "_", message.name).upper() == name
        assert highest in message.versions
        for version in range(highest + 1):
            cases += [
                (message, version, random_message(message, version, rng)) for _ in range(CASES)
            ]
    answers = release.encode((f"{PACKAGE}.{m.name}", version, f) for m, version, f in cases)
    for (message, version, sent), answer in zip(cases, answers, strict=True):
        body = bytes.fromhex(answer["bytes"])
        fields = decode_message(message, version, body)
        ours = json_form(message.body, version, fields)
        assert ours == answer["json"], (message.name, version, sent)
        head = (FRAME_VERSION, message.api_key, version)
        framed = b"".join(map(pack_unsigned_varint, head)) + body
        assert decode_metadata_record(framed).fields == fields  # type: ignore[union-attr]
        assert encode_metadata_record(message, version, fields) == framed


def test_our_newest_versions_are_those_of_the_newest_release() -> None:
    with Kafka(list(RELEASES)[-1]) as newest:
        known = highest_versions(newest)
    ours = {api_key: message.versions.last for api_key, message in MESSAGES.items()}
    assert ours == {api_key: highest for api_key, (_, highest) in known.items()}


def test_our_tables_are_kafkas_definitions() -> None:
    found = read_definitions(list(RELEASES)[-1], "kafka-metadata", "common/metadata")
    theirs = {each["apiKey"]: each for each in found.values()}
    assert set(theirs) == set(MESSAGES)
    for api_key, message in MESSAGES.items():
        definition = theirs[api_key]
        assert message.name == definition["name"]
        assert message.source == definition["file"]
        assert message.versions == Versions.parse(definition["validVersions"])
        assert message.flexible == Versions.parse(definition["flexibleVersions"])
        assert fields_of_table(message) == fields_of_definition(definition, message)
