"""THE table of what can be found: id, severity, meaning, what a broker makes of it, what to do.

Of the cluster as a whole there is more in `cluster_kinds`; the reference is written from both. Ids
are promises: scripts go by them, so one is never used for something else. What a broker does
was seen with Kafka 4.3 (tests/oracle); a severity may be lower where the next start heals it.
"""

from __future__ import annotations

from kafkalog.checking.cluster_kinds import CLUSTER_KINDS
from kafkalog.checking.finding_kind import FindingKind, Severity

__all__ = ["KIND", "KINDS", "FindingKind", "Severity"]

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
# It changes nothing where a batch is damaged. A start that makes an index anew cuts the segment at
# such a batch: so nobody is told to delete index files.
_REBUILD = "`kafkalog recover --apply`"
_REPLICA = "take the partition from another replica"
# `kafkalog salvage` copies every batch with a right checksum as it is, in the order of offsets.
_SALVAGE = f"{_REPLICA}, or salvage the rest"

_CUT = (
    "of the last segment `kafkalog recover --apply` cuts it off, if no batch lies behind it; else "
    f"{_SALVAGE}"
)
# Of a tiered topic the epochs of what is in remote storage are in no local batch.
_EPOCHS = (
    "copy the file of a replica, or, if the topic is not tiered, delete it and run `kafkalog "
    "recover --apply`"
)

KINDS = (
    # -- batches and records ---------------------------------------------------------------------
    FindingKind(
        "crc-mismatch",
        _ERROR,
        "a batch's bytes do not have the checksum in its header",
        "serves it as it is; after a crash cuts the log there if past the recovery point",
        _SALVAGE,
    ),
    FindingKind(
        "batch-unreadable",
        _ERROR,
        "a batch's length, magic or count makes no sense; what follows is not checked",
        "fails reads there; after a crash cuts the log there if past the recovery point",
        _SALVAGE,
    ),
    FindingKind(
        "records-unreadable",
        _ERROR,
        "the records of a batch with a right checksum cannot be decoded",
        "serves them; consumers and the cleaner fail",
        _REPLICA,
    ),
    FindingKind(
        "control-record",
        _ERROR,
        "a control batch holds no control record that a broker can go on with",
        "does not start where it replays the log, after a crash or behind the newest producer "
        "snapshot; its cleaner fails if the key is wrong",
        _REPLICA,
    ),
    FindingKind(
        "coordinator-record",
        _ERROR,
        "a record of `__consumer_offsets`, `__transaction_state` or `__share_group_state` that its "
        "coordinator cannot load",
        "does not load the partition: its groups have no coordinator; of transactions it has "
        "forgotten all ids behind the record",
        _REPLICA,
    ),
    FindingKind(
        "coordinator-record-unknown",
        _INFO,
        "a record of a coordinator's topic whose type or version is not known",
        "passes it over with a warning, if it does not know it either",
        "none if a newer broker wrote it",
    ),
    FindingKind(
        "offset-order",
        _ERROR,
        "a batch does not lie behind the one before it, or below its segment's base",
        "serves it as it lies, fetches miss records; where an index is made again (after a crash, "
        "or if it is gone) it may notice: empties the segment and deletes those behind it, or does "
        "not load the log",
        _SALVAGE,
    ),
    FindingKind(
        "record-offset-order",
        _ERROR,
        "offsets of records in a batch do not rise, or leave the batch",
        "nothing; consumers skip or repeat records",
        _REPLICA,
    ),
    FindingKind(
        "offset-overflow",
        _ERROR,
        "an offset is more than 2147483647 above the segment's base",
        "splits the segment when it cleans it or rebuilds its index",
        "`kafkalog recover --apply` splits it",
    ),
    FindingKind(
        "segment-too-large",
        _ERROR,
        "a .log file is larger than 2147483647 bytes",
        "does not load the log dir",
        _REPLICA,
    ),
    FindingKind(
        "batch-too-large",
        _WARNING,
        "a batch is larger than segment.bytes",
        "a follower cannot append it: replication stops there",
        "raise segment.bytes of the topic",
    ),
    FindingKind(
        "batch-over-limit",
        _WARNING,
        "a batch is larger, stored or uncompressed, than kafkalog takes into memory: not checked",
        "serves it",
        "check it with a broker's own tools",
    ),
    FindingKind(
        "max-timestamp",
        _WARNING,
        "a batch's largest timestamp is not that of its records",
        "retention and searches by time go by the header",
        "rebuild what goes by time from the records",
    ),
    FindingKind(
        "lz4-content-checksum",
        _WARNING,
        "an lz4 frame's content does not have its checksum",
        "does not look at it; other readers refuse the batch",
        "look for the producer that wrote it",
    ),
    FindingKind(
        "inner-crc",
        _WARNING,
        "a message inside a compressed one (magic 0, 1) does not have its checksum",
        "does not look at it",
        "look for the producer that wrote it",
    ),
    FindingKind(
        "producer-fields",
        _WARNING,
        "producer id, epoch, sequence and flags of a batch contradict each other",
        "may refuse the log when it rebuilds producer state",
        _REPLICA,
    ),
    FindingKind(
        "transaction-left",
        _ERROR,
        "a producer wrote outside of the transaction that it has open",
        "does not start where it replays the log, after a crash or behind the newest producer "
        "snapshot",
        _REPLICA,
    ),
    FindingKind(
        "producer-epoch-order",
        _WARNING,
        "a producer's epoch falls",
        "logs it; a fenced producer's batches were appended",
        "none",
    ),
    FindingKind(
        "sequence-order",
        _WARNING,
        "a producer's sequence number comes again",
        "nothing; records may be there twice",
        "look for duplicates at the place",
    ),
    FindingKind(
        "unknown-attributes",
        _INFO,
        "attribute bits are set that no version has a meaning for",
        "ignores them, and drops them when it cleans",
        "none",
    ),
    FindingKind(
        "torn-tail",
        _ERROR,
        "a segment ends inside a batch",
        "appends behind the rest, which hides what comes after; after a crash cuts it off (info)",
        _CUT,
    ),
    FindingKind(
        "zero-tail",
        _ERROR,
        "a segment ends in zeros, as a preallocated one after a crash",
        "as for torn-tail",
        _CUT,
    ),
    # -- indexes -----------------------------------------------------------------------------------
    FindingKind(
        "offset-index-missing",
        _INFO,
        "no .index",
        "makes all indexes of the segment anew at its next start",
        "none",
    ),
    FindingKind(
        "offset-index-disagrees",
        _ERROR,
        "an entry of .index does not fit the log; a warning where those that do not lie beyond the "
        "end of a closed segment",
        "uses it: fetches inside the segment skip records, the log may end too early; no search "
        "comes to one beyond the end",
        _REBUILD,
    ),
    FindingKind(
        "offset-index-short",
        _WARNING,
        "a large part of a segment has no entry in .index",
        "reads from the last entry before: slow fetches",
        _REBUILD,
    ),
    FindingKind(
        "offset-index-padded",
        _WARNING,
        "zeros behind the entries of .index",
        "takes them for entries: reads from the segment's start, rolls the active segment",
        _REBUILD,
    ),
    FindingKind(
        "time-index-missing",
        _WARNING,
        "no .timeindex, though .index is there",
        "makes an empty one: retention goes by the file's modification time",
        _REBUILD,
    ),
    FindingKind(
        "time-index-disagrees",
        _ERROR,
        "an entry of .timeindex does not fit the log",
        "uses it: searches by time skip records, retention goes by a wrong time",
        _REBUILD,
    ),
    FindingKind(
        "time-index-short",
        _WARNING,
        "the last entry of a closed segment's .timeindex is older than its records",
        "retention takes the segment for older than it is",
        _REBUILD,
    ),
    FindingKind(
        "time-index-padded",
        _ERROR,
        "zeros behind the entries of .timeindex",
        "takes them for entries: retention takes the segment for one of 1970",
        _REBUILD,
    ),
    FindingKind(
        "index-partial-entry",
        _INFO,
        "an index file ends inside an entry",
        "ignores the rest",
        "none",
    ),
    FindingKind(
        "transaction-index-missing",
        _ERROR,
        "an aborted transaction in the log has no entry in .txnindex, or a late one",
        "hands its records out to read_committed consumers",
        _REBUILD,
    ),
    FindingKind(
        "transaction-index-stale",
        _ERROR,
        "an entry of .txnindex has no abort in the log",
        "read_committed consumers miss committed records of the producer",
        _REBUILD,
    ),
    FindingKind(
        "transaction-index-unreadable",
        _WARNING,
        "an entry of .txnindex breaks the format",
        "makes the segment's indexes anew at its next start",
        "none",
    ),
    FindingKind(
        "orphan-index",
        _WARNING,
        "an index file without its .log",
        "deletes it at its next start",
        "look for the lost .log",
    ),
    # -- the log as a whole ----------------------------------------------------------------------
    FindingKind(
        "segment-missing",
        _ERROR,
        "offsets are missing between two segments, and compaction cannot have taken them; a warning"
        " where an interrupted cleaning may have",
        "nothing; consumers skip them silently",
        _REPLICA,
    ),
    FindingKind(
        "first-segments-missing",
        _ERROR,
        "the log starts below its first segment, and what lies between is not here; info where the"
        " topic is tiered, or where an older log start may have been left by a crash",
        "begins with the first segment, without a word",
        "take the segments from another replica; those of a tiered topic are in remote storage",
    ),
    FindingKind(
        "offset-gap",
        _ERROR,
        "offsets are missing inside a segment, and compaction cannot have taken them",
        "nothing; consumers skip them silently",
        _REPLICA,
    ),
    FindingKind(
        "segment-overlap",
        _ERROR,
        "a segment has offsets of the next one",
        "nothing; records may be read twice",
        f"{_REPLICA}, or salvage: it puts batches in the order of offsets",
    ),
    FindingKind(
        "log-end-lost",
        _ERROR,
        "checkpoints, snapshots, leader epochs or indexes know offsets past the log's end; a"
        " warning where one of them alone does, and others know no such offsets",
        "begins at the lower end, and gives the offsets out again",
        _REPLICA,
    ),
    FindingKind(
        "log-start-lost",
        _WARNING,
        "the leader epochs begin above the log's start: its checkpoint is lost",
        "begins at the first segment: deleted records are back",
        "write the checkpoint's line again if records were deleted up to there, else copy the "
        "epochs of a replica",
    ),
    FindingKind(
        "log-start-ahead",
        _WARNING,
        "the log start checkpoint is above the first leader epoch: no broker moved the start there",
        "begins there: the records below are hidden, and their segments deleted",
        "if nobody deleted those records, correct the checkpoint before any start",
    ),
    FindingKind(
        "log-start-beyond-end",
        _ERROR,
        "the log start checkpoint is past the log's end",
        "deletes all segments of the partition at its next start",
        "correct the checkpoint before any start",
    ),
    FindingKind(
        "leader-epoch-order",
        _WARNING,
        "the leader epoch falls from one batch to the next",
        "followers may cut the log at a wrong place",
        _REPLICA,
    ),
    FindingKind(
        "leader-epochs-disagree",
        _WARNING,
        "leader-epoch-checkpoint says another epoch than the batches",
        "keeps it, after a crash too: followers may cut the log at a wrong place",
        _EPOCHS,
    ),
    FindingKind(
        "leader-epochs-not-rising",
        _WARNING,
        "lines of leader-epoch-checkpoint contradict each other",
        "keeps the later line of two: followers may cut the log at a wrong place",
        _EPOCHS,
    ),
    FindingKind(
        "leader-epochs-beyond-end",
        _WARNING,
        "an epoch of leader-epoch-checkpoint begins past the log's end",
        "drops it when it loads the log",
        "if it is this log's file, the log has lost its end: take that from a replica",
    ),
    FindingKind(
        "leader-epochs-missing",
        _WARNING,
        "no leader-epoch-checkpoint, though batches have epochs",
        "makes an empty one: followers fall back on the high watermark",
        "none if replicas are in sync",
    ),
    FindingKind(
        "leader-epochs-unreadable",
        _ERROR,
        "leader-epoch-checkpoint cannot be parsed",
        "takes the log dir offline",
        _EPOCHS,
    ),
    # -- producer snapshots ----------------------------------------------------------------------
    FindingKind(
        "open-transaction-forgotten",
        _ERROR,
        "a transaction is open, and no snapshot is there after a clean stop",
        "assumes no producers: the transaction's records become readable",
        _REBUILD,
    ),
    FindingKind(
        "snapshot-missing",
        _WARNING,
        "producers wrote, and no snapshot is there after a clean stop",
        "forgets them: a retry of theirs is appended twice",
        _REBUILD,
    ),
    FindingKind(
        "snapshot-disagrees",
        _ERROR,
        "the snapshot a broker loads says other open transactions or sequences than the log",
        "the last stable offset is wrong, or retries are appended twice",
        "`kafkalog recover --apply`",
    ),
    FindingKind(
        "snapshot-unreadable",
        _WARNING,
        "a snapshot breaks the format",
        "deletes it and takes an older one",
        "none",
    ),
    # -- files and directories -------------------------------------------------------------------
    FindingKind(
        "metadata-record",
        _ERROR,
        "a record of the cluster's metadata log cannot be decoded, or contradicts the ones before",
        "ends itself at each start, when it comes to the record",
        "take the log of another member that started with it, or an older copy of all members",
    ),
    FindingKind(
        "metadata-record-unknown",
        _WARNING,
        "a type, a version or a feature in the cluster's metadata log is not known (an error where "
        "metadata.version is known: no release writes it then)",
        "does not start if it is older than the release that wrote it",
        "none if the broker is of that release",
    ),
    FindingKind(
        "feature-level-unsupported",
        _WARNING,
        "metadata.version is at a level that no release known here has, or at one that cannot say "
        "what the metadata holds (an error), or a feature at one that a registered broker cannot "
        "go by (an error)",
        "does not start if its release does not have the level, or if what it reads at its start "
        "has no place in the level's records",
        "start a release that has the level; if there is none, take an older copy of the metadata "
        "log of all controllers",
    ),
    FindingKind(
        "topic-setting-invalid",
        _ERROR,
        "a topic has a setting whose value cannot be parsed",
        "ends itself when it loads the topic",
        "take the metadata log of a member that has the value right, or an older copy",
    ),
    FindingKind(
        "metadata-snapshot-broken",
        _ERROR,
        "a snapshot of the cluster's metadata is not whole, or holds what cannot be decoded; a "
        "warning where only its end is missing, or a newer one is there",
        "loads the newest one, even where the log goes back to offset 0, up to the last whole "
        "batch, without missing the footer; does not get ready if it cannot read it",
        "move it away if an older one or the log's beginning is there, else take another member's",
    ),
    FindingKind(
        "metadata-snapshot-missing",
        _ERROR,
        "the cluster's metadata log begins above 0, and no snapshot reaches its start",
        "does not start",
        "take snapshot and log of another controller, or the snapshot from a backup",
    ),
    FindingKind(
        "metadata-snapshot-ahead",
        _WARNING,
        "the newest metadata snapshot is of a later epoch than the log, and ends below the log's "
        "end",
        "drops the log at its start, with the records behind the snapshot",
        "none if another controller led meanwhile; else move the snapshot away before any start",
    ),
    FindingKind(
        "metadata-log-missing",
        _WARNING,
        "partitions of a KRaft node, and no log dir that is given has its metadata log",
        "a controller begins with an empty one and renames every partition to -stray",
        "give all log dirs of the node; if it is lost, restore it before any start",
    ),
    FindingKind(
        "quorum-state-unreadable",
        _ERROR,
        "quorum-state cannot be parsed, or no leader epoch can follow its own",
        "does not start",
        "delete it if the node's vote cannot count twice: a single controller, or the quorum has "
        "a newer epoch",
    ),
    FindingKind(
        "bootstrap-checkpoint-unreadable",
        _ERROR,
        "bootstrap.checkpoint cannot be read, or has no level of metadata.version",
        "does not start",
        "delete it if the metadata log is there: only a new cluster begins with it",
    ),
    FindingKind(
        "meta-properties-missing",
        _ERROR,
        "a log dir of a KRaft node has no meta.properties",
        "does not start",
        "restore it: version, cluster.id, node.id, directory.id",
    ),
    FindingKind(
        "cluster-id-differs",
        _ERROR,
        "log dirs of one node name different clusters",
        "does not start",
        "restore meta.properties, or give each node's log dirs alone",
    ),
    FindingKind(
        "node-id-foreign",
        _ERROR,
        "meta.properties names another node than the metadata log",
        "does not start",
        "restore meta.properties, or give each node's log dirs alone",
    ),
    FindingKind(
        "partition-metadata-missing",
        _ERROR,
        "no partition.metadata, hence no topic id",
        "takes the directory for a stray: renames it and begins with an empty one",
        "write the file again before any start",
    ),
    FindingKind(
        "partition-metadata-unreadable",
        _ERROR,
        "partition.metadata cannot be parsed",
        "takes the log dir offline",
        "write the file again",
    ),
    FindingKind(
        "topic-id-foreign",
        _ERROR,
        "the cluster's topic of this name has another id",
        "takes the directory for a stray, if no topic of the cluster has its id",
        "find out which topic it was",
    ),
    FindingKind(
        "not-assigned",
        _ERROR,
        "the cluster does not have this partition on this node",
        "takes the directory for a stray: renames it (one of ZooKeeper's era leaves it)",
        "none if it was moved or deleted",
    ),
    FindingKind(
        "directory-id-foreign",
        _ERROR,
        "the cluster has the partition in a log dir of another id",
        "starts and has the cluster take the new id, but may leave the partition offline until it "
        "is started again",
        "restore meta.properties",
    ),
    FindingKind(
        "directory-id-twice",
        _ERROR,
        "two log dirs have the same directory id",
        "does not start",
        "restore meta.properties",
    ),
    FindingKind(
        "partition-twice",
        _ERROR,
        "two live directories of one node hold the same partition",
        "does not start",
        "move the one that is not meant away",
    ),
    FindingKind(
        "foreign-directory",
        _ERROR,
        "a directory in the log dir is no partition's",
        "does not start",
        "move it away",
    ),
    FindingKind(
        "format-not-read",
        _ERROR,
        "a segment is of Kafka 0.7",
        "ignores the file, and begins an empty log beside it",
        "migrate it with the tool of Kafka 0.8; nothing here reads it",
    ),
    FindingKind(
        "foreign-file",
        _ERROR,
        "a file ends as Kafka's do, without the 20 digits in front",
        "does not load the log, or makes an empty segment of that number",
        "move it away",
    ),
    FindingKind(
        "checkpoint-unreadable",
        _ERROR,
        "a checkpoint or meta.properties cannot be parsed",
        "takes the log dir offline, or does not start",
        "restore it; without its recovery points, high watermarks or cleaner offsets a broker "
        "starts, without log-start-offset-checkpoint deleted records are back",
    ),
    FindingKind(
        "swap-left",
        _WARNING,
        "a .swap file of an interrupted cleaning",
        "finishes the swap at its next start: segments in its range are deleted",
        "none",
    ),
    FindingKind(
        "swap-without-index",
        _WARNING,
        "a .log.swap without its .index.swap",
        "makes an empty, full index: fetches read from the segment's start",
        "`kafkalog recover --apply` before a start: it finishes the swap and makes the index",
    ),
    FindingKind(
        "cleaned-left",
        _WARNING,
        "a .cleaned file of an interrupted cleaning",
        "deletes it, and every .swap at or above it",
        "none",
    ),
    FindingKind(
        "deleted-left",
        _INFO,
        "a .deleted file after a crash",
        "deletes it at its next start",
        "none",
    ),
    FindingKind(
        "segment-changed",
        _INFO,
        "a file changed or went while it was read",
        "does that while it runs",
        "verify again",
    ),
    FindingKind(
        "unreadable",
        _ERROR,
        "a file or directory cannot be read",
        "fails as well",
        "look at its owner and mode",
    ),
)

KIND = {kind.id: kind for kind in (*KINDS, *CLUSTER_KINDS)}
