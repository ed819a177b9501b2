"""The manifest of a segment that Aiven's plug-in for tiered storage wrote, version 1.

    {"version": "1",
     "chunkIndex": {"type": "fixed", "originalChunkSize", "originalFileSize",
                    "transformedChunkSize", "finalTransformedChunkSize"}
                or {"type": "variable", "originalChunkSize", "originalFileSize",
                    "transformedChunks": base64(zstd(list of stored sizes))},
     "segmentIndexes": {"offset": {"position", "size"}, "timestamp", "producerSnapshot",
                        "leaderEpoch", "transaction"},            places in the object `.indexes`
     "compression": bool,
     "encryption": {"dataKey": "KEY_ID:base64", "aad": base64},   absent where there is none
     "remoteLogSegmentMetadata": {…}}                             not in early releases

The segment is cut into chunks of `originalChunkSize`, the last may be shorter; each is transformed
alone and they lie one after the other in the object `.log`. The list of stored sizes, big-endian:

    i32 count (0: no more) | i32 size                          where the count is 1
    i32 count | i32 base | i8 width | (count - 1) × width bytes, to add to base | i32 last size

Nothing in it is believed: sizes are held against each other here, and against the objects where
those are read.

Source: SegmentManifestV1, FixedSizeChunkIndex, VariableSizeChunkIndex, ChunkSizesBinaryCodec of
tiered-storage-for-apache-kafka.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError, RemoteStorageError
from kafkalog.format.compression import decompress
from kafkalog.format.constants import MAX_INT32, CompressionType
from kafkalog.format.json_text import parse_json_object, whole_number
from kafkalog.format.limits import MAX_CHUNK_BYTES, MAX_CHUNK_LIST_BYTES

VERSION = "1"
# Indexes that have a place in `.indexes`.
PIECES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
# Nonce in front of and tag behind what AES-GCM encrypts.
NONCE_BYTES, TAG_BYTES = 12, 16
_ENCRYPTION_BYTES = NONCE_BYTES + TAG_BYTES

_LIST_HEAD = struct.Struct(">ib")
_INT32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True, eq=False)
class ChunkIndex:
    """Where the chunks of a segment lie in its object.

    chunk_bytes: of the segment in each but the last. stored_ends: i64[n], where each ends; None
    where all but the last are `stored_chunk_bytes` long.
    """

    chunk_bytes: int
    segment_bytes: int
    stored_bytes: int
    stored_chunk_bytes: int
    stored_ends: NDArray[np.int64] | None

    @property
    def count(self) -> int:
        return -(-self.segment_bytes // self.chunk_bytes)

    def stored_range(self, number: int) -> tuple[int, int]:
        """The bytes of the object in which a chunk lies: start, end (excluded)."""
        if self.stored_ends is not None:
            start = int(self.stored_ends[number - 1]) if number else 0
            return start, int(self.stored_ends[number])
        start = number * self.stored_chunk_bytes
        is_last = number == self.count - 1
        return start, self.stored_bytes if is_last else start + self.stored_chunk_bytes

    def length(self, number: int) -> int:
        """Bytes of the segment in a chunk."""
        return min(self.chunk_bytes, self.segment_bytes - number * self.chunk_bytes)


@dataclass(frozen=True, slots=True)
class DataKey:
    """The key of a segment, encrypted with an RSA key that has a name, and what each chunk's tag
    covers as well."""

    key_id: str
    wrapped: bytes
    additional_data: bytes


@dataclass(frozen=True, slots=True)
class CopiedSegment:
    """What the broker said of the segment when it was copied; the end offset is included.
    has_no_aborts: its transaction index is empty, as brokers from 4.0 on say; broker_id: -1 where
    it does not stand there."""

    topic: str
    partition: int
    topic_id: str
    segment_id: str
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    leader_epochs: tuple[tuple[int, int], ...]
    broker_id: int = -1
    has_no_aborts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SegmentManifest:
    """A manifest. pieces: position and stored size in `.indexes` by name, of those that are
    there."""

    chunks: ChunkIndex
    pieces: Mapping[str, tuple[int, int]]
    is_compressed: bool
    data_key: DataKey | None
    copied: CopiedSegment | None

    def piece_bytes(self, name: str) -> int:
        """Bytes of an index file as a broker has it; 0 where there is none."""
        _, size = self.pieces.get(name, (0, 0))
        return max(size - _ENCRYPTION_BYTES, 0) if self.data_key and size else size


def parse_segment_manifest(data: bytes, path: str) -> SegmentManifest:
    """RemoteStorageError for what is no manifest of version 1, or contradicts itself."""
    try:
        fields = parse_json_object(data)
        return _Parser(path).manifest(fields)
    except RemoteStorageError:
        raise
    except KafkaLogError as error:
        raise RemoteStorageError(f"no manifest: {error}", path=path) from None


class _Parser:
    """Fields of one manifest; each error names the path of the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def manifest(self, fields: Mapping[str, Any]) -> SegmentManifest:
        version = fields.get("version")
        if version != VERSION:
            raise self._error(f"version {version!r}, this reads {VERSION!r}")
        is_compressed = fields.get("compression")
        if not isinstance(is_compressed, bool):
            raise self._error(f"compression is {is_compressed!r}, not true or false")
        data_key = self._data_key(fields["encryption"]) if fields.get("encryption") else None
        chunks = self._chunks(self._object(fields, "chunkIndex"))
        overhead = 0 if data_key is None else _ENCRYPTION_BYTES
        # Without compression the stored size follows: a chunk grows by its nonce and its tag, no
        # more.
        if not is_compressed and chunks.stored_bytes != chunks.segment_bytes + (
            overhead * chunks.count
        ):
            raise self._error(
                f"chunks of {chunks.stored_bytes} stored bytes for {chunks.segment_bytes} of the"
                " segment, without compression"
            )
        return SegmentManifest(
            chunks,
            self._pieces(self._object(fields, "segmentIndexes")),
            is_compressed,
            data_key,
            self._copied(fields.get("remoteLogSegmentMetadata")),
        )

    def _chunks(self, fields: Mapping[str, Any]) -> ChunkIndex:
        chunk_bytes = self._number(fields, "originalChunkSize", 1)
        segment_bytes = self._number(fields, "originalFileSize", 0)
        # A chunk size above the limit does no harm where the segment is below it: its only chunk is
        # no larger than the segment.
        if chunk_bytes > MAX_CHUNK_BYTES < segment_bytes:
            raise self._error(
                f"chunks of {chunk_bytes} bytes; a chunk is decoded as a whole, and the limit is"
                f" {MAX_CHUNK_BYTES}"
            )
        count = -(-segment_bytes // chunk_bytes)
        if fields.get("type") == "fixed":
            each = self._number(fields, "transformedChunkSize", 1)
            last = self._number(fields, "finalTransformedChunkSize", 0)
            stored = each * (count - 1) + last if count else 0
            return ChunkIndex(chunk_bytes, segment_bytes, stored, each, None)
        if fields.get("type") != "variable":
            raise self._error(f"chunkIndex of type {fields.get('type')!r}")
        sizes = self._sizes(fields.get("transformedChunks"))
        if sizes.size != count:
            raise self._error(
                f"{sizes.size} chunks are listed; {segment_bytes} bytes in chunks of {chunk_bytes}"
                f" are {count}"
            )
        ends = np.cumsum(sizes)
        return ChunkIndex(chunk_bytes, segment_bytes, int(ends[-1]) if count else 0, 0, ends)

    def _sizes(self, text: object) -> NDArray[np.int64]:
        """Stored sizes of all chunks."""
        packed = self._base64(text, "transformedChunks")
        data = bytes(decompress(CompressionType.ZSTD, packed, max_bytes=MAX_CHUNK_LIST_BYTES))
        if len(data) < _INT32.size:
            raise self._error("the list of chunk sizes is cut off")
        (count,) = _INT32.unpack_from(data)
        if count == 0:
            return np.empty(0, np.int64)
        if count == 1:
            return self._one_size(data)
        if count < 0 or len(data) < _INT32.size + _LIST_HEAD.size:
            raise self._error(f"a list of {count} chunk sizes in {len(data)} bytes")
        base, width = _LIST_HEAD.unpack_from(data, _INT32.size)
        start = _INT32.size + _LIST_HEAD.size
        end = start + (count - 1) * width
        if not 1 <= width <= 4 or len(data) != end + _INT32.size:
            raise self._error(
                f"a list of {count} chunk sizes, {width} bytes each, in {len(data)} bytes"
            )
        raw = np.frombuffer(data, np.uint8, (count - 1) * width, start).reshape(-1, width)
        sizes = np.empty(count, np.int64)
        # Big-endian numbers of one to four bytes, and numpy has no type of three: each byte times
        # its power of 256. In 64 bits, so that nothing wraps before it is held against the limit.
        sizes[:-1] = raw.astype(np.int64) @ (256 ** np.arange(width - 1, -1, -1, dtype=np.int64))
        sizes[:-1] += base
        sizes[-1] = _INT32.unpack_from(data, end)[0]
        if (sizes < 1).any() or (sizes > MAX_INT32).any():
            raise self._error(f"a chunk of {int(sizes.min())} stored bytes")
        return sizes

    def _one_size(self, data: bytes) -> NDArray[np.int64]:
        if len(data) != 2 * _INT32.size:
            raise self._error(f"a list of one chunk size in {len(data)} bytes")
        (size,) = _INT32.unpack_from(data, _INT32.size)
        if size < 1:
            raise self._error(f"a chunk of {size} stored bytes")
        return np.array([size], np.int64)

    def _pieces(self, fields: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        found = {}
        for name in PIECES:
            if fields.get(name) is not None:
                piece = self._object(fields, name)
                found[name] = self._number(piece, "position", 0), self._number(piece, "size", 0)
        return found

    def _data_key(self, fields: object) -> DataKey:
        if not isinstance(fields, dict):
            raise self._error("encryption is no object")
        key_id, colon, wrapped = str(fields.get("dataKey", "")).partition(":")
        if not colon or not key_id or ":" in wrapped:
            raise self._error("encryption has no dataKey of the form KEY_ID:base64")
        return DataKey(
            key_id, self._base64(wrapped, "dataKey"), self._base64(fields.get("aad"), "aad")
        )

    def _copied(self, fields: object) -> CopiedSegment | None:
        """None where the release that wrote it did not say."""
        if not isinstance(fields, dict):
            return None
        segment = self._object(fields, "remoteLogSegmentId")
        place = self._object(segment, "topicIdPartition")
        topic = self._object(place, "topicPartition")
        epochs = self._object(fields, "segmentLeaderEpochs")
        return CopiedSegment(
            topic=str(topic.get("topic")),
            partition=self._number(topic, "partition", 0),
            topic_id=str(place.get("topicId")),
            segment_id=str(segment.get("id")),
            start_offset=self._number(fields, "startOffset", 0, 64),
            end_offset=self._number(fields, "endOffset", -1, 64),
            max_timestamp_ms=self._number(fields, "maxTimestampMs", -1, 64),
            event_timestamp_ms=self._number(fields, "eventTimestampMs", -1, 64),
            leader_epochs=tuple(
                sorted((self._epoch(name), self._number(epochs, name, 0, 64)) for name in epochs)
            ),
            broker_id=self._number(fields, "brokerId", -1) if "brokerId" in fields else -1,
            has_no_aborts=fields.get("txnIdxEmpty") is True,
        )

    def _epoch(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise self._error(f"segmentLeaderEpochs has {text[:20]!r} for an epoch")
        return int(text)

    def _object(self, fields: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = fields.get(name)
        if not isinstance(value, dict):
            raise self._error(f"{name} is no object")
        return value

    def _number(self, fields: Mapping[str, Any], name: str, least: int, bits: int = 32) -> int:
        value = whole_number(fields.get(name), bits)
        if value is None or value < least:
            raise self._error(f"{name} is {str(fields.get(name))[:40]}, at least {least} expected")
        return value

    def _base64(self, text: object, name: str) -> bytes:
        try:
            return base64.b64decode(str(text), validate=True)
        except (binascii.Error, ValueError):
            raise self._error(f"{name} is no base64") from None

    def _error(self, reason: str) -> RemoteStorageError:
        return RemoteStorageError(f"no manifest: {reason}", path=self._path)
