"""The files at the root of a log dir: who it is, and the four offset checkpoints.

A checkpoint that cannot be parsed takes a whole log dir offline in Kafka. Here it is a problem, and
because no offset of it can be trusted, a problem of every partition in the dir.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    parse_offset_checkpoint,
)
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kafkalog.format.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    parse_meta_properties,
)
from kafkalog.log.inventory import PartitionCheckpoints
from kafkalog.log.listing import entries_in, path_text
from kafkalog.log.small_files import is_there, read_small_file
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.stores import bucket_uri

CHECKPOINT_FILES = (
    RECOVERY_POINT_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    CLEANER_OFFSET_FILE,
)
# What was read last of each file, by path.
_last_parsed: dict[str, tuple[bytes, dict[tuple[str, int], int]]] = {}
_MOST_PARSED = 16


@dataclass(frozen=True, slots=True)
class LogDirFiles:
    """What the root of a log dir tells; `place`: its path as it is shown; `checkpoints` by file
    name, `problems` with the path in front. meta: None if there is no file or it cannot be read.
    """

    path: Path
    place: str
    device: int
    inode: int
    meta: MetaProperties | None
    has_meta_file: bool
    checkpoints: dict[str, dict[tuple[str, int], int]]
    problems: tuple[str, ...]

    def partition_checkpoints(self, topic_partition: TopicPartition) -> PartitionCheckpoints:
        """One partition's line of each file."""
        key, files = (topic_partition.topic, topic_partition.partition), self.checkpoints
        return PartitionCheckpoints(
            files[RECOVERY_POINT_FILE].get(key),
            files[HIGH_WATERMARK_FILE].get(key),
            files[LOG_START_OFFSET_FILE].get(key),
            files[CLEANER_OFFSET_FILE].get(key),
        )


def is_clean_stop(log_dir: str) -> bool:
    """Whether the broker of a log dir has stopped in order, and none has started on it since."""
    return is_there(f"{log_dir}/{CLEAN_SHUTDOWN_FILE}")


def read_log_dir_files(path: Path) -> LogDirFiles:
    """The root files of a log dir; a missing one is empty, a bad one a problem."""
    problems: list[str] = []
    checkpoints = {}
    device, inode = _identity(path)
    # Texts, not a path each: a partition that is changed has these files looked at again.
    place = str(path).rstrip("/")
    for name in CHECKPOINT_FILES:
        file = f"{place}/{name}"
        checkpoints[name] = _parsed_checkpoint(_read(file, problems), file, problems)
    meta_file = f"{place}/{META_PROPERTIES_FILE}"
    return LogDirFiles(
        path=path,
        place=path_text(path),
        device=device,
        inode=inode,
        meta=_meta_properties(meta_file, problems),
        has_meta_file=is_there(meta_file),
        checkpoints=checkpoints,
        problems=tuple(problems),
    )


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode of a log dir; one in a bucket has neither, but is listed once, so that files
    that are not there are not asked for."""
    if bucket_uri(path) is not None:
        entries_in(path)
        return 0, 0
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def _read(path: str, problems: list[str]) -> bytes | None:
    try:
        return read_small_file(path)
    except FileNotFoundError:
        return None
    except (OSError, KafkaLogError) as error:
        problems.append(f"{path}: {error}")
        return None


def _parsed_checkpoint(
    data: bytes | None, path: str, problems: list[str]
) -> dict[tuple[str, int], int]:
    try:
        return _parsed(data or b"", path)
    except KafkaLogError as error:
        problems.append(str(error))
        return {}


def _parsed(data: bytes, path: str) -> dict[tuple[str, int], int]:
    """Each partition of a run is looked at again, with all partitions of its log dir in the same
    bytes. Not to be changed.
    """
    # The bytes are compared, not hashed: of a file with a line for each of 20,000 partitions that
    # is a tenth of the work, and it is done some times for each of them.
    known, parsed = _last_parsed.get(path, (None, {}))
    if known != data:
        parsed = parse_offset_checkpoint(data, path)
        _last_parsed[path] = data, parsed
        for other in list(_last_parsed)[:-_MOST_PARSED]:  # threads do this side by side
            _last_parsed.pop(other, None)
    return parsed


def _meta_properties(path: str, problems: list[str]) -> MetaProperties | None:
    data = _read(path, problems)
    try:
        return None if data is None else parse_meta_properties(data, path)
    except KafkaLogError as error:
        problems.append(str(error))
        return None
