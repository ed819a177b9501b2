"""The disk of a node in a state that is asked about: a copy of the sample log dir `broker`, changed
by one small function, and perhaps more log dirs beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from data.copy_samples import copy_sample
from kafkalog.format.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    pack_meta_properties,
)

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY_ID = "vMP88smz2LFYzmvBqyWadg"
SECOND_ID = "bMlluLhQIw4ZCbzFubEoXQ"
OTHER_ID = "5L6g3nShT-eMCtK--X86sw"
METADATA = "__cluster_metadata-0"
# The part of the table in which one file of a disk says what another one denies.
CONTRADICTIONS = "the files contradict each other: a broker starts and does not say so"


@dataclass
class Disk:
    """`log_dir` has the metadata log; `log_dirs` are all that the node, and `verify`, is given."""

    root: Path
    log_dirs: list[Path] = field(default_factory=list)

    @property
    def log_dir(self) -> Path:
        return self.log_dirs[0]

    def path(self, name: str) -> Path:
        return self.log_dir / name

    def second(self, meta: MetaProperties | None = None) -> Path:
        """Another log dir, formatted as of `meta`, by default for the same node."""
        path = self.root / "second"
        path.mkdir()
        meta = meta or MetaProperties(1, CLUSTER_ID, 1, SECOND_ID)
        (path / META_PROPERTIES_FILE).write_bytes(pack_meta_properties(meta))
        self.log_dirs.append(path)
        return path


Change = Callable[[Disk], None]


@dataclass(frozen=True)
class State:
    """`name` is unique and says it all; `area` is the part of the table it stands in. is_race: the
    broker does now this, now that, as `why` explains.
    """

    area: str
    name: str
    do: Change
    is_race: bool = False
    why: str = ""

    def make(self, root: Path) -> Disk:
        """The state below `root`, which is there and empty."""
        disk = Disk(root, [copy_sample("broker", root / "first")])
        self.do(disk)
        return disk


# -- what is done to one file ----------------------------------------------------------------------


def gone(name: str) -> Change:
    return lambda disk: disk.path(name).unlink()


def empty(name: str) -> Change:
    return holds(name, b"")


def zeros(name: str) -> Change:
    """The length stays: what a crash leaves of a file whose bytes never came to the disk."""
    return lambda disk: _rewrite(disk.path(name), lambda data: bytes(len(data)))


def cut(name: str, length: int) -> Change:
    """The first `length` bytes; negative: all but so many."""
    return lambda disk: _rewrite(disk.path(name), lambda data: data[:length])


def holds(name: str, data: bytes) -> Change:
    return lambda disk: _write(disk.path(name), data)


def replaced(name: str, old: bytes, new: bytes) -> Change:
    """Every `old` of a file becomes `new`; there is one at least."""

    def change(data: bytes) -> bytes:
        assert old in data, (name, old)
        return data.replace(old, new)

    return lambda disk: _rewrite(disk.path(name), change)


def changed(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda disk: _rewrite(disk.path(name), change)


def after_crash(change: Change) -> Change:
    """The same without `.kafka_cleanshutdown`: the node was killed."""

    def both(disk: Disk) -> None:
        change(disk)
        disk.path(".kafka_cleanshutdown").unlink(missing_ok=True)

    return both


def together(*changes: Change) -> Change:
    def all_of_them(disk: Disk) -> None:
        for change in changes:
            change(disk)

    return all_of_them


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
