"""Key filters on disk: of each segment a directory, of each range of it a file.

 DIR/<digest of the segment's path>/<digest of its size, times, inode>/<start>-<end>.keys

 magic 8 bytes | size, mtime_ns, ctime_ns, inode, device of the segment i64 | start i64 | end i64
 last_position i64 | blocks i64 | fingerprints i64 | CRC-32C of two headers u32
 per block: position i64 .. last_offset i64 .. end of its fingerprints i64 .. is unknown u8
 fingerprints u16 | CRC-32C of all before u32; numbers are little-endian, `..` separates columns

A file counts as long as the segment is the same by its size, times and inode, and the headers of
the range's first and last batch are. What is damaged, cut or of another version counts as not
there, and is made anew by the next read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkalog.errors import InvalidConfigError
from kafkalog.format.checksum import crc32c, extend_crc32c
from kafkalog.format.constants import RECORD_BATCH_OVERHEAD
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.reading.key_filter import MOST_PART, KeyFilter

_logger = logging.getLogger(__name__)

# The number is that of the layout and of how fingerprints are made.
_MAGIC = b"KLKEYS\x001"
_FRONT = struct.Struct("<8s10qI")
_CRC = struct.Struct("<I")
_BLOCK = 3 * 8 + 1
_NAME = re.compile(r"(\d{1,19})-(\d{1,19})\.keys")


class SegmentFile(NamedTuple):
    """What tells whether a file is still the same."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: str) -> SegmentFile:
        stat = os.stat(path)  # noqa: PTH116 - as often as there are splits
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev)


class KeyFilterFiles:
    """The filters below a directory. It may not lie in a log dir: a broker does not start on a
    directory it does not know."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(os.path.realpath(directory))  # of a loop of links, too
        above = (self._directory, *self._directory.parents)
        self._log_dir = next((place for place in above if _is_log_dir(place)), None)
        self._has_failed = False

    def filters(self, path: str, start: int, end: int) -> list[KeyFilter]:
        """Those of a segment for parts of a range of it, in order; they do not overlap. OSError
        where the segment cannot be looked at, InvalidConfigError for a directory in a log dir.
        """
        segment = SegmentFile.of(path)
        place = self._place(path, segment)
        found: list[KeyFilter] = []
        try:
            names = sorted(_names(place))
        except OSError as error:
            self._warn(path, error)
            return found
        for first, last, name in names:
            is_asked = first < end and last > start
            if is_asked and (not found or first >= found[-1].end):
                one = _read(place / name, path, segment, (first, last))
                if one is not None:
                    found.append(one)
        return found

    def keep(self, path: str, made: KeyFilter, as_read: SegmentFile) -> None:
        """Write a filter of a segment that was `as_read` before it was read; nothing is kept of one
        that has changed since. What cannot be written is said in a warning, once.
        """
        if self._has_failed:
            return
        try:
            if SegmentFile.of(path) != as_read:
                return
            place = self._place(path, as_read)
            if not place.is_dir():
                _remove_others(place)
                place.mkdir(parents=True, exist_ok=True)
            _write(place / f"{made.start}-{made.end}.keys", _packed(path, as_read, made))
        except OSError as error:
            self._warn(path, error)

    def _warn(self, path: str, error: OSError) -> None:
        if not self._has_failed:
            _logger.warning("no key filter of %s is kept: %s", path, error)
        self._has_failed = True

    def _place(self, path: str, segment: SegmentFile) -> Path:
        whole = Path(path).resolve()
        place = whole.parent if self._directory.is_relative_to(whole.parent) else self._log_dir
        if place is not None:
            raise InvalidConfigError(
                f"key filters would lie in {place}, which has logs", path=str(self._directory)
            )
        return self._directory / _digest(os.fsencode(whole)) / _digest(repr(segment).encode())


def _is_log_dir(place: Path) -> bool:
    """Also one that nothing is read of: its broker would not start. False where nobody may look."""
    return os.path.exists(place / META_PROPERTIES_FILE)  # noqa: PTH110 - Path's raises there


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _remove_others(place: Path) -> None:
    """Those of the segment as it is no more."""
    with suppress(FileNotFoundError):
        for other in place.parent.iterdir():
            if other == place:  # another process has made it meanwhile
                continue
            for _, _, name in _names(other):
                (other / name).unlink(missing_ok=True)
            with suppress(OSError):  # somebody has put something else there
                other.rmdir()


def _names(place: Path) -> list[tuple[int, int, str]]:
    """(start, end, name) of each file."""
    try:
        names = os.listdir(place)  # noqa: PTH208 - as often as there are splits
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = ((name, _NAME.fullmatch(name)) for name in names)
    return [(int(match[1]), int(match[2]), name) for name, match in found if match]


def _headers_crc(path: str, positions: tuple[int, int]) -> int:
    """Of the headers of two batches: offset, length and checksum among them."""
    descriptor, crc = os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0
    try:
        for position in positions:
            crc = extend_crc32c(crc, os.pread(descriptor, RECORD_BATCH_OVERHEAD, position))
    finally:
        os.close(descriptor)
    return crc


def _packed(path: str, segment: SegmentFile, made: KeyFilter) -> bytes:
    headers = _headers_crc(path, (made.start, made.last_position))
    counts = len(made.last_offsets), len(made.fingerprints)
    front = (*segment, made.start, made.end, made.last_position, *counts, headers)
    data = b"".join([
        _FRONT.pack(_MAGIC, *front),
        *(column.astype("<i8").tobytes() for column in (made.positions[:-1], made.last_offsets,
                                                        made.ends)),
        made.is_unknown.astype(np.uint8).tobytes(),
        made.fingerprints.astype("<u2").tobytes(),
    ])  # fmt: skip
    return data + _CRC.pack(crc32c(data))


def _write(path: Path, data: bytes) -> None:
    """In place of what is there, whole or not at all. Not synced: what a power cut leaves of it
    does not count."""
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix="tmp-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(scratch).replace(path)
    except OSError:
        with suppress(OSError):
            Path(scratch).unlink()
        raise


def _read(path: Path, log: str, segment: SegmentFile, bounds: tuple[int, int]) -> KeyFilter | None:
    """The filter in a file; None, with a warning, of one that is no good, and of a segment that has
    changed."""
    try:
        data = _read_whole(path, segment, bounds)
        found = None if data is None else _parsed(data)
        if data is None or found is None:
            return None
        headers = _headers_crc(log, (found.start, found.last_position))
        return found if headers == _FRONT.unpack_from(data)[-1] else None
    except FileNotFoundError:  # somebody else found it old
        return None
    except (OSError, ValueError) as error:
        _logger.warning("key filter %s does not count: %s", path, error)
        return None


def _read_whole(path: Path, segment: SegmentFile, bounds: tuple[int, int]) -> bytes | None:
    """The bytes of a file of this segment as it is, no more than its range allows."""
    with path.open("rb") as file:
        front = file.read(_FRONT.size)
        if len(front) < _FRONT.size or front[: len(_MAGIC)] != _MAGIC:
            raise ValueError("it does not begin as one of this version")
        _, *numbers, _ = _FRONT.unpack(front)
        start, end, last_position, blocks, fingerprints = numbers[len(segment) :]
        if SegmentFile(*numbers[: len(segment)]) != segment:
            return None
        if (start, end) != bounds or not 0 <= start <= last_position < end <= segment.size:
            raise ValueError(f"it is of bytes {start} to {end}")
        if not 0 < blocks <= end - start or not 0 <= 2 * MOST_PART * fingerprints <= end - start:
            raise ValueError(f"{blocks} blocks and {fingerprints} fingerprints")
        length = _BLOCK * blocks + 2 * fingerprints + _CRC.size
        if os.fstat(file.fileno()).st_size != len(front) + length:
            raise ValueError("it is cut off")
        return front + file.read(length)


def _parsed(data: bytes) -> KeyFilter:
    """ValueError for bytes that are not as they were written."""
    _, *numbers, _ = _FRONT.unpack_from(data)
    start, end, last_position, blocks, count = numbers[-5:]
    at = len(data) - _CRC.size
    if crc32c(data[:at]) != _CRC.unpack_from(data, at)[0]:
        raise ValueError("its checksum is wrong")
    positions, last_offsets, ends = (
        np.frombuffer(data, "<i8", blocks, _FRONT.size + 8 * blocks * column) for column in range(3)
    )
    behind = _FRONT.size + 24 * blocks
    found = KeyFilter(
        np.append(positions, end),
        last_offsets,
        ends,
        np.frombuffer(data, np.uint8, blocks, behind) != 0,
        np.frombuffer(data, "<u2", count, behind + blocks),
        last_position,
    )
    rises = (np.diff(found.positions) > 0).all() and (np.diff(ends, prepend=0) >= 0).all()
    if found.start != start or not rises or ends[-1] != count:
        raise ValueError("its blocks are in no order")
    return found
