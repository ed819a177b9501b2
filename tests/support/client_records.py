"""Records of Kafka Connect's and MirrorMaker's topics as Kafka's own classes wrote them.

`client_records.txt` is made by `python -m tests.oracle.client_records`: a line a record of topic,
key and value, in hexadecimal, `-` for null.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.log_builder import LogBuilder

RECORDS_FILE = Path(__file__).with_name("client_records.txt")
Pair = tuple[bytes | None, bytes | None]


def client_records() -> dict[str, list[Pair]]:
    """(key, value) of each record, by topic."""
    found: dict[str, list[Pair]] = {}
    for line in RECORDS_FILE.read_text().splitlines():
        topic, key, value = line.split()
        found.setdefault(topic, []).append((_bytes(key), _bytes(value)))
    return found


def write_client_topics(log_dir: Path) -> None:
    """Each topic as partition 0, all its records in one batch."""
    for topic, records in client_records().items():
        LogBuilder(log_dir, f"{topic}-0").batch(*records).write()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)
