"""`meta.properties`: whose a log dir is. Java properties text.

 version=1                               KRaft: cluster.id and node.id are required
 cluster.id=4L6g3nShT-eMCtK--X86sw
 node.id=1
 directory.id=aMlluLhQIw4ZCbzFubEoXQ     since 3.7

 version=0                               ZooKeeper era; absent means 0 as well
 broker.id=1                             neither it nor cluster.id (since 2.4) is required

Unknown keys are left out. Another version, a negative id, a directory id that is none or reserved:
an error. So is a file with neither version nor broker.id, which nobody writes: a file that is empty
or cut, which a broker reads as one of version 0 without an id.
Across the dirs of a node cluster id and node id agree and directory ids differ.

Source: Kafka MetaProperties, MetaPropertiesVersion, MetaPropertiesEnsemble.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.constants import MAX_INT32
from kafkalog.format.java_properties import pack_properties, parse_properties
from kafkalog.format.uuid_text import is_reserved_directory_id, parse_uuid

META_PROPERTIES_FILE = "meta.properties"
# Of this version on a log dir is that of a KRaft node.
KRAFT_VERSION = 1


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Identity of a log dir; what a file of its version need not say is None."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def is_kraft(meta: MetaProperties | None) -> bool:
    """Whether a log dir is known to be of a KRaft node."""
    return meta is not None and meta.version >= KRAFT_VERSION


def parse_meta_properties(data: bytes, path: str | None = None) -> MetaProperties:
    """Identity of a log dir. Raises CorruptCheckpointError; keys it does not know are left out."""
    properties = parse_properties(data, path)
    version = _parse_int(properties, "version", path)
    if version is None and "broker.id" not in properties:
        lacking = [key for key in ("node.id", "cluster.id") if key not in properties]
        raise CorruptCheckpointError(
            f"no version and no broker.id{''.join(f', no {key}' for key in lacking)}: "
            "the file is empty or cut",
            path=path,
        )
    version = 0 if version is None else version
    if version not in (0, 1):
        raise CorruptCheckpointError(f"version {version} is not known", path=path)
    node_id = _parse_int(properties, "node.id" if version else "broker.id", path)
    cluster_id = properties.get("cluster.id")
    # Of version 0 neither is needed: brokers before 2.4 wrote no cluster id, and broker.id may be
    # missing as well.
    if version == 1 and (node_id is None or cluster_id is None):
        raise CorruptCheckpointError("node.id and cluster.id are required", path=path)
    if node_id is not None and node_id < 0:
        raise CorruptCheckpointError(f"node id {node_id} is negative", path=path)
    directory_id = properties.get("directory.id")
    if directory_id is not None and is_reserved_directory_id(directory_id):
        what = "no id" if parse_uuid(directory_id) is None else "reserved"
        raise CorruptCheckpointError(f"directory.id {directory_id[:60]!r} is {what}", path=path)
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
