"""Batches and their records: rows of the table in `finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.remedies import CUT, REPLICA, SALVAGE

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

BATCH_KINDS = (
    FindingKind(
        "crc-mismatch",
        _ERROR,
        "a batch's bytes do not have the checksum in its header",
        "serves it as it is; after a crash cuts the log there if past the recovery point",
        SALVAGE,
    ),
    FindingKind(
        "batch-unreadable",
        _ERROR,
        "a batch's length, magic or count makes no sense; what follows is not checked",
        "fails reads there; after a crash cuts the log there if past the recovery point",
        SALVAGE,
    ),
    FindingKind(
        "records-unreadable",
        _ERROR,
        "the records of a batch with a right checksum cannot be decoded",
        "serves them; consumers and the cleaner fail",
        REPLICA,
    ),
    FindingKind(
        "control-record",
        _ERROR,
        "a control batch holds no control record that a broker can go on with",
        "does not start where it replays the log, after a crash or behind the newest producer "
        "snapshot; its cleaner fails if the key is wrong",
        REPLICA,
    ),
    FindingKind(
        "coordinator-record",
        _ERROR,
        "a record of `__consumer_offsets`, `__transaction_state` or `__share_group_state` that its "
        "coordinator cannot load",
        "does not load the partition: its groups have no coordinator; of transactions it has "
        "forgotten all ids behind the record",
        REPLICA,
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
        SALVAGE,
    ),
    FindingKind(
        "record-offset-order",
        _ERROR,
        "offsets of records in a batch do not rise, or leave the batch",
        "nothing; consumers skip or repeat records",
        REPLICA,
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
        REPLICA,
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
        REPLICA,
    ),
    FindingKind(
        "transaction-left",
        _ERROR,
        "a producer wrote outside of the transaction that it has open",
        "does not start where it replays the log, after a crash or behind the newest producer "
        "snapshot",
        REPLICA,
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
        CUT,
    ),
    FindingKind(
        "zero-tail",
        _ERROR,
        "a segment ends in zeros, as a preallocated one after a crash",
        "as for torn-tail",
        CUT,
    ),
)
