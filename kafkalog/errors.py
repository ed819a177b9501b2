"""Every error kafkalog raises on purpose, under one root.

An error says where (path, byte position, offset), what was found and what was expected:

    orders-3/00000000000000881204.log @ 1048577 (offset 881204): record length 31, but 29 bytes were
    used

The names are Kafka's exceptions ending in Error. Errors cross process borders (Spark tasks, worker
processes), so all of them can be pickled.
"""

from __future__ import annotations

import traceback
from typing import Any


class KafkaLogError(Exception):
    """The root: `reason` plus the place it was found, as far as it is known."""

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.position = position
        self.offset = offset

    def __str__(self) -> str:
        place = self.path or ""
        if self.position is not None:
            place += f" @ {self.position}"
        if self.offset is not None:
            place += f" (offset {self.offset})"
        return f"{place.strip()}: {self.reason}" if place else self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.reason, self.path, self.position, self.offset))


def _rebuild(
    kind: type[KafkaLogError],
    reason: str,
    path: str | None,
    position: int | None,
    offset: int | None,
) -> KafkaLogError:
    return kind(reason, path=path, position=position, offset=offset)


# -- what is on the disk is not what it should be ------------------------------------------------


class CorruptRecordError(KafkaLogError):
    """A batch or record breaks the format (Kafka: CorruptRecordException,
    InvalidRecordException).
    """


class CorruptIndexError(KafkaLogError):
    """An index file contradicts itself or its log (Kafka: CorruptIndexException)."""


class CorruptSnapshotError(KafkaLogError):
    """A snapshot, of producers or ZooKeeper's, cannot be read (Kafka:
    CorruptSnapshotException).
    """


class CorruptCheckpointError(KafkaLogError):
    """A checkpoint or metadata text file cannot be read (Kafka: IOException of CheckpointFile)."""


class CorruptKeptLogsError(KafkaLogError):
    """What an audit kept for later runs cannot be read."""


class RemoteStorageError(KafkaLogError):
    """An object of remote storage is not what its manifest says, or cannot be decrypted (Kafka:
    RemoteStorageException).
    """


class RemoteResourceNotFoundError(RemoteStorageError):
    """An object of remote storage that must be there is not (Kafka:
    RemoteResourceNotFoundException).
    """


# -- readable, but not by this version or within this limit --------------------------------------


class UnsupportedMagicError(KafkaLogError):
    """A batch of a magic this version does not handle (Kafka:
    UnsupportedForMessageFormatException).
    """


class UnsupportedMessageVersionError(KafkaLogError):
    """A generated message, or the frame around it, of a version this one does not know (Kafka:
    UnsupportedVersionException).
    """


class UnsupportedCompressionTypeError(KafkaLogError):
    """A batch with a codec this version does not handle."""


class RecordTooLargeError(KafkaLogError):
    """A batch larger, stored or decompressed, than the cap in force (Kafka:
    RecordTooLargeException).
    """


class OffsetOutOfRangeError(KafkaLogError):
    """An offset that the log does not have."""


# -- what was asked cannot be done ---------------------------------------------------------------


class InvalidConfigError(KafkaLogError):
    """A topic setting, option or argument that is unknown or out of range (Kafka:
    InvalidConfigurationException).
    """


class LogDirLockedError(KafkaLogError):
    """Another process, most likely a broker, holds the `.lock` of the log dir."""


class LogChangedError(KafkaLogError):
    """Files or log dir are not those the plan was made from: another disk, or somebody wrote
    meanwhile.
    """


class CodeDiffersError(KafkaLogError):
    """A task runs other code than what made its plan; it has done nothing."""


class LogCleaningRefusedError(KafkaLogError):
    """A safety rule forbids cleaning this partition; nothing was changed."""


class LogSegmentOffsetOverflowError(KafkaLogError):
    """A batch's offset lies further from its segment's base than the segment's indexes can say."""


class LogCleaningAbortedError(KafkaLogError):
    """Cleaning stopped midway; the partition is as it was, or is completed by the next run."""


# -- what stopped something, in words ------------------------------------------------------------


def describe_error(error: Exception, directory: str) -> str:
    """The error as a result's reason; `directory` is the place of one that names none."""
    if isinstance(error, OSError):
        return f"{error.filename or directory}: {error.strerror or error}"
    if isinstance(error, KafkaLogError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory; fewer --workers leave more to each"
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}, line {last.lineno}"
    return f"a fault of kafkalog: {type(error).__name__}: {error} ({place})"


def fault_text(error: Exception) -> str:
    """Where an error that only a fault of ours can raise came from; nothing for all others."""
    if isinstance(error, KafkaLogError | OSError | MemoryError):
        return ""
    return "".join(traceback.format_exception(error)).rstrip()
