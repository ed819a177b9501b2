"""Where new segments go instead of into a log dir (`--output`), and what is known of them there.

    OUTPUT/compaction.json       the manifest: what replaces what, sizes, checksums
    OUTPUT/swap.sh               the swap by hand, and its undo
    OUTPUT/orders-3/…            the new segments of a partition under their final names

Nothing in a log dir is changed or made, and no lock is taken: what is written holds for the very
files that were read, which is looked at again in the end.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.cleaning.new_files import can_give_ownership
from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.format.checksum import extend_crc32c
from kafkalog.format.file_names import LogFileKind, log_file_name
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.pace import spend
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.swap import SEGMENT_KINDS, existing_files

_CHUNK_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileDigest(JsonFacts):
    """A file by name, size and the SHA-256 of its bytes, in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WrittenGroup(JsonFacts):
    """A new segment and what it replaces: base offsets, the source segments' files in ascending
    order, the producer snapshots that go with them, the files in the output.
    """

    base_offset: int
    next_offset: int
    replaces: tuple[int, ...]
    sources: tuple[FileDigest, ...]
    snapshots: tuple[FileDigest, ...]
    files: tuple[FileDigest, ...]


class OutputFiles(LocalFiles):
    """New files elsewhere need not belong to the sources' owner, where this process may not give
    them away: whoever swaps them in does.
    """

    def set_owner(self, fd: int, source: os.stat_result) -> None:
        """Give owner, group and mode of the source, or its mode alone."""
        if can_give_ownership(source):
            super().set_owner(fd, source)
        else:
            os.fchmod(fd, source.st_mode & 0o777)


def check_output(output: Path, partitions: Sequence[str], log_dirs: Iterable[str]) -> None:
    """InvalidConfigError unless `output` is a new or empty directory away from all log dirs, these
    and others; `partitions` are the directories whose names it will have.
    """
    place = output.resolve()
    for log_dir in {Path(log_dir).resolve() for log_dir in log_dirs}:
        if place == log_dir or log_dir in place.parents or place in log_dir.parents:
            raise InvalidConfigError(
                f"the output must lie outside of the log dir {log_dir}", path=str(output)
            )
    for parent in (place, *place.parents):
        # Of another broker, or of this one: a directory that is no partition's stops it.
        if os.path.lexists(parent / META_PROPERTIES_FILE):
            raise InvalidConfigError(
                f"the output must lie outside of the log dir {parent}", path=str(output)
            )
    if os.path.lexists(output) and (not output.is_dir() or any(output.iterdir())):
        raise InvalidConfigError("the output is there already and not empty", path=str(output))
    names = [Path(path).name for path in partitions]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidConfigError(f"several directories of one name: {', '.join(twice)}")


def written_group(group: FinishedGroup, directory: str) -> WrittenGroup:
    """The digests of a verified group and of its sources in `directory`, every byte of which is
    read for them.

    LogChangedError if a source has not the bytes that the group was made from.
    """
    checksums = {log_file_name(base): crc for base, crc in group.checksums}
    sources = []
    for name in existing_files(directory, group.sources, SEGMENT_KINDS):
        digest, crc = _digest(path_in(directory, name), name)
        # Digests are of the files as they are now, the group of the files as they were read: the
        # checksum tells whether that is the same. Small files have none and are only digested.
        if crc != checksums.get(name, crc):
            raise LogChangedError("changed while it was compacted", path=path_in(directory, name))
        sources.append(digest)
    gone = [base for base in group.sources if base != group.base_offset]
    snapshots = existing_files(directory, gone, (LogFileKind.PRODUCER_SNAPSHOT,))
    made = []
    for output in group.outputs:
        digest, crc = _digest(output.path, output.name)
        if crc != output.checksum:
            raise LogChangedError("is not what was written", path=output.path)
        made.append(digest)
    return WrittenGroup(
        group.base_offset,
        group.next_offset,
        group.sources,
        tuple(sources),
        tuple(_digest(path_in(directory, name), name)[0] for name in snapshots),
        tuple(made),
    )


def put_out(groups: Sequence[FinishedGroup], directory: str, files: LocalFiles) -> None:
    """Give the verified files their final names in `directory`, where nobody but this run is."""
    for group in groups:
        for output in group.outputs:
            files.rename(output.path, path_in(directory, output.name))
    files.sync_directory(directory)


def _digest(path: str, name: str) -> tuple[FileDigest, int]:
    """The digest of a file, and its CRC-32C."""
    sha256, crc, size = hashlib.sha256(), 0, 0
    with Path(path).open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            spend(len(data))
            sha256.update(data)
            crc = extend_crc32c(crc, data)
            size += len(data)
    return FileDigest(name, size, sha256.hexdigest()), crc
