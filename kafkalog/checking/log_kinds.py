"""A log as a whole, and its producer snapshots: rows of the table in `finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.remedies import EPOCHS, REBUILD, REPLICA

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

LOG_KINDS = (
    FindingKind(
        "segment-missing",
        _ERROR,
        "offsets are missing between two segments, and compaction cannot have taken them; a warning"
        " where an interrupted cleaning may have",
        "nothing; consumers skip them silently",
        REPLICA,
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
        REPLICA,
    ),
    FindingKind(
        "segment-overlap",
        _ERROR,
        "a segment has offsets of the next one",
        "nothing; records may be read twice",
        f"{REPLICA}, or salvage: it puts batches in the order of offsets",
    ),
    FindingKind(
        "log-end-lost",
        _ERROR,
        "checkpoints, snapshots, leader epochs or indexes know offsets past the log's end; a"
        " warning where one of them alone does, and others know no such offsets",
        "begins at the lower end, and gives the offsets out again",
        REPLICA,
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
        "if those records were not deleted on purpose, correct the checkpoint before any start",
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
        REPLICA,
    ),
    FindingKind(
        "leader-epochs-disagree",
        _WARNING,
        "leader-epoch-checkpoint says another epoch than the batches",
        "keeps it, after a crash too: followers may cut the log at a wrong place",
        EPOCHS,
    ),
    FindingKind(
        "leader-epochs-not-rising",
        _WARNING,
        "lines of leader-epoch-checkpoint contradict each other",
        "keeps the later line of two: followers may cut the log at a wrong place",
        EPOCHS,
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
        EPOCHS,
    ),
    FindingKind(
        "open-transaction-forgotten",
        _ERROR,
        "a transaction is open, and no snapshot is there after a clean stop (of `compare` the same "
        "id says that it never ends)",
        "assumes no producers: the transaction's records become readable",
        REBUILD,
    ),
    FindingKind(
        "snapshot-missing",
        _WARNING,
        "producers wrote, and no snapshot is there after a clean stop",
        "forgets them: a retry of theirs is appended twice",
        REBUILD,
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
)
