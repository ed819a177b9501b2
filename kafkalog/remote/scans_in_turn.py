"""Scans of remote files one behind the other: the first blocks of the next are asked for while the
last ones of this are on their way.

Each range of a file is a scan of its own, and would else begin when the one before has come to its
end: of a store that answers late nothing would be under way for a good part of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from kafkalog.remote.reading_ahead import ReadingAhead
from kafkalog.remote.stores import is_remote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScanRange:
    """Bytes `start` to `end` (excluded) of a file that are read in order."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BegunScan:
    """A scan that nobody reads yet, of the file that had this inode then."""

    scan: ScanRange
    inode: int
    ahead: ReadingAhead


class _Turn(threading.local):
    """Of a thread: what it reads behind the scan it is at, and that scan once it is begun."""

    following: ScanRange | None = None
    begun: BegunScan | None = None


_TURN = _Turn()


def in_turn(items: Iterable[T], range_of: Callable[[T], ScanRange | None]) -> Iterator[T]:
    """The items as they are; whoever reads the range of one has the next one's begun meanwhile.
    Behind the last one comes what comes behind all of them, where an item of others is cut into
    these. None: of an item that is not read in order."""
    outer = _TURN.following
    remaining = iter(items)
    item = next(remaining, None)
    try:
        while item is not None:
            behind = next(remaining, None)
            scan = outer if behind is None else range_of(behind)
            _TURN.following = scan if scan is not None and is_remote(scan.path) else None
            yield item
            item = behind
    finally:
        _TURN.following = outer
        if outer is None:
            drop()


def following() -> ScanRange | None:
    """What this thread reads behind the scan that it begins now."""
    return _TURN.following


def begun() -> BegunScan | None:
    """The scan that is begun, if one is."""
    return _TURN.begun


def keep(scan: BegunScan) -> None:
    """A scan that is begun; another one is given up."""
    drop()
    _TURN.begun = scan


def take(scan: ScanRange, inode: int) -> ReadingAhead | None:
    """What was begun of a scan, which is the caller's now; anything else is given up."""
    found = _TURN.begun
    if found is not None and (found.scan, found.inode) == (scan, inode):
        _TURN.begun = None
        return found.ahead
    drop()
    return None


def drop() -> None:
    """What was begun is not read."""
    if _TURN.begun is not None:
        _TURN.begun.ahead.close()
        _TURN.begun = None
