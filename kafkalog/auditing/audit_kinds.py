"""THE table of what an audit can find; see `checking.finding_kinds` for the columns.

What the files themselves have wrong (an index, a batch, a directory) is `verify`'s; an audit finds
why a log keeps or loses what it should not. Ids are promises.
"""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.finding_kinds import KIND

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

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
        _WARNING,
        "nobody says by which settings the partition is kept; Kafka's defaults are assumed",
        "knows them from the cluster's metadata",
        "add the log dir with `__cluster_metadata-0`, `--zookeeper-dir`, or say them by `--config`",
    ),
    FindingKind(
        "audit-incomplete",
        _ERROR,
        "a part of the log could not be read, and what is said of the partition leaves it out",
        "may fail on it as well",
        "look at the file; `kafkalog verify` tells what is wrong with it",
    ),
)

ALL_KINDS = {**KIND, **{kind.id: kind for kind in AUDIT_KINDS}}
