"""The topics that Kafka makes by itself: their names, and the policy that it makes them with.

Source: Kafka Topic; GroupCoordinatorService, TransactionCoordinator, ShareCoordinatorService,
TopicBasedRemoteLogMetadataManager (settings of new internal topics).
"""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
REMOTE_LOG_TOPIC = "__remote_log_metadata"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

COMPACT = ("compact",)
DELETE = ("delete",)
# The metadata log is not among them: it has snapshots and no policy. With `delete` a topic gets
# retention.ms -1.
INTERNAL_POLICIES = {
    OFFSETS_TOPIC: COMPACT,
    TRANSACTION_TOPIC: COMPACT,
    SHARE_STATE_TOPIC: DELETE,
    REMOTE_LOG_TOPIC: DELETE,
}
