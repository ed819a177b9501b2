"""The indexes of a segment: rows of the table in `finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.remedies import REBUILD

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

INDEX_KINDS = (
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
        REBUILD,
    ),
    FindingKind(
        "offset-index-short",
        _WARNING,
        "a large part of a segment has no entry in .index",
        "reads from the last entry before: slow fetches",
        REBUILD,
    ),
    FindingKind(
        "offset-index-padded",
        _WARNING,
        "zeros behind the entries of .index",
        "takes them for entries: reads from the segment's start, rolls the active segment",
        REBUILD,
    ),
    FindingKind(
        "time-index-missing",
        _WARNING,
        "no .timeindex, though .index is there",
        "makes an empty one: retention goes by the file's modification time",
        REBUILD,
    ),
    FindingKind(
        "time-index-disagrees",
        _ERROR,
        "an entry of .timeindex does not fit the log",
        "uses it: searches by time skip records, retention goes by a wrong time",
        REBUILD,
    ),
    FindingKind(
        "time-index-short",
        _WARNING,
        "the last entry of a closed segment's .timeindex is older than its records",
        "retention takes the segment for older than it is",
        REBUILD,
    ),
    FindingKind(
        "time-index-padded",
        _ERROR,
        "zeros behind the entries of .timeindex",
        "takes them for entries: retention takes the segment for one of 1970",
        REBUILD,
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
        REBUILD,
    ),
    FindingKind(
        "transaction-index-stale",
        _ERROR,
        "an entry of .txnindex has no abort in the log",
        "read_committed consumers miss committed records of the producer",
        REBUILD,
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
)
