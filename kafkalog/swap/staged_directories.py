"""Partitions that a restore makes beside their places, in directories that a broker deletes when it
starts: what a run that died has left of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.scratch import Scratch, is_scratch

_ENDING = "-restoring.tmp"


def discard_staged(
    log_dirs: Iterable[str], files: LocalFiles, run_id: str | None = None
) -> list[str]:
    """Remove those of a run, or of any; which directories. The caller holds the log dirs' locks."""
    removed = []
    for log_dir in log_dirs:
        for path in _marked_as_deleted(log_dir):
            names = list_names(path)
            own = Scratch(path, run_id) if run_id is not None else None
            if own is not None:
                is_staged = any(own.owns(n) and n.endswith(_ENDING) for n in names)
            else:
                # The inner one goes first: of a removal that died the outer one is left, empty.
                is_staged = not names or any(is_scratch(n) and n.endswith(_ENDING) for n in names)
            if is_staged:
                files.remove_directory(path)
                removed.append(path)
    return removed


def _marked_as_deleted(log_dir: str) -> Iterator[str]:
    for name in list_names(log_dir):
        parsed = parse_partition_dir_name(name)
        if parsed is not None and parsed.kind is PartitionKind.DELETE:
            yield path_in(log_dir, name)
