"""One partition directory: its segments, what lies beside them, and the offsets a broker would
load.

The log end is one past the last whole batch of the active segment, found by scanning headers from
the last entry of its offset index; where that entry leads nowhere sensible the whole segment is
scanned, and behind damage the log goes on with the next sound batch. The log start is the
checkpointed one or the first base, whichever is higher.

Nothing in the directory says "this partition is tiered". A broker writes a log start below the
first local segment only for tiered partitions, and one equal to it only for them as well, so such a
line may mean remote segments (the latter only where the broker's remote index cache is there too).
It may be stale as well: the file is written once a minute, and a broker that dies after retention
deleted segments leaves the line of before. Only the topic's `remote.storage.enable` tells which;
without it no plan touches the partition, with it a stale line is raised to the first segment, as a
broker's loader does.

A broker follows symbolic links, of the directory and of files, and so do readers. Nothing is
changed through them: the file at the other end may be somebody else's, on another disk.

Source: Kafka LogLoader, LogSegment, LazyIndex; LogManager.checkpointLogStartOffsetsInDir.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kafkalog.errors import CorruptIndexError, CorruptRecordError, KafkaLogError
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LIVE_SUFFIX,
    OF_KAFKA_0_7,
    PARTITION_METADATA_FILE,
    REMOTE_INDEX_CACHE_DIR,
    SWAP_SUFFIX,
    LogFileKind,
    is_of_kafka_0_7,
    parse_file_name,
)
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, entry_timestamp
from kafkalog.log.index_tail import IndexTail, read_index_tail
from kafkalog.log.inventory import (
    DeletedFile,
    FileIdentity,
    PartitionCheckpoints,
    PartitionInventory,
    PartitionKind,
    SegmentInfo,
)
from kafkalog.log.known_directory import KnownDirectory, directory_digest
from kafkalog.log.listing import Entry, entries_in, path_text
from kafkalog.log.log_dir_files import LogDirFiles
from kafkalog.log.segment_headers import HeaderScan, scan_headers
from kafkalog.log.segment_span import end_behind_damage
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.small_files import read_small_file, size_of
from kafkalog.log.storage import identity_of
from kafkalog.log.topic_partition import PartitionDirName, TopicPartition, parse_partition_dir_name
from kafkalog.remote.paths import beside

_STATES = {
    LIVE_SUFFIX: "live",
    CLEANED_SUFFIX: "cleaned",
    SWAP_SUFFIX: "swap",
    DELETED_SUFFIX: "deleted",
}
# What a broker reads a number in front of, and fails on where there is none (format.md 1.6).
NUMBERED_SUFFIXES = (
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    CLEANED_SUFFIX,
    SWAP_SUFFIX,
)
_INDEX_KINDS = (
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)

FileKey = tuple[LogFileKind, int, str]
Files = Mapping[FileKey, Entry]


def read_partition_dir(
    path: Path,
    log_dir: LogDirFiles,
    only_files: Collection[str] | None = None,
    known: Mapping[str, KnownDirectory] | None = None,
    digest: str = "",
) -> PartitionInventory:
    """The facts of the partition directory `path`, whose log dir was read into `log_dir`.

    With `only_files` just those segments are listed, and the partition cannot be changed. With
    `known` the directory gets a digest (`digest`, if it was made just now, and not by a link), and
    where an earlier run has seen the same no file of it is opened. OSError if the directory cannot
    be listed; all else that is wrong is in `problems`.
    """
    problems = list(log_dir.problems)
    name, place = _name_of(path, problems, may_be_link=not digest), path_text(path)
    entries = entries_in(path)
    if known is not None and not digest:
        # The digest is over names, sizes and times of all entries: where an earlier run saw the
        # same, its facts hold and no file is opened.
        digest = directory_digest(entries)
        seen = seen_before(known, str(path), digest)
        if seen is not None and only_files is None:
            return _as_known(place, name, log_dir, seen, problems)
    files, leftovers = _list_files(entries, problems)
    segments = _segments(files, LIVE_SUFFIX)
    checkpoints = log_dir.partition_checkpoints(name.topic_partition)
    first_base = segments[0].base_offset if segments else 0
    log_start, has_remote_segments = _log_start(log_dir, checkpoints, first_base)
    log_end = _log_end_offset(segments[-1], files, problems) if segments else log_start
    _check_end(log_end, log_start, problems)
    if only_files is not None:
        segments = tuple(s for s in segments if Path(s.path).name in only_files)
        problems.append("opened by its .log files, not as a whole")
    return PartitionInventory(
        topic_partition=name.topic_partition,
        kind=name.kind,
        path=place,
        log_dir=log_dir.place,
        directory_id=log_dir.meta.directory_id if log_dir.meta else None,
        dir_device=log_dir.device,
        dir_inode=log_dir.inode,
        topic_id=_topic_id(f"{path}/{PARTITION_METADATA_FILE}", problems),
        segments=segments,
        other_segments=_other_segments(files),
        leftovers=leftovers,
        log_start_offset=log_start,
        log_end_offset=log_end,
        checkpoints=checkpoints,
        snapshot_offsets=_snapshot_offsets(files),
        has_remote_segments=has_remote_segments,
        problems=tuple(problems),
        digest=digest,
        deleted_files=_deleted_files(files),
        is_whole=only_files is None,
        orphan_indexes=_orphan_indexes(files),
    )


def known_partition_dir(
    path: str, log_dir: LogDirFiles, known: KnownDirectory
) -> PartitionInventory:
    """The same of a directory that is as an earlier run saw it, by a digest made just now."""
    problems = list(log_dir.problems)
    return _as_known(path, _named(path.rpartition("/")[2], problems), log_dir, known, problems)


def _as_known(
    path: str,
    name: PartitionDirName,
    log_dir: LogDirFiles,
    known: KnownDirectory,
    problems: list[str],
) -> PartitionInventory:
    checkpoints = log_dir.partition_checkpoints(name.topic_partition)
    log_start, has_remote_segments = _log_start(log_dir, checkpoints, known.first_offset)
    _check_end(known.log_end_offset, log_start, problems)
    return PartitionInventory(
        topic_partition=name.topic_partition,
        kind=name.kind,
        path=path,
        log_dir=log_dir.place,
        directory_id=log_dir.meta.directory_id if log_dir.meta else None,
        dir_device=log_dir.device,
        dir_inode=log_dir.inode,
        topic_id=known.topic_id,
        segments=known.segments,
        other_segments=(),
        leftovers=(),
        log_start_offset=log_start,
        log_end_offset=known.log_end_offset,
        checkpoints=checkpoints,
        snapshot_offsets=known.snapshot_offsets,
        has_remote_segments=has_remote_segments,
        problems=tuple(problems),
        digest=known.digest,
    )


def seen_before(
    known: Mapping[str, KnownDirectory] | None, path: str, digest: str
) -> KnownDirectory | None:
    """What an earlier run saw of a directory that is now as it was then."""
    own = known.get(path) if known is not None and digest else None
    return own if own is not None and own.digest == digest else None


def _log_start(
    log_dir: LogDirFiles, checkpoints: PartitionCheckpoints, first_base: int
) -> tuple[int, bool]:
    """Where the log starts, and whether it may be in remote storage.

    A log start above the first segment is a deletion that was asked for and not carried out yet.
    One below it is stale, unless older segments lie in remote storage.
    """
    line = checkpoints.log_start
    if _has_remote_segments(log_dir.path, line, first_base):
        return line or 0, True
    return max(line or 0, first_base), False


def _check_end(log_end: int, log_start: int, problems: list[str]) -> None:
    if log_end < log_start:
        problems.append(f"the log ends at {log_end}, before its start {log_start}")


def _name_of(path: Path, problems: list[str], *, may_be_link: bool) -> PartitionDirName:
    """Whose directory it is, by its name."""
    name = _named(path.name, problems)
    # Asked of each partition: pathlib takes ten times as long.
    if may_be_link and os.path.islink(path):  # noqa: PTH114
        problems.append(f"a link to {path.resolve()}: it is read, and changed by its broker only")
    return name


def _named(name: str, problems: list[str]) -> PartitionDirName:
    found = parse_partition_dir_name(name)
    if found is None:
        problems.append(f"{name} is not the name of a partition's directory")
        return PartitionDirName(TopicPartition(name, -1), PartitionKind.STRAY)
    return found


def _other_segments(files: Files) -> tuple[SegmentInfo, ...]:
    """What is being cleaned, swapped or deleted."""
    present = {suffix for _, _, suffix in files}
    others = (suffix for suffix in _STATES if suffix != LIVE_SUFFIX and suffix in present)
    return tuple(segment for suffix in others for segment in _segments(files, suffix))


def _deleted_files(files: Files) -> tuple[DeletedFile, ...]:
    deleted = [entry for (_, _, suffix), entry in files.items() if suffix == DELETED_SUFFIX]
    return tuple(
        DeletedFile(entry.name, entry.stat(follow_symlinks=False).st_size)
        for entry in sorted(deleted, key=lambda entry: entry.name)
    )


def _orphan_indexes(files: Files) -> tuple[int, ...]:
    """Base offsets of live index files without their live `.log`."""
    return tuple(
        sorted(
            {
                offset
                for kind, offset, suffix in files
                if kind in _INDEX_KINDS
                and suffix == LIVE_SUFFIX
                and (LogFileKind.LOG, offset, LIVE_SUFFIX) not in files
            }
        )
    )


def _list_files(entries: Iterable[Entry], problems: list[str]) -> tuple[Files, tuple[str, ...]]:
    """The directory's Kafka files by kind, offset and suffix; the names an interrupted run left."""
    files: dict[FileKey, Entry] = {}
    leftovers = []
    for entry in entries:
        name = parse_file_name(entry.name)
        if not entry.is_file():
            # A broker takes what ends so for a file of a segment, and fails at what is none.
            if entry.name.endswith(NUMBERED_SUFFIXES):
                problems.append(f"{entry.name} is not a regular file")
        elif name is not None:
            files[name.kind, name.offset, name.suffix] = entry
            if entry.is_symlink() and entry.name.endswith(NUMBERED_SUFFIXES):
                problems.append(f"{entry.name} is a symbolic link")
        elif entry.name.endswith(NUMBERED_SUFFIXES):
            problems.append(f"{entry.name}: a broker does not load a file of this name")
        elif is_of_kafka_0_7(entry.name):
            problems.append(f"{entry.name}: {OF_KAFKA_0_7}")
        if entry.name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) or _is_ours(entry.name):
            leftovers.append(entry.name)
    return files, tuple(sorted(leftovers))


def _is_ours(name: str) -> bool:
    return name.startswith("kafkalog-") and name.endswith(".tmp")


def _offsets(files: Files, wanted_kind: LogFileKind, wanted_suffix: str) -> list[int]:
    return [
        offset for kind, offset, suffix in files if kind is wanted_kind and suffix == wanted_suffix
    ]


def _snapshot_offsets(files: Files) -> tuple[int, ...]:
    return tuple(sorted(_offsets(files, LogFileKind.PRODUCER_SNAPSHOT, "")))


def _segments(files: Files, suffix: str) -> tuple[SegmentInfo, ...]:
    bases = sorted(_offsets(files, LogFileKind.LOG, suffix))
    return tuple(
        _segment(files, base, suffix, is_active=suffix == LIVE_SUFFIX and base == bases[-1])
        for base in bases
    )


def _segment(files: Files, base_offset: int, suffix: str, *, is_active: bool) -> SegmentInfo:
    entry = files[LogFileKind.LOG, base_offset, suffix]
    stat = entry.stat()
    transaction_index = files.get((LogFileKind.TRANSACTION_INDEX, base_offset, suffix))
    time_index = _tail(files, LogFileKind.TIME_INDEX, base_offset, suffix)
    return SegmentInfo(
        base_offset=base_offset,
        path=entry.path,
        state=_STATES[suffix],
        size_in_bytes=stat.st_size,
        identity=FileIdentity(stat.st_size, stat.st_mtime_ns, stat.st_ino),
        is_active=is_active,
        offset_index_bytes=_tail(files, LogFileKind.OFFSET_INDEX, base_offset, suffix).valid_bytes,
        time_index_bytes=time_index.valid_bytes,
        txn_index_bytes=transaction_index.stat().st_size if transaction_index else 0,
        has_snapshot=(LogFileKind.PRODUCER_SNAPSHOT, base_offset, suffix) in files,
        # Without an entry, or with a negative one, Kafka goes by the file's time.
        largest_timestamp_ms=entry_timestamp(time_index.last_entry),
        modification_time_ms=stat.st_mtime_ns // 1_000_000,
    )


def describe_segment(path: str, base_offset: int, state: str) -> SegmentInfo:
    """A segment by the path of its `.log`, with the indexes beside it, here or in a bucket; not
    active. OSError, RemoteStorageError."""
    identity = identity_of(path)
    time_index = read_index_tail(beside(path, ".timeindex"), TIME_INDEX_ENTRY_BYTES)
    offset_index = read_index_tail(beside(path, ".index"), OFFSET_INDEX_ENTRY_BYTES)
    transaction_index = size_of(beside(path, ".txnindex"))
    return SegmentInfo(
        base_offset=base_offset,
        path=path,
        state=state,
        size_in_bytes=identity.size,
        identity=identity,
        is_active=False,
        offset_index_bytes=offset_index.valid_bytes,
        time_index_bytes=time_index.valid_bytes,
        txn_index_bytes=transaction_index or 0,
        has_snapshot=size_of(beside(path, ".snapshot")) is not None,
        largest_timestamp_ms=entry_timestamp(time_index.last_entry),
        modification_time_ms=identity.mtime_ns // 1_000_000,
    )


def _tail(files: Files, kind: LogFileKind, base_offset: int, suffix: str) -> IndexTail:
    entry = files.get((kind, base_offset, suffix))
    if entry is None:
        return IndexTail()
    is_offset_index = kind is LogFileKind.OFFSET_INDEX
    entry_bytes = OFFSET_INDEX_ENTRY_BYTES if is_offset_index else TIME_INDEX_ENTRY_BYTES
    return read_index_tail(entry.path, entry_bytes)


def _log_end_offset(active: SegmentInfo, files: Files, problems: list[str]) -> int:
    scan = _scan_from_last_index_entry(active, files)
    if scan is None:
        scan = scan_headers(active.path)
    end = int(scan.rows["last_offset"][-1]) + 1 if scan.rows.size else active.base_offset
    if scan.rows.size and end <= active.base_offset:
        # No checksum covers a base offset: a damaged one says anything.
        reason = f"the last batch ends at {end - 1}, its segment begins at {active.base_offset}"
        position = int(scan.rows["position"][-1])
        problems.append(str(CorruptRecordError(reason, path=active.path, position=position)))
        end = active.base_offset
    tail_end = scan.valid_bytes + scan.trailing_bytes
    tail = Tail(scan.valid_bytes, tail_end, scan.status, end - 1)
    error = scan.error or tail_error(active.path, tail, SegmentEnds.of(active))
    if error is None:
        return end
    problems.append(str(error))
    end, _ = end_behind_damage(active, scan, end)
    return end


def _scan_from_last_index_entry(active: SegmentInfo, files: Files) -> HeaderScan | None:
    """None if there is no entry, or if it does not lead to batches that fit it."""
    tail = _tail(files, LogFileKind.OFFSET_INDEX, active.base_offset, LIVE_SUFFIX)
    try:
        index = parse_offset_index(tail.last_entry, active.base_offset)
    except CorruptIndexError:
        return None
    if not len(index) or int(index.positions[-1]) >= active.size_in_bytes:
        return None
    scan = scan_headers(active.path, int(index.positions[-1]))
    # An entry holds the last offset of what was appended at its position: an old index kept beside
    # another log would point anywhere.
    fits = scan.rows.size and int(scan.rows["base_offset"][0]) <= index.last_offset
    return scan if fits and scan.error is None else None


def _has_remote_segments(log_dir: Path, log_start: int | None, first_base: int) -> bool:
    if log_start is None or log_start > first_base:
        return False
    return log_start < first_base or (log_dir / REMOTE_INDEX_CACHE_DIR).is_dir()


def _topic_id(path: str, problems: list[str]) -> str | None:
    try:
        return parse_partition_metadata(read_small_file(path), path)
    except FileNotFoundError:
        return None
    except (OSError, KafkaLogError) as error:
        problems.append(str(error))
        return None
