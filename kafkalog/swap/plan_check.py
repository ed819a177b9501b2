"""Whether a plan still holds."""

from __future__ import annotations

from kafkalog.errors import LogChangedError
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
