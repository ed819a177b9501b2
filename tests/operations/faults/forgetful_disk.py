"""A disk that forgets what was not synced: what a power cut may leave of a recorded run.

Strategy: a run is recorded once, as the operations by which it changed a tree (`recording.py`).
Each crash is then made of that trace in memory: up to some event everything happened, and of what
was not synced by then any part is lost. What a sync promises is what POSIX says and ext4 and XFS
keep, and no more:

    a file's bytes, size, times, owner and mode    after fsync of that file
    a name (created, renamed, linked, removed)     after fsync of its directory
    all of it                                      after sync

Of the rest any subset survives, in any order: a rename as a whole or not at all, of a write any
prefix, or its length with zeros in place of its bytes.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DIRECTORY = -1
Name = tuple[str, str]  # directory below the root ("" is the root), name in it


@dataclass(frozen=True, slots=True)
class Look:
    """What an inode has beside its bytes."""

    mtime_ns: int
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Names:
    """One change of a directory: names and the inode each has then, None for none. `gone` has the
    inode that a removed name had: a name that has another by then stays.
    """

    directory: str
    given: tuple[tuple[str, int], ...] = ()
    gone: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes at a place of a file."""

    inode: int
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """A file cut, or made longer with zeros."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Dressed:
    """A file's times, mode or owner."""

    inode: int
    look: Look


@dataclass(frozen=True, slots=True)
class SyncedFile:
    inode: int


@dataclass(frozen=True, slots=True)
class SyncedDirectory:
    directory: str


@dataclass(frozen=True, slots=True)
class SyncedAll:
    """`sync`: everything."""


SYNCS = (SyncedFile, SyncedDirectory, SyncedAll)
Event = Names | Written | Resized | Dressed | SyncedFile | SyncedDirectory | SyncedAll


@dataclass(slots=True)
class State:
    """A tree: names, and what each inode has."""

    names: dict[Name, int] = field(default_factory=dict)
    data: dict[int, bytes] = field(default_factory=dict)
    looks: dict[int, Look] = field(default_factory=dict)

    def copy(self) -> State:
        return State(dict(self.names), dict(self.data), dict(self.looks))

    def apply(self, event: Event) -> None:
        """Let a change happen; one whose file is not there changes nothing."""
        if isinstance(event, Names):
            for name, inode in event.given:
                self.names[event.directory, name] = inode
            for name, inode in event.gone:
                if self.names.get((event.directory, name)) == inode:
                    del self.names[event.directory, name]
        elif isinstance(event, Written):
            data = self.data.get(event.inode, b"").ljust(event.position, b"\0")
            end = event.position + len(event.data)
            self.data[event.inode] = data[: event.position] + event.data + data[end:]
        elif isinstance(event, Resized):
            data = self.data.get(event.inode, b"")
            self.data[event.inode] = data[: event.size].ljust(event.size, b"\0")
        elif isinstance(event, Dressed):
            self.looks[event.inode] = event.look

    def digest(self, wanted: Callable[[Name], bool] = lambda _: True) -> bytes:
        """The same for trees that look the same: names, which are one file, bytes, looks."""
        digest = hashlib.blake2b(digest_size=16)
        first: dict[int, int] = {}
        for (directory, name), inode in sorted(self._reachable(wanted)):
            digest.update(f"{directory}/{name}\0{first.setdefault(inode, len(first))}\0".encode())
            digest.update(self.data.get(inode, b"") + repr(self.looks.get(inode)).encode())
        return digest.digest()

    def _reachable(self, wanted: Callable[[Name], bool]) -> Iterable[tuple[Name, int]]:
        """The names whose directories are there."""
        for name, inode in self.names.items():
            if wanted(name) and self.has(name[0]):
                yield name, inode

    def has(self, directory: str) -> bool:
        """Whether a directory and those above it are there."""
        while directory:
            directory, _, name = directory.rpartition("/")
            if self.names.get((directory, name)) != DIRECTORY:
                return False
        return True

    def write_to(self, root: Path) -> None:
        """Make the tree. Records of replaced files know them by inode: they get the new ones."""
        if root.exists():
            shutil.rmtree(root)
        root.mkdir(parents=True)
        made: dict[int, int] = {}
        paths: dict[int, Path] = {}
        records = []
        for (directory, name), inode in sorted(self._reachable(lambda _: True)):
            path = root / directory / name
            if inode == DIRECTORY:
                path.mkdir()
            elif inode in paths:
                os.link(paths[inode], path)
            else:
                paths[inode] = path
                path.write_bytes(self.data.get(inode, b""))
                made[inode] = path.stat().st_ino
                if name.startswith("kafkalog-") and b'"inode": ' in self.data.get(inode, b""):
                    records.append(inode)
        for inode in records:
            told = re.sub(
                rb'"inode": (\d+)',
                lambda found: b'"inode": %d' % made.get(int(found[1]), 0),
                self.data[inode],
            )
            paths[inode].write_bytes(told)
        for inode, path in paths.items():
            look = self.looks[inode]
            path.chmod(look.mode)
            if os.geteuid() == 0:
                os.chown(path, look.uid, look.gid)
            os.utime(path, ns=(look.mtime_ns, look.mtime_ns))


@dataclass(slots=True)
class Trace:
    """A tree as it was, all of it on disk, and what was done to it since."""

    start: State
    events: list[Event] = field(default_factory=list)

    def without(self, number: int) -> Trace:
        """The same, had one event not happened."""
        return Trace(self.start, self.events[:number] + self.events[number + 1 :])

    def end(self) -> State:
        """The tree without a crash."""
        state = self.start.copy()
        for event in self.events:
            state.apply(event)
        return state

    def crash(self, length: int, lose: Callable[[Sequence[Event]], list[Event]]) -> State:
        """What is there after a power cut behind the first `length` events: all that was synced,
        and what `lose` leaves of the rest.
        """
        state = self.start.copy()
        pending: list[Event] = []
        for event in self.events[:length]:
            if isinstance(event, SYNCS):
                for done in (each for each in pending if is_synced(each, event)):
                    state.apply(done)
                pending = [each for each in pending if not is_synced(each, event)]
            else:
                pending.append(event)
        for event in lose(pending):
            state.apply(event)
        return state


def is_synced(event: Event, sync: Event) -> bool:
    """Whether a sync forces this change to disk."""
    if isinstance(sync, SyncedAll):
        return True
    if isinstance(event, Names):
        return sync == SyncedDirectory(event.directory)
    return isinstance(event, (Written, Resized, Dressed)) and sync == SyncedFile(event.inode)


def seeded(seed: int) -> Callable[[Sequence[Event]], list[Event]]:
    """A way to lose what is not synced, the same for the same seed: all, nothing, all but one, one
    alone, all from some point on, or any. Bytes may be there in part.
    """
    # Not the numbers that the place of the cut is drawn from.
    rnd = random.Random(f"lost {seed}")

    def lose(pending: Sequence[Event]) -> list[Event]:
        way = rnd.randrange(8)
        one = rnd.randrange(len(pending) + 1)
        if way == 0:
            kept: list[Event] = []
        elif way == 1:
            kept = list(pending)
        elif way == 2:
            kept = [event for number, event in enumerate(pending) if number != one]
        elif way == 3:
            kept = list(pending[one : one + 1])
        elif way == 4:
            kept = list(pending[:one])
        else:
            likely = rnd.random()
            kept = [event for event in pending if rnd.random() < likely]
        return [_torn(event, rnd) if isinstance(event, Written) else event for event in kept]

    return lose


def _torn(event: Written, rnd: random.Random) -> Written:
    way = rnd.randrange(4)
    if way == 0:
        return Written(
            event.inode, event.position, event.data[: rnd.randrange(len(event.data) + 1)]
        )
    if way == 1:
        return Written(event.inode, event.position, bytes(len(event.data)))
    return event
