"""Options of `restore`, some of them of `attach` as well."""

from __future__ import annotations

from kafkalog.cli.option_values import parse_count
from kafkalog.options import Option

_RESTORE = ("restore",)
_RESTORING = ("attach", *_RESTORE)

RESTORE_OPTIONS = (
    Option(
        "--into",
        "LOGDIR",
        "a log dir of the stopped cluster that has the topics, empty, or of one that was never "
        "started, in which they are made; give those of all replicas, repeatable",
        _RESTORING,
        is_repeatable=True,
        does_there={
            "attach": "attach a bucket: a log dir of a node that is formatted and was never "
            "started; give those of all nodes, repeatable",
        },
    ),
    Option(
        "--since",
        "TIME|OFFSETS",
        "nothing in front of the first batch that has a record of a time (ms or ISO) or later, or "
        "in front of these offsets: orders-0=300,orders-1=0",
        _RESTORE,
    ),
    Option(
        "--until",
        "TIME|OFFSETS",
        "nothing later than a time (ms or ISO), or nothing from these offsets on: "
        "orders-0=1200,orders-1=900; a batch that goes further stays out whole",
        _RESTORE,
    ),
    Option(
        "--end-transactions",
        "abort|cut",
        "what becomes of transactions that are open at the cut: abort them, or cut in front of "
        "them (default: refuse)",
        _RESTORING,
        words=("abort", "cut"),
        does_there={
            "attach": "of a bucket: what becomes of transactions whose end was not copied: abort "
            "them, or cut in front of them where a segment begins there (default: refuse)",
        },
    ),
    Option(
        "--groups",
        "NAME|GLOB",
        "offsets that these groups of the source have committed, clamped to what is restored, in "
        "the new cluster's __consumer_offsets, or with --output as CSV for "
        "kafka-consumer-groups.sh --from-file; repeatable",
        _RESTORING,
        is_repeatable=True,
        does_there={
            "attach": "of a bucket: offsets that these groups have committed, by the old "
            "__consumer_offsets in the log dirs of --metadata-from, clamped to what the bucket "
            "has, in the new cluster's __consumer_offsets, or with --output as CSV for "
            "kafka-consumer-groups.sh --from-file; repeatable",
        },
    ),
    Option(
        "--offsets-partitions",
        "N",
        "partitions of a new cluster's __consumer_offsets (default: as many as the source's)",
        _RESTORING,
        parse_count,
    ),
    Option(
        "--replication-factor",
        "N",
        "replicas of topics that are made (default: as many as in the source, else 3; at most one "
        "a node)",
        _RESTORE,
        parse_count,
    ),
    Option(
        "--compact",
        None,
        "compact topics whose cleanup.policy says so before they are put in place; where no "
        "metadata log tells it, those that --topic names",
        _RESTORE,
    ),
    Option(
        "--empty-followers",
        None,
        "of topics that are made fill the leader's replica only; brokers copy the others",
        _RESTORE,
    ),
)
