"""`partition.metadata`: which topic a partition directory belongs to.

 version: 0                              two lines, no line end after the second; UTF-8
 topic_id: 4L6g3nShT-eMCtK--X86sw

Each line is split at a colon and blanks; any version from 0 on is read. A broker sets a partition
aside as a stray if its topic id is not the cluster's, so a rewritten partition keeps the file byte
for byte. A zero id or a missing part takes the log dir offline.

Source: Kafka PartitionMetadataFile.
"""

from __future__ import annotations

import re

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.uuid_text import ZERO_UUID, parse_uuid

PARTITION_METADATA_VERSION = 0

_SEPARATOR = re.compile(r":[ \t\x0b\f]+")
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_partition_metadata(data: bytes, path: str | None = None) -> str:
    """The topic id as it is written. Raises CorruptCheckpointError."""
    # Java's line ends and blanks; bytes that are no UTF-8 become a character that is in no id.
    lines = _LINE_END.split(data.decode("utf-8", errors="replace"))
    if len(lines) < 2:
        raise CorruptCheckpointError("one line, not version and topic id", path=path)
    version, topic_id = (_SEPARATOR.split(line) for line in lines[:2])
    if len(version) != 2 or not re.fullmatch(r"\+?[0-9]{1,10}", version[1]):
        raise CorruptCheckpointError(f"line 1: {lines[0][:60]!r} is no version", path=path)
    if len(topic_id) != 2 or parse_uuid(topic_id[1]) in (None, ZERO_UUID):
        raise CorruptCheckpointError(f"line 2: {lines[1][:60]!r} is no topic id", path=path)
    return topic_id[1]


def pack_partition_metadata(topic_id: str) -> bytes:
    """The file's bytes as Kafka writes them."""
    return f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {topic_id}".encode()
