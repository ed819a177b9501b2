"""THE table of verbs and options, shared by the command line and the jobs.

The parser, the refusals and the lists in README are derived from it. An option that is promised for
a verb but not done yet is in the table too: it is known by name and refused by name, so that a
script never believes it was honoured.

Only the standard library is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalog.cli.option_values import (
    parse_at,
    parse_bytes,
    parse_bytes_format,
    parse_capacity,
    parse_count,
    parse_export_mode,
    parse_force_rule,
    parse_memory,
    parse_minutes,
    parse_now,
    parse_offset,
    parse_on_corrupt_batch,
    parse_partition_name,
    parse_replicas,
    parse_result_format,
    parse_source_option,
    parse_strategy,
    parse_verify,
    parse_version,
)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb; `module` has its `run(args)`, None where `job`, a script of jobs/, alone does it.
    `takes`: what stands behind the verb without an option, as `paths` of the parsed arguments.
    """

    name: str
    does: str
    module: str | None = None
    takes: str | None = None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """An option of some verbs. Without `metavar` it is a switch; `repeatable` ones become lists.

    `verbs` are those that take it, `done` those where it works already.
    """

    flag: str
    metavar: str | None
    does: str
    verbs: tuple[str, ...]
    done: tuple[str, ...] = ()
    parse: Callable[[str], Any] = str
    repeatable: bool = False
    default: Any = None
    is_required: bool = False

    @property
    def dest(self) -> str:
        """`--topic-partition` → `topic_partition`, the attribute of the parsed arguments."""
        return self.flag.removeprefix("--").replace("-", "_")


VERBS = (
    Verb("compact", "plan log compaction; with --apply carry it out", "kafkalog.cli.compact"),
    Verb("segments", "list the segments below the log dirs", "kafkalog.cli.segments"),
    Verb("retain", "plan retention; with --apply delete what it allows", "kafkalog.cli.retain"),
    Verb(
        "audit",
        "what the policies in force make of the logs, and what blocks them",
        "kafkalog.cli.audit",
    ),
    Verb("cluster", "members, leaders, placement, drift", "kafkalog.cli.cluster"),
    Verb("verify", "check CRC, order and indexes; nothing is changed", "kafkalog.cli.verify"),
    Verb(
        "recover",
        "find indexes and snapshots that are not right; with --apply rebuild them",
        "kafkalog.cli.recover",
    ),
    Verb("sql", "SQL over all views; starts Spark", "kafkalog.query", takes="DIR"),
    Verb("dump", "batches, records and entries of files", "kafkalog.cli.dump", takes="FILE"),
    Verb(
        "why",
        "which rule keeps a partition or a record, and when it goes",
        "kafkalog.cli.why",
        takes="T-P",
    ),
    Verb(
        "salvage", "valid copies of damaged segments without the bad ranges", "kafkalog.cli.salvage"
    ),
    Verb("runs", "runs and what each still holds", "kafkalog.cli.held_runs", takes="RUN"),
    Verb("undo", "put the files a run replaced back", "kafkalog.cli.undo", takes="RUN"),
    Verb(
        "purge", "give the space of a run's replaced files back", "kafkalog.cli.purge", takes="RUN"
    ),
    Verb("export", "append or merge records into a Delta table", job="export_to_delta.py"),
)

# Told files or runs, not partitions: of the general options these take those about output only.
_ALL = (*(verb.name for verb in VERBS if verb.takes is None), "why")
_HISTORY = ("runs", "undo", "purge")
_EVERY = (*_ALL, "dump")
_READY = ("audit", "cluster", "compact", "recover", "retain", "salvage", "segments", "verify")
_CHANGING = ("compact", "recover", "retain")
_JUDGING = (*_CHANGING, "audit", "why")
_KNOWING = (*_JUDGING, "verify")
_SETTING = (*_JUDGING, "cluster")
_PRINTING = (*_READY, "dump", "why")
_TASKS = ("compact", "recover")
_COMPACT = ("compact",)
_VERIFY = ("verify",)
_AUDIT = ("audit",)
_WHY = ("why",)
_DUMP = ("dump",)
_SQL = ("sql",)
_EXPORT = ("export",)
_LIMITED = ("compact", "dump", "recover", "salvage", "sql", "verify")
# The package's own limit, of which only numbers may be known here.
MAX_BATCH_BYTES = 64 * 1024 * 1024

OPTIONS = (
    Option(
        "--log-dir", "DIR", "a log dir, a partition directory or a glob; repeatable",
        _ALL, (*_READY, *_EXPORT, *_WHY), repeatable=True, is_required=True,
    ),
    Option(
        "--topic", "NAME|GLOB", "only these topics; repeatable",
        _ALL, (*_READY, *_EXPORT), repeatable=True,
    ),
    Option(
        "--topic-partition", "T-P", "only these partitions, as orders-3; repeatable",
        _ALL, (*_READY, *_EXPORT), parse=parse_partition_name, repeatable=True,
    ),
    Option(
        "--config", "KEY=VALUE", "a topic setting under Kafka's name and limits; repeatable",
        _ALL, _JUDGING, repeatable=True,
    ),
    Option("--config-file", "F", "settings per topic, as TOML", _ALL, _SETTING),
    Option(
        "--server-properties", "F", "the broker's file, for settings that are not on the disk",
        _ALL, _SETTING,
    ),
    Option(
        "--now", "MS|ISO",
        "the time it is done for (default: the clock)",
        _ALL, _SETTING, parse_now,
    ),
    Option(
        "--kafka-version", "X.Y",
        "rules of which release, 4.1 to 4.4 (default: by the disk's feature level, else 4.3)",
        _ALL, _JUDGING, parse_version,
    ),
    Option(
        "--high-watermark", "N", "it, where there is no checkpoint", _ALL, _JUDGING, parse_offset
    ),
    Option(
        "--json", None, "one JSON document on stdout",
        (*_EVERY, *_HISTORY), (*_PRINTING, *_HISTORY, *_EXPORT),
    ),
    Option(
        "--report", "F.html", "write the audit as one HTML page", _ALL, _AUDIT,
    ),
    Option("--apply", None, "change the log; without it nothing is changed", _ALL, _CHANGING),
    Option(
        "--force", "RULE",
        "lift one safety rule by name: null-keys, config-differs, nothing-dirty; repeatable",
        _ALL, _JUDGING, parse_force_rule, repeatable=True,
    ),
    Option(
        "--workers", "N", "worker processes (default: one per core)",
        _ALL, (*_TASKS, *_VERIFY, "audit"), parse_count,
    ),
    Option(
        "--run-dir", "DIR",
        "journal and history of runs (default: kafkalog/runs in the user's state directory)",
        (*_ALL, *_HISTORY), (*_CHANGING, *_VERIFY, *_AUDIT, *_HISTORY),
    ),
    Option(
        "--redact", None,
        "hash keys, header keys, groups and transactional ids, drop values, in every output",
        _EVERY, _PRINTING,
    ),
    Option(
        "--no-undo", None, "keep no replaced files: their space is free at once, without undo",
        _CHANGING, _CHANGING,
    ),
    Option(
        "--strategy", "within-task|across-tasks",
        "how the key map is made: by a partition's own task, or by many (default: by size, across "
        "tasks from 8 GiB on; by one worker within)",
        _COMPACT, _COMPACT, parse_strategy,
    ),
    Option(
        "--dedupe-buffer-size", "N",
        "bytes of a key map bounded as Kafka's, and its rounds (default: no bound)",
        _COMPACT, _COMPACT, parse_offset,
    ),
    Option(
        "--output", "DIR", "write there; a new or empty directory",
        ("compact", "salvage", "sql"), ("compact", "salvage", "sql"),
    ),
    Option(
        "--swap-per-group", None,
        "swap each group of segments before the next is written: with --no-undo no more space than "
        "one group takes",
        _COMPACT, _COMPACT,
    ),
    Option(
        "--on-corrupt-batch", "keep",
        "keep a corrupt batch as it is, in its place (default: leave its partition as it is)",
        _COMPACT, _COMPACT, parse_on_corrupt_batch,
    ),
    Option(
        "--max-bytes", "N",
        "no more than so many bytes",
        ("compact", "dump"), ("compact", "dump"), parse_bytes,
    ),
    Option(
        "--max-batch-bytes", "N",
        "a larger batch, stored or decompressed, is not read (default 64MiB)",
        _LIMITED, _LIMITED, parse_bytes, default=MAX_BATCH_BYTES,
    ),
    Option(
        "--max-minutes", "N",
        "the dirtiest partitions first, no further one begun after so many minutes",
        _COMPACT, _COMPACT, parse_minutes,
    ),
    Option(
        "--max-bytes-per-second", "N",
        "read and write no more than so much of logs a second, all workers together",
        _COMPACT, _COMPACT, parse_bytes,
    ),
    Option(
        "--memory", "SIZE",
        "memory of each worker: bytes, 512m or 2g (default 512m, at least 256m); what does not fit "
        "goes to disk",
        _COMPACT, _COMPACT, parse_memory,
    ),
    Option(
        "--verify", "deep",
        "before the swap, compare every record with what an independent second pass finds has to "
        "stay",
        _COMPACT, _COMPACT, parse_verify,
    ),
    Option(
        "--contents", None,
        "read all records: tombstones, keyless records, values that look like tombstones, what "
        "groups have committed",
        _AUDIT, _AUDIT,
    ),
    Option(
        "--estimate", None,
        "read the records as well",
        (*_COMPACT, *_AUDIT), (*_COMPACT, *_AUDIT),
    ),
    Option(
        "--since", "RUN", "read only what has changed since this verify run", _VERIFY, _VERIFY
    ),
    Option(
        "--what-if", "KEY=VALUE",
        "simulate retention with this topic setting, as retention.ms=3d or retention.bytes=10GiB; "
        "repeatable: all at once, a setting named again begins another simulation",
        _AUDIT, _AUDIT, repeatable=True,
    ),
    Option(
        "--at", "+7d|MS|ISO",
        "simulate for this time beside now; repeatable (default: up to 90 days ahead)",
        _AUDIT, _AUDIT, parse_at, repeatable=True,
    ),
    Option(
        "--before", "MS|ISO",
        "give the offsets for `kafka-delete-records` that delete what is older, and what they free",
        _AUDIT, _AUDIT, parse_now,
    ),
    Option(
        "--capacity", "[DIR=]SIZE",
        "the size of a log dir, or of each: bytes, 500GiB, 4TiB; repeatable",
        _AUDIT, _AUDIT, parse_capacity, repeatable=True,
    ),
    Option(
        "--policy", "F", "what topics have to keep to, as YAML; violations are findings",
        _AUDIT, _AUDIT,
    ),
    Option("--files", "F,F", "files, as DumpLogSegments takes them", _DUMP, _DUMP, repeatable=True),
    Option("--print-data-log", None, "show records with key and value", _DUMP, _DUMP),
    Option("--deep-iteration", None, "show records without key and value", _DUMP, _DUMP),
    Option("--skip-record-metadata", None, "of records show key and value only", _DUMP, _DUMP),
    Option("--max-message-size", "N", "accepted, and not needed", _DUMP, _DUMP, parse_offset),
    Option("--verify-index-only", None, "compare indexes, print no entries", _DUMP, _DUMP),
    Option("--index-sanity-check", None, "only what a broker checks of indexes", _DUMP, _DUMP),
    Option("--cluster-metadata-decoder", None, "records of __cluster_metadata", _DUMP, _DUMP),
    Option("--offsets-decoder", None, "records of __consumer_offsets", _DUMP, _DUMP),
    Option("--transaction-log-decoder", None, "records of __transaction_state", _DUMP, _DUMP),
    Option("--remote-log-metadata-decoder", None, "records of __remote_log_metadata", _DUMP, _DUMP),
    Option("--share-group-state-decoder", None, "records of __share_group_state", _DUMP, _DUMP),
    Option("--value-decoder-class", "CLASS", "a Java class for values", _DUMP),
    Option("--key-decoder-class", "CLASS", "a Java class for keys", _DUMP),
    Option("--hex", None, "show every byte of a batch with the field it belongs to", _DUMP, _DUMP),
    Option(
        "--format", "text|hex|base64", "how bytes are shown (default text, base64 in JSON)",
        _DUMP, _DUMP, parse_bytes_format,
    ),
    Option(
        "--sql", "QUERY", "the query, or several, each ended by a semicolon (default: stdin)",
        _SQL, _SQL,
    ),
    Option(
        "--format", "table|json|parquet", "a table (most 1,000 rows), JSON lines, Parquet files",
        _SQL, _SQL, parse_result_format, default="table",
    ),
    Option(
        "--replicas", "all",
        "read all replicas of a partition that is there more than once (default: refused)",
        _SQL, _SQL, parse_replicas,
    ),
    Option(
        "--table", "TABLE", "a path, or the name of a table in the session's catalog", _EXPORT,
        _EXPORT, is_required=True,
    ),
    Option(
        "--mode", "append|merge", "all records, or the latest of each key (default append)",
        _EXPORT, _EXPORT, parse_export_mode, default="append",
    ),
    Option(
        "--option", "NAME=VALUE", "an option of the data source, as isolationLevel; repeatable",
        _EXPORT, _EXPORT, parse_source_option, repeatable=True,
    ),
    Option("--key", "K", "a record's key, as UTF-8", _WHY, _WHY),
    Option("--offset", "N", "a record's offset", _WHY, _WHY, parse_offset),
    Option(
        "--zookeeper-dir", "DIR",
        "a stopped ZooKeeper's dataDir (and its dataLogDir); repeatable",
        (*_ALL, "sql"), (*_KNOWING, "cluster", *_SQL), repeatable=True,
    ),
    Option(
        "--zk-root", "PATH", "the cluster's chroot in ZooKeeper (default: found by the cluster id)",
        (*_ALL, "sql"), (*_KNOWING, "cluster", *_SQL),
    ),
)  # fmt: skip
