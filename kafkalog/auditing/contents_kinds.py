"""What an audit finds of the contents of logs: rows of the table of findings; see `audit_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_WARNING, _INFO = Severity.WARNING, Severity.INFO

CONTENTS_KINDS = (
    FindingKind(
        "readable-beyond-policy",
        _INFO,
        "records older than retention.ms can still be read",
        "deletes whole segments, by their newest record, and the active one only when all may go",
        "a smaller segment.ms or segment.bytes, if the age of the oldest record matters",
    ),
    FindingKind(
        "age-beyond-promise",
        _WARNING,
        "records can be read that are older than retention.ms and segment.ms together",
        "would have rolled and deleted them, had it been able to",
        "see what holds their segment back (`kafkalog why`); for idle topics a smaller segment.ms",
    ),
    FindingKind(
        "retention-bytes-per-partition",
        _INFO,
        "a topic is larger than its retention.bytes, and that is what the setting allows",
        "counts retention.bytes for each partition, and leaves up to one segment more",
        "divide the limit you mean by the partitions, and make segment.bytes a part of that",
    ),
    FindingKind(
        "stuck-tombstones",
        _WARNING,
        "tombstones are past their time, or have none, and no round of cleaning is to come",
        "removes them in the next round, which only new records bring about",
        "write to the topic, or clean the log once more by the command that the finding names",
    ),
    FindingKind(
        "stuck-markers",
        _WARNING,
        "markers of transactions that have no record left, and no round of cleaning is to come",
        "gives them a delete horizon in one round and removes them in a later one",
        "write to the topic, or clean the log once more by the command that the finding names",
    ),
    FindingKind(
        "fake-tombstones",
        _WARNING,
        "the latest value of keys is empty or the text null, which is no tombstone",
        "keeps them for ever: only a null value deletes a key",
        "make the producer send null; then send null once more for each of these keys",
    ),
    FindingKind(
        "keyless-records",
        _WARNING,
        "a compacted topic holds records without a key",
        "refuses new ones, and drops those that are there when it cleans",
        "read them first if they matter; make the producer send keys",
    ),
    FindingKind(
        "contents-unread",
        _WARNING,
        "the records could not be read to their end, and counts leave the rest out",
        "may fail on it as well",
        "`kafkalog verify` shows what is wrong with it",
    ),
    FindingKind(
        "consumed-by-all",
        _INFO,
        "all groups that have offsets have read what is in front of an offset",
        "keeps it until retention takes it",
        "`kafka-delete-records` up to that offset, if no other consumer will read it",
    ),
    FindingKind(
        "committed-beyond-end",
        _WARNING,
        "a group has committed an offset that the log does not reach",
        "answers OFFSET_OUT_OF_RANGE, and the client begins where auto.offset.reset says",
        "reset the group's offset; find out whether the log was cut or made anew",
    ),
    FindingKind(
        "committed-below-start",
        _INFO,
        "the offset a group has committed is deleted already",
        "answers OFFSET_OUT_OF_RANGE, and the client begins where auto.offset.reset says",
        "delete the group's offsets if it is gone; else it has missed records",
    ),
    FindingKind(
        "busy-committer",
        _WARNING,
        "a group commits oftener than once a second for each partition",
        "appends a record for each partition of each commit",
        "commit by time, not by message (enable.auto.commit, or commit every few seconds)",
    ),
    FindingKind(
        "coordinator-load",
        _WARNING,
        "a coordinator has to read more than a GiB before it can serve its groups or transactions",
        "answers COORDINATOR_LOAD_IN_PROGRESS meanwhile, after every change of leader",
        "find out why it is not compacted (`kafkalog why`), or the `kafkalog compact` that the "
        "finding names, which was tried",
    ),
    FindingKind(
        "unfinished-remote-copies",
        _WARNING,
        "copies to remote storage were begun and never finished",
        "counts finished copies only from 3.9 on; some before it dropped old records for them",
        "count finished copies only; look for their objects in the bucket",
    ),
)
