"""Options of several verbs, and what each does in which verb."""

from __future__ import annotations

from kafkalog.cli.display import TABLE_FORMATS
from kafkalog.cli.option_values import (
    parse_bytes,
    parse_count,
    parse_key_file,
    parse_now,
    parse_offset,
    parse_partition_name,
    parse_size,
    parse_version,
)
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.options import Option
from kafkalog.planning.force_rules import KNOWN_FORCE_RULES
from kafkalog.remote.layouts import LAYOUTS

_CHANGING = ("compact", "recover", "retain")
_JUDGING = (*_CHANGING, "audit", "why")
_CHOOSING = (
    *_CHANGING, "audit", "bucket", "cluster", "compare", "digest", "export", "salvage", "segments",
    "verify",
)  # fmt: skip
_HISTORY = ("runs", "undo", "purge")
_ATTACH = ("attach",)
_RESTORE = ("restore",)
_RESTORING = (*_ATTACH, *_RESTORE)
_TABLES = (*_CHOOSING, *_HISTORY, *_RESTORING, "info", "lag")
_PRINTING = (
    "info",
    "lag",
    *_CHANGING,
    "audit",
    "bucket",
    "cluster",
    "compare",
    "digest",
    "dump",
    "salvage",
    "segments",
    "verify",
    "why",
)
_REMOTE = ("bucket", "compare", "digest", "dump", "restore", "segments", "sql", "verify")
# Those that look at objects of remote storage, and open none.
_LISTING = ("audit", "retain")

# Those that read remote storage without a log dir.
_TREES = ("dump", "restore", "segments", "sql", "verify")

_FORCE_ON_SETTINGS = (
    "config-differs: go by --config and --config-file where they contradict the disk"
)
_FORCE_ON_CHANGE = (
    "lift one safety rule by name: config-differs, for settings that contradict the disk's; "
    "clock-differs, for a --now ahead of this machine's clock; repeatable"
)
_JOURNAL = (
    "where the journal of the run is kept, for undo (default: kafkalog/runs in the user's state "
    "directory)"
)

SHARED_OPTIONS = (
    Option(
        "--log-dir", "DIR", "the same as DIR without an option; repeatable",
        (*_CHOOSING, *_RESTORING, "info", "lag", "sql", "why", "runs"),
        does_there={"runs": "only runs that changed something there; repeatable"},
        is_repeatable=True,
    ),
    Option(
        "--topic", "NAME|GLOB", "only these topics; repeatable", (*_CHOOSING, *_RESTORING),
        does_there={
            "attach": "of a bucket: only these topics, by name, glob or topic id; needed with "
            "--apply ('*' is all); repeatable",
            **dict.fromkeys(
                _CHANGING, "only these topics; needed with --apply ('*' is all); repeatable"
            ),
            "restore": "only these topics of the source, OLD=NEW under another name; needed with "
            "--apply ('*' is all); repeatable",
        },
        is_repeatable=True,
    ),
    Option(
        "--topic-partition", "T-P", "only these partitions, as orders-3; repeatable",
        (*_CHOOSING, *_RESTORE), parse_partition_name, is_repeatable=True,
        does_there={"restore": "only these partitions of the source, as orders-3; repeatable"},
    ),
    Option(
        "--config", "KEY=VALUE",
        "a topic setting under Kafka's name and limits, as retention.ms=7d; repeatable",
        _JUDGING,
        does_there={
            "audit": "a topic setting that the disk does not have, under Kafka's name; repeatable"
        },
        is_repeatable=True,
    ),
    Option(
        "--config-file", "F", "settings per topic, as TOML", (*_JUDGING, "cluster"),
        does_there={
            "audit": "settings per topic, as TOML; where the disk has others that is a finding",
            "cluster": "declared settings per topic, as TOML; where the cluster differs is a "
            "finding",
        },
    ),
    Option(
        "--server-properties", "F", "the broker's file, for settings that are not on the disk",
        (*_JUDGING, "bucket", "cluster"),
    ),
    Option(
        "--now", "MS|ISO", "the time it is done for (default: the clock)",
        (*_JUDGING, *_RESTORING, "bucket", "cluster", "info", "sql"), parse_now,
        does_there={
            "attach": "the time of the new records (default: the clock)",
            "sql": "the time that ages are computed for (default: the clock)",
            "bucket": "the time that ages are computed for (default: the clock)",
            "audit": "the time of the audit (default: the clock)",
            "cluster": "show the cluster as of then, by the metadata alone (default: the log's "
            "end)",
            "info": "the time of the look, behind which records are in the future (default: the "
            "clock)",
            "compact": "the time at which the cleaner would begin (default: the clock)",
            "recover": "the time by which producers expire (default: the clock)",
            "restore": "the time by which producers expire (default: the clock)",
            "retain": "the time of the deletion (default: the clock)",
            "why": "the time of the question (default: the clock)",
        },
    ),
    Option(
        "--kafka-version", "X.Y",
        "rules of which release, 4.1 to 4.4 (default: by the disk's feature level, else 4.3)",
        _JUDGING, parse_version,
    ),
    Option("--high-watermark", "N", "the high watermark, where no checkpoint has it", _JUDGING,
           parse_offset),
    Option(
        "--json", None, "one JSON document on stdout",
        (*_PRINTING, *_HISTORY, *_RESTORING, "export"),
        does_there={"dump": "one JSON line for each row on stdout"},
    ),
    Option(
        "--format", "|".join(TABLE_FORMATS),
        "a table, or the main table as CSV with plain numbers; json is --json (default table)",
        _TABLES, words=TABLE_FORMATS,
    ),
    Option(
        "--wide", None, "all columns, however long a line is (default: what fits the terminal)",
        _TABLES,
    ),
    Option(
        "--columns", "A,B", "these columns of the main table; repeatable", _TABLES,
        is_repeatable=True,
    ),
    Option(
        "--utc", None, "times of tables in UTC (default: in this machine's zone)", _TABLES,
    ),
    Option("--report", "F.html", "write the audit as one HTML page", ("audit",)),
    Option(
        "--apply", None, "change the log; without it nothing is changed",
        (*_CHANGING, *_RESTORING, "bucket", "compare"),
        does_there={
            "attach": "write into the log dirs; without it nothing is changed",
            "bucket": "delete the objects of the delete list; without it nothing is changed",
            "compare": "with --heal: change the wrong replicas",
            "restore": "write into the log dirs of --into; without it nothing is changed",
        },
    ),
    Option(
        "--force", "RULE",
        "lift one safety rule by name: null-keys, config-differs, nothing-dirty, clock-differs; "
        "repeatable",
        (*_JUDGING, *_ATTACH), words=tuple(sorted(KNOWN_FORCE_RULES)),
        does_there={
            "attach": "lift one safety rule by name: metadata-left (take over what a metadata log "
            "says that is still there, and move it aside), lost-partitions (make partitions anew, "
            "empty, of which no copy is there and others of a higher number are); repeatable",
            "audit": _FORCE_ON_SETTINGS,
            "compact": "lift one safety rule by name: null-keys, config-differs, nothing-dirty "
            "(clean a log once more that has too little to clean), clock-differs (a --now ahead of "
            "this machine's clock); repeatable",
            "recover": _FORCE_ON_SETTINGS,
            "retain": _FORCE_ON_CHANGE,
            "why": _FORCE_ON_SETTINGS,
        },
        is_repeatable=True,
    ),
    Option(
        "--workers", "N", "worker processes (default: one per core)",
        ("bucket", "compact", "compare", "digest", "recover", "verify", "audit"), parse_count,
        does_there=dict.fromkeys(
            ("compact", "verify"), "worker processes (default: one per core, none for small logs)"
        ),
    ),
    Option(
        "--run-dir", "DIR",
        "journal and history of runs (default: kafkalog/runs in the user's state directory)",
        (*_CHANGING, *_RESTORING, "bucket", "compare", "verify", "audit", "segments", *_HISTORY),
        does_there={
            **dict.fromkeys((*_CHANGING, *_RESTORING, "compare"), _JOURNAL),
            "audit": "where audits are kept, for growth and for unchanged logs (default: "
            "kafkalog/runs in the user's state directory)",
            "bucket": "where deep looks are kept, for --since (default: kafkalog/runs in the "
            "user's state directory)",
            "segments": "where audits are kept: what the last one of the same log dirs read of "
            "logs that have not changed is not read again (default: kafkalog/runs in the user's "
            "state directory)",
            "verify": "where runs are kept, for --since (default: kafkalog/runs in the user's "
            "state directory)",
        },
    ),
    Option(
        "--redact", None,
        "hash keys, header keys, groups and transactional ids, drop values, in every output",
        _PRINTING,
        does_there={"dump": "hash keys and header keys, leave values and header values out"},
    ),
    Option(
        "--no-undo", None, "keep no replaced files: their space is free at once, without undo",
        (*_CHANGING, *_RESTORING, "bucket", "compare"),
        does_there={
            "bucket": "with --apply: also delete objects of stores that keep no versions, which "
            "nothing puts back",
        },
    ),
    Option(
        "--output", "PATH", "write there; a new or empty directory",
        ("attach", "bucket", "compact", "digest", "restore", "salvage", "sql"),
        does_there={
            "attach": "of a bucket: a CSV of each of --groups there; a new or empty directory",
            "bucket": "with --rebuild-metadata: where it is written; a new or empty directory",
            "compact": "write the new files and a swap script there, and leave the log dirs alone; "
            "a new or empty directory",
            "digest": "the digest; a new file",
            "salvage": "write the copies there; a new or empty directory",
            "sql": "write the files of --format parquet there; a new or empty directory",
        },
    ),
    Option(
        "--max-bytes", "SIZE", "no more than so many bytes", ("compact", "dump"), parse_bytes,
        does_there={
            "compact": "the dirtiest partitions first, and none that would pass so many bytes read",
            "dump": "show no more than so many bytes of each file",
        },
    ),
    Option(
        "--max-batch-bytes", "SIZE",
        "a larger batch, stored or decompressed, is not read (default 64MiB)",
        (
            "bucket", "compact", "compare", "digest", "dump", "recover", "salvage", "sql", "verify",
            "audit", "attach", "restore",
            "why",
        ),
        parse_bytes,
        does_there={
            "salvage": "a larger batch, stored or decompressed, is copied without a look at its "
            "records (default 64MiB)"
        },
        default=MAX_BATCH_BYTES,
    ),
    Option(
        "--estimate", None, "read the records as well", ("compact", "audit"),
        does_there={
            "audit": "read the records: distinct keys, and what compaction would give back, of "
            "topics that are compacted, or would be with --what-if",
            "compact": "read the records, so that the plan has each refusal that --apply would "
            "meet",
        },
    ),
    Option(
        "--zookeeper-dir", "DIR",
        "a stopped ZooKeeper's dataDir (and its dataLogDir), for the settings of that era; "
        "repeatable",
        (*_JUDGING, "verify", "cluster", "lag", "sql"),
        does_there={
            "cluster": "a stopped ZooKeeper's dataDir (and its dataLogDir): its clusters; "
            "repeatable",
            "lag": "a stopped ZooKeeper's dataDir (and its dataLogDir), for what consumers before "
            "0.9 committed there; repeatable",
            "sql": "a stopped ZooKeeper's dataDir (and its dataLogDir), for views zookeeper_…; "
            "repeatable",
        },
        is_repeatable=True,
    ),
    Option(
        "--zk-root", "PATH", "the cluster's chroot in ZooKeeper (default: found by the cluster id)",
        (*_JUDGING, "verify", "cluster", "lag", "sql"),
    ),
    Option(
        "--remote-dir", "URI",
        "remote storage with the older segments of tiered partitions, a directory or s3://…; "
        "repeatable",
        (*_REMOTE, *_LISTING),
        does_there={
            "audit": "remote storage of tiered topics, for what their objects take there, a "
            "directory or s3://…; repeatable",
            "bucket": "the remote storage, a directory or s3://…; repeatable",
            "retain": "with --cluster-is-gone: the remote storage, a directory or s3://…; "
            "repeatable",
        },
        is_repeatable=True,
    ),
    Option(
        "--remote-layout", "|".join(LAYOUTS), "how it is laid out (default: found out by looking)",
        (*_REMOTE, *_LISTING, *_ATTACH), words=LAYOUTS,
        does_there=dict.fromkeys(
            _TREES,
            "how it is laid out (default: found out by looking); without --remote-dir: DIR itself "
            "is remote storage, read without a log dir",
        ),
    ),
    Option(
        "--remote-key", "ID=FILE",
        "the RSA key of an id that manifests name, for encrypted segments; repeatable",
        (*_REMOTE, *_ATTACH), parse_key_file, is_repeatable=True,
    ),
    Option(
        "--remote-cache-bytes", "SIZE",
        "how much a process keeps of what it read of buckets and remote storage, and how much of "
        "a scan may be ahead (default: KAFKALOG_REMOTE_CACHE_BYTES, or 64MiB; 0 keeps nothing)",
        (*_REMOTE, *_ATTACH, "audit", "cluster", "lag", "why"), parse_size,
    ),
)  # fmt: skip
