"""Names of the files a run keeps beside a partition's own, chosen so that a broker never looks at
them.

    kafkalog-RUN-ATTEMPT-<file>.tmp    a finished or unfinished output
    kafkalog-RUN-swap.tmp              the swap record: which files replace which (see swap.py)
    kafkalog-RUN-done.tmp              the result of a finished swap, for another attempt
    kafkalog-RUN-turn.tmp              there and locked while an attempt swaps

A stray `.cleaned` would make Kafka's loader delete finished `.swap` files, and a name without a
leading number in front of `.log`, `.cleaned` or `.swap` would stop it; these names do neither. An
attempt is one execution of a task: Spark runs a task again after a failure or on speculation, so
two attempts may write at once and never share a name.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from kafkalog.cleaner.local_files import path_in

PREFIX = "kafkalog-"
SUFFIX = ".tmp"
_SCRATCH = re.compile(r"kafkalog-[0-9A-Za-z]+-.*\.tmp")
_TURN = re.compile(r"kafkalog-[0-9A-Za-z]+-turn\.tmp")


def new_attempt_id() -> str:
    """A name no other execution of the same task has."""
    return secrets.token_hex(4)


def is_scratch(name: str) -> bool:
    """Whether a bare file name is one of ours."""
    return _SCRATCH.fullmatch(name) is not None


def is_turn(name: str) -> bool:
    """Whether a bare file name is the one that some run's attempts take turns by."""
    return _TURN.fullmatch(name) is not None


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
    def turn(self) -> str:
        return self._path("turn")

    def _path(self, what: str) -> str:
        return path_in(self.directory, f"{PREFIX}{self.run_id}-{what}{SUFFIX}")

    def owns(self, name: str) -> bool:
        """Whether a bare file name belongs to this run."""
        return is_scratch(name) and name.startswith(f"{PREFIX}{self.run_id}-")
