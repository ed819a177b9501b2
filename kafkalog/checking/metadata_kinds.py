"""The cluster's metadata log and its quorum's files: rows of the table in `finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

METADATA_KINDS = (
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
        "that is a controller begins with an empty one and renames every partition to -stray",
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
)
