"""THE table of what can be found about a cluster as a whole; see `finding_kinds`.

Directories that are nobody's have their ids there: `not-assigned`, `topic-id-foreign`,
`directory-id-foreign`, `partition-twice`.
"""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_START = "find out why the broker is away, and start it"

CLUSTER_KINDS = (
    FindingKind(
        "metadata-unreadable",
        _ERROR,
        "a part of the metadata log or of a snapshot cannot be read, or contradicts the rest",
        "cuts the log there when it starts, or stops",
        "take `__cluster_metadata-0` from another member of the quorum",
    ),
    FindingKind(
        "cluster-stopped",
        _INFO,
        "no broker is up, and they were stopped in order: no partition has a leader for that",
        "elects leaders when it is started",
        "nothing",
    ),
    FindingKind(
        "broker-fenced",
        _WARNING,
        "a registered broker is fenced: it leads nothing and serves no client",
        "is left out of elections until it is back",
        _START,
    ),
    FindingKind(
        "no-leader",
        _ERROR,
        "a partition has no leader",
        "refuses reads and writes of it",
        f"{_START}; an unclean election loses records",
    ),
    FindingKind(
        "under-min-isr",
        _ERROR,
        "fewer replicas are in sync than min.insync.replicas",
        "refuses writes with acks=all",
        _START,
    ),
    FindingKind(
        "under-replicated",
        _WARNING,
        "not every replica is in sync",
        "goes on; the next failure is nearer",
        _START,
    ),
    FindingKind(
        "unclean-election",
        _INFO,
        "a leader was elected that may lack committed records",
        "cut the other replicas to what that leader had",
        "compare consumers' offsets and what producers sent with the log",
    ),
    FindingKind(
        "leader-imbalance",
        _WARNING,
        "a broker does not lead more than 10 % of the partitions it is preferred for",
        "gives them back every leader.imbalance.check.interval.seconds if auto.leader.rebalance",
        "`kafka-leader-election --election-type preferred`",
    ),
    FindingKind(
        "leader-skew",
        _WARNING,
        "a broker leads more than half again as many partitions as brokers do on average",
        "serves more of the traffic than others",
        "reassign partitions, or change the order of their replicas",
    ),
    FindingKind(
        "bytes-skew",
        _WARNING,
        "a broker holds more than half again as many bytes as the ones there are on average",
        "fills up before others",
        "reassign partitions",
    ),
    FindingKind(
        "log-dir-skew",
        _WARNING,
        "a log dir holds more than half again as many bytes as those of its broker on average",
        "fills up before others; a full log dir goes offline",
        "`kafka-reassign-partitions` with log dirs",
    ),
    FindingKind(
        "replicas-off-rack",
        _WARNING,
        "replicas share racks though there are others",
        "places only new partitions over racks",
        "reassign the partition",
    ),
    FindingKind(
        "partition-missing",
        _ERROR,
        "a partition is assigned to a log dir, and is not there",
        "begins with an empty one and copies the partition from its leader, if there is one",
        "find the directory before the broker starts; else let it be copied",
    ),
    FindingKind(
        "leader-epoch-unknown",
        _ERROR,
        "the leader epochs of a replica go beyond the partition's in the metadata",
        "answers with epochs no leader had: followers and consumers cut or skip records",
        "find out from which cluster or older metadata the directory or the metadata came",
    ),
    FindingKind(
        "config-drift",
        _WARNING,
        "a topic's setting is not what the file declares",
        "goes by the cluster's",
        "`kafka-configs --alter`, or change the file",
    ),
    FindingKind(
        "topic-undeclared",
        _INFO,
        "the cluster has a topic that the file does not declare",
        "goes by the cluster's",
        "declare it, or delete it",
    ),
    FindingKind(
        "topic-absent",
        _WARNING,
        "the file declares a topic that the cluster does not have",
        "does not know it",
        "create it, or take it out of the file",
    ),
)
