"""Putting verified segments in place of their sources, in the order Kafka's own cleaner does.

Per partition, once every group is written, synced and verified:

    1  the swap record is written and synced (which outputs replace which sources), and the
       sources get their second names where the run can be undone (replacement.py)
    2  the outputs of other attempts are removed, and what a broker left as `.deleted`: the names
       are needed, and have a second one like the sources

then group by group, in offset order:

    3  scratch names → `.cleaned`         a loader that finds one undoes the group
    4  `.cleaned` → `.swap`, log first    no `.cleaned` and a `.swap`: a loader completes the group
       directory synced                   from here on the group is new
    5  sources → `.deleted`, ascending    log, index, timeindex, txnindex where there is one
    6  `.swap` → final name, log first
       directory synced
    7  `.deleted` removed, and snapshots at base offsets that are no segments any more

last:

    8  the done record is written, the swap record becomes the record of what is kept, or goes

Dying between two groups leaves some groups new and the others old, which is a valid log. Dying
inside a group leaves what a broker's loader finishes or undoes by itself. `recover_partition` does
the same as the loader and better: the loader drops only the sources that start below the swapped
segment's last offset, so when trailing sources lost all their batches it leaves them; the swap
record names them. Sources go in ascending order so that no value outlives the tombstone behind it.

Undoing a group (undo.py) is the same the other way round: several segments take the place of one,
as when a broker splits one. Of several `.cleaned` the highest is renamed first, so that a loader
undoes all of them as long as one is left.

Source: Kafka LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles and
minSwapFileOffset.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaner.local_files import LocalFiles, list_names, path_in
from kafkalog.cleaner.output_segment import OutputFile
from kafkalog.cleaner.replacement import (
    Replacement,
    SwapGroup,
    SwappedFiles,
    begin_replacement,
    facts_of,
    file_facts,
    remove_left_by_broker,
    with_checksums,
)
from kafkalog.cleaner.scratch import Scratch
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    LogFileKind,
    log_file_name,
    producer_snapshot_file_name,
)
from kafkalog.log.json_facts import JsonFacts

# The files of a segment that a swap moves, in Kafka's order: the `.log` first.
SEGMENT_KINDS = (
    LogFileKind.LOG,
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)


_FINGERPRINT_FIELDS = ("position", "base_offset", "last_offset", "size_in_bytes", "crc")


@dataclass(frozen=True, slots=True)
class FinishedGroup(JsonFacts):
    """A verified group, ready to be swapped in. `checksums`: base offset and CRC-32C of each
    source's `.log`.
    """

    base_offset: int
    sources: tuple[int, ...]
    fingerprint: str
    outputs: tuple[OutputFile, ...]
    checksums: tuple[tuple[int, int], ...]

    @property
    def group(self) -> SwapGroup:
        """What the swap record says of it for a recovery."""
        return SwapGroup(self.base_offset, self.sources, self.fingerprint)

    def swapped(self, directory: str) -> SwappedFiles:
        """All files of both sides, as they are now."""
        names = [
            *existing_files(directory, self.sources, SEGMENT_KINDS),
            *existing_files(
                directory,
                [s for s in self.sources if s != self.base_offset],
                (LogFileKind.PRODUCER_SNAPSHOT,),
            ),
        ]
        logs = {log_file_name(base): crc for base, crc in self.checksums}
        return SwappedFiles(
            kept=with_checksums(facts_of(directory, names), logs),
            made=tuple(file_facts(file.path, file.name, file.checksum) for file in self.outputs),
        )


def fingerprint(blocks: Iterable[NDArray[np.void]]) -> str:
    """A digest of a segment's batches from their headers, BATCH_ROW[b] in blocks of any size; the
    CRCs stand for the rest.
    """
    digest = hashlib.sha256()
    for rows in blocks:
        fields = [rows[name] for name in _FINGERPRINT_FIELDS]
        digest.update(np.stack(fields, 1).astype("<i8").tobytes())
    return digest.hexdigest()


def swap_groups(
    scratch: Scratch, record: Replacement, finished: Sequence[FinishedGroup], files: LocalFiles
) -> None:
    """Steps 1 to 7 for all groups. The caller holds the partition's turn and has checked that
    nothing changed.
    """
    begin_replacement(scratch, record, files)
    own = {Path(output.path).name for group in finished for output in group.outputs}
    remove_other_attempts(scratch, record.attempt_id, files, own)
    remove_left_by_broker(scratch, record, files)
    for group in finished:
        for output in group.outputs:
            files.rename(output.path, path_in(scratch.directory, output.name + CLEANED_SUFFIX))
        replaced = list(existing_files(scratch.directory, group.sources, SEGMENT_KINDS))
        swap_in(scratch.directory, [output.name for output in group.outputs], replaced, files)
        remove_snapshots(scratch.directory, group.sources, files)


def swap_in(
    directory: str, names: Sequence[str], replaced: Sequence[str], files: LocalFiles
) -> None:
    """Steps 4 to 7: files that lie there as `.cleaned` take the place of others.

    Of several segments the `names` begin with the last: as long as one `.cleaned` is left a loader
    undoes all of them. They get their final names in ascending order.
    """

    def path(name: str, suffix: str = "") -> str:
        return path_in(directory, name + suffix)

    for name in names:
        files.rename(path(name, CLEANED_SUFFIX), path(name, SWAP_SUFFIX))
    files.sync_directory(directory)
    for name in replaced:
        files.rename(path(name), path(name, DELETED_SUFFIX))
    for name in sorted(names, key=_base_digits):
        files.rename(path(name, SWAP_SUFFIX), path(name))
    files.sync_directory(directory)
    for name in replaced:
        files.remove(path(name, DELETED_SUFFIX))


def _base_digits(name: str) -> str:
    return name.partition(".")[0]


def remove_snapshots(directory: str, base_offsets: Iterable[int], files: LocalFiles) -> None:
    """Remove the producer snapshots at those of these offsets where no segment starts any more."""
    for base_offset in base_offsets:
        if not os.path.lexists(path_in(directory, log_file_name(base_offset))):
            files.remove(path_in(directory, producer_snapshot_file_name(base_offset)))


def remove_other_attempts(
    scratch: Scratch, attempt_id: str, files: LocalFiles, outputs: Collection[str] = ()
) -> None:
    """Remove outputs that other executions of the same task left or are still writing, but for
    these names.
    """
    kept = {Path(path).name for path in (scratch.swap_record, scratch.done_record, scratch.turn)}
    kept.update(outputs)
    own = Path(scratch.output(attempt_id, "")).name.removesuffix(".tmp")
    for name in list_names(scratch.directory):
        if scratch.owns(name) and name not in kept and not name.startswith(own):
            files.remove(path_in(scratch.directory, name))


def remove_attempt(scratch: Scratch, attempt_id: str, files: LocalFiles) -> None:
    """Remove the outputs of one attempt that are not in place."""
    own = Path(scratch.output(attempt_id, "")).stem
    names = list_names(scratch.directory) if Path(scratch.directory).is_dir() else []
    for name in names:
        if name.startswith(own):
            files.remove(path_in(scratch.directory, name))


def existing_files(
    directory: str, base_offsets: Sequence[int], kinds: Sequence[LogFileKind]
) -> Iterator[str]:
    """Names of the files of these segments that are there, segment by segment in offset order."""
    for base_offset in sorted(base_offsets):
        for kind in kinds:
            name = f"{base_offset:020d}{kind}"
            if os.path.lexists(path_in(directory, name)):
                yield name
