"""Putting verified segments in place of their sources, in the order Kafka's own cleaner does.
Wherever a step relies on the one before there is a sync: of what was not synced a power cut may
leave any part. Steps 3 to 5 are values, see steps.py. Per partition, once every group is written,
synced and verified:

    1  the swap record is written and synced (which outputs replace which sources), the sources get
       their second names where the run can be undone (replacement.py)
       scratch names → `.cleaned`         a loader that finds one undoes all from its offset on
       directory synced
    2  the outputs of other attempts are removed, and what a broker left as `.deleted`, as its
       loader does; it has a second name like the sources
    3  `.cleaned` → `.swap`, of the lowest segment last
       directory synced before the very last one, and after it
       no `.cleaned` and a `.swap`: a loader completes it, so from here on all groups are new
    4  sources removed, ascending         log, index, timeindex, txnindex where there is one
       directory synced
    5  `.swap` → final name, ascending: each `.log`, and the directory synced; then the indexes
       directory synced
    6  snapshots removed at base offsets that are no segments any more

last:

    7  where the task may be executed again the done record is written; the swap record becomes the
       record of what is kept, or goes

Dying anywhere leaves what a broker's loader finishes or undoes by itself.
`resolve_interrupted_swap` does the same as the loader and better: the loader drops the sources that
start between the lowest `.swap` and the end of the highest. Sources behind that, which lost all
their batches, it leaves: they go one by one, in ascending order and each for good, so that no value
outlives the tombstone behind it.

Why 5 is as it is: between two `.log.swap` a loader deletes every segment, so none may have its
final name there; and it deletes an index that has its final name before its `.log`.

Undoing a group (undo_swap.py) is the same the other way round: several segments take the place of
one, as when a broker splits one. As long as the lowest of several has a `.cleaned` left, a loader
undoes all of them.

Source: Kafka LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles and
minSwapFileOffset.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    LogFileKind,
    log_file_name,
    producer_snapshot_file_name,
)
from kafkalog.swap.file_facts import facts_of, file_facts
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.replacement import (
    Replacement,
    SwapGroup,
    SwappedFiles,
    begin_replacement,
    remove_left_by_broker,
)
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.steps import REMOVE, RENAME, Step, swap_steps

# The files of a segment that a swap moves, in Kafka's order: the `.log` first.
SEGMENT_KINDS = (
    LogFileKind.LOG,
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)


def swap_group(group: FinishedGroup) -> SwapGroup:
    """What the swap record says of a finished group for a recovery."""
    return SwapGroup(group.base_offset, group.sources, group.fingerprint)


def swapped_files(
    group: FinishedGroup, directory: str, present: Collection[str] | None = None
) -> SwappedFiles:
    """All files of both sides, as they are now. `present`: see `existing_files`."""
    gone = [source for source in group.sources if source != group.base_offset]
    names = [
        *existing_files(directory, group.sources, SEGMENT_KINDS, present),
        *existing_files(directory, gone, (LogFileKind.PRODUCER_SNAPSHOT,), present),
    ]
    # The checksum of each `.log` was computed while it was read for the rewrite: to read gigabytes
    # again for it would take as long as the compaction.
    logs = {log_file_name(base): crc for base, crc in group.checksums}
    return SwappedFiles(
        kept=facts_of(directory, names, logs),
        made=tuple(file_facts(file.path, file.name, file.checksum) for file in group.outputs),
    )


def swap_groups(
    scratch: Scratch, record: Replacement, finished: Sequence[FinishedGroup], files: LocalFiles
) -> None:
    """Steps 1 to 6 for all groups. The caller holds the partition's lock and has checked that
    nothing changed.
    """
    directory = scratch.directory
    begin_replacement(scratch, record, files, cleaned_names(directory, finished))
    # From here on nobody else may finish: what other attempts of the same task wrote goes.
    own = {output.path.rpartition("/")[2] for group in finished for output in group.outputs}
    present = set(list_names(directory))
    remove_other_attempts(scratch, record.attempt_id, files, own, present)
    remove_left_by_broker(scratch, record, files)
    # All groups in one swap: a group by itself could be finished when a crash undoes the next one,
    # and a key's tombstone and its older value may be in different groups.
    sources = [source for group in finished for source in group.sources]
    # All groups in one sequence: their `.cleaned` become `.swap` from the last to the first, see
    # `steps`.
    steps = swap_steps(
        [output.name for group in reversed(finished) for output in group.outputs],
        list(existing_files(directory, sources, SEGMENT_KINDS, present)),
        max(group.next_offset for group in finished),
    )
    take_steps(directory, steps, files)
    remove_snapshots(directory, sources, files, present)


def cleaned_names(directory: str, finished: Iterable[FinishedGroup]) -> list[tuple[str, str]]:
    """Where each output lies, and its name as `.cleaned`."""
    return [
        (output.path, path_in(directory, output.name + CLEANED_SUFFIX))
        for group in finished
        for output in group.outputs
    ]


def take_steps(directory: str, steps: Iterable[Step], files: LocalFiles) -> None:
    """Take the steps in a partition directory."""
    front = path_in(directory, "")
    for action, source, target in steps:
        if action == RENAME:
            files.rename(front + source, front + target)
        elif action == REMOVE:
            files.remove(front + source)
        else:
            files.sync_directory(directory)


def remove_snapshots(
    directory: str,
    base_offsets: Iterable[int],
    files: LocalFiles,
    present: Collection[str] | None = None,
) -> None:
    """Remove the producer snapshots at those of these offsets where no segment starts any more.
    `present`: the names in the directory, where they are listed already.
    """
    for base_offset in base_offsets:
        name = producer_snapshot_file_name(base_offset)
        if present is not None and name not in present:
            continue
        # Where a segment begins a broker may need the snapshot to start from.
        if not os.path.lexists(path_in(directory, log_file_name(base_offset))):
            files.remove(path_in(directory, name))


def remove_other_attempts(
    scratch: Scratch,
    attempt_id: str,
    files: LocalFiles,
    outputs: Collection[str] = (),
    present: Collection[str] | None = None,
) -> None:
    """Remove outputs that other executions of the same task left or are still writing, but for
    these names. `present`: the names in the directory, where they are listed already.
    """
    others = scratch.swap_record, scratch.done_record, scratch.lock, scratch.healing
    kept = {path.rpartition("/")[2] for path in others}
    kept.update(outputs)
    # By the attempt's part of the name: what this very attempt is about to move must not go.
    own = scratch.output(attempt_id, "").rpartition("/")[2].removesuffix(".tmp")
    for name in list_names(scratch.directory) if present is None else sorted(present):
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
    directory: str,
    base_offsets: Sequence[int],
    kinds: Sequence[LogFileKind],
    present: Collection[str] | None = None,
) -> Iterator[str]:
    """Names of the files of these segments that are there, segment by segment in offset order.
    `present`: the names in the directory, where they are listed already.
    """
    for base_offset in sorted(base_offsets):
        digits = f"{base_offset:020d}"
        for kind in kinds:
            name = digits + kind
            if os.path.lexists(path_in(directory, name)) if present is None else name in present:
                yield name
