"""What the bytes of a partition's segments prove about records that are not there any more: byte by
byte, with none of the package's readers.

Proven is damage between two sound batches, and behind the last one where the log goes on: in
another segment, or where a batch is whole by its own length and yet not sound. So are sound batches
whose offsets do not increase, or are not those of their segment. A last segment that ends inside a
batch, or in zeros, proves nothing: that is how a log ends.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.format.checksum import crc32, crc32c

# The smallest entry behind its offset and length, by magic.
_LEAST = {0: 14, 1: 22, 2: 49}
_UP_TO_MAGIC = 17


@dataclass(frozen=True)
class SoundBatch:
    """A whole batch with the checksum it states; of a legacy wrapper both offsets are its last."""

    position: int
    data: bytes
    base_offset: int
    last_offset: int


@dataclass(frozen=True)
class SegmentVerdict:
    """`proof`: what shows that records were lost, empty where nothing does; `is_walkable`: whether
    lengths alone lead through the file.
    """

    sound: tuple[SoundBatch, ...]
    proof: str
    is_walkable: bool


def judge_segment(data: bytes, base_offset: int, next_base: int | None) -> SegmentVerdict:
    """A segment by its bytes; `next_base` is the next one's base offset, None of the last one."""
    sound: list[SoundBatch] = []
    position, hole = 0, None
    proof = ""
    while position < len(data):
        found = _sound_at(data, position)
        if hole is not None and found is not None and not _fits(found, sound, base_offset):
            found = None  # of bytes that nothing leads to: its offset says where it is from
        if found is None:
            hole = position if hole is None else hole
            position += 1
            continue
        if hole is not None:
            proof = proof or f"no batch from {hole} to {position}"
            hole = None
        sound.append(found)
        position += len(found.data)
    if hole is not None and not proof:
        proof = _tail_proof(data[hole:], sound, base_offset, next_base)
    return SegmentVerdict(
        tuple(sound), proof or _order_proof(sound, base_offset, next_base), _is_walkable(data)
    )


def _fits(found: SoundBatch, sound: list[SoundBatch], base_offset: int) -> bool:
    before = sound[-1].last_offset if sound else base_offset - 1
    if not base_offset <= before < base_offset + 2**31:
        before = base_offset - 1
    return before < found.base_offset <= found.last_offset < base_offset + 2**31


def _tail_proof(
    tail: bytes, sound: list[SoundBatch], base_offset: int, next_base: int | None
) -> str:
    end = sound[-1].last_offset + 1 if sound else base_offset
    if not any(tail):
        return "" if next_base in (None, end) else "zeros, and another segment"
    if next_base is not None:
        return "no batch at the end, and another segment"
    if len(tail) <= _UP_TO_MAGIC:
        return ""
    (length,) = struct.unpack_from(">i", tail, 8)
    return "" if length > len(tail) - 12 else "a whole batch that is not sound"


def _order_proof(sound: list[SoundBatch], base_offset: int, next_base: int | None) -> str:
    before = base_offset - 1
    for batch in sound:
        if not before < batch.base_offset <= batch.last_offset:
            return f"offset {batch.base_offset} behind {before}"
        before = batch.last_offset
    is_beyond = sound and (
        before - base_offset > 2**31 - 1 or (next_base is not None and before >= next_base)
    )
    return f"offset {before} in the segment of {base_offset}" if is_beyond else ""


def _is_walkable(data: bytes) -> bool:
    position = 0
    while position < len(data):
        if not any(data[position:]):
            return True
        header = data[position : position + 61]
        if len(header) <= _UP_TO_MAGIC:
            return True
        (length,) = struct.unpack_from(">i", header, 8)
        if length < _LEAST.get(header[16], 14):
            return False
        if length + 12 > len(data) - position:
            return True
        if header[16] > 2 or (header[16] == 2 and struct.unpack_from(">i", header, 57)[0] < 0):
            return False
        position += length + 12
    return True


def _sound_at(data: bytes, position: int) -> SoundBatch | None:
    header = data[position : position + 61]
    if len(header) < 26 or header[16] not in _LEAST:
        return None
    offset, length = struct.unpack_from(">qi", header)
    if length < _LEAST[header[16]] or length + 12 > len(data) - position:
        return None
    batch = data[position : position + 12 + length]
    if header[16] < 2:
        (stored,) = struct.unpack_from(">I", header, 12)
        return SoundBatch(position, batch, offset, offset) if stored == crc32(batch[16:]) else None
    (stored,) = struct.unpack_from(">I", header, 17)
    (delta,), (records,) = (struct.unpack_from(">i", header, at) for at in (23, 57))
    if stored != crc32c(batch[21:]) or records < 0:
        return None
    return SoundBatch(position, batch, offset, offset + delta)
