"""THE table of what an audit can find; see `checking.finding_kinds` for the columns.

What the files themselves have wrong (an index, a batch, a directory) is `verify`'s; an audit finds
why a log keeps or loses what it should not. Where both see the same thing it has verify's id. Ids
are promises.
"""

from __future__ import annotations

from kafkalog.auditing.contents_kinds import CONTENTS_KINDS
from kafkalog.auditing.policy_kinds import POLICY_KINDS
from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.finding_kinds import KIND

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_ROLL = "set segment.ms below the retention time; a segment rolls at the next append"
_TIMES = (
    "message.timestamp.after.max.ms keeps such records out; `kafka-delete-records` up to the "
    "offset that the finding names removes these, where all in front of it is due"
)

AUDIT_KINDS = (
    # -- settings --------------------------------------------------------------------------------
    FindingKind(
        "policy-drift",
        _WARNING,
        "a setting is not the declared one",
        "goes by its own",
        "`kafka-configs --alter`, or declare what is in force",
    ),
    FindingKind(
        "settings-unknown",
        _INFO,
        "the settings of the partition are not known; those given as options, else Kafka's "
        "defaults, are assumed",
        "knows them from the cluster's metadata",
        "add the log dir with `__cluster_metadata-0`, `--zookeeper-dir`, or give `--config`",
    ),
    FindingKind(
        "policy-not-compact",
        _WARNING,
        "the log was compacted once, and its cleanup.policy does not have `compact`",
        "never cleans it, and deletes by age and size what was meant to stay",
        "set cleanup.policy=compact, if its keys are still wanted",
    ),
    # -- what retention does not do --------------------------------------------------------------
    FindingKind(
        "microsecond-timestamps",
        _WARNING,
        "timestamps of micro- or nanoseconds: read as ms they lie thousands of years ahead",
        "keeps the segment, and all behind it, until then",
        f"let the producer write ms; {_TIMES}",
    ),
    FindingKind(
        "second-timestamps",
        _ERROR,
        "timestamps of seconds: read as ms they lie in January or February 1970",
        "takes all of it for expired and deletes it at its next check, minutes after it is written",
        "let the producer write ms; until then retention.ms=-1 keeps what there is, or "
        "message.timestamp.type=LogAppendTime what comes",
    ),
    FindingKind(
        "future-timestamp",
        _WARNING,
        "a record's timestamp lies in the future",
        "keeps its segment, and all behind it, until that time and retention.ms are past",
        _TIMES,
    ),
    FindingKind(
        "awaits-high-watermark",
        _WARNING,
        "what is due reaches past the high watermark",
        "deletes and cleans nothing that is not replicated",
        "bring the followers back into the ISR, or take the dead replica out by reassignment",
    ),
    FindingKind(
        "behind-younger-segment",
        _INFO,
        "segments are due by their own and lie behind one with younger records",
        "deletes only from the oldest on",
        "nothing, they go with it",
    ),
    FindingKind(
        "retention-overdue",
        _WARNING,
        "segments were due long before the broker's last sign of life, and are still here",
        "looks every log.retention.check.interval.ms (5 minutes)",
        "look for errors of its scheduler and log dir, restart it; or the `kafkalog retain` that "
        "the finding names, which was tried",
    ),
    FindingKind(
        "retention-due",
        _INFO,
        "segments are due",
        "deletes them at its next check, when it runs",
        "nothing, or the `kafkalog retain` that the finding names, which was tried",
    ),
    FindingKind(
        "below-log-start",
        _WARNING,
        "segments lie entirely below the log start offset: consumers cannot read them",
        "deletes them at its next check, whatever cleanup.policy says; before 2.0 not of compacted "
        "topics",
        "nothing, or the `kafkalog retain` that the finding names, which was tried",
    ),
    FindingKind(
        "active-never-rolls",
        _WARNING,
        "records in the active segment are older than retention.ms, or wait for compaction longer "
        "than segment.ms",
        "deletes whole segments by their youngest record, never cleans the active one, and rolls "
        "it only when something is appended",
        _ROLL,
    ),
    FindingKind(
        "many-small-segments",
        _WARNING,
        "a partition has very many segments, and they are very small",
        "holds each `.log` open and maps its two indexes: `Too many open files`, `Map failed` "
        "(vm.max_map_count), slow starts",
        "raise the setting that rolls them",
    ),
    FindingKind(
        "awaits-upload",
        _WARNING,
        "local segments of a tiered topic are due by local.retention and not uploaded",
        "keeps them until they are",
        "look for errors of the remote storage, and whether remote.log.copy.disable is set",
    ),
    FindingKind(
        "high-watermark-unknown",
        _INFO,
        "no checkpoint has the high watermark; the log's end is assumed",
        "begins at the log start, and deletes nothing until it is known",
        "add the log dir's `replication-offset-checkpoint`, or give `--high-watermark`",
    ),
    FindingKind(
        "deleted-still-open",
        _WARNING,
        "files are gone from the directory, and a process holds them open",
        "their space is free only when it closes them",
        "restart the process, or find out why it keeps them",
    ),
    # -- what compaction does not do -------------------------------------------------------------
    FindingKind(
        "compaction-overdue",
        _WARNING,
        "a log has been cleanable long before the broker's last sign of life, and is not cleaned",
        "has a dead cleaner, or calls the partition uncleanable until its restart",
        "look for `log cleaner` in its errors, restart it; or the `kafkalog compact` that the "
        "finding names, which was tried",
    ),
    FindingKind(
        "compaction-due",
        _INFO,
        "a log can be cleaned",
        "cleans the dirtiest first",
        "nothing, or the `kafkalog compact` that the finding names, which was tried",
    ),
    FindingKind(
        "compaction-lag",
        _INFO,
        "closed segments are too young for min.compaction.lag.ms",
        "leaves them dirty until they are older",
        "nothing; min.compaction.lag.ms says how long consumers see every value",
    ),
    FindingKind(
        "below-dirty-ratio",
        _INFO,
        "the dirty share is not above min.cleanable.dirty.ratio",
        "leaves the log as it is",
        "lower min.cleanable.dirty.ratio, or set max.compaction.lag.ms",
    ),
    FindingKind(
        "open-transaction",
        _WARNING,
        "a transaction is open: nothing from its first record on is cleaned, nor read by "
        "read_committed consumers",
        "aborts it after transaction.timeout.ms, unless its coordinator has forgotten it",
        "`kafka-transactions find-hanging`, then `abort`",
    ),
    FindingKind(
        "cleaner-would-fail",
        _ERROR,
        "a batch or a segment will make the cleaner fail",
        "marks the partition uncleanable until its restart, and then fails again",
        "`kafkalog verify` names what is wrong; a sound replica, or `kafkalog salvage` where a "
        "checksum is wrong: it copies every batch with a right one as it is",
    ),
    FindingKind(
        "map-too-small",
        _WARNING,
        "a segment has more records than the broker's offset map has room for keys",
        "cleans less in a round, and with more distinct keys than that in one segment fails",
        "raise log.cleaner.dedupe.buffer.size; `kafkalog compact` has no such limit",
    ),
    FindingKind(
        "many-markers",
        _INFO,
        "transaction markers are a large share of the log",
        "keeps each for delete.retention.ms after its transaction's records are gone",
        "commit less often; lower delete.retention.ms",
    ),
    FindingKind(
        "replica-away-too-long",
        _WARNING,
        "a replica of a compacted topic was out of sync for longer than delete.retention.ms, or is",
        "cleans tombstones and transaction markers away that it never got: when it leads, deleted "
        "keys come back and aborted records are read",
        "`kafkalog compare` of its log dir with one that was in sync; raise delete.retention.ms "
        "above the longest absence",
    ),
    # -- log dirs --------------------------------------------------------------------------------
    FindingKind(
        "times-of-a-copy",
        _INFO,
        "no file is as old as the newest record: their times are those of a copy, and show nothing "
        "of the broker",
        "goes by a segment's file time where its records have none",
        "copy with times (`cp -a`, `rsync -a`) if they matter",
    ),
    FindingKind(
        "not-stopped-in-order",
        _INFO,
        "the log dir is not one of a broker that was stopped in order; of a copy from a running "
        "broker files may be of different moments",
        "recovers every log past its recovery point when it starts",
        "`kafkalog verify` shows what a start would cut; stop the broker before it is copied",
    ),
    # -- directories -----------------------------------------------------------------------------
    FindingKind(
        "replica-moving",
        _WARNING,
        "a future replica: the partition moves to another log dir of its broker",
        "does not clean the partition meanwhile, and holds both copies",
        "let the move end (`kafka-reassign-partitions --verify`), or cancel it",
    ),
    FindingKind(
        "stray-replica",
        _WARNING,
        "a directory of a topic that the cluster does not have, or not with this id",
        "renames it to `-stray` when it starts, or does not start",
        "when its records are wanted nowhere, delete it",
    ),
    FindingKind(
        "audit-incomplete",
        _ERROR,
        "a part of the log could not be read, and the findings on the partition leave it out",
        "may fail on it as well",
        "look at the file; `kafkalog verify` shows what is wrong with it",
    ),
)

ALL_KINDS = {**KIND, **{k.id: k for k in (*AUDIT_KINDS, *CONTENTS_KINDS, *POLICY_KINDS)}}
