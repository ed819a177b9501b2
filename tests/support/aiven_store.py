"""Segments of a broker's disk as Aiven's plug-in puts them into a store: an encoder of the layout,
written from its description and apart from the package's reader.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from Crypto.Cipher import AES, PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA

TOPIC_ID = "4L6g3nShT-eMCtK--X86sw"
_ENDINGS = (
    ("offset", ".index"),
    ("timestamp", ".timeindex"),
    ("producerSnapshot", ".snapshot"),
    ("leaderEpoch", ""),
    ("transaction", ".txnindex"),
)


@dataclass(frozen=True)
class Plugin:
    """How the plug-in is set: chunk.size, compression.enabled, encryption.key.pair, key.prefix."""

    chunk_bytes: int = 4096
    is_compressed: bool = False
    key: tuple[str, Path] | None = None
    prefix: str = ""
    topic_id: str = TOPIC_ID

    def copy(
        self,
        log: Path,
        store: Path,
        *,
        segment_id: str = "A" * 22,
        end_offset: int,
        epochs: dict[int, int] | None = None,
        lineage: dict[int, int] | None = None,
        event_ms: int = 1,
        **changes: Any,
    ) -> Path:
        """A segment, by its `.log`, and what is beside it; the path of its manifest, in which
        `changes` replace members. `lineage`: the leader epochs of the log up to its end."""
        topic, _, partition = log.parent.name.rpartition("-")
        base_offset = int(log.stem)
        epochs = epochs or {0: base_offset}
        folder = store / f"{self.prefix}{topic}-{self.topic_id}" / partition
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{log.stem}-{segment_id}"
        data_key, aad = os.urandom(32), os.urandom(32)
        data = log.read_bytes()
        chunks = [
            self._transformed(data[at : at + self.chunk_bytes], data_key, aad)
            for at in range(0, len(data), self.chunk_bytes)
        ]
        (folder / f"{stem}.log").write_bytes(b"".join(chunks))
        places, indexes = self._indexes(log, end_offset, lineage or epochs, data_key, aad)
        (folder / f"{stem}.indexes").write_bytes(indexes)
        manifest: dict[str, Any] = {
            "version": "1",
            "chunkIndex": self._chunk_index(len(data), [len(chunk) for chunk in chunks]),
            "segmentIndexes": places,
            "compression": self.is_compressed,
            "remoteLogSegmentMetadata": {
                "remoteLogSegmentId": {
                    "topicIdPartition": {
                        "topicId": self.topic_id,
                        "topicPartition": {"topic": topic, "partition": int(partition)},
                    },
                    "id": segment_id,
                },
                "startOffset": base_offset,
                "endOffset": end_offset,
                "maxTimestampMs": _last_time(log),
                "brokerId": 1,
                "eventTimestampMs": event_ms,
                "segmentLeaderEpochs": {str(epoch): at for epoch, at in epochs.items()},
            },
        }
        if self.key is not None:
            wrapped = PKCS1_OAEP.new(RSA.import_key(self.key[1].read_bytes()), hashAlgo=SHA3_512)
            text = base64.b64encode(wrapped.encrypt(data_key)).decode()
            manifest["encryption"] = {
                "dataKey": f"{self.key[0]}:{text}",
                "aad": base64.b64encode(aad).decode(),
            }
        path = folder / f"{stem}.rsm-manifest"
        path.write_text(json.dumps(manifest | changes))
        return path

    def _transformed(self, chunk: bytes, data_key: bytes, aad: bytes, zstd: bool = True) -> bytes:
        if self.is_compressed and zstd:
            chunk = zstandard.ZstdCompressor().compress(chunk)
        if self.key is None:
            return chunk
        nonce = os.urandom(12)
        cipher = AES.new(data_key, AES.MODE_GCM, nonce=nonce)
        cipher.update(aad)
        hidden, tag = cipher.encrypt_and_digest(chunk)
        return nonce + hidden + tag

    def _chunk_index(self, size: int, stored: list[int]) -> dict[str, Any]:
        common = {"originalChunkSize": self.chunk_bytes, "originalFileSize": size}
        if not self.is_compressed:
            return {
                "type": "fixed",
                **common,
                "transformedChunkSize": stored[0],
                "finalTransformedChunkSize": stored[-1],
            }
        packed = zstandard.ZstdCompressor().compress(packed_sizes(stored))
        return {
            "type": "variable",
            **common,
            "transformedChunks": base64.b64encode(packed).decode(),
        }

    def _indexes(
        self, log: Path, end_offset: int, epochs: dict[int, int], data_key: bytes, aad: bytes
    ) -> tuple[dict[str, Any], bytes]:
        places: dict[str, Any] = {}
        indexes = b""
        for name, ending in _ENDINGS:
            path = log.with_suffix(ending)
            if name == "producerSnapshot":
                path = log.with_name(f"{end_offset + 1:020d}.snapshot")
            if name == "leaderEpoch":
                lines = "".join(f"{epoch} {at}\n" for epoch, at in epochs.items())
                piece = f"0\n{len(epochs)}\n{lines}".encode()
            elif path.exists():
                piece = path.read_bytes()
            elif name == "transaction":
                places[name] = None
                continue
            else:
                piece = b""
            stored = self._transformed(piece, data_key, aad, zstd=False) if piece else b""
            places[name] = {"position": len(indexes), "size": len(stored)}
            indexes += stored
        return places, indexes


def packed_sizes(sizes: list[int]) -> bytes:
    """Stored sizes of chunks: each but the last over the least of them, in as few bytes as fit."""
    if len(sizes) < 2:
        return struct.pack(">i", len(sizes)) + b"".join(struct.pack(">i", s) for s in sizes)
    base = min(sizes[:-1])
    width = max((max(sizes[:-1]) - base).bit_length() + 7, 8) // 8
    packed = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    head = struct.pack(">iib", len(sizes), base, width)
    return head + packed + struct.pack(">i", sizes[-1])


def _last_time(log: Path) -> int:
    data = log.with_suffix(".timeindex").read_bytes()
    return int.from_bytes(data[-12:-4], "big") if data else -1
