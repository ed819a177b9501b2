"""Record what a run does to a tree: every call to the operating system that changes it, or syncs.

The calls are caught below `LocalFiles`, where Python leaves for the system, so a sync that the
program forgets is not in the trace, whoever forgot it. A change that comes another way would be
missing in the trace: `record` replays it and compares it with the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.operations.faults.forgetful_disk import (
    DIRECTORY,
    Dressed,
    Event,
    Look,
    Names,
    Resized,
    State,
    SyncedDirectory,
    SyncedFile,
    Trace,
    Written,
)

Call = Callable[..., Any]


def look_of(path: str | int) -> Look:
    found = os.lstat(path) if isinstance(path, str) else os.fstat(path)
    return Look(found.st_mtime_ns, found.st_mode & 0o7777, found.st_uid, found.st_gid)


def tree_of(root: Path) -> State:
    """The tree below a directory as it is, by the inodes it has."""
    state = State()
    for path in sorted(root.rglob("*")):
        directory, _, name = str(path.relative_to(root)).rpartition("/")
        if path.is_dir():
            state.names[directory, name] = DIRECTORY
            continue
        inode = path.stat().st_ino
        state.names[directory, name] = inode
        state.data[inode] = path.read_bytes()
        state.looks[inode] = look_of(str(path))
    return state


class _Recorder:
    """Stands in for functions of `os`: each does its work, and is an event if that went well."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.trace = Trace(tree_of(root))
        self._known = set(self.trace.start.data)
        # An inode whose file is gone must not come back as another's number.
        self._open = [
            os.open(path, os.O_RDONLY) for path in sorted(root.rglob("*")) if path.is_file()
        ]

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)

    def _place(self, path: Any) -> tuple[str, str] | None:
        """Directory and name below the root, None for what lies elsewhere."""
        absolute = os.path.abspath(os.fspath(path))  # noqa: PTH100 - no link is followed
        if not absolute.startswith(self._root + "/"):
            return None
        directory, _, name = absolute[len(self._root) + 1 :].rpartition("/")
        return directory, name

    def _note(self, event: Event) -> None:
        self.trace.events.append(event)

    def _named(self, path: Any) -> tuple[tuple[str, str], int] | None:
        """Where a path lies, and the inode it has now."""
        place = self._place(path)
        if place is None:
            return None
        found = os.lstat(path)
        return place, DIRECTORY if stat.S_ISDIR(found.st_mode) else found.st_ino

    def open(self, real: Call, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        fd: int = real(path, flags, *rest, **named)
        place = self._place(path) if is_new else None
        if place is not None:
            inode = os.fstat(fd).st_ino
            self._known.add(inode)
            self._open.append(os.dup(fd))
            self.trace.start.looks[inode] = look_of(fd)
            self._note(Names(place[0], ((place[1], inode),)))
        return fd

    def write(self, real: Call, fd: int, data: Any) -> int:
        done: int = real(fd, data)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_ino in self._known:
            end = os.lseek(fd, 0, os.SEEK_CUR)
            self._note(Written(found.st_ino, end - done, bytes(data[:done])))
            self._note(Dressed(found.st_ino, look_of(fd)))
        return done

    def fsync(self, real: Call, fd: int) -> None:
        real(fd)
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            path = str(Path(f"/proc/self/fd/{fd}").readlink())
            if path == self._root:
                self._note(SyncedDirectory(""))
            elif (place := self._place(path)) is not None:
                self._note(SyncedDirectory("/".join(filter(None, place))))
        elif found.st_ino in self._known:
            self._note(SyncedFile(found.st_ino))

    def ftruncate(self, real: Call, fd: int, size: int) -> None:
        real(fd, size)
        inode = os.fstat(fd).st_ino
        if inode in self._known:
            self._note(Resized(inode, size))
            self._note(Dressed(inode, look_of(fd)))

    def dress(self, real: Call, path: Any, *rest: Any, **named: Any) -> None:
        """fchmod, fchown, chmod, chown and utime."""
        real(path, *rest, **named)
        path = path if isinstance(path, int) else os.fspath(path)
        inode = (os.fstat(path) if isinstance(path, int) else os.lstat(path)).st_ino
        if inode in self._known:
            self._note(Dressed(inode, look_of(path)))

    def link(self, real: Call, source: Any, target: Any, **named: Any) -> None:
        real(source, target, **named)
        if (found := self._named(target)) is not None:
            (directory, name), inode = found
            self._note(Names(directory, ((name, inode),)))

    def rename(self, real: Call, source: Any, target: Any) -> None:
        found = self._named(source)
        real(source, target)
        place = self._place(target)
        if found is None or place is None:
            assert found is place, f"{source} comes or goes: not recorded"
            return
        (directory, name), inode = found
        assert directory == place[0], f"{source} goes to another directory: not recorded"
        if not os.path.lexists(source):  # two names of one file stay as they are
            self._note(Names(directory, ((place[1], inode),), ((name, inode),)))

    def remove(self, real: Call, path: Any, **named: Any) -> None:
        """unlink, remove and rmdir."""
        found = self._named(path) if os.path.lexists(path) else None
        real(path, **named)
        if found is not None:
            (directory, name), inode = found
            self._note(Names(directory, gone=((name, inode),)))

    def mkdir(self, real: Call, path: Any, *rest: Any, **named: Any) -> None:
        real(path, *rest, **named)
        if (place := self._place(path)) is not None:
            self._note(Names(place[0], ((place[1], DIRECTORY),)))


_CAUGHT = {
    "open": _Recorder.open,
    "write": _Recorder.write,
    "fsync": _Recorder.fsync,
    "ftruncate": _Recorder.ftruncate,
    "fchmod": _Recorder.dress,
    "fchown": _Recorder.dress,
    "chmod": _Recorder.dress,
    "chown": _Recorder.dress,
    "utime": _Recorder.dress,
    "link": _Recorder.link,
    "rename": _Recorder.rename,
    "replace": _Recorder.rename,
    "unlink": _Recorder.remove,
    "remove": _Recorder.remove,
    "rmdir": _Recorder.remove,
    "mkdir": _Recorder.mkdir,
}


@contextmanager
def recorded(root: Path) -> Iterator[Trace]:
    """The trace of what this process does below `root`; whole, once the block has ended."""
    root = root.resolve()
    recorder = _Recorder(root)
    real = {name: getattr(os, name) for name in _CAUGHT}

    def stand_in(name: str) -> Call:
        method = _CAUGHT[name]
        return lambda *args, **named: method(recorder, real[name], *args, **named)

    for name in _CAUGHT:
        setattr(os, name, stand_in(name))
    try:
        yield recorder.trace
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        recorder.close()
    found, replayed = tree_of(root), recorder.trace.end()
    assert found.names == replayed.names
    for name, inode in found.names.items():
        if inode != DIRECTORY:
            assert found.data[inode] == replayed.data.get(inode, b""), name
            assert found.looks[inode] == replayed.looks[inode], name
