"""A log dir as a tree: what `undo` must give back to the last byte and nanosecond."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

NAME = "orders-0"
# What a run leaves in a log dir that it did not find there.
OURS = (".lock",)


@dataclass(frozen=True)
class Node:
    """A file or directory."""

    data: bytes | None
    mode: int
    uid: int
    gid: int
    mtime_ns: int


def tree(log_dir: Path) -> dict[str, Node]:
    """Every file and directory below a log dir."""
    nodes = {}
    for path in sorted(log_dir.rglob("*")):
        name = str(path.relative_to(log_dir))
        if name not in OURS:
            stat = path.lstat()
            data = path.read_bytes() if path.is_file() else None
            nodes[name] = Node(data, stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime_ns)
    return nodes


def files(nodes: dict[str, Node]) -> dict[str, Node]:
    """Those of a tree that are files."""
    return {name: node for name, node in nodes.items() if node.data is not None}


def differences(found: dict[str, Node], wanted: dict[str, Node]) -> list[str]:
    """The names in which two trees differ."""
    names = found.keys() | wanted.keys()
    return sorted(name for name in names if found.get(name) != wanted.get(name))


def dress(log_dir: Path) -> None:
    """Odd modes, owners where that is allowed, and times with nanoseconds for everything."""
    paths = [*log_dir.rglob("*")]
    for number, path in enumerate(sorted(paths, key=lambda path: -len(path.parts))):
        if path.is_file():
            path.chmod(0o600 | (number * 8) % 0o100)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65533)
        time_ns = path.stat().st_mtime_ns // 1_000_000 * 1_000_000 + number + 1
        os.utime(path, ns=(time_ns, time_ns))


def kept(log_dir: Path) -> list[str]:
    """Names of all that is kept for undo."""
    return sorted(path.name for path in log_dir.rglob("*.undo"))
