"""What a restore takes logs from: log dirs, log dirs with their older segments in remote storage in
front, or remote storage alone.

Of remote storage each segment is decoded as it is read. Objects are never changed once they are
there, so a plan names them; of what is on a disk it has a token besides.

Source: Kafka RemoteLogManager.read; KIP-405.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.remote_segments import REMOTE, with_remote_segments
from kafkalog.log.remote_tree import open_logs
from kafkalog.restoring.begin import beginning_at
from kafkalog.restoring.copies import Source, one_copy_each
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.request import RestoreRequest
from kafkalog.swap.plan_check import check_unchanged

_PLAIN_COPY = re.compile(r"(.*/)?\d{20}\.log", re.ASCII)


def open_source(restore: RestoreRequest) -> Source:
    """What is there, one copy of each partition that is asked for; tiered ones whole where remote
    storage is named.

    Raises as `open_log_dir`, and as `with_remote_segments`.
    """
    remote = restore.remote
    if remote.is_tree:
        logs = open_logs(
            restore.sources, remote, accepts=lambda name: restore.takes(name.topic)
        )  # fmt: skip
        return Source(logs, {})
    everything = open_log_dir(*restore.sources, reads_buckets=False)
    source = one_copy_each(everything, restore.takes)
    if not remote.places:
        return source
    # Imported late, with all that reads records: logs on disks alone need none of it.
    from kafkalog.reading.remote_log_events import copy_states

    found = source.found
    tiered = {each.path: each for each in found if _is_tiered(each, restore)}
    whole = with_remote_segments(tiered.values(), remote, copy_states(everything))
    tiered |= {each.path: each for each in whole}
    partitions = tuple(tiered.get(each.path, each) for each in found)
    return replace(source, found=replace(found, partitions=partitions))


def _is_tiered(partition: PartitionInventory, restore: RestoreRequest) -> bool:
    is_asked_for = restore.takes(partition.topic_partition.topic)
    return partition.kind is PartitionKind.LIVE and is_asked_for and partition.has_remote_segments


def source_of(plan: RestorePlan) -> PartitionInventory:
    """The partition that a plan takes, from where it is taken on; LogChangedError where its disk is
    not as it was planned."""
    source = plan.remote_source
    if plan.source_token or source is None:
        own = check_unchanged(plan.source, plan.source_token)
        source = own if source is None else source
    return source if plan.cut is None else beginning_at(source, plan.cut.start_offset)


def lacks_indexes(partition: PartitionInventory) -> bool:
    """Whether segments of it are copies without a transaction index: nothing but their markers says
    what was aborted.
    """
    return any(
        each.state == REMOTE and _PLAIN_COPY.fullmatch(each.path) is not None
        for each in partition.segments
    )
