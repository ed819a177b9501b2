"""Partition directories that somebody else is changing, looked at between two changes.

A broker's cleaner and retention rename files one by one, and so do ours. A listing made meanwhile
may have neither the sources of a swap nor what replaces them, and a reader that trusts it skips
records that are there. Appends do not matter here: they leave the directory as it is.

A listing counts if the directory has not changed since before it was made, and if no swap is under
way in it. Where there is no such moment for `PATIENCE_S` the last listing has to do, so that a
directory that a broker left in the middle of a swap can be read.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kafkalog.clock import now_ns
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.scan import open_paths
from kafkalog.reading.selection import PartitionSelection, select_partitions
from kafkalog.remote.stores import bucket_uri

PATIENCE_S = 3.0
# Changes within one tick of the system's clock have the same time; ticks are 10 ms or less.
_TICK_NS = 20_000_000
# Between the renames of a swap there are milliseconds; one this old was interrupted.
_SWAP_NS = 2_000_000_000


def partitions_at_rest(
    paths: Sequence[str],
    selection: PartitionSelection,
    needed: Collection[TopicPartition] = (),
) -> list[PartitionInventory]:
    """The selected live partitions; those in `needed` are waited for as well."""
    known: dict[str, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        is_late = time.monotonic() > deadline
        began_ns = now_ns()
        inventory, named_paths = open_paths(paths, selection)
        try:
            found = select_partitions(inventory, selection.naming(named_paths), every_kind=False)
        except InvalidConfigError:  # not there: or there, and not to be read just now
            if is_late or not inventory.problems:
                raise
        else:
            names = {partition.topic_partition for partition in found}
            if is_late or (_are_at_rest(found, began_ns, known) and names.issuperset(needed)):
                return found
        time.sleep(_TICK_NS / 1e9)


def partition_at_rest(path: str) -> PartitionInventory | None:
    """One partition's directory; None if it is not there any more."""
    known: dict[str, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        began_ns = now_ns()
        found = reopen_partition(path)
        if found is None and not Path(path).is_dir():
            return None
        is_whole = found is not None and _are_at_rest([found], began_ns, known)
        if is_whole or time.monotonic() > deadline:
            return found
        time.sleep(_TICK_NS / 1e9)


def _are_at_rest(
    partitions: Iterable[PartitionInventory], began_ns: int, known: dict[str, int]
) -> bool:
    """Whether all of them are as they were when the listing began. `known`: the times of change
    that the listing before saw, which are replaced; a server's clock may be another than ours."""
    at_rest = True
    for partition in partitions:
        if bucket_uri(partition.path) is not None:
            continue  # a copy, or what brokers tiered: nobody renames there
        try:
            changed_ns = Path(partition.path).stat().st_mtime_ns
        except OSError:
            at_rest = False
            continue
        age_ns = began_ns - changed_ns
        is_same = age_ns > _TICK_NS or known.get(partition.path) == changed_ns
        is_swapping = age_ns < _SWAP_NS and any(
            segment.state == "swap" for segment in partition.other_segments
        )
        known[partition.path] = changed_ns
        at_rest = at_rest and is_same and not is_swapping
    return at_rest
