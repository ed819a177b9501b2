"""The task of recovering one partition, and its result."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import JsonFacts, PartitionInventory, TopicPartition
from kafkalog.planning.log_config import LogConfig
from kafkalog.swap.replacement import Replacement

# Statuses.
SOUND = "sound"  # every file is what a rebuild gives
REBUILD = "rebuild"  # a dry run found files to rebuild
DONE = "rebuilt"

# Actions.
CREATE = "create"
REPLACE = "replace"
REMOVE = "remove"
CUT = "cut"
SPLIT = "split"


@dataclass(frozen=True, slots=True)
class FileFinding(JsonFacts):
    """One file that is not as it should be: what is, or would be, done with it, and why."""

    name: str
    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecoverTask(JsonFacts):
    """One partition to look at, and with `apply` to change.

    `settings_note` says why the settings may not be those of the cluster, None if they are;
    `lock_holder` is the process that holds the log dir's lock; `keeps_undo` and `max_batch_bytes`
    as in RunRequest.
    """

    partition: PartitionInventory
    config: LogConfig
    now_ms: int
    run_id: str
    apply: bool
    lock_holder: int
    settings_note: str | None = None
    keeps_undo: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES

    @property
    def topic_partition(self) -> TopicPartition:
        """Which partition it is."""
        return self.partition.topic_partition

    @property
    def path(self) -> str:
        """The partition's directory."""
        return self.partition.path

    @property
    def log_dir(self) -> str:
        """The log dir it lies in."""
        return self.partition.log_dir


@dataclass(frozen=True, slots=True)
class RecoverResult(JsonFacts):
    """How it ended; `files` are the findings in the order they were made, `bytes_read` those of the
    `.log` files whose batches were checked; `fault` and `replaced` as in CleanResult.
    """

    topic: str
    partition: int
    path: str
    log_dir: str
    status: str
    reason: str
    files: tuple[FileFinding, ...] = ()
    segments_count: int = 0
    batches_count: int = 0
    bytes_read: int = 0
    log_end_offset: int | None = None
    seconds: float = 0.0
    fault: str = ""
    replaced: Replacement | None = None
