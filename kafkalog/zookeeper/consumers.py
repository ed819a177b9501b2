"""Offsets of the old consumers, which kept them in ZooKeeper (to Kafka 1.x):
`/consumers/<group>/offsets/<topic>/<partition>`, the next offset to read as decimal text.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.zookeeper.changes import ChangeKind, NodeChange
from kafkalog.zookeeper.cluster_changes import TableBuilder, when
from kafkalog.zookeeper.members import is_node_id
from kafkalog.zookeeper.znodes import parse_number


class ConsumerOffsets(TableBuilder):
    """Every commit in its order, a deletion as one without an offset."""

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if len(parts) != 5 or parts[0] != "consumers" or parts[2] != "offsets":
            return
        if change.kind is ChangeKind.ACL or not is_node_id(parts[4]):
            return
        committed = None
        if change.kind is not ChangeKind.DELETED:
            committed = self.problems.parsed(
                change, lambda data, path: parse_number(data, path, 64)
            )
            if committed is None:
                return
        self.rows.append(
            {
                "group": parts[1],
                "topic": parts[3],
                "partition": int(parts[4]),
                "committedOffset": committed,
                **when(change),
            }
        )
