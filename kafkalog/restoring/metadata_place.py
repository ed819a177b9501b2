"""One directory in which a run writes files: a log dir with its `bootstrap.checkpoint` and perhaps
its checkpoints, `__cluster_metadata-0` with all that is in it, or a partition that is new.

Of a metadata log snapshots go first, then segments from the first on, then the rest: a log that
begins behind its start and has no snapshot is one that no controller starts on, so that none ever
begins with half of what was known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.file_names import (
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT_FILE,
    LIVE_SUFFIX,
    PARTITION_METADATA_FILE,
    QUORUM_STATE_FILE,
    LogFileKind,
    parse_file_name,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.runs.durable import make_directories
from kafkalog.swap.file_facts import facts_with_checksum
from kafkalog.swap.journal import ATTACH
from kafkalog.swap.local_files import LocalFiles, give_to_owner_of, list_names, path_in
from kafkalog.swap.replacement import (
    Replacement,
    begin_replacement,
    end_replacement,
)
from kafkalog.swap.scratch import Scratch, new_attempt_id

_METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
_OTHERS = (LEADER_EPOCH_CHECKPOINT_FILE, PARTITION_METADATA_FILE, QUORUM_STATE_FILE)


def snapshot_name(end_offset: int, epoch: int) -> str:
    """Of a snapshot of the metadata log."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


FIRST_SNAPSHOT = snapshot_name(0, 0)


@dataclass(frozen=True, slots=True)
class MetadataPlace:
    """A directory of a log dir, and the bytes of the files that are written there, by name, in
    their order. name: of the partition, also of a log dir that of the metadata.
    """

    path: str
    log_dir: str
    writes: Mapping[str, bytes]
    name: TopicPartition = _METADATA

    @property
    def removes(self) -> list[str]:
        """Names of the files that go, in their order."""
        if Path(self.path).name != METADATA_DIR or not Path(self.path).is_dir():
            return []
        names = [n for n in list_names(self.path) if n not in self.writes and _is_of_log(n)]
        return sorted(names, key=_order)


def _is_of_log(name: str) -> bool:
    file = parse_file_name(name)
    return name in _OTHERS or (file is not None and file.suffix in (LIVE_SUFFIX, DELETED_SUFFIX))


def _order(name: str) -> tuple[int, str]:
    file = parse_file_name(name)
    if file is None:
        return 3, name
    order = {LogFileKind.METADATA_SNAPSHOT: 0, LogFileKind.LOG: 1}
    return order.get(file.kind, 2), name


def replace_files(
    place: MetadataPlace, run_id: str, files: LocalFiles, *, keeps_undo: bool
) -> Replacement:
    """Do it, with second names and a record of what is replaced. OSError, LogCleaningRefusedError
    as of `begin_replacement`.
    """
    record = _begin(place, run_id, files, keeps_undo=keeps_undo)
    for each in place.removes:
        files.remove(path_in(place.path, each))
        files.sync_directory(place.path)
    _put(place, place.writes, record, files)
    _end(place, record, files)
    return record


def replace_in_all(places: Sequence[MetadataPlace], run_id: str, files: LocalFiles) -> None:
    """The same in several log dirs, kept for undo: no bootstrap.checkpoint is there before what
    lies beside it is in all of them. Nothing is removed.
    """
    records = [_begin(place, run_id, files, keeps_undo=True) for place in places]
    for is_last in (False, True):
        for place, record in zip(places, records, strict=True):
            names = [name for name in place.writes if (name == BOOTSTRAP_FILE) == is_last]
            _put(place, names, record, files)
    for place, record in zip(places, records, strict=True):
        _end(place, record, files)


def _begin(
    place: MetadataPlace, run_id: str, files: LocalFiles, *, keeps_undo: bool
) -> Replacement:
    """Outputs beside, the record, second names."""
    path = Path(place.path)
    if not path.is_dir():
        _make_directory(path)
    mtime_ns = path.stat().st_mtime_ns
    scratch, attempt_id = Scratch(place.path, run_id), new_attempt_id()
    kept, made = [*place.removes], []
    for name, data in place.writes.items():
        output = scratch.output(attempt_id, name)
        is_there = (path / name).exists()
        kept += [name] if is_there else []
        # As the file it replaces, or as the log dir's own: a broker has to be able to read it.
        like = path / name if is_there else Path(place.log_dir, META_PROPERTIES_FILE)
        files.write_new(output, data, like.stat())
        made.append(facts_with_checksum(output, name))
    record = Replacement(
        run_id, ATTACH, attempt_id, keeps_undo, mtime_ns,
        kept=tuple(facts_with_checksum(path_in(place.path, each), each) for each in kept),
        made=tuple(made),
    )  # fmt: skip
    begin_replacement(scratch, record, files)
    return record


def _put(
    place: MetadataPlace, names: Iterable[str], record: Replacement, files: LocalFiles
) -> None:
    scratch = Scratch(place.path, record.run_id)
    for name in names:
        files.rename(scratch.output(record.attempt_id, name), path_in(place.path, name))
        files.sync_directory(place.path)


def _end(place: MetadataPlace, record: Replacement, files: LocalFiles) -> None:
    end_replacement(Scratch(place.path, record.run_id), record, files)
    files.sync_directory(place.path)


def _make_directory(path: Path) -> None:
    make_directories(path)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        give_to_owner_of(fd, str(path.parent))
    finally:
        os.close(fd)
