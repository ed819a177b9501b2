"""Files of a ZooKeeper server: `<dataDir>/version-2/snapshot.<hex zxid>[.gz|.snappy]`, and
`<dataLogDir>/version-2/log.<hex zxid>`, which is the same directory unless it is configured.

Both kinds are looked for in each directory: older servers let them be mixed. What is not named so,
`.tmp` files of unfinished writes among it, is none of them.

Source: ZooKeeper FileTxnSnapLog, Util.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import InvalidConfigError

VERSION_DIR = "version-2"

_NAME = re.compile(r"(?P<kind>log|snapshot)\.(?P<zxid>[0-9a-f]{1,16})(?:\.(?P<suffix>gz|snappy))?")


@dataclass(frozen=True, slots=True, order=True)
class ZooKeeperFile:
    """A log, named by its first zxid, or a snapshot, named by the last one it has surely."""

    zxid: int
    path: Path
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ZooKeeperDir:
    """The files of one server, each kind in the order of their zxids."""

    paths: tuple[str, ...]
    snapshots: tuple[ZooKeeperFile, ...]
    logs: tuple[ZooKeeperFile, ...]


def parse_name(name: str) -> tuple[str, int, str] | None:
    """(`log` or `snapshot`, zxid, suffix) of a file's name, None for any other file."""
    match = _NAME.fullmatch(name)
    if match is None or (match["kind"] == "log" and match["suffix"]):
        return None
    zxid = int(match["zxid"], 16)
    # Written without leading zeros: another spelling is another program's.
    if match["zxid"] != f"{zxid:x}" or zxid >= 1 << 63:
        return None
    return match["kind"], zxid, match["suffix"] or ""


def open_zookeeper_dir(paths: Iterable[str]) -> ZooKeeperDir:
    """The files below data directories (or their `version-2`) of ONE server.

    InvalidConfigError for a directory without any, or if two of them have the same file: those are
    of two servers, whose ends may differ.
    """
    named = tuple(paths)
    found: dict[str, list[ZooKeeperFile]] = {"log": [], "snapshot": []}
    seen: dict[str, Path] = {}
    for path in named:
        files = list(_files(Path(path)))
        if not files:
            raise InvalidConfigError("no ZooKeeper snapshot and no log", path=path)
        for kind, file in files:
            other = seen.setdefault(file.path.name, file.path)
            if other.resolve() != file.path.resolve():
                raise InvalidConfigError(
                    f"{file.path.name} is also in {other.parent}: give the directories of one "
                    "server only",
                    path=path,
                )
            if other is file.path:
                found[kind].append(file)
    return ZooKeeperDir(named, tuple(sorted(found["snapshot"])), tuple(sorted(found["log"])))


def _files(directory: Path) -> list[tuple[str, ZooKeeperFile]]:
    inner = directory / VERSION_DIR
    files = []
    try:
        for path in (inner if inner.is_dir() else directory).iterdir():
            name = parse_name(path.name)
            if name is not None and path.is_file():
                kind, zxid, suffix = name
                files.append((kind, ZooKeeperFile(zxid, path, suffix)))
    except OSError as error:
        raise InvalidConfigError(error.strerror or str(error), path=str(directory)) from None
    return files
