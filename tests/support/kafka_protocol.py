"""Some requests of Kafka's protocol over a socket, since no client hands out what a broker really
answers: Fetch (version 4), ListOffsets (1), OffsetForLeaderEpoch (2 and 3) and ListGroups (5).

Source: Kafka's message definitions FetchRequest.json and the others.
"""

from __future__ import annotations

import io
import socket
import struct
from dataclasses import dataclass

FETCH, LIST_OFFSETS, LIST_GROUPS, OFFSET_FOR_LEADER_EPOCH = 1, 2, 16, 23
UNCOMMITTED, COMMITTED = 0, 1


@dataclass(frozen=True)
class FetchAnswer:
    error: int
    high_watermark: int
    last_stable_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: bytes


class Connection:
    """A connection to one broker; requests one after the other about partition 0 of a topic."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._sent = 0

    def close(self) -> None:
        self._socket.close()

    def fetch(self, topic: str, offset: int, max_bytes: int, isolation: int) -> FetchAnswer:
        body = struct.pack(">iiiib", -1, 100, 0, max(max_bytes, 1 << 26), isolation)
        body += _one_partition(topic, struct.pack(">qi", offset, max_bytes))
        answer = self._ask(FETCH, 4, body)
        answer.read(4)  # throttle time
        _skip_names(answer)
        error, high_watermark, stable, count = _read(answer, ">hqqi")
        aborted = tuple(_read(answer, ">qq") for _ in range(max(count, 0)))
        (size,) = _read(answer, ">i")
        return FetchAnswer(error, high_watermark, stable, aborted, answer.read(max(size, 0)))

    def list_offsets(self, topic: str, timestamp: int) -> tuple[int, int, int]:
        """(error, timestamp, offset)"""
        body = struct.pack(">i", -1) + _one_partition(topic, struct.pack(">q", timestamp))
        answer = self._ask(LIST_OFFSETS, 1, body)
        _skip_names(answer)
        return _read(answer, ">hqq")  # type: ignore[return-value]

    def offset_for_leader_epoch(self, topic: str, epoch: int) -> tuple[int, int, int]:
        """(error, leader epoch, end offset)"""
        body = _one_partition(topic, struct.pack(">ii", -1, epoch))
        answer = self._ask(OFFSET_FOR_LEADER_EPOCH, 2, body)
        answer.read(4)  # throttle time
        (_,) = _read(answer, ">i")
        answer.read(_read(answer, ">h")[0])
        (_,) = _read(answer, ">i")
        error, _, epoch, end_offset = _read(answer, ">hiiq")
        return error, epoch, end_offset

    def group_types(self) -> dict[str, str]:
        """Group → its type in small letters, of all groups that are loaded."""
        # Tagged fields of the header; no states, no types, no tagged fields.
        answer = self._ask(LIST_GROUPS, 5, b"\0" + b"\1\1\0")
        answer.read(1 + 4)  # the header's tagged fields, throttle time
        error, count = _read(answer, ">hB")
        assert error == 0, error
        assert count < 128, "one byte holds the number of groups"
        found = {}
        for _ in range(count - 1):
            group, _, _, kind = (_compact(answer) for _ in range(4))
            found[group] = kind.lower()
            answer.read(1)
        return found

    def _ask(self, key: int, version: int, body: bytes) -> io.BytesIO:
        self._sent += 1
        head = struct.pack(">hhi", key, version, self._sent) + _text("kafkalog tests")
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", self._exactly(4))
        answer = io.BytesIO(self._exactly(size))
        assert _read(answer, ">i") == (self._sent,)
        return answer

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            assert part, "the broker closed the connection"
            parts += part
        return bytes(parts)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _compact(answer: io.BytesIO) -> str:
    (size,) = _read(answer, ">B")
    assert size < 128, "one byte holds the length"
    return answer.read(size - 1).decode()


def _one_partition(topic: str, fields: bytes) -> bytes:
    one = struct.pack(">i", 1)
    return one + _text(topic) + one + struct.pack(">i", 0) + fields


def _read(answer: io.BytesIO, layout: str) -> tuple[int, ...]:
    return struct.unpack(layout, answer.read(struct.calcsize(layout)))


def _skip_names(answer: io.BytesIO) -> None:
    """One topic, one partition: up to the partition's number."""
    assert _read(answer, ">i") == (1,)
    answer.read(_read(answer, ">h")[0])
    assert _read(answer, ">ii") == (1, 0)
