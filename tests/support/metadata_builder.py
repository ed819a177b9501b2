"""Metadata logs and snapshots on disk, as a controller writes them.

    cluster = MetadataBuilder(log_dir)
    cluster.batch(topic("orders", ID), config("orders", "cleanup.policy", "compact"))
    cluster.write()

A record is the bytes of its value; the functions below make them, written out by hand so that the
package's reader has something else than itself to agree with.
"""

from __future__ import annotations

import base64
from pathlib import Path

from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.varint import pack_unsigned_varint
from tests.support.log_builder import START_MS, TOPIC_ID, LogBuilder
from tests.support.packing import pack_control_key

OTHER_ID = "5L6g3nShT-eMCtK--X86sw"
NO_TAGS = b"\0"


def frame(api_key: int, version: int, body: bytes, frame_version: int = 1) -> bytes:
    head = (frame_version, api_key, version)
    return b"".join(map(pack_unsigned_varint, head)) + body


def text(value: str | None) -> bytes:
    """A compact nullable string."""
    if value is None:
        return b"\0"
    data = value.encode()
    return pack_unsigned_varint(len(data) + 1) + data


def uuid(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")


def numbers(values: list[int]) -> bytes:
    return pack_unsigned_varint(len(values) + 1) + b"".join(n.to_bytes(4, "big") for n in values)


def tags(*fields: tuple[int, bytes]) -> bytes:
    return pack_unsigned_varint(len(fields)) + b"".join(
        pack_unsigned_varint(tag) + pack_unsigned_varint(len(payload)) + payload
        for tag, payload in fields
    )


def topic(name: str, topic_id: str = TOPIC_ID) -> bytes:
    return frame(2, 0, text(name) + uuid(topic_id) + NO_TAGS)


def remove_topic(topic_id: str = TOPIC_ID) -> bytes:
    return frame(9, 0, uuid(topic_id) + NO_TAGS)


def config(resource: str, key: str, value: str | None, kind: int = 2, version: int = 0) -> bytes:
    return frame(4, version, bytes([kind]) + text(resource) + text(key) + text(value) + NO_TAGS)


def broker_config(node: str, key: str, value: str | None) -> bytes:
    return config(node, key, value, kind=4)


def feature(name: str, level: int) -> bytes:
    return frame(12, 0, text(name) + level.to_bytes(2, "big") + NO_TAGS)


def partition(
    replicas: list[int], topic_id: str = TOPIC_ID, number: int = 0, leader_epoch: int = 0
) -> bytes:
    """Version 0 of a PartitionRecord."""
    return frame(
        3,
        0,
        number.to_bytes(4, "big")
        + uuid(topic_id)
        + numbers(replicas) * 2
        + numbers([]) * 2
        + (1).to_bytes(4, "big")
        + leader_epoch.to_bytes(4, "big", signed=True)
        + bytes(4)
        + NO_TAGS,
    )


def new_leader(leader: int, topic_id: str = TOPIC_ID, number: int = 0) -> bytes:
    """A PartitionChangeRecord that raises the leader epoch."""
    body = number.to_bytes(4, "big") + uuid(topic_id) + tags((1, leader.to_bytes(4, "big")))
    return frame(5, 0, body)


def change_replicas(replicas: list[int], topic_id: str = TOPIC_ID, number: int = 0) -> bytes:
    body = number.to_bytes(4, "big") + uuid(topic_id) + tags((2, numbers(replicas)))
    return frame(5, 0, body)


def begin(name: str | None = "test") -> bytes:
    return frame(23, 0, tags((0, text(name))))


def end() -> bytes:
    return frame(24, 0, NO_TAGS)


def abort() -> bytes:
    return frame(25, 0, tags((0, text("because"))))


def no_op() -> bytes:
    return frame(20, 0, NO_TAGS)


class MetadataBuilder:
    """Builds `__cluster_metadata-0`; `log` is the LogBuilder beneath."""

    def __init__(self, log_dir: Path) -> None:
        self.log = LogBuilder(log_dir, "__cluster_metadata-0")
        self._snapshots: dict[str, bytes] = {}

    def segment(self, base_offset: int | None = None) -> MetadataBuilder:
        self.log.segment(base_offset)
        return self

    def batch(self, *values: bytes, epoch: int = 1) -> MetadataBuilder:
        if not self.log.segments:
            self.log.segment()
        self.log.batch(*((None, value) for value in values), partition_leader_epoch=epoch)
        return self

    def snapshot(
        self,
        end_offset: int,
        epoch: int,
        *values: bytes,
        header: bool = True,
        footer: bool = True,
        codec: int = CompressionType.NONE,
        contained_ms: int = 0,
    ) -> MetadataBuilder:
        """contained_ms: the time of the last record that the snapshot contains."""
        first = _control(0, ControlRecordType.SNAPSHOT_HEADER, contained_ms)
        parts = [first] if header else []
        if values:
            records = [Record(1 + n, START_MS, None, value) for n, value in enumerate(values)]
            parts.append(pack_batch(records, partition_leader_epoch=epoch, codec=codec))
        if footer:
            parts.append(_control(1 + len(values), ControlRecordType.SNAPSHOT_FOOTER))
        self._snapshots[f"{end_offset:020d}-{epoch:010d}.checkpoint"] = b"".join(parts)
        return self

    def write(self) -> Path:
        if not self.log.segments:
            self.log.segment()
        path = self.log.write()
        for name, content in self._snapshots.items():
            (path / name).write_bytes(content)
        return path


def _control(offset: int, kind: ControlRecordType, contained_ms: int = 0) -> bytes:
    is_header = kind is ControlRecordType.SNAPSHOT_HEADER
    value = bytes(2) + (contained_ms.to_bytes(8, "big") if is_header else b"")
    record = Record(offset, START_MS, pack_control_key(kind), value + NO_TAGS)
    return pack_batch([record], is_control=True)
