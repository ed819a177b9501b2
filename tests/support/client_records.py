"""Records of Kafka Connect's, MirrorMaker's and Kafka Streams' topics as Kafka's own classes wrote
them.

`client_records.txt` is made by `python -m tests.oracle.client_records`: a line a record of topic,
key and value, in hexadecimal, `-` for null.
"""

from __future__ import annotations

import json
from pathlib import Path

from kafkalog.messages.client_topics import CLIENT_TOPICS
from kafkalog.reading.streams_views import SUFFIXES
from tests.support.log_builder import LogBuilder
from tests.support.streams_records import write_streams_topics

# Views of topics that programs beside the broker keep.
CLIENT_VIEWS = (*CLIENT_TOPICS, *SUFFIXES)
RECORDS_FILE = Path(__file__).with_name("client_records.txt")
Pair = tuple[bytes | None, bytes | None]


def client_records() -> dict[str, list[Pair]]:
    """(key, value) of each record, by topic."""
    found: dict[str, list[Pair]] = {}
    for line in RECORDS_FILE.read_text().splitlines():
        topic, key, value = line.split()
        found.setdefault(topic, []).append((_bytes(key), _bytes(value)))
    return found


def registry_records() -> list[tuple[str, str | None]]:
    """Of `_schemas`, as Schema Registry's documents show them."""

    def key(keytype: str, subject: str, **more: object) -> str:
        magic = int(keytype == "SCHEMA")
        fields = {"keytype": keytype, "subject": subject, **more, "magic": magic}
        return json.dumps(fields, separators=(",", ":"))

    def schema(subject: str, version: int, id_: int, **more: object) -> str:
        its = {"subject": subject, "version": version, "id": id_, **more}
        return json.dumps({"deleted": False, **its, "schema": '"string"'})

    of_orders = [key("SCHEMA", "orders", version=version) for version in (1, 2, 3)]
    proto = {"schemaType": "PROTOBUF", "references": [{"name": "a", "subject": "a", "version": 1}]}
    return [
        ('{"keytype":"NOOP","magic":0}', None),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        (of_orders[0], schema("orders", 1, 1)),
        (of_orders[1], schema("orders", 2, 2, **proto)),
        (key("DELETE_SUBJECT", "orders"), '{"subject":"orders","version":2}'),
        (of_orders[2], schema("orders", 3, 1)),
        (key("SCHEMA", "clicks", version=1), schema("clicks", 1, 3)),
        (key("SCHEMA", "clicks", version=1), schema("clicks", 1, 3, deleted=True)),
        (of_orders[0], None),
    ]


def write_client_topics(log_dir: Path) -> None:
    """Each topic as partition 0, all its records in one batch."""
    for topic, records in client_records().items():
        LogBuilder(log_dir, f"{topic}-0").batch(*records).write()
    LogBuilder(log_dir, "_schemas-0").batch(*registry_records()).write()
    write_streams_topics(log_dir)


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)
