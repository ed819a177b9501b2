"""Names of the files a run keeps beside a partition's own, chosen so that a broker never looks at
them.

    kafkalog-RUN-ATTEMPT-<file>.tmp    a finished or unfinished output
    kafkalog-RUN-swap.tmp              the swap record: which files replace which (replacement.py)
    kafkalog-RUN-done.tmp              the result of a finished swap, for another attempt
    kafkalog-RUN-lock.tmp              there and locked while an attempt swaps
    kafkalog-RUN-healing.tmp           a directory: a healed copy of the partition, not swapped in
    kafkalog-RUN-restoring.tmp         the same of a restored one
    kafkalog-RUN-<file>.undo           a replaced file, until the run is undone or purged
    kafkalog-RUN-record.undo           what was the swap record, as long
    kafkalog-RUN-no-<file>.undo        says, as long, that there was no such checkpoint

A stray `.cleaned` would make Kafka's loader delete finished `.swap` files, and a name without a
leading number in front of `.log`, `.cleaned` or `.swap` would stop it; these names do neither. An
attempt is one execution of a task: Spark runs a task again after a failure or on speculation, so
two attempts may write at once and never share a name.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from kafkalog.swap.local_files import path_in

PREFIX = "kafkalog-"
SUFFIX = ".tmp"
UNDO_SUFFIX = ".undo"
_SCRATCH = re.compile(r"kafkalog-[0-9A-Za-z]+-.*\.tmp")
# An earlier version named it `turn`: such a file may be there still, or even held.
_LOCK = re.compile(r"kafkalog-[0-9A-Za-z]+-(lock|turn)\.tmp")
_UNDO = re.compile(r"kafkalog-([0-9A-Za-z]+)-(.+)\.undo")


def new_attempt_id() -> str:
    """A name no other execution of the same task has."""
    return secrets.token_hex(4)


def is_scratch(name: str) -> bool:
    """Whether a bare file name is one of ours."""
    return name.startswith(PREFIX) and _SCRATCH.fullmatch(name) is not None


def is_partition_lock(name: str) -> bool:
    """Whether a bare file name is the one that an attempt of some run locks."""
    return _LOCK.fullmatch(name) is not None


def undo_run_id(name: str) -> str | None:
    """The run that a bare file name is kept for, None for all other names."""
    found = _UNDO.fullmatch(name) if name.startswith(PREFIX) else None
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch names of one run in one partition directory."""

    directory: str
    run_id: str

    def output(self, attempt_id: str, file_name: str) -> str:
        """Path of an attempt's output that will become `file_name`."""
        return path_in(self.directory, f"{PREFIX}{self.run_id}-{attempt_id}-{file_name}{SUFFIX}")

    @property
    def swap_record(self) -> str:
        return self._path("swap")

    @property
    def done_record(self) -> str:
        return self._path("done")

    @property
    def lock(self) -> str:
        return self._path("lock")

    @property
    def healing(self) -> str:
        return self._path("healing")

    @property
    def restoring(self) -> str:
        return self._path("restoring")

    def _path(self, what: str) -> str:
        return path_in(self.directory, f"{PREFIX}{self.run_id}-{what}{SUFFIX}")

    def undo(self, file_name: str) -> str:
        """Path under which a replaced file is kept."""
        return path_in(self.directory, f"{PREFIX}{self.run_id}-{file_name}{UNDO_SUFFIX}")

    @property
    def undo_record(self) -> str:
        return self.undo("record")

    def keeps(self, name: str) -> bool:
        """Whether a bare file name is one that this run keeps for its undo."""
        return undo_run_id(name) == self.run_id

    def owns(self, name: str) -> bool:
        """Whether a bare file name belongs to this run."""
        # By its end first: it is asked of each name in a directory, and most have another.
        return name.endswith(SUFFIX) and name.startswith(f"{PREFIX}{self.run_id}-")
