"""A log dir, its directories and small files: rows of the table in `finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

LOG_DIR_KINDS = (
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
