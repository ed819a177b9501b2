"""THE columns of the tables that are made of `__consumer_offsets`: groups, members, offsets, what
they cost. All can be null in mode PERMISSIVE; what is said here is how it is otherwise.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.cluster_schemas import TEXTS
from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable
from kafkalog.columns.schemas import OFFSET_COMMITS

_GROUP = not_null("group", pa.string(), "the group")
_KIND = not_null("kind", pa.string(), "classic, consumer, share, streams or simple")
_COORDINATOR = not_null(
    "coordinatorPartition", pa.int32(), "partition of __consumer_offsets that the group is in"
)

# What a group is.
GROUPS: tuple[Column, ...] = (
    _GROUP,
    _KIND,
    not_null(
        "state",
        pa.string(),
        "Empty, Stable; of the new protocols Assigning (the target is behind the group's epoch) "
        "and Reconciling (a member is behind it)",
    ),
    nullable("protocolType", pa.string(), "consumer, connect …; of the new protocols the kind"),
    nullable("protocol", pa.string(), "the assignor that was chosen"),
    nullable("epoch", pa.int32(), "of the group; a classic one's generation"),
    not_null("members", pa.int32(), "how many there are"),
    nullable("stateTimestampMs", pa.int64(), "when it came into its state"),
    _COORDINATOR,
)

# Who is in it.
GROUP_MEMBERS: tuple[Column, ...] = (
    _GROUP,
    _KIND,
    not_null("memberId", pa.string(), "the member"),
    nullable("instanceId", pa.string(), "its name, if it is a static member"),
    nullable("rackId", pa.string(), "its rack"),
    nullable("clientId", pa.string(), "client.id"),
    nullable("clientHost", pa.string(), "the address it came from"),
    nullable("epoch", pa.int32(), "of the member; in a classic group the generation"),
    nullable("subscribedTopics", TEXTS, "topics it subscribes to by name"),
    nullable("subscription", pa.string(), "JSON, as the kind writes it"),
    nullable("assignment", pa.string(), "JSON, as the kind writes it"),
    nullable("isLeader", pa.bool_(), "of a classic group: it assigns"),
)

# Where it is: commits and what is made of them.
GROUP_OFFSETS: tuple[Column, ...] = (
    *(column for column in OFFSET_COMMITS if not column.on_request),
    not_null("source", pa.string(), "__consumer_offsets, or zookeeper"),
    nullable("diskTopicId", pa.string(), "id of the topic on this disk"),
    nullable("logStartOffset", pa.int64(), "of the partition, null where it is not on this disk"),
    nullable("logEndOffset", pa.int64(), "offset the partition's next record will get"),
    nullable("lag", pa.int64(), "log end offset less the committed one, 0 at least"),
    nullable(
        "expiresAtMs",
        pa.int64(),
        "when a coordinator may drop the offset if nothing changes; null while the group uses it",
    ),
    not_null("isExpired", pa.bool_(), "that is past"),
)

# What it costs its coordinator.
TOP_COMMITTERS: tuple[Column, ...] = (
    _GROUP,
    _COORDINATOR,
    not_null("commits", pa.int64(), "commits that are in the log"),
    not_null("tombstones", pa.int64(), "tombstones of commits"),
    not_null("bytes", pa.int64(), "of the keys and values of both"),
    nullable("firstCommitMs", pa.int64(), "time of the first commit"),
    nullable("lastCommitMs", pa.int64(), "time of the last commit"),
    nullable("commitsPerHour", pa.float64(), "commits by the time between; null for a single one"),
)

REBALANCES: tuple[Column, ...] = (
    _GROUP,
    _KIND,
    nullable("hour", TIMESTAMP, "beginning of the hour, UTC"),
    not_null(
        "rebalances", pa.int64(), "generations of a classic group, epochs of the others, of then"
    ),
    nullable("lastEpoch", pa.int32(), "the last of them"),
)

COORDINATOR_LOAD: tuple[Column, ...] = (
    not_null("coordinatorPartition", pa.int32(), "partition of __consumer_offsets"),
    not_null("bytes", pa.int64(), "of its batches"),
    not_null("batches", pa.int64(), "batches"),
    not_null("records", pa.int64(), "records"),
    nullable("firstMs", pa.int64(), "largest timestamp of its first batch in time"),
    nullable("lastMs", pa.int64(), "largest timestamp"),
    not_null("offsets", pa.int64(), "offsets in force"),
    not_null("groups", pa.int64(), "groups"),
    nullable("recordsPerSecond", pa.float64(), "records by the time between; null for one"),
    nullable("bytesPerSecond", pa.float64(), "bytes by the time between; null for one record"),
)

# How far behind it is, as the disk tells.
LAG: tuple[Column, ...] = (
    _GROUP,
    not_null("topic", pa.string(), "the topic it reads"),
    not_null("partition", pa.int32(), "partition of that topic"),
    not_null(
        "state",
        pa.string(),
        "behind, atEnd; beyondEnd (committed above the log's end), belowStart (what it would read "
        "next is gone), noCommit (a member has the partition, and nothing is committed), noLog (no "
        "log dir here has the partition)",
    ),
    nullable("committedOffset", pa.int64(), "the next offset the group wants"),
    nullable("commitTimestampMs", pa.int64(), "when it was committed"),
    nullable("logStartOffset", pa.int64(), "first offset a consumer can read"),
    nullable("highWatermark", pa.int64(), "as a broker would start with it, by the checkpoint"),
    nullable(
        "logEndOffset",
        pa.int64(),
        "offset the next record gets: what Kafka's tool shows once the replicas have caught up",
    ),
    nullable("lag", pa.int64(), "log end offset less the committed one, below 0 if beyondEnd"),
    nullable("lostOffsets", pa.int64(), "offsets from the committed one to the log start"),
    nullable(
        "lagBytes",
        pa.int64(),
        "bytes on the disk from the batch with the committed offset to the log's end",
    ),
    nullable(
        "lagMs",
        pa.int64(),
        "the log end's timestamp less that of the first record that is not committed, 0 at least",
    ),
    nullable("firstTimestampMs", pa.int64(), "of the first record that is not committed"),
    nullable("logEndTimestampMs", pa.int64(), "largest one of the last batch"),
    nullable(
        "isLeaderHere",
        pa.bool_(),
        "the replica that was read leads, or may lead at once; false: the leader's log may end "
        "elsewhere; null: no metadata here tells",
    ),
    nullable("error", pa.string(), "why bytes and time are not known"),
)
