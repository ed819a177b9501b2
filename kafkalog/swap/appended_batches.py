"""Batches behind the last one of a stopped log, as its leader appends them, and their way back.

What is appended is noted first: where, how much, and by which bytes it is known again. An append
that was cut off is a torn tail, which the way back cuts as well. Indexes are not touched: a broker
adds an entry every few KiB only, and finds what lies behind the last one by walking.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_headers import scan_headers

# The batch header up to its CRC: no two batches that say different things have the same.
_HEAD_BYTES = 21


@dataclass(frozen=True, slots=True)
class AppendedBatches:
    """So many bytes at a position of a `.log`; head: their first ones; sha256: of all of them."""

    path: str
    log_dir: str
    position: int
    length: int
    head: bytes
    sha256: str

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.position + self.length

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "logDir": self.log_dir,
            "position": self.position,
            "length": self.length,
            "head": self.head.hex(),
            "sha256": self.sha256,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> AppendedBatches:
        """InvalidConfigError for what `to_json` did not make."""
        try:
            return cls(
                str(fields["path"]),
                str(fields["logDir"]),
                int(fields["position"]),
                int(fields["length"]),
                bytes.fromhex(fields["head"]),
                str(fields["sha256"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidConfigError(f"the journal cannot be understood: {error!r}") from None


def append_batches(
    partition: PartitionInventory, data: bytes, note: Callable[[AppendedBatches], None]
) -> None:
    """Put whole batches behind the last one of the active segment, for good. The caller holds the
    lock of the log dir, and has the offsets right.

    LogChangedError, and nothing is done, where the segment does not end with a whole batch: what
    is behind a torn tail no broker reads. OSError.
    """
    segment = partition.active_segment
    if segment is None:
        raise LogChangedError("there is no segment to append to", path=partition.path)
    size = Path(segment.path).stat().st_size
    scan = scan_headers(segment.path, 0, size)
    if scan.trailing_bytes:
        raise LogChangedError(
            f"{scan.trailing_bytes} bytes follow its last whole batch: `kafkalog recover` first",
            path=segment.path,
            position=size - scan.trailing_bytes,
        )
    appended = AppendedBatches(
        segment.path,
        partition.log_dir,
        size,
        len(data),
        data[:_HEAD_BYTES],
        hashlib.sha256(data).hexdigest(),
    )
    note(appended)
    with Path(segment.path).open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def why_not_taken_back(each: AppendedBatches, own_end: int) -> str | None:
    """Why what was appended has to stay, None where it can go or is gone; own_end: up to where the
    run appended to the file. OSError."""
    with Path(each.path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(each.position)
        found = file.read(each.length)
    if size < each.position:
        return f"the segment has {size} bytes, it had {each.position} before the run"
    if size > own_end:
        return f"{size - own_end} bytes lie behind what the run appended: a broker, or a later run"
    is_own = found[:_HEAD_BYTES] == each.head[: len(found)]
    if not is_own or (
        len(found) == each.length and hashlib.sha256(found).hexdigest() != each.sha256
    ):
        return f"other bytes are at position {each.position} than the run appended"
    return None


def take_back(each: AppendedBatches) -> bool:
    """Whether anything was there to be cut off. OSError."""
    path = Path(each.path)
    if path.stat().st_size <= each.position:
        return False
    with path.open("r+b") as file:
        file.truncate(each.position)
        os.fsync(file.fileno())
    return True
