"""THE table of what can be found: id, severity, meaning, what a broker makes of it, what to do.

Of the cluster as a whole there is more in `cluster_kinds`; the reference is written from both. Ids
are promises: scripts go by them, so one is never used for something else. What a broker does
was seen with Kafka 4.3 (tests/oracle); a severity may be lower where the next start heals it.
"""

from __future__ import annotations

from kafkalog.checking.batch_kinds import BATCH_KINDS
from kafkalog.checking.cluster_kinds import CLUSTER_KINDS
from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.index_kinds import INDEX_KINDS
from kafkalog.checking.log_dir_kinds import LOG_DIR_KINDS
from kafkalog.checking.log_kinds import LOG_KINDS
from kafkalog.checking.metadata_kinds import METADATA_KINDS

__all__ = ["KIND", "KINDS", "FindingKind", "Severity"]

KINDS = (*BATCH_KINDS, *INDEX_KINDS, *LOG_KINDS, *METADATA_KINDS, *LOG_DIR_KINDS)
KIND = {kind.id: kind for kind in (*KINDS, *CLUSTER_KINDS)}
