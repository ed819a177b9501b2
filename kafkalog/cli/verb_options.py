"""Options of one verb each."""

from __future__ import annotations

from kafkalog.cli.option_values import (
    parse_at,
    parse_bytes,
    parse_capacity,
    parse_duration,
    parse_feature,
    parse_memory,
    parse_metadata_partitions,
    parse_minutes,
    parse_now,
    parse_offset,
    parse_price,
    parse_size,
    parse_source_option,
)
from kafkalog.options import Option
from kafkalog.planning.compaction_plan import STRATEGIES

_COMPACT = ("compact",)
_VERIFY = ("verify",)
_AUDIT = ("audit",)
_WHY = ("why",)
_DUMP = ("dump",)
_SQL = ("sql",)
_EXPORT = ("export",)
_BUCKET = ("bucket",)
_ATTACH = ("attach",)

BYTES_FORMATS = ("text", "hex", "base64")
RESULT_FORMATS = ("table", "json", "csv", "parquet")
# Those of `reading.request`, whose module needs Arrow.
READ_MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
SQL_ENGINES = ("duckdb", "spark")

VERB_OPTIONS = (
    Option(
        "--script", "F",
        "write what was set and allowed into a new file, as a script of Kafka's own tools: topics "
        "with their settings, settings of brokers and groups, quotas, ACLs; secrets are left out, "
        "and named",
        ("cluster",),
    ),
    Option(
        "--strategy", "|".join(STRATEGIES),
        "how the key map is made: by a partition's own task, or by many (default: across tasks "
        "from 8 GiB on, where that ends the run of all partitions sooner with its workers)",
        _COMPACT, words=STRATEGIES,
    ),
    Option(
        "--dedupe-buffer-size", "SIZE",
        "bytes of a key map bounded as Kafka's, and its rounds (default: no bound)",
        _COMPACT, parse_size,
    ),
    Option(
        "--swap-per-group", None,
        "swap each group of segments before the next is written: with --no-undo no more space than "
        "one group takes",
        _COMPACT,
    ),
    Option(
        "--on-corrupt-batch", "keep",
        "keep a corrupt batch as it is, in its place (default: leave its partition as it is)",
        _COMPACT, words=("keep",),
    ),
    Option(
        "--heal", None,
        "plan how each wrong replica is put right from a right one; with --apply do it",
        ("compare",),
    ),
    Option(
        "--patch", "F",
        "with --heal: a file with what puts wrong replicas of other hosts right, made from their "
        "digests and the log dirs here; where it is there already it is the right copy",
        ("compare",),
    ),
    Option(
        "--hash-key", "FILE",
        "the key that hosts share, 16 bytes or more: digests are compared if they were made with "
        "the same one",
        ("compare", "digest"),
        does_there={
            "compare": "the key that the digests were made with, to compare them with log dirs"
        },
    ),
    Option(
        "--in-place", None,
        "make the metadata for these log dirs, as they lie: the quorum that had it is lost",
        _ATTACH,
    ),
    Option(
        "--initial-controllers", "ID@HOST:PORT",
        "the voters of a dynamic quorum, as kafka-storage.sh takes them, where no metadata log "
        "names them; ID@LISTENER://HOST:PORT for a listener not called CONTROLLER, a directory id "
        "behind it (:ID) for a node whose log dirs are elsewhere; repeatable, or with commas "
        "(default: a static quorum)",
        _ATTACH, is_repeatable=True,
    ),
    Option(
        "--feature", "NAME=LEVEL",
        "a feature level that the cluster had, as metadata.version=30, where neither a metadata "
        "log nor bootstrap.checkpoint tells; repeatable",
        _ATTACH, parse_feature, is_repeatable=True,
    ),
    Option(
        "--replicas", "DIR|DIGEST",
        "log dir or digest of another node (repeatable): tombstones and markers that a replica "
        "there has not got stay",
        _COMPACT, is_repeatable=True,
    ),
    Option(
        "--require-replicas", None,
        "refuse partitions of which not all replicas are given, here or by --replicas",
        _COMPACT,
    ),
    Option(
        "--max-minutes", "N",
        "the dirtiest partitions first, no further one begun after so many minutes, or 2h",
        _COMPACT, parse_minutes,
    ),
    Option(
        "--max-bytes-per-second", "SIZE",
        "read and write no more than so much of logs a second, all workers together",
        (*_COMPACT, *_BUCKET, "retain"), parse_bytes,
        does_there={
            "retain": "with --cluster-is-gone and --apply: delete no more than so much of objects "
            "a second",
            "bucket": "with --deep: read no more than so much of segments a second, as they were "
            "before they were copied, all workers together; with --apply: delete no more than so "
            "much of objects a second"
        },
    ),
    Option(
        "--memory", "SIZE",
        "memory of each worker, as 512m or 2GiB (default 512m, at least 256m); what does not fit "
        "goes to disk",
        (*_COMPACT, "compare", *_SQL), parse_memory,
        does_there={
            "sql": "memory of DuckDB, as 512m or 2GiB (default a quarter of the machine's, at "
            "least 256m); what does not fit goes to temporary files"
        },
    ),
    Option(
        "--verify", "deep",
        "before the swap, compare every record with what an independent second pass finds has to "
        "stay",
        _COMPACT, words=("deep",),
    ),
    Option(
        "--contents", None,
        "read all records: tombstones, keyless records, values that look like tombstones, what "
        "groups have committed",
        _AUDIT,
    ),
    Option(
        "--since", "RUN", "read only what has changed since this verify run",
        (*_VERIFY, *_BUCKET, *_AUDIT),
        does_there={
            "audit": "show what has changed since this audit: id or directory of a run, `last`, or "
            "a file that `audit --json` wrote",
            "bucket": "with --deep: read only what this run, which may have been cut off, has not "
            "read, or what has changed since"
        },
    ),
    Option(
        "--fail-on", "any|new",
        "exit with 1 for any warning or error, or with --since for new ones alone (default any)",
        _AUDIT, words=("any", "new"), default="any",
    ),
    Option(
        "--deep", None,
        "read all of each segment: the tag and size of each chunk, each batch and record, each "
        "index",
        _BUCKET,
    ),
    Option(
        "--cluster-is-gone", None,
        "no broker of the cluster will run again: with --apply delete as well what retention lets "
        "go from the remote storage of --remote-dir, as its leaders would have",
        ("retain",),
    ),
    Option(
        "--min-age", "DURATION",
        "what is younger may be an upload in progress (default 24h)",
        _BUCKET, parse_duration,
    ),
    Option(
        "--rebuild-metadata", None,
        "write __remote_log_metadata anew to --output, from what is in remote storage; without log "
        "dirs, too",
        _BUCKET,
    ),
    Option(
        "--metadata-partitions", "N",
        "with --rebuild-metadata: partitions of the topic, where no log dir tells (default 50)",
        (*_BUCKET, *_ATTACH), parse_metadata_partitions,
        does_there={
            "attach": "of a bucket: partitions of __remote_log_metadata, as the brokers' "
            "rlmm.config.remote.log.metadata.topic.num.partitions says (default: as in "
            "--metadata-from, else 50)",
        },
    ),
    Option(
        "--metadata-from", "LOGDIR",
        "of a bucket: log dirs of the old cluster, for __remote_log_metadata as it was, settings "
        "of topics and where logs begin (default: by what is in the bucket alone); repeatable",
        _ATTACH, is_repeatable=True,
    ),
    Option("--group", "G", "only this group; repeatable", ("lag",), is_repeatable=True),
    Option(
        "--what-if", "KEY=VALUE",
        "simulate retention with this topic setting, as retention.ms=3d or retention.bytes=10GiB; "
        "repeatable: all at once, a setting named again begins another simulation",
        _AUDIT, is_repeatable=True,
    ),
    Option(
        "--at", "+7d|MS|ISO",
        "simulate for this time beside now; repeatable (default: up to 90 days ahead)",
        _AUDIT, parse_at, is_repeatable=True,
    ),
    Option(
        "--price-per-gib-month", "PRICE",
        "what a GiB in remote storage costs a month, as 0.023: the tables and --what-if have the "
        "cost of what is there",
        _AUDIT, parse_price,
    ),
    Option(
        "--before", "MS|ISO",
        "give the offsets for `kafka-delete-records` that delete what is older, and what they free",
        _AUDIT, parse_now,
    ),
    Option(
        "--capacity", "[DIR=]SIZE",
        "the size of a log dir, or of each: bytes, 500GiB, 4TiB; repeatable",
        _AUDIT, parse_capacity, is_repeatable=True,
    ),
    Option(
        "--policy", "F", "what topics have to keep to, as YAML; violations are findings", _AUDIT
    ),
    Option("--files", "F,F", "files, as DumpLogSegments takes them", _DUMP, is_repeatable=True),
    Option("--print-data-log", None, "show records with key and value", _DUMP),
    Option("--deep-iteration", None, "show records without key and value", _DUMP),
    Option("--skip-record-metadata", None, "of records show key and value only", _DUMP),
    Option("--max-message-size", "N", "accepted, and not needed", _DUMP, parse_offset),
    Option("--verify-index-only", None, "compare indexes, print no entries", _DUMP),
    Option("--index-sanity-check", None, "only what a broker checks of indexes", _DUMP),
    Option("--cluster-metadata-decoder", None, "records of __cluster_metadata", _DUMP),
    Option("--offsets-decoder", None, "records of __consumer_offsets", _DUMP),
    Option("--transaction-log-decoder", None, "records of __transaction_state", _DUMP),
    Option("--remote-log-metadata-decoder", None, "records of __remote_log_metadata", _DUMP),
    Option("--share-group-state-decoder", None, "records of __share_group_state", _DUMP),
    Option("--hex", None, "show every byte of a batch with the field it belongs to", _DUMP),
    Option(
        "--payload", "|".join(BYTES_FORMATS),
        "how bytes are shown (default text, base64 in JSON)", _DUMP, words=BYTES_FORMATS,
    ),
    Option(
        "--format", "|".join(BYTES_FORMATS), "the earlier name of --payload", _DUMP,
        words=BYTES_FORMATS,
    ),
    Option(
        "--sql", "QUERY", "the query, or several, each ended by a semicolon (default: stdin)", _SQL
    ),
    Option(
        "--format", "|".join(RESULT_FORMATS),
        "a table (most 1,000 rows), JSON lines, CSV, Parquet files",
        _SQL, words=RESULT_FORMATS, default="table",
    ),
    Option(
        "--engine", "|".join(SQL_ENGINES),
        "DuckDB in this process, or a Spark session, which needs Java (default duckdb)",
        _SQL, words=SQL_ENGINES, default="duckdb",
    ),
    Option(
        "--replicas", "all",
        "read all replicas of a partition that is there more than once (default: refused)",
        _SQL, words=("all",),
    ),
    Option(
        "--table", "TABLE", "a path, or the name of a table in the session's catalog", _EXPORT,
        is_required=True,
    ),
    Option(
        "--mode", "append|merge", "all records, or the latest of each key (default append)",
        _EXPORT, words=("append", "merge"), default="append",
    ),
    Option(
        "--mode", "|".join(READ_MODES),
        "what cannot be read ends the query, is a row with its error, or is left out and counted "
        "(default FAILFAST)",
        _SQL, words=READ_MODES, default=READ_MODES[0],
    ),
    Option(
        "--key-filter-dir", "DIR",
        "where it is kept which keys closed segments can hold, so that a later query for a key "
        "leaves out the others (default: nothing is kept)",
        _SQL,
    ),
    Option(
        "--decode", None,
        "also tables topic_NAME: keys and values as their types, by the schemas in the topic "
        "_schemas there", _SQL,
    ),
    Option(
        "--option", "NAME=VALUE", "an option of the data source, as isolationLevel; repeatable",
        _EXPORT, parse_source_option, is_repeatable=True,
    ),
    Option("--key", "K", "a record's key, as UTF-8", _WHY),
    Option("--offset", "N", "a record's offset", _WHY, parse_offset),
)  # fmt: skip
