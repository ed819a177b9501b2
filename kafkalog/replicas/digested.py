"""Replicas as a digest has them: their facts, and their rows a block at a time.

No length is trusted: a frame may be as long as the format allows and the file has bytes, and a file
that ends before its END frame was not written to its end. Every error names the file and the place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.checksum import crc32c
from kafkalog.kernels.record_facts import KEYLESS
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas import digest_format
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.digest_facts import facts_from_json, ranges_from_json
from kafkalog.replicas.digest_format import (
    DAMAGE,
    END,
    FRAME,
    FRAME_TYPES,
    HEADER_BYTES,
    MOST_PAYLOAD_BYTES,
    PARTITION,
    PARTITION_END,
    ROWS,
    ROWS_HEAD,
    Rows,
)
from kafkalog.replicas.replica import ReplicaFacts

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class DigestedReplica:
    """A copy in a digest: `start` to `end` are the frames behind its facts; check: of the key."""

    facts: ReplicaFacts
    path: str
    start: int
    end: int
    check: bytes

    @property
    def name(self) -> str:
        """What findings call it."""
        return self.facts.name

    @property
    def where(self) -> str:
        """What it is called where its node does not tell."""
        return self.facts.log_dir

    def named(self, name: str) -> DigestedReplica:
        """The same under another name."""
        return replace(self, facts=replace(self.facts, name=name))

    @property
    def key(self) -> tuple[object, ...]:
        """What it is told from others by."""
        return self.path, self.start

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name."""
        return self.facts.topic_partition

    @property
    def place(self) -> str:
        """The digest."""
        return self.path

    @property
    def cluster_id(self) -> str | None:
        """Of its host's meta.properties."""
        return self.facts.cluster_id

    @property
    def node_id(self) -> int | None:
        """Of its host's meta.properties."""
        return self.facts.node_id

    @property
    def topic_id(self) -> str | None:
        """Of its partition.metadata."""
        return self.facts.topic_id

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it could not be relied on where it was read."""
        return self.facts.problems

    @property
    def size_in_bytes(self) -> int:
        """Bytes to read."""
        return self.end - self.start

    def rows(self) -> DigestRows:
        """Its records."""
        return DigestRows(self)

    def key_hash_at(self, offset: int) -> bytes | None:
        """The hash of the key of the record at an offset; None where there is no such record, and
        where it has no key.
        """
        with Path(self.path).open("rb") as file:
            frames = _Frames(file, self.path, self.start, self.end)
            best: tuple[int, int] | None = None
            for frame_type, position, length in frames:
                if frame_type != ROWS:
                    continue
                head = frames.read(position, min(length, ROWS_HEAD.size))
                if digest_format.parse_rows_head(head).first_offset > offset:
                    break
                best = position, length
            if best is None:
                return None
            _, rows = digest_format.parse_rows(frames.payload(*best), -1)
        at = int(np.searchsorted(rows["offset"], offset))
        if at == rows.size or rows["offset"][at] != offset or rows["flags"][at] & KEYLESS:
            return None
        words = rows[["key_first", "key_second"]][at]
        return b"".join(int(word).to_bytes(8, "big") for word in words)


def is_digest(path: str) -> bool:
    """Whether a path is a file that can only be meant as a digest: no `.log` file."""
    return Path(path).is_file() and not path.endswith(".log")


def read_digest(path: str) -> list[DigestedReplica]:
    """The copies in a digest. CorruptRecordError, KafkaLogError for a file that is none or was not
    written to its end; OSError.
    """
    found: list[DigestedReplica] = []
    with Path(path).open("rb") as file:
        size = file.seek(0, 2)
        check = _at(path, 0, lambda: digest_format.parse_header(_read(file, 0, HEADER_BYTES)))
        frames = _Frames(file, path, HEADER_BYTES, size)
        begun: tuple[ReplicaFacts, int] | None = None
        ended: int | None = None
        for frame_type, position, length in frames:
            if ended is not None:
                raise CorruptRecordError(
                    "bytes behind the last frame", path=path, position=position
                )
            if (begun is None) != (frame_type in (PARTITION, END)):
                raise CorruptRecordError(
                    f"a frame of type {frame_type} out of order", path=path, position=position
                )
            if frame_type == PARTITION:
                facts = frames.parsed(position, length, lambda data: facts_from_json(_json(data)))
                begun = facts, frames.next_position
            elif frame_type == PARTITION_END and begun is not None:
                end = frames.next_position
                found.append(DigestedReplica(begun[0], path, begun[1], end, check))
                begun = None
            elif frame_type == END:
                ended = frames.parsed(position, length, digest_format.parse_end)
    if ended != len(found):
        what = "it ends without its last frame" if ended is None else f"{ended} partitions expected"
        raise CorruptRecordError(
            f"{what}: {len(found)} partitions are there", path=path, position=size
        )
    return found


class DigestRows:
    """The rows of one copy, as `evidence.RowSource`."""

    def __init__(self, replica: DigestedReplica) -> None:
        self._replica = replica
        self.corrupt: list[CorruptRange] = []
        self.cleaned_end_offset = 0

    def __iter__(self) -> Iterator[Rows]:
        """RECORD_FACT rows in offset order. CorruptRecordError, OSError."""
        own = self._replica
        last, count = -1, 0
        with Path(own.path).open("rb") as file:
            frames = _Frames(file, own.path, own.start, own.end)
            for frame_type, position, length in frames:
                if frame_type == DAMAGE:
                    frames.parsed(position, length, self._damage)
                elif frame_type == ROWS:
                    after = last
                    head, rows = frames.parsed(
                        position,
                        length,
                        lambda data: digest_format.parse_rows(data, after),  # noqa: B023
                    )
                    last, count = int(rows["offset"][-1]), count + head.count
                    self.cleaned_end_offset = head.cleaned_end_offset
                    yield rows
                elif frame_type == PARTITION_END:
                    self.cleaned_end_offset, expected = frames.parsed(
                        position, length, digest_format.parse_partition_end
                    )
                    if expected != count:
                        raise CorruptRecordError(
                            f"{count} records, {expected} expected",
                            path=own.path,
                            position=position,
                        )

    def _damage(self, payload: bytes) -> None:
        first, ranges = ranges_from_json(_json(payload))
        if not 0 <= first <= len(self.corrupt):
            raise CorruptRecordError(f"unreadable ranges from the {first}th on")
        self.corrupt[first:] = ranges


class _Frames:
    """The frames from one place of a file to another: (type, position and length of the payload).
    Payloads are read when they are asked for.
    """

    def __init__(self, file: BinaryIO, path: str, start: int, end: int) -> None:
        self._file, self._path, self._end = file, path, end
        self.next_position = start

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        while (at := self.next_position) < self._end:
            head = self.read(at, FRAME.size)
            frame_type, length, _ = FRAME.unpack(head)
            position = at + FRAME.size
            if frame_type not in FRAME_TYPES:
                raise CorruptRecordError(
                    f"a frame of type {frame_type}, 1 to 5 expected", path=self._path, position=at
                )
            left = self._end - position
            if length > min(left, MOST_PAYLOAD_BYTES):
                raise CorruptRecordError(
                    f"a frame of {length} bytes, {left} are left and {MOST_PAYLOAD_BYTES} the most",
                    path=self._path, position=at,
                )  # fmt: skip
            self.next_position = position + length
            yield frame_type, position, length

    def read(self, position: int, length: int) -> bytes:
        """So many bytes; CorruptRecordError where the file ends before."""
        data = _read(self._file, position, length)
        if len(data) < length:
            raise CorruptRecordError(
                f"{len(data)} bytes are left, {length} expected", path=self._path, position=position
            )
        return data

    def payload(self, position: int, length: int) -> bytes:
        """A payload that has the checksum in front of it."""
        head = self.read(position - FRAME.size, FRAME.size)
        data = self.read(position, length)
        if FRAME.unpack(head)[2] != crc32c(data):
            raise CorruptRecordError(
                "CRC of the frame is not the stored one", path=self._path, position=position
            )
        return data

    def parsed(self, position: int, length: int, parse: Callable[[bytes], Value]) -> Value:
        """What a payload says; errors with file and place."""
        data = self.payload(position, length)
        return _at(self._path, position, lambda: parse(data))


def _at(path: str, position: int, parse: Callable[[], Value]) -> Value:
    try:
        return parse()
    except KafkaLogError as error:
        raise type(error)(
            error.reason, path=path, position=error.position or position, offset=error.offset
        ) from None


def _read(file: BinaryIO, position: int, length: int) -> bytes:
    file.seek(position)
    return file.read(length)


def _json(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise CorruptRecordError(f"no JSON: {error}") from None
