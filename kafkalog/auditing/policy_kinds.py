"""What a policy can find, rows of the table in `audit_kinds`. Severities are those of the rules."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR, _INFO = Severity.ERROR, Severity.INFO

POLICY_KINDS = (
    FindingKind(
        "policy-setting",
        _ERROR,
        "a setting in force is not what the policy asks for",
        "goes by the setting in force",
        "`kafka-configs --alter` on the topic, or change the policy",
    ),
    FindingKind(
        "policy-age",
        _ERROR,
        "records are older than the policy lets them become",
        "keeps them until its own rules take them",
        "shorten retention, roll segments earlier, or delete records up to the offset",
    ),
    FindingKind(
        "policy-retention",
        _ERROR,
        "records are deleted earlier than the policy lets them",
        "deletes what its settings say",
        "raise retention.ms, or retention.bytes to what the traffic needs",
    ),
    FindingKind(
        "policy-compaction-lag",
        _ERROR,
        "superseded records wait longer for compaction than the policy lets them",
        "cleans a log only once its settings let it",
        "set max.compaction.lag.ms, and look why the log is not cleaned: `kafkalog why`",
    ),
    FindingKind(
        "policy-codec",
        _ERROR,
        "batches are compressed by a codec that the policy does not name",
        "keeps what producers sent",
        "set compression.type on the topic or the producers",
    ),
    FindingKind(
        "policy-keys",
        _ERROR,
        "a partition has more distinct keys than the policy lets it have",
        "needs as many entries in its cleaner's map",
        "find who writes new keys, or delete those that are over by tombstones",
    ),
    FindingKind(
        "policy-bytes",
        _ERROR,
        "a topic has more bytes than the policy lets it have",
        "goes on until the disk is full",
        "lower retention, or raise the limit",
    ),
    FindingKind(
        "policy-unused",
        _INFO,
        "a rule of the policy names no topic that is there",
        "knows nothing of policies",
        "correct the pattern, or drop the rule",
    ),
    FindingKind(
        "policy-unchecked",
        _INFO,
        "a limit of the policy could not be looked at",
        "knows nothing of policies",
        "audit with --estimate, which counts keys",
    ),
)
