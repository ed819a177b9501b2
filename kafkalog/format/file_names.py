"""File names in a partition directory.

 00000000000000881204.log                       segment, named by its base offset
 00000000000000881204.index .timeindex .txnindex  its indexes
 00000000000000881204.snapshot                  producer state below this offset (exclusive end)
 00000000000000000100-0000000003.checkpoint     metadata snapshot: end offset (exclusive) and epoch

Kafka appends a state to a whole name: `.cleaned` (unfinished output), `.swap` (finished, waiting),
`.deleted` (to be removed), `.part` (metadata snapshot being written).

Only names as Kafka writes them are understood: 20 digits, a known kind, a known state. Kafka itself
takes any number before the first dot, then opens the 20-digit name of that number: a `12.log` is
never read as a segment.

Source: Kafka LogFileUtils, Snapshots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from kafkalog.format.constants import MAX_INT32, MAX_INT64


class LogFileKind(StrEnum):
    """What a file holds; the value is Kafka's suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    METADATA_SNAPSHOT = ".checkpoint"


LIVE_SUFFIX = ""
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
PART_SUFFIX = ".part"

# Segments up to Kafka 0.7, whose messages have no logical offset: this format is not read.
KAFKA_0_7_SUFFIX = ".kafka"
OF_KAFKA_0_7 = "a segment of Kafka 0.7, a format that is not read (Kafka 0.8 had a migration tool)"

LEADER_EPOCH_CHECKPOINT_FILE = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
QUORUM_STATE_FILE = "quorum-state"
# A directory of a log dir that Kafka's log loading knows and skips.
REMOTE_INDEX_CACHE_DIR = "remote-log-index-cache"

_NAME = re.compile(
    r"(?P<offset>[0-9]{20})"
    r"(?:-(?P<epoch>[0-9]{10})(?P<snapshot>\.checkpoint)(?P<snapshot_state>\.deleted)?"
    r"|-(?P<part_epoch>[0-9]{10})-?[0-9]*(?P<part>\.checkpoint)(?P<part_state>\.part))"
)


# What may stand behind 20 digits, but for an epoch.
_USUAL = {
    f"{kind}{state}": (kind, state)
    for kind in LogFileKind
    if kind is not LogFileKind.METADATA_SNAPSHOT
    for state in (LIVE_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
}


@dataclass(frozen=True, slots=True)
class LogFileName:
    """A parsed name: kind, offset in front, state behind ("" = live), epoch if it has one."""

    kind: LogFileKind
    offset: int
    suffix: str = LIVE_SUFFIX
    epoch: int | None = None


# A run looks at a directory several times.
@lru_cache(maxsize=4096)
def parse_file_name(name: str) -> LogFileName | None:
    """The parts of a bare file name, or None if Kafka would not have written it."""
    # The whole name: what Kafka would read as another name (`5.log`) is not a segment of that
    # offset.
    known = _USUAL.get(name[20:])
    if known is not None:
        # Nearly every name: a directory of some thousand segments is looked at several times.
        digits = name[:20]
        if not (digits.isascii() and digits.isdecimal()) or int(digits) > MAX_INT64:
            return None
        return LogFileName(known[0], int(digits), known[1])
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    suffix = match["snapshot_state"] or match["part_state"] or LIVE_SUFFIX
    epoch_digits = match["epoch"] or match["part_epoch"]
    # 20 digits hold more than 64 bits: such a number is no offset, and Kafka would fail to read it.
    offset = int(match["offset"])
    epoch = None if epoch_digits is None else int(epoch_digits)
    if offset > MAX_INT64 or (epoch or 0) > MAX_INT32:
        return None
    return LogFileName(LogFileKind.METADATA_SNAPSHOT, offset, suffix, epoch)


def is_of_kafka_0_7(name: str) -> bool:
    """Whether a file's name is that of such a segment."""
    return name.endswith(KAFKA_0_7_SUFFIX) and name.removesuffix(KAFKA_0_7_SUFFIX).isdecimal()


def log_file_name(base_offset: int, suffix: str = LIVE_SUFFIX) -> str:
    """`00000000000000881204.log`, with the state `suffix` behind it."""
    return _file_name(base_offset, LogFileKind.LOG, suffix)


def offset_index_file_name(base_offset: int, suffix: str = LIVE_SUFFIX) -> str:
    """`00000000000000881204.index`, with the state `suffix` behind it."""
    return _file_name(base_offset, LogFileKind.OFFSET_INDEX, suffix)


def time_index_file_name(base_offset: int, suffix: str = LIVE_SUFFIX) -> str:
    """`00000000000000881204.timeindex`, with the state `suffix` behind it."""
    return _file_name(base_offset, LogFileKind.TIME_INDEX, suffix)


def transaction_index_file_name(base_offset: int, suffix: str = LIVE_SUFFIX) -> str:
    """`00000000000000881204.txnindex`, with the state `suffix` behind it."""
    return _file_name(base_offset, LogFileKind.TRANSACTION_INDEX, suffix)


def producer_snapshot_file_name(end_offset: int, suffix: str = LIVE_SUFFIX) -> str:
    """`00000000000000881204.snapshot`: the state after all offsets below `end_offset`."""
    return _file_name(end_offset, LogFileKind.PRODUCER_SNAPSHOT, suffix)


def _file_name(offset: int, kind: LogFileKind, suffix: str) -> str:
    if not 0 <= offset <= MAX_INT64:
        raise ValueError(f"{offset} is not an offset")
    return f"{offset:020d}{kind}{suffix}"
