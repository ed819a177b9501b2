"""Identity files: `partition.metadata` of a partition, `meta.properties` of a log dir.

 version: 0                              partition.metadata: two lines, no line end after the second
 topic_id: 4L6g3nShT-eMCtK--X86sw

 version=1                               meta.properties, KRaft: cluster.id and node.id required
 cluster.id=4L6g3nShT-eMCtK--X86sw       version 0 (ZooKeeper era): broker.id instead, nothing
 required node.id=1 directory.id=…                          since 3.7

Ids are UUIDs in url-safe base64 without padding. A broker sets a partition aside as a stray if its
topic id is not the cluster's, so a rewritten partition keeps the file byte for byte.

Source: Kafka PartitionMetadataFile, MetaProperties, Uuid.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.constants import MAX_INT32
from kafkalog.format.java_properties import pack_properties, parse_properties

PARTITION_METADATA_VERSION = 0
META_PROPERTIES_FILE = "meta.properties"

_SEPARATOR = re.compile(r":[ \t\x0b\f]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_UUID = re.compile(r"(?P<digits>[A-Za-z0-9_-]{22})(?:==)?")
_ZERO_UUID = bytes(16)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Identity of a log dir; what a file of its version need not say is None."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def parse_uuid(text: str) -> bytes | None:
    """The 16 bytes of a base64 UUID, or None if `text` is none."""
    # Matched first: the decoder itself would take the characters + and / as well.
    match = _UUID.fullmatch(text)
    return base64.urlsafe_b64decode(match["digits"] + "==") if match else None


def parse_partition_metadata(data: bytes, path: str | None = None) -> str:
    """The topic id as it is written. Raises CorruptCheckpointError."""
    lines = _LINE_END.split(data.decode("utf-8", errors="replace"))
    if len(lines) < 2:
        raise CorruptCheckpointError("one line, not version and topic id", path=path)
    version, topic_id = (_SEPARATOR.split(line) for line in lines[:2])
    if len(version) != 2 or not re.fullmatch(r"\+?[0-9]{1,10}", version[1]):
        raise CorruptCheckpointError(f"line 1: {lines[0][:60]!r} is no version", path=path)
    if len(topic_id) != 2 or parse_uuid(topic_id[1]) in (None, _ZERO_UUID):
        raise CorruptCheckpointError(f"line 2: {lines[1][:60]!r} is no topic id", path=path)
    return topic_id[1]


def pack_partition_metadata(topic_id: str) -> bytes:
    """The file's bytes as Kafka writes them."""
    return f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {topic_id}".encode()


def parse_meta_properties(data: bytes, path: str | None = None) -> MetaProperties:
    """Identity of a log dir. Raises CorruptCheckpointError; keys it does not know are left out."""
    properties = parse_properties(data, path)
    version = _parse_int(properties, "version", path)
    version = 0 if version is None else version
    if version not in (0, 1):
        raise CorruptCheckpointError(f"version {version} is not known", path=path)
    node_id = _parse_int(properties, "node.id" if version else "broker.id", path)
    cluster_id = properties.get("cluster.id")
    if version == 1 and (node_id is None or cluster_id is None):
        raise CorruptCheckpointError("node.id and cluster.id are required", path=path)
    if node_id is not None and node_id < 0:
        raise CorruptCheckpointError(f"node id {node_id} is negative", path=path)
    directory_id = properties.get("directory.id")
    if directory_id is not None and parse_uuid(directory_id) is None:
        raise CorruptCheckpointError(f"directory.id {directory_id[:60]!r} is no id", path=path)
    return MetaProperties(version, cluster_id, node_id, directory_id)


def pack_meta_properties(meta: MetaProperties) -> bytes:
    """The file's bytes, without the date that Java puts on top."""
    pairs = {
        "cluster.id": meta.cluster_id,
        "directory.id": meta.directory_id,
        "node.id" if meta.version else "broker.id": meta.node_id,
        "version": meta.version,
    }
    return pack_properties({key: str(value) for key, value in pairs.items() if value is not None})


def _parse_int(properties: dict[str, str], key: str, path: str | None) -> int | None:
    text = properties.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -MAX_INT32 <= int(text) <= MAX_INT32:
        raise CorruptCheckpointError(f"{key} {text[:60]!r} is no number", path=path)
    return int(text)
