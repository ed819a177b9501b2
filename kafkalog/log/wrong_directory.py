"""A path that is no log dir: empty, not mounted, or another directory.

A job that finds nothing there is not "done, nothing to report": a lost mount leaves an empty
directory behind. What a log dir must have is a partition's directory or `meta.properties`, which
formatting writes and no broker starts without; a new one has the latter alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kafkalog.errors import InvalidConfigError
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    is_of_kafka_0_7,
    parse_file_name,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.remote.stores import bucket_uri

_OWN_FILES = (PARTITION_METADATA_FILE, LEADER_EPOCH_CHECKPOINT_FILE)
_SHOWN = 3
# As plug-ins for remote storage name a segment: BASE_OFFSET-SEGMENT_ID.log.
_REMOTE_LOG = re.compile(r"\d{20}-[A-Za-z0-9_-]{22}\.log", re.ASCII)
_LOOKED_AT = 100
# As a partition of a topic "version" would be called.
_ZOOKEEPER_DIR = "version-2"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OF_ZOOKEEPER = re.compile(r"(log|snapshot)\.[0-9a-f]+(\.(gz|snappy))?")


def refuse_uri(path: str, *, reads_buckets: bool) -> None:
    """InvalidConfigError for what is no path of this machine, nor of a store that is read, as
    `ftp://…`; without `reads_buckets` for every URI."""
    found = _URI.match(path)
    if found is None:
        return
    if not reads_buckets and bucket_uri(path) is not None:
        raise InvalidConfigError(
            "a log dir in a bucket can be read, and not by this: it takes a local or mounted"
            " directory",
            path=path,
        )
    if bucket_uri(path) is None:
        raise InvalidConfigError(
            f"{found[1]}:// is not read here: a log dir is a local or mounted directory, or in a"
            " bucket (s3://, gs://, az://, https://) or HDFS (hdfs://)",
            path=path,
        )


def refuse_wrong_directory(path: Path) -> None:
    """InvalidConfigError for a directory with neither a partition nor `meta.properties`, with the
    log dirs one level below it; one that cannot be listed is left to whoever lists it.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(path))
    except OSError:
        return
    if _is_log_dir(path, names) or _is_partition(path, names):
        return
    if remote := _remote_storage(path, names):
        raise InvalidConfigError(
            f"remote storage of tiered topics ({remote}), no log dir: its segments are read with"
            " the log dir of the broker that tiered them, which has the rest, and remoteDir; or"
            " without it by remoteLayout (--remote-layout)",
            path=str(path),
        )
    below = list(_log_dirs_below(path, names))
    shown = ", ".join(map(str, below[:_SHOWN])) + (", …" if len(below) > _SHOWN else "")
    hint = "" if names else "; the directory is empty"
    if below:
        hint = f"; it is one level too high: did you mean {shown}?"
    elif is_zookeeper_dir(path):
        hint = "; it is a ZooKeeper's dataDir: --zookeeper-dir takes it, beside a log dir"
    raise InvalidConfigError(
        f"no log dir: it has neither a partition's directory nor {META_PROPERTIES_FILE}{hint}",
        path=str(path),
    )


def is_zookeeper_dir(path: Path) -> bool:
    """Whether it is a ZooKeeper's dataDir, or the `version-2` in it."""
    for directory in (path, path / _ZOOKEEPER_DIR):
        try:
            if any(_OF_ZOOKEEPER.fullmatch(file.name) for file in directory.iterdir()):
                return True
        except OSError:
            continue
    return False


def _remote_storage(path: Path, names: list[str]) -> str | None:
    """A segment that a broker put here: its name has the segment's id behind the offset."""
    for pattern in ("*.log", "*/*.log", "*/*/*.log"):
        for found in islice(path.glob(pattern), _LOOKED_AT):
            if _REMOTE_LOG.fullmatch(found.name):
                return str(found.relative_to(path))
    return None


def _is_log_dir(path: Path, names: list[str]) -> bool:
    return META_PROPERTIES_FILE in names or any(
        parse_partition_dir_name(name) is not None
        and (path / name).is_dir()
        and not (path / name / META_PROPERTIES_FILE).exists()  # a log dir may be called broker-1
        and not (name == _ZOOKEEPER_DIR and is_zookeeper_dir(path))
        for name in names
    )


def _is_partition(path: Path, names: list[str]) -> bool:
    """A mount point may well be called `disk-1`: an empty one counts within a log dir only."""
    if parse_partition_dir_name(path.resolve().name) is None:
        return False
    if any(name in _OWN_FILES or parse_file_name(name) is not None for name in names):
        return True
    if any(is_of_kafka_0_7(name) for name in names):  # which its file names show
        return True
    return (path.resolve().parent / META_PROPERTIES_FILE).exists()


def _log_dirs_below(path: Path, names: list[str]) -> Iterator[Path]:
    for name in names:
        try:
            inside = [entry.name for entry in os.scandir(path / name)]
        except OSError:  # a file, or not to be read
            continue
        if META_PROPERTIES_FILE in inside or _has_partition(path / name, inside):
            yield path / name


def _has_partition(path: Path, names: list[str]) -> bool:
    """Whether a directory has one with a partition's files: `/etc/gtk-3.0` has the name alone."""
    named = (name for name in names if parse_partition_dir_name(name) is not None)
    for name in islice(named, _LOOKED_AT):
        try:
            files = [entry.name for entry in os.scandir(path / name)]
        except OSError:
            continue
        if any(file in _OWN_FILES or parse_file_name(file) is not None for file in files):
            return True
    return False
