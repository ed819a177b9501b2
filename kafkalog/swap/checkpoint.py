"""Offset checkpoints of a log dir, changed for some of its partitions.

Written as Kafka does: through a temporary file, synced, renamed. Lines of partitions that are no
longer in the log dir are dropped whenever a file is written. The cleaner's, the first dirty offset
of each compacted partition, comes last in a run: if the process dies before, the next round cleans
from the old offset again, which costs time and changes nothing else. The log start offset comes
before segments go.

A run that can be undone keeps the file it replaces, `kafkalog-RUN-<file>.undo` in the log dir, by a
second name; an empty `kafkalog-RUN-no-<file>.undo` says that there was none (a broker begins with
an empty file). A broker reads directories and its own files there, no others.

Source: Kafka LogCleanerManager.updateCheckpoints, LogManager.checkpointLogStartOffsetsInDir.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.checkpoints import pack_offset_checkpoint, parse_offset_checkpoint
from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name
from kafkalog.swap.file_facts import file_facts
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import keep_file
from kafkalog.swap.scratch import Scratch

# The offset of each (topic, partition) before and after; None is no line.
Changes = Mapping[tuple[str, int], tuple[int | None, int | None]]
# The same of a whole run, which may change a line more than once, in order.
History = Mapping[tuple[str, int], Sequence[tuple[int | None, int | None]]]


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One of the checkpoint files of a log dir, as a run changes it.

    keep_for: the run that keeps the file it replaces, None for none; note: gets the changes
    before they are made.
    """

    log_dir: str
    name: str
    files: LocalFiles
    keep_for: str | None = None
    note: Callable[[str, str, Changes], None] = lambda *_: None

    @property
    def path(self) -> Path:
        return Path(self.log_dir, self.name)

    def update(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Set the offset of these (topic, partition)s, or with None take their line out; keep the
        others. The caller holds the log dir's lock.

        CorruptCheckpointError if the file that is there cannot be understood: it is not replaced.
        """
        found = _entries(self.path)
        changes = {
            partition: (found.get(partition), offset)
            for partition, offset in offsets.items()
            if found.get(partition) != offset
        }
        # A file that says it all already is left alone, with its times and its inode.
        if not changes:
            return
        # Noted in the journal, then the old file kept, then the new one written: undo can take back
        # whatever was begun.
        self.note(self.log_dir, self.name, changes)
        if self.keep_for is not None:
            self._keep(self.keep_for)
        self._write({**_known(found, self.log_dir), **offsets})

    def restore(self, run_id: str, history: History) -> None:
        """Take back what a run changed, line by line, where nobody changed it since; a change that
        was noted and not made is none. If the file then says what it did before the run, it is the
        very one it was.
        """
        kept, none = self._kept(run_id)
        if not (kept.exists() or none.exists()):
            return  # nothing was changed, or it was purged
        self.files.remove(f"{self.path}.tmp")
        found = _entries(self.path)
        left = dict(found)
        # Backwards through the run's changes of this line: each is taken back only if the line
        # still says what that change made it say. A line that a broker wrote since stays.
        for partition, steps in history.items():
            for before, after in reversed(steps):
                if left.get(partition) == after:
                    left.pop(partition, None)
                    left |= {} if before is None else {partition: before}
        was = _entries(kept)
        # If nothing but the run changed the file, the very file comes back, with its inode and
        # times.
        if left != _known(was, self.log_dir):
            if left != found:
                self._write(left)
        elif not kept.exists():
            self.files.remove(str(self.path))
        elif not (self.path.exists() and self.path.samefile(kept)):
            # A link cannot be made over a name that exists, a rename can replace one in one step.
            between = f"{self.path}.tmp"
            self.files.link(str(kept), between)
            self.files.rename(between, str(self.path))
        self.files.sync_directory(self.log_dir)

    def _keep(self, run_id: str) -> None:
        kept, none = self._kept(run_id)
        if kept.exists() or none.exists():
            return  # what was there before the run, not before its last change
        if self.path.exists():
            facts = file_facts(str(self.path), self.name)
            keep_file(str(self.path), str(kept), facts, self.files)
        else:
            os.close(self.files.create(str(none)))
        self.files.sync_directory(self.log_dir)

    def _kept(self, run_id: str) -> tuple[Path, Path]:
        """Where the file from before a run is kept, and what is there if there was none."""
        scratch = Scratch(self.log_dir, run_id)
        return Path(scratch.undo(self.name)), Path(scratch.undo(f"no-{self.name}"))

    def _write(self, entries: Mapping[tuple[str, int], int | None]) -> None:
        in_order = {key: offset for key, offset in sorted(entries.items()) if offset is not None}
        data = pack_offset_checkpoint(in_order)
        self.files.replace_contents(str(self.path), data, f"{self.path}.tmp")


def _entries(path: Path) -> dict[tuple[str, int], int]:
    if not path.exists():
        return {}
    return dict(parse_offset_checkpoint(path.read_bytes(), str(path)))


def _known(entries: Mapping[tuple[str, int], int], log_dir: str) -> dict[tuple[str, int], int]:
    # As a broker does: lines of partitions that are elsewhere by now would be taken for theirs if
    # they came back.
    hosted = _hosted(log_dir)
    return {partition: offset for partition, offset in entries.items() if partition in hosted}


def _hosted(log_dir: str) -> set[tuple[str, int]]:
    parsed = [parse_partition_dir_name(entry.name) for entry in Path(log_dir).iterdir()]
    return {
        (name.topic_partition.topic, name.topic_partition.partition)
        for name in parsed
        if name is not None and name.kind is PartitionKind.LIVE
    }
