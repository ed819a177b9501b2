"""Records of Kafka Streams' changelogs and repartition topics, as an application wrote them.

`streams_records.txt` is made by `python -m tests.oracle.streams_records`: a line a record of topic,
timestamp, key and value, in hexadecimal, `-` for null.
"""

from __future__ import annotations

from pathlib import Path

from kafkalog.format.record import Record
from tests.support.log_builder import LogBuilder

RECORDS_FILE = Path(__file__).with_name("streams_records.txt")
APPLICATION = "shop-app"


def streams_records() -> dict[str, list[Record]]:
    """The records of each topic, offsets from 0."""
    found: dict[str, list[Record]] = {}
    for line in RECORDS_FILE.read_text().splitlines():
        topic, timestamp, key, value = line.split()
        records = found.setdefault(topic, [])
        records.append(Record(len(records), int(timestamp), _bytes(key), _bytes(value)))
    return found


def write_streams_topics(log_dir: Path) -> None:
    """Each topic as partition 0, all its records in one batch."""
    for topic, records in streams_records().items():
        LogBuilder(log_dir, f"{topic}-0").batch(*records).write()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)
