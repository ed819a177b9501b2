"""What all partitions of a compaction run share, and what a finished swap did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.json_facts import JsonFacts
from kafkalog.operations.clean_result import COMPACTED, WRITTEN
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.output_dir import OutputFiles, WrittenGroup
from kafkalog.swap.replacement import (
    Replacement,
)
from kafkalog.swap.scratch import Scratch

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class CleanRun:
    """What all partitions of a run share. `lock_holder` is the process that holds the log dirs'
    locks; `end_s` the time, in seconds since 1970, from which on no further partition is begun: the
    clocks of all hosts that run tasks must agree on it; `keeps_undo` whether replaced files are
    kept; `swap_per_group` whether each group is swapped in before the next one is written;
    `memory_bytes` what a worker may use; `output` where new segments go instead of into the log
    dirs; `bytes_per_second` what this worker may read and write; `verify_deep` whether every record
    is compared; `keeps_corrupt` whether corrupt batches are kept as they are; `max_batch_bytes`: no
    larger batch is read, if memory allows so much; `may_repeat` whether a task may be executed
    again, as Spark does.
    """

    run_id: str
    lock_holder: int
    force: frozenset[str] = frozenset()
    end_s: float | None = None
    keeps_undo: bool = True
    swap_per_group: bool = False
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    output: str | None = None
    bytes_per_second: float | None = None
    verify_deep: bool = False
    keeps_corrupt: bool = False
    max_batch_bytes: int = MAX_BATCH_BYTES
    may_repeat: bool = True

    def scratch_of(self, plan: CompactionPlan) -> Scratch:
        """Where the new files of a plan are written: beside those they replace, or elsewhere."""
        if self.output is None:
            return Scratch(plan.path, self.run_id)
        return Scratch(path_in(self.output, Path(plan.path).name), self.run_id)

    @property
    def done_status(self) -> str:
        """How a partition ends that ends well."""
        return COMPACTED if self.output is None else WRITTEN

    def shared_by(self, workers: int) -> CleanRun:
        """The run as each of so many workers sees it that are at work at once."""
        if self.bytes_per_second is None or workers <= 1:
            return self
        return replace(self, bytes_per_second=self.bytes_per_second / workers)

    def make_place(self, plan: CompactionPlan) -> None:
        """Make the directory of a plan's new files, if they go elsewhere."""
        if self.output is not None:
            Path(self.scratch_of(plan).directory).mkdir(parents=True, exist_ok=True)

    def new_files(self) -> LocalFiles:
        """What new files are made with."""
        return LocalFiles() if self.output is None else OutputFiles()


@dataclass(frozen=True, slots=True)
class Done(JsonFacts):
    """What a finished swap did, for other attempts of the same task; or what was `written`."""

    stats: CleanerStats
    replaced: Replacement | None
    written: tuple[WrittenGroup, ...] = ()
