"""What an option does in a verb, where that is not what the table in `options` says in general.

`--help` and the option tables of the documents show these texts. Only the standard library is
imported here.
"""

from __future__ import annotations

_TOPIC = "only these topics; needed with --apply ('*' is all); repeatable"
_CONFIG_DIFFERS = (
    "lift one safety rule by name: config-differs, for settings that contradict the disk's; "
    "repeatable"
)
_JOURNAL = (
    "where the journal of the run is kept, for undo (default: kafkalog/runs in the user's state "
    "directory)"
)
_SETTINGS = (
    "a stopped ZooKeeper's dataDir (and its dataLogDir), for the settings of that era; repeatable"
)

# flag → verb → text
IN_VERB: dict[str, dict[str, str]] = {
    "--log-dir": {
        "cluster": "a log dir of a node; repeatable: give those of all nodes that are there",
        "verify": "a log dir, a partition directory or a glob; repeatable: give all of a node",
    },
    "--topic": dict.fromkeys(("compact", "recover", "retain"), _TOPIC),
    "--config": {
        "audit": "a topic setting that the disk does not have, under Kafka's name; repeatable",
    },
    "--config-file": {
        "audit": "settings per topic, as TOML; where the disk has others that is a finding",
        "cluster": "declared settings per topic, as TOML; where the cluster differs is a finding",
    },
    "--now": {
        "audit": "the time of the audit (default: the clock)",
        "cluster": "show the cluster as of then, by the metadata alone (default: the log's end)",
        "compact": "the time at which the cleaner would begin (default: the clock)",
        "recover": "the time by which producers expire (default: the clock)",
        "retain": "the time of the deletion (default: the clock)",
        "why": "the time of the question (default: the clock)",
    },
    "--json": {
        "dump": "one JSON line for each row on stdout",
    },
    "--force": {
        "audit": (
            "config-differs: go by --config and --config-file where they contradict the disk"
        ),
        "compact": (
            "lift one safety rule by name: null-keys, config-differs, nothing-dirty (clean a log "
            "once more that has too little to clean); repeatable"
        ),
        "recover": _CONFIG_DIFFERS,
        "retain": _CONFIG_DIFFERS,
        "why": "config-differs: go by --config and --config-file where they contradict the disk",
    },
    "--run-dir": {
        "audit": (
            "where audits are kept, for growth and for unchanged logs (default: kafkalog/runs in "
            "the user's state directory)"
        ),
        "compact": _JOURNAL,
        "recover": _JOURNAL,
        "retain": _JOURNAL,
        "verify": (
            "where runs are kept, for --since (default: kafkalog/runs in the user's state "
            "directory)"
        ),
    },
    "--redact": {
        "dump": "hash keys and header keys, leave values and header values out",
    },
    "--output": {
        "compact": (
            "write the new files and a swap script there, and leave the log dirs alone; a new or "
            "empty directory"
        ),
        "salvage": "write the copies there; a new or empty directory",
        "sql": "write the files of --format parquet there; a new or empty directory",
    },
    "--max-bytes": {
        "compact": "the dirtiest partitions first, and none that would pass so many bytes read",
        "dump": "show no more than so many bytes of each file",
    },
    "--max-batch-bytes": {
        "salvage": (
            "a larger batch, stored or decompressed, is copied without a look at its records "
            "(default 64MiB)"
        ),
    },
    "--estimate": {
        "audit": (
            "read the records: distinct keys, and what compaction would give back, of topics that "
            "are compacted, or would be with --what-if"
        ),
        "compact": "read the records, so that the plan has each refusal that --apply would meet",
    },
    "--zookeeper-dir": {
        "cluster": "a stopped ZooKeeper's dataDir (and its dataLogDir): its clusters; repeatable",
        "sql": (
            "a stopped ZooKeeper's dataDir (and its dataLogDir), for views zookeeper_…; repeatable"
        ),
        **dict.fromkeys(("audit", "compact", "recover", "retain", "verify", "why"), _SETTINGS),
    },
}


def option_text(flag: str, verb: str, general: str) -> str:
    """What the option does in this verb; `general` is what the table says for all."""
    return IN_VERB.get(flag, {}).get(verb, general)
