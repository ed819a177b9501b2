"""Files that are gone from a log dir while a process of this machine holds them open: their space
is not free, whatever the directory shows.

Only Linux tells, and only of processes that this user may look at; nothing is found elsewhere.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.checking.finding import Finding
from kafkalog.texts import format_bytes

_GONE = " (deleted)"
_KIND = "deleted-still-open"


def find_open_files(log_dirs: Sequence[str], proc: Path = Path("/proc")) -> Iterator[Finding]:
    """A finding for each process and log dir."""
    held: dict[tuple[str, int], dict[tuple[int, int], tuple[str, int]]] = defaultdict(dict)
    for process in _numbered(proc):
        for link in _links(process):
            for log_dir in log_dirs:
                if link[0].startswith(f"{log_dir}{os.sep}"):
                    held[log_dir, int(process.name)][link[2]] = link[0], link[1]
    for (log_dir, pid), files in sorted(held.items()):
        size = sum(size for _, size in files.values())
        names = sorted(path for path, _ in files.values())
        yield Finding(
            _KIND,
            ALL_KINDS[_KIND].severity,
            f"process {pid} holds {len(files)} deleted files of {format_bytes(size)} open, as "
            f"{Path(names[0]).relative_to(log_dir)}: no audit of the directory counts them",
            names[0],
            log_dir=log_dir,
        )


def _numbered(proc: Path) -> list[Path]:
    try:
        return [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _links(process: Path) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """(path without the mark, bytes, identity) of deleted files that a process has open."""
    try:
        # Names, not a path each: a broker has hundreds of thousands.
        descriptors = os.listdir(process / "fd")  # noqa: PTH208
    except OSError:
        return
    for descriptor in descriptors:
        try:
            target = os.readlink(f"{process}/fd/{descriptor}")  # noqa: PTH115
            if target.endswith(_GONE):
                stat = Path(process, "fd", descriptor).stat()
                yield target.removesuffix(_GONE), stat.st_size, (stat.st_dev, stat.st_ino)
        except OSError:
            continue
