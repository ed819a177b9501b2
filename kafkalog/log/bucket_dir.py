"""A log dir in a bucket: copied there as it lay on a broker's disk, or a part of it.

    PLACE/orders-0/00000000000000000000.log …    PLACE is a log dir
    PLACE/00000000000000000000.log …             PLACE is a partition's directory, by its name
    PLACE/00000000000000000000.log               PLACE/….log is named: that segment alone

As on a disk, checkpoints and `meta.properties` lie beside the directories of partitions; where they
were not copied, what they say is not known.
"""

from __future__ import annotations

from pathlib import Path

from kafkalog.errors import InvalidConfigError
from kafkalog.format.file_names import REMOTE_INDEX_CACHE_DIR, parse_file_name
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.listing import Entry, entries_in
from kafkalog.log.log_dir_files import CHECKPOINT_FILES
from kafkalog.log.topic_partition import parse_partition_dir_name


def bucket_partition_dirs(uri: str) -> list[tuple[Path, str | None]]:
    """(partition directory, name of the one file to look at or None), as paths that have one of
    the URI's slashes. InvalidConfigError for a place where nothing of a log lies,
    RemoteStorageError."""
    path = Path(uri)
    if path.suffix == ".log":
        if parse_file_name(path.name) is None:
            reason = "not a segment: its name is its base offset in 20 digits"
            raise InvalidConfigError(reason, path=uri)
        _refuse_absent(uri, path.name)
        return [(path.parent, path.name)]
    try:
        entries = entries_in(uri)
    except FileNotFoundError:
        raise InvalidConfigError("nothing is there", path=uri) from None
    if _is_partition_dir(path, entries):
        return [(path, None)]
    found = [
        path / entry.name
        for entry in entries
        if entry.is_dir()
        and entry.name != REMOTE_INDEX_CACHE_DIR
        and parse_partition_dir_name(entry.name) is not None
    ]
    if not found and not _has_files_of_log_dir(entries):
        shown = ", ".join(entry.name for entry in entries[:3])
        raise InvalidConfigError(
            f"no log dir: neither a partition's directory nor {META_PROPERTIES_FILE} is there, but"
            f" {shown}; segments that a broker tiered are read with its log dir, and remoteDir"
            " (--remote-dir), or without it by remoteLayout (--remote-layout)",
            path=uri,
        )
    return [(directory, None) for directory in found]


def _is_partition_dir(path: Path, entries: list[Entry]) -> bool:
    """By its name and what lies in it: a bucket may well be called `disk-1`."""
    if parse_partition_dir_name(path.name) is None or _has_files_of_log_dir(entries):
        return False
    return any(entry.is_file() and parse_file_name(entry.name) is not None for entry in entries)


def _has_files_of_log_dir(entries: list[Entry]) -> bool:
    names = {META_PROPERTIES_FILE, *CHECKPOINT_FILES}
    return any(entry.is_file() and entry.name in names for entry in entries)


def _refuse_absent(uri: str, name: str) -> None:
    try:
        names = {entry.name for entry in entries_in(uri.rpartition("/")[0])}
    except FileNotFoundError:
        names = set()
    if name not in names:
        raise InvalidConfigError("no such object", path=uri)
