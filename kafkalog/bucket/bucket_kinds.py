"""THE table of what can be found in remote storage; see `checking.finding_kinds`, whose kinds a
deep look adds for batches, records and indexes.
"""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_LIST = "delete what the delete list names, if nobody else needs it"

BUCKET_KINDS = (
    FindingKind(
        "object-missing",
        _ERROR,
        "an object of a segment whose copy was finished is not there",
        "fails fetches of these offsets",
        "put it back from a version that the store keeps, or from a replica or backup",
    ),
    FindingKind(
        "object-differs",
        _ERROR,
        "an object, its manifest and `__remote_log_metadata` contradict each other",
        "fails fetches of these offsets, or hands out other records",
        "look who wrote it; put the object back from a version that the store keeps",
    ),
    FindingKind(
        "object-damaged",
        _ERROR,
        "a part of an object cannot be decrypted, decompressed or read",
        "fails fetches of these offsets",
        "put it back from a version that the store keeps, or from a replica or backup",
    ),
    FindingKind(
        "manifest-unreadable",
        _ERROR,
        "a manifest cannot be read, or is of a version that is not known",
        "fails fetches of its segment",
        "put it back from a version that the store keeps",
    ),
    FindingKind(
        "key-unreadable",
        _ERROR,
        "a segment is encrypted with a key that is not on the ring, or does not open it; info "
        "where no key was given at all, and none is needed",
        "fails fetches of its segment if its own ring lacks the key, too",
        "give the key by `--remote-key`; a key that is lost takes its segments with it",
    ),
    FindingKind(
        "remote-gap",
        _ERROR,
        "offsets from the log start on are in no finished copy and not on the disks",
        "fails fetches of these offsets as out of range, so that consumers reset",
        "look for the segment on other replicas, or in what the store keeps",
    ),
    FindingKind(
        "remote-overlap",
        _WARNING,
        "offsets are in two finished copies",
        "reads the one of its leader epoch, and counts both for retention.bytes",
        "nothing: retention takes both",
    ),
    FindingKind(
        "half-upload",
        _WARNING,
        "an upload was begun and never finished, and is older than what may go on",
        "never reads it, nor goes on with it: it begins anew, under another id",
        _LIST,
    ),
    FindingKind(
        "orphan",
        _WARNING,
        "a segment that `__remote_log_metadata` does not have, or has as deleted",
        "never reads nor deletes it; the store bills it",
        _LIST,
    ),
    FindingKind(
        "topic-gone",
        _WARNING,
        "segments of a topic that was deleted",
        "has no partition any more that would read or delete them; the store bills them",
        _LIST,
    ),
    FindingKind(
        "retention-overdue",
        _WARNING,
        "segments that retention or the log start let go are still there",
        "deletes them as the partition's leader, every remote.log.manager.task.interval.ms",
        "look why the leader does not: its log says so",
    ),
    FindingKind(
        "not-judged",
        _WARNING,
        "what is read of `__remote_log_metadata` does not tell whether a segment is wanted; info "
        "of copies without ids",
        "knows it from the whole topic",
        "give the log dirs of the nodes that have the rest, after a clean stop",
    ),
    FindingKind(
        "too-young",
        _INFO,
        "objects that may be an upload in progress: younger than `--min-age`, or than the newest "
        "record that was read of `__remote_log_metadata`",
        "may be about to finish it",
        "look again later",
    ),
    FindingKind(
        "foreign",
        _INFO,
        "segments of topic ids that this cluster's metadata never had: another cluster's",
        "does not look at them",
        "nothing",
    ),
)
BUCKET_KIND = {kind.id: kind for kind in BUCKET_KINDS}
