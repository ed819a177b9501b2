"""A healed partition beside the live one, in a directory of its own within the partition's, which a
broker does not look at: what is written anew is there, what stays has a second name there. Its
indexes and snapshots are built as a recovery does, and it is compared with the right copy before
any live file moves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkalog.comparing.comparison import COMPARED, compare_partition
from kafkalog.comparing.request import CompareTask
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.file_names import log_file_name
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.healing.splice import Splice, write_segment
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir_files import CHECKPOINT_FILES
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.staged_copy import build_staged_copy
from kafkalog.replicas.replica import Replica
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import Scratch

# A log's own files; all others are scratch, or kept for undo.
_ENDINGS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_OTHERS = ("leader-epoch-checkpoint", "partition.metadata")


@contextmanager
def staged(
    splice: Splice, run_id: str, config: LogConfig, now_ms: int, files: LocalFiles
) -> Iterator[PartitionInventory]:
    """The healed partition; gone at the end. LogCleaningRefusedError, CorruptRecordError as from
    writing it; LogChangedError where its files cannot be built.
    """
    live = Path(splice.wrong.path)
    root = Path(Scratch(splice.wrong.path, run_id).healing)
    directory = root / live.name
    directory.mkdir(parents=True)
    try:
        for name in (*CHECKPOINT_FILES, META_PROPERTIES_FILE):
            if (live.parent / name).exists():
                shutil.copyfile(live.parent / name, root / name)
        _fill(splice, directory, files)
        yield build_staged_copy(
            directory, config, now_ms, run_id, files, max_batch_bytes=splice.max_batch_bytes
        )
    finally:
        files.remove_directory(str(root))


def _fill(splice: Splice, directory: Path, files: LocalFiles) -> None:
    anew = {f"{segment.base_offset:020d}" for segment, _ in splice.rewritten}
    for entry in os.scandir(splice.wrong.path):
        is_own = entry.name.endswith(_ENDINGS) or entry.name in _OTHERS
        stem, _, ending = entry.name.partition(".")
        if is_own and not (stem in anew and ending != "snapshot") and entry.is_file():
            os.link(entry.path, directory / entry.name)
    for segment, end_offset in splice.rewritten:
        path = directory / log_file_name(segment.base_offset)
        write_segment(splice, segment, end_offset, str(path), files)


def check_equal(
    healed: PartitionInventory, right: PartitionInventory, max_batch_bytes: int
) -> None:
    """LogCleaningRefusedError if consumers would still get something else from it."""
    copies = (
        Replica("the healed copy", healed, None, None),
        Replica("the right copy", right, None, None),
    )
    task = CompareTask(healed.topic_partition, copies, DEFAULT_MEMORY_BYTES, max_batch_bytes)
    compared = compare_partition(task)
    if compared.status != COMPARED:
        raise LogCleaningRefusedError(f"the healed copy cannot be compared: {compared.reason}")
    if compared.differences:
        first = compared.differences[0]
        raise LogCleaningRefusedError(
            f"the healed copy would still differ: {first.kind} at {first.offset}: {first.text}"
        )
