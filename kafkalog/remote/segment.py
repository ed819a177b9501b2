"""One segment behind a manifest: its bytes in blocks, and its index files, decoded and checked.

Each chunk is read by its range, decrypted (the tag says whether a bit of it was changed) and
decompressed, never to more than the manifest says; a chunk that is shorter or longer is an error.
The sizes of a manifest are held against the object's before anything is read.

Source: FetchChunkEnumeration, DecryptionChunkEnumeration, DecompressionChunkEnumeration of
tiered-storage-for-apache-kafka.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from kafkalog.errors import (
    KafkaLogError,
    LogChangedError,
    RemoteResourceNotFoundError,
    RemoteStorageError,
)
from kafkalog.format.compression import decompress
from kafkalog.format.constants import CompressionType
from kafkalog.format.limits import MAX_JSON_BYTES, MAX_SMALL_FILE_BYTES
from kafkalog.format.segment_manifest import SegmentManifest, parse_segment_manifest
from kafkalog.remote.cache import Block
from kafkalog.remote.keys import data_key_of, decrypt
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.stores import StoredObject, store_of


class ChunkedSegment:
    """The `.log` of a segment as blocks of one size, the last may be shorter.

    `size`: of the segment. `mtime_ns` is the manifest's; `version` changes with either object.
    """

    def __init__(self, path: ManifestPath, *, looks_again: bool = False) -> None:
        """RemoteStorageError for a manifest that is none or does not fit the object,
        RemoteResourceNotFoundError where one of the two is not there, OSError. `looks_again`: the
        store is asked whether they are still the ones that were listed."""
        self.path = path
        self._store = store_of(path)
        found = look_at_manifest(path.manifest, looks_again=looks_again)
        self.manifest = read_manifest(found)
        what = "the manifest is there, its object .log is not"
        self._log = _look(path, what, looks_again=looks_again)
        chunks = self.manifest.chunks
        if self._log.size != chunks.stored_bytes:
            raise RemoteStorageError(
                f"the object has {self._log.size} bytes, its manifest says {chunks.stored_bytes}:"
                " one of them is damaged, cut or another segment's",
                path=path,
            )
        self.size = chunks.segment_bytes
        self.block_bytes = chunks.chunk_bytes
        self.mtime_ns = found.mtime_ns
        self.version = _version(self._log, found)

    def blocks(self, first: int, count: int) -> list[Block]:
        """Chunks of the segment in a row, by one request; RemoteStorageError, LogChangedError,
        OSError."""
        chunks = self.manifest.chunks
        ranges = [chunks.stored_range(number) for number in range(first, first + count)]
        start, end = ranges[0][0], ranges[-1][1]
        # Whole in memory: chunks that did not get smaller than they were, and some more.
        if count > 1 and end - start > 2 * count * chunks.chunk_bytes:
            return [block for n in range(first, first + count) for block in self.blocks(n, 1)]
        data = self._store.view(self._log, start, end - start)
        found = [
            self._decoded(
                data[own - start : own_end - start],
                self._log,
                (own, own_end),
                chunks.length(number),
                f"chunk {number}",
            )
            for number, (own, own_end) in enumerate(ranges, first)
        ]
        # Each is kept by itself, and must not keep the others.
        return found if count == 1 else [bytes(block) for block in found]

    def index(self, piece: str) -> bytes:
        """An index file as a broker has it; FileNotFoundError where the segment has none."""
        if piece not in self.manifest.pieces:
            raise FileNotFoundError(2, "no such index in the manifest", self.path.manifest)
        position, size = self.manifest.pieces[piece]
        if not size:
            return b""
        length = self.manifest.piece_bytes(piece)
        indexes = f"{self.path.objects}.indexes"
        if size > MAX_SMALL_FILE_BYTES:
            raise RemoteStorageError(f"an index of {size} bytes", path=indexes)
        found = _look(indexes, "the manifest is there, its object .indexes is not")
        if position + size > found.size:
            raise RemoteStorageError(
                f"the object has {found.size} bytes, the manifest has {piece} end at"
                f" {position + size}",
                path=indexes,
            )
        data = self._store.view(found, position, size)
        place = position, position + size
        return bytes(self._decoded(data, found, place, length, f"index {piece}", is_index=True))

    def _decoded(
        self,
        data: Block,
        found: StoredObject,
        place: tuple[int, int],
        length: int,
        what: str,
        *,
        is_index: bool = False,
    ) -> Block:
        """The bytes of a range as they were before they were copied."""
        start, end = place
        where = f"{what}, bytes {start} to {end - 1} of the object"
        if len(data) != end - start:
            raise LogChangedError(
                f"{where}: {len(data)} bytes came, {end - start} are expected",
                path=found.path,
                position=start,
            )
        manifest = self.manifest
        if manifest.data_key is not None:
            key = data_key_of(manifest.data_key, self.path.keys, self.path.manifest)
            try:
                data = decrypt(data, key, manifest.data_key.additional_data)
            except ValueError:
                raise RemoteStorageError(
                    f"{where}: the tag is wrong, so a bit of it was changed, or of the manifest's"
                    " key",
                    path=found.path,
                    position=start,
                ) from None
        if manifest.is_compressed and not is_index:
            try:
                data = bytes(decompress(CompressionType.ZSTD, data, max_bytes=length))
            except KafkaLogError as error:
                raise RemoteStorageError(
                    f"{where}: {error.reason}", path=found.path, position=start
                ) from None
        if len(data) != length:
            raise RemoteStorageError(
                f"{where}: {len(data)} bytes when decoded, the manifest says {length}",
                path=found.path,
                position=start,
            )
        return data


def look_at_manifest(path: str, *, looks_again: bool = False) -> StoredObject:
    """The manifest as it was listed, or is now; RemoteResourceNotFoundError, OSError."""
    return _look(path, "the manifest is gone", looks_again=looks_again)


@lru_cache(maxsize=4096)
def read_manifest(found: StoredObject) -> SegmentManifest:
    """RemoteStorageError for what is none."""
    if found.size > MAX_JSON_BYTES:
        raise RemoteStorageError(
            f"no manifest: {found.size} bytes, the limit is {MAX_JSON_BYTES}", path=found.path
        )
    data = store_of(found.path).read(found, 0, MAX_JSON_BYTES)
    return parse_segment_manifest(data, found.path)


def _look(path: str, reason: str, *, looks_again: bool = False) -> StoredObject:
    store = store_of(path)
    try:
        return store.look(path) if looks_again else store.recall(path)
    except FileNotFoundError:
        raise RemoteResourceNotFoundError(reason, path=path) from None


def _version(*objects: StoredObject) -> int:
    """A number that stands for all of them, as an inode stands for a file."""
    text = repr([(each.version, each.mtime_ns, each.size) for each in objects])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
