"""Whether a plan still holds, and what stopped it in words."""

from __future__ import annotations

import traceback
from pathlib import Path

from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition


def check_unchanged(directory: str, token: str) -> PartitionInventory:
    """The partition as it is; LogChangedError unless the plan's token is that of the files there
    now: a plan is for these very files on this very disk, or it is for nothing.
    """
    found = reopen_partition(directory)
    if found is None or found.token != token:
        raise LogChangedError(
            "files, checkpoints or log dir are not those the plan was made from: another "
            "host's disk under the same path, or somebody wrote meanwhile",
            path=directory,
        )
    return found


def describe_error(error: Exception, directory: str) -> str:
    """The error as a result's reason; `directory` is the place of one that names none."""
    if isinstance(error, OSError):
        return f"{error.filename or directory}: {error.strerror or error}"
    if isinstance(error, KafkaLogError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory; fewer --workers leave more to each"
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}"
    return f"a fault of kafkalog: {type(error).__name__}: {error} ({place})"


def fault_text(error: Exception) -> str:
    """Where an error that only a fault of ours can raise came from; nothing for all others."""
    if isinstance(error, KafkaLogError | OSError | MemoryError):
        return ""
    return "".join(traceback.format_exception(error)).rstrip()
